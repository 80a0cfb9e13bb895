//! Plots as SVG text, without scripts. Colours come from the page's style sheet, so that they follow light and dark.

use std::fmt::Write as _;

use crate::report::{Group, Kind, Limits, Report, Standard};

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 270.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 52.0;

/// An axis: what its two ends stand for, and where it is marked.
struct Axis {
    low: f64,
    high: f64,
    marks: Vec<(f64, String)>,
    name: &'static str,
}

impl Axis {
    /// Shares from 0 to 1.
    fn shares(name: &'static str) -> Self {
        let marks = (0..=4).map(|quarter| (f64::from(quarter) / 4.0, format!("{} %", quarter * 25))).collect();
        Self { low: 0.0, high: 1.0, marks, name }
    }

    /// Doublings: positions are logarithms.
    fn doublings(low: i32, high: i32, name: &'static str) -> Self {
        let label = |power: i32| if power < 0 { format!("1/{}", 1 << -power) } else { (1 << power).to_string() };
        // No more than eight names fit; 1 is among them.
        let step = ((high - low + 7) / 8).max(1);
        let marks = (low..=high).filter(|power| power % step == 0);
        let marks = marks.map(|power| (f64::from(power), label(power))).collect();
        Self { low: f64::from(low), high: f64::from(high), marks, name }
    }

    fn counts(most: u32, name: &'static str) -> Self {
        let step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000].into_iter().find(|step| most / step <= 5);
        let step = step.unwrap_or(10_000);
        let top = most.div_ceil(step).max(1) * step;
        let marks = (0..=top / step).map(|at| (f64::from(at * step), (at * step).to_string())).collect();
        Self { low: 0.0, high: f64::from(top), marks, name }
    }

    /// How far along a value is, from 0 to 1.
    fn at(&self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }
}

#[derive(Clone, Copy)]
enum Place {
    Top(usize),
    Bottom(usize),
}

/// A drawing with two axes.
struct Plot {
    x: Axis,
    y: Axis,
    svg: String,
}

impl Plot {
    fn new(label: &str, x: Axis, y: Axis) -> Self {
        let mut svg = format!(r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{}">"#, escape(label));
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let plot = Self { x, y, svg: String::new() };
        for (value, text) in &plot.y.marks {
            let at = plot.py(*value);
            let _ = write!(
                svg,
                r#"<path class="grid" d="M{LEFT} {at:.1}H{right}"/><text class="end" x="{:.0}" y="{:.1}">{text}</text>"#,
                LEFT - 6.0,
                at + 4.5
            );
        }
        for (value, text) in &plot.x.marks {
            let at = plot.px(*value);
            let _ = write!(
                svg,
                r#"<path class="grid" d="M{at:.1} {TOP}V{bottom}"/><text class="middle" x="{at:.1}" y="{:.0}">{text}</text>"#,
                bottom + 22.0
            );
        }
        let _ = write!(
            svg,
            r#"<text class="middle name" x="{:.0}" y="{:.0}">{}</text>"#,
            (LEFT + right) / 2.0,
            HEIGHT - 5.0,
            plot.x.name
        );
        let _ = write!(
            svg,
            r#"<text class="middle name" transform="translate(15 {:.0}) rotate(-90)">{}</text>"#,
            (TOP + bottom) / 2.0,
            plot.y.name
        );
        Self { svg, ..plot }
    }

    fn px(&self, value: f64) -> f64 {
        LEFT + self.x.at(value) * (WIDTH - RIGHT - LEFT)
    }

    fn py(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.at(value) * (HEIGHT - BOTTOM - TOP)
    }

    /// A vertical line that means "as fast as the baseline".
    fn even(&mut self) {
        let at = self.px(0.0);
        let _ = write!(self.svg, r#"<path class="even" d="M{at:.1} {TOP}V{:.1}"/>"#, HEIGHT - BOTTOM);
    }

    fn points(&self, points: impl Iterator<Item = (f64, f64)>) -> String {
        let mut path = String::new();
        for (at, (x, y)) in points.enumerate() {
            let _ = write!(path, "{}{:.1} {:.1}", if at == 0 { "M" } else { "L" }, self.px(x), self.py(y));
        }
        path
    }

    fn line(&mut self, colour: usize, points: impl Iterator<Item = (f64, f64)>) {
        let path = self.points(points);
        let _ = write!(self.svg, r#"<path class="line c{colour}" d="{path}"/>"#);
    }

    /// Between two lines with the same places on the x axis.
    fn band(&mut self, colour: usize, points: &[(f64, f64, f64)]) {
        let there = points.iter().map(|&(x, low, _)| (x, low));
        let back = points.iter().rev().map(|&(x, _, high)| (x, high));
        let path = self.points(there.chain(back));
        let _ = write!(self.svg, r#"<path class="band c{colour}" d="{path}Z"/>"#);
    }

    /// A name for a line, at the right: counted from the top, or from the bottom where lines rise.
    fn key(&mut self, place: Place, colour: usize, name: &str) {
        let y = match place {
            Place::Top(place) => TOP + 16.0 + 18.0 * place as f64,
            Place::Bottom(place) => HEIGHT - BOTTOM - 10.0 - 18.0 * place as f64,
        };
        let x = WIDTH - RIGHT - 8.0;
        let _ = write!(self.svg, r#"<text class="end key c{colour}" x="{x:.0}" y="{y:.0}">{}</text>"#, escape(name));
    }

    fn finish(mut self) -> String {
        self.svg.push_str("</svg>");
        self.svg
    }
}

/// A plot with the words under it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Figure {
    pub(crate) title: String,
    pub(crate) svg: String,
    pub(crate) caption: String,
}

/// All plots that the report has something for.
pub(crate) fn figures(report: &Report) -> Vec<Figure> {
    [fast(report), histogram(report), limits(report), pass_at(report), verdicts(report)].into_iter().flatten().collect()
}

/// fast_p over p, for each baseline.
fn fast(report: &Report) -> Option<Figure> {
    let group = report.headline()?;
    let speeds: Vec<_> = group.speed.iter().filter(|speed| !speed.curve.is_empty()).collect();
    speeds.first()?;
    let mut plot = Plot::new(
        "fast_p over p",
        Axis::doublings(-3, 4, "p: times faster than the baseline"),
        Axis::shares("share of problems"),
    );
    plot.even();
    for (colour, speed) in speeds.iter().enumerate() {
        let band: Vec<_> = speed.curve.iter().map(|point| (point.p.log2(), point.low, point.high)).collect();
        plot.band(colour, &band);
        plot.line(colour, speed.curve.iter().map(|point| (point.p.log2(), point.value)));
        plot.key(Place::Top(colour), colour, &format!("against {}", speed.baseline));
    }
    let caption = "Share of problems solved more than p times faster than the baseline, by one sample; the band is the 95 % interval.";
    Some(Figure { title: "fast_p".into(), svg: plot.finish(), caption: caption.into() })
}

/// Speedups of all correct samples.
fn histogram(report: &Report) -> Option<Figure> {
    let rows = report.problems.iter().flat_map(|problem| &problem.outcomes);
    let speedups: Vec<f64> = rows.filter_map(|row| Some(row.speedup?.value.log2())).collect();
    if speedups.is_empty() {
        return None;
    }
    let low = speedups.iter().copied().fold(f64::INFINITY, f64::min).floor().clamp(-10.0, -1.0) as i32;
    let high = speedups.iter().copied().fold(f64::NEG_INFINITY, f64::max).ceil().clamp(1.0, 10.0) as i32;
    // Four bars to a doubling, so that none of them spans the even point.
    let mut bars = vec![0u32; ((high - low) * 4) as usize];
    for speedup in &speedups {
        let at = ((speedup - f64::from(low)) * 4.0).floor().clamp(0.0, bars.len() as f64 - 1.0);
        bars[at as usize] += 1;
    }
    let most = bars.iter().copied().max().unwrap_or(1);
    let mut plot = Plot::new(
        "Distribution of speedups",
        Axis::doublings(low, high, "times faster than the baseline"),
        Axis::counts(most, "samples"),
    );
    for (at, &count) in bars.iter().enumerate().filter(|bar| *bar.1 > 0) {
        let from = f64::from(low) + at as f64 / 4.0;
        let (x, next, y) = (plot.px(from), plot.px(from + 0.25), plot.py(f64::from(count)));
        let class = if from < 0.0 { "bad" } else { "good" };
        let _ = write!(
            plot.svg,
            r#"<rect class="{class}" x="{:.1}" y="{y:.1}" width="{:.1}" height="{:.1}"><title>{count} samples from {:.2} to {:.2} times</title></rect>"#,
            x + 0.5,
            next - x - 1.0,
            HEIGHT - BOTTOM - y,
            from.exp2(),
            (from + 0.25).exp2()
        );
    }
    plot.even();
    let baseline = &report.setting.baselines[0];
    let caption = format!("Correct and timed samples by their speedup against {baseline}.");
    Some(Figure { title: "Speedups".into(), svg: plot.finish(), caption })
}

/// Speedup against the share of the device's limit.
fn limits(report: &Report) -> Option<Figure> {
    let points: Vec<_> = report
        .problems
        .iter()
        .filter_map(|problem| {
            let best = problem.best?;
            Some((problem.id.as_str(), best, best.fraction?))
        })
        .collect();
    let logs = || points.iter().map(|point| point.1.value.log2());
    points.first()?;
    let low = logs().fold(f64::INFINITY, f64::min).floor().clamp(-10.0, -1.0) as i32;
    let high = logs().fold(f64::NEG_INFINITY, f64::max).ceil().clamp(1.0, 10.0) as i32;
    let mut plot = Plot::new(
        "Speedup over share of the device's limit",
        Axis::shares("share of the device's measured limit"),
        Axis::doublings(low, high, "times faster"),
    );
    let even = plot.py(0.0);
    let _ = write!(plot.svg, r#"<path class="even" d="M{LEFT} {even:.1}H{:.1}"/>"#, WIDTH - RIGHT);
    for (id, best, fraction) in points {
        let (x, y) = (plot.px(fraction), plot.py(best.value.log2()));
        if let (Some(low), Some(high)) = (best.low, best.high) {
            let (low, high) = (plot.py(low.log2()), plot.py(high.log2()));
            let _ = write!(plot.svg, r#"<path class="whisker" d="M{x:.1} {low:.1}V{high:.1}"/>"#);
        }
        let _ = write!(
            plot.svg,
            r#"<circle class="dot" cx="{x:.1}" cy="{y:.1}" r="3.5"><title>{}: {:.2} times faster, {:.0} % of the limit</title></circle>"#,
            escape(id),
            best.value,
            fraction * 100.0
        );
    }
    let caption = "Each problem's fastest sample. Right: little is left to gain. Left and high: the baseline is slow; left and low: the kernel is.";
    Some(Figure { title: "Speedup and the device's limit".into(), svg: plot.finish(), caption: caption.into() })
}

/// pass@k over k, by precision profile.
fn pass_at(report: &Report) -> Option<Figure> {
    let most = report.headline()?.pass_at.iter().map(|of| of.k).max().filter(|&k| k > 1)?;
    let high = f64::from(most).log2().ceil() as i32;
    let mut plot =
        Plot::new("pass@k over k", Axis::doublings(0, high, "k: samples"), Axis::shares("share of problems"));
    let all = |standard: &Standard| standard.groups.first().map(|group: &Group| group.pass_at.clone());
    let drawn = report.standards.len().min(6);
    for (colour, standard) in report.standards.iter().take(drawn).enumerate() {
        let points = all(standard).unwrap_or_default();
        if colour == 0 {
            let band: Vec<_> = points.iter().map(|of| (f64::from(of.k).log2(), of.share.low, of.share.high)).collect();
            plot.band(colour, &band);
        }
        plot.line(colour, points.iter().map(|of| (f64::from(of.k).log2(), of.share.value)));
        plot.key(Place::Bottom(drawn - 1 - colour), colour, &standard.profile);
    }
    let caption = "Probability that at least one of k samples is right; the band is the 95 % interval under the deciding profile.";
    Some(Figure { title: "pass@k".into(), svg: plot.finish(), caption: caption.into() })
}

/// Samples by verdict.
fn verdicts(report: &Report) -> Option<Figure> {
    let kinds: Vec<&Kind> = report.taxonomy.iter().collect();
    let most = kinds.iter().map(|kind| kind.count).max()?;
    let row = 24.0;
    let height = TOP + row * kinds.len() as f64 + 4.0;
    let (from, to) = (142.0, WIDTH - 48.0);
    let mut svg = format!(r#"<svg viewBox="0 0 {WIDTH} {height:.0}" role="img" aria-label="Samples by verdict">"#);
    for (at, kind) in kinds.iter().enumerate() {
        let y = TOP + row * at as f64;
        let width = ((to - from) * f64::from(kind.count) / f64::from(most)).max(1.0);
        let class = match kind.fault {
            Some(tilewright_contract::Fault::None) => "good",
            Some(tilewright_contract::Fault::Candidate) => "bad",
            _ => "warn",
        };
        let reasons: Vec<String> =
            kind.reasons.iter().take(5).map(|reason| format!("{} {}", reason.count, reason.code)).collect();
        let _ = write!(
            svg,
            r#"<text class="end" x="{:.0}" y="{:.0}">{}</text><rect class="{class}" x="{from}" y="{y:.0}" width="{width:.1}" height="{:.0}"><title>{}</title></rect><text x="{:.1}" y="{:.0}">{}</text>"#,
            from - 8.0,
            y + 14.0,
            escape(&kind.verdict),
            row - 5.0,
            escape(&reasons.join(", ")),
            from + width + 6.0,
            y + 14.0,
            kind.count
        );
    }
    svg.push_str("</svg>");
    let caption =
        "All samples by verdict: accepted; failed by their own fault; not decided, through no fault of theirs.";
    Some(Figure { title: "Verdicts".into(), svg, caption: caption.into() })
}

/// A bar from 0 to 1 with its interval, for a table's cell.
pub(crate) fn bar(value: f64, interval: Limits) -> String {
    let x = |share: f64| 2.0 + 96.0 * share.clamp(0.0, 1.0);
    format!(
        r#"<svg class="bar" viewBox="0 0 100 12" aria-hidden="true"><path class="grid" d="M2 6H98"/><path class="span" d="M{:.1} 6H{:.1}"/><circle class="dot" cx="{:.1}" cy="6" r="3"/></svg>"#,
        x(interval.low),
        x(interval.high),
        x(value)
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
