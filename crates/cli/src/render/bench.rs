//! A benchmark's report and a comparison on a terminal.

use std::fmt::Write as _;

use comfy_table::Table;
use owo_colors::{OwoColorize, Stream, Style};
use tilewright_bench::{Comparison, Group, Kind, ProblemRow, Report, Share, Speed, Standard};

use super::{indent, plain, table};

/// Rows of the table of problems that are shown: the whole is in the JSON and on the page.
const PROBLEMS: usize = 40;

pub(crate) fn bench_report(report: &Report) -> String {
    let mut out = headline(report);
    for standard in &report.standards {
        let _ = writeln!(out, "\n{}", self::standard(standard));
    }
    let _ = writeln!(out, "\n{}", indent(&taxonomy(&report.taxonomy).to_string()));
    let _ = writeln!(out, "\n{}", indent(&problems(&report.problems).to_string()));
    if report.problems.len() > PROBLEMS {
        let _ = writeln!(out, "  … and {} problems more: --json, --html", report.problems.len() - PROBLEMS);
    }
    for note in &report.notes {
        let _ = writeln!(out, "  note   {}", plain(note));
    }
    let _ = write!(out, "{}", circumstances(report));
    out
}

fn headline(report: &Report) -> String {
    let counts = &report.counts;
    let mut out = String::new();
    if let Some(correct) = report.headline().and_then(|group| group.correct) {
        let text = percent(correct.value);
        let bold = text.if_supports_color(Stream::Stdout, |text| text.style(Style::new().bold()));
        let _ = writeln!(out, "correct  {bold}  {}", limits(&correct));
    }
    let _ = writeln!(
        out,
        "  {} samples of {} problems: {} accepted, {} failed, {} not decided, {} missing",
        counts.samples, counts.problems, counts.accepted, counts.failed, counts.undecided, counts.missing
    );
    out
}

fn standard(standard: &Standard) -> String {
    let marks = &standard.marks;
    let decides = if standard.decides { ", decides" } else { "" };
    let mut out = format!("  {}{decides}", standard.profile);
    let parts = [
        (marks.degenerate, "degenerate"),
        (marks.defect, "defective"),
        (marks.precision_blind, "precision-blind"),
        (marks.unknown, "not looked at"),
        (marks.collapsible, "collapsible"),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|part| part.0 > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if !parts.is_empty() {
        let _ = write!(out, " (problems: {})", parts.join(", "));
    }
    let _ = write!(out, "\n{}", indent(&correctness(&standard.groups).to_string()));
    if standard.groups.iter().any(|group| !group.speed.is_empty()) {
        let _ = write!(out, "\n{}", indent(&speeds(&standard.groups).to_string()));
    }
    out
}

fn correctness(groups: &[Group]) -> Table {
    let first = groups.first();
    let ks: Vec<String> = first.iter().flat_map(|group| &group.pass_at).map(|of| format!("pass@{}", of.k)).collect();
    let mut head = vec!["group", "problems", "samples", "valid", "compiled", "correct"];
    head.extend(ks.iter().map(String::as_str));
    let mut table = table(&head);
    let share = |share: Option<&Share>| share.map_or_else(|| "-".into(), figure);
    for group in groups {
        let mut row = vec![group.name.clone(), group.problems.to_string(), group.samples.to_string()];
        row.extend([&group.valid, &group.compiled, &group.correct].map(|of| share(of.as_ref())));
        for of in first.iter().flat_map(|first| &first.pass_at) {
            row.push(share(group.pass_at.iter().find(|own| own.k == of.k).map(|own| &own.share)));
        }
        table.add_row(row);
    }
    table
}

fn speeds(groups: &[Group]) -> Table {
    let first = groups.iter().flat_map(|group| &group.speed).next();
    let ps: Vec<String> = first.iter().flat_map(|speed| &speed.fast).map(|of| format!("fast_{}", of.p)).collect();
    let mut head = vec!["group", "baseline", "timed"];
    head.extend(ps.iter().map(String::as_str));
    head.push("geometric mean");
    let mut table = table(&head);
    for group in groups {
        for speed in &group.speed {
            let Speed { baseline, timed, fast, mean, .. } = speed;
            let mut row = vec![group.name.clone(), baseline.clone(), timed.to_string()];
            row.extend(fast.iter().map(|of| figure(&of.share)));
            row.push(mean.map_or_else(
                || "-".into(),
                |mean| match (mean.low, mean.high) {
                    (Some(low), Some(high)) => {
                        format!("{:.2} ({low:.2} to {high:.2}), {} problems", mean.geometric, mean.problems)
                    }
                    _ => format!("{:.2}, {} problems", mean.geometric, mean.problems),
                },
            ));
            table.add_row(row);
        }
    }
    table
}

fn taxonomy(kinds: &[Kind]) -> Table {
    let mut table = table(&["verdict", "samples", "reasons"]);
    for kind in kinds {
        let reasons: Vec<String> =
            kind.reasons.iter().take(6).map(|reason| format!("{} {}", reason.count, plain(&reason.code))).collect();
        table.add_row([kind.verdict.clone(), kind.count.to_string(), reasons.join(", ")]);
    }
    if let Some(column) = table.column_mut(2) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    table
}

fn problems(rows: &[ProblemRow]) -> Table {
    let mut table = table(&["problem", "correct", "best speedup", "of the limit", "marks", "commonest failure"]);
    for row in rows.iter().take(PROBLEMS) {
        let best = row.best.map_or_else(
            || "-".into(),
            |best| match (best.low, best.high) {
                (Some(low), Some(high)) => format!("{:.2} ({low:.2} to {high:.2})", best.value),
                _ => format!("{:.2}", best.value),
            },
        );
        let fraction = row.best.and_then(|best| best.fraction).map_or_else(|| "-".into(), percent);
        let mut marks: Vec<&str> =
            row.marks.values().filter(|mark| mark.name() != "ok").map(|mark| mark.name()).collect();
        marks.sort_unstable();
        marks.dedup();
        marks.extend(row.collapsible.then_some("collapsible"));
        table.add_row([
            plain(&row.id),
            format!("{} of {}", row.correct, row.decided),
            best,
            fraction,
            marks.join(", "),
            row.reason.as_ref().map_or_else(String::new, |reason| plain(&reason.code)),
        ]);
    }
    table
}

fn circumstances(report: &Report) -> String {
    let setting = &report.setting;
    let timed = match setting.baselines.is_empty() {
        true => "nothing timed".to_owned(),
        false => format!("timed against {}", setting.baselines.join(", ")),
    };
    format!(
        "\n  {} on {}\n  {} ({}), compiled for {}, {timed}, {} trials\n  tilewright {}, torch {}, triton {}, {}\n  in brackets: 95 % limits if the problems were drawn again",
        plain(&report.samples_from),
        plain(&report.suite),
        setting.device,
        setting.target,
        setting.arch,
        setting.trials,
        setting.tilewright,
        setting.torch,
        setting.triton,
        report.date
    )
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn limits(share: &Share) -> String {
    let mut text = format!("(95 %: {} to {}", percent(share.low), percent(share.high));
    if let Some(samples) = share.samples {
        let _ = write!(text, "; same problems, new samples: {} to {}", percent(samples.low), percent(samples.high));
    }
    text.push(')');
    if let (1.., Some(without)) = (share.short, share.without_short) {
        let _ = write!(
            text,
            ", {} without the {} problems that have too few decided samples",
            percent(without),
            share.short
        );
    }
    text
}

fn figure(share: &Share) -> String {
    let number = |share: f64| format!("{:.1}", share * 100.0);
    let star = if share.short > 0 { "*" } else { "" };
    format!("{}{star} ({} to {})", number(share.value), number(share.low), number(share.high))
}

pub(crate) fn bench_comparison(comparison: &Comparison) -> String {
    let Comparison { a, b, common, profile, .. } = comparison;
    let mut out = format!("  {common} problems of both, under {profile}\n");
    for (name, side) in [("A", a), ("B", b)] {
        let _ = writeln!(
            out,
            "  {name}  {} samples, {} ({})",
            side.samples,
            plain(&side.samples_from),
            side.runs.join(", ")
        );
    }
    for (name, only) in [("A", &comparison.only_a), ("B", &comparison.only_b)] {
        if !only.is_empty() {
            let _ =
                writeln!(out, "  {} problems are only in {name} and left out: {}", only.len(), plain(&only.join(", ")));
        }
    }
    for difference in &comparison.differences {
        let _ = writeln!(out, "  differs  {difference}");
    }
    let mut changes = table(&["", "A", "B", "B - A", "95 %", ""]);
    for change in &comparison.changes {
        let points = |share: f64| format!("{:+.1}", share * 100.0);
        changes.add_row([
            change.what.clone(),
            percent(change.a),
            percent(change.b),
            points(change.difference),
            format!("{} to {}", points(change.low), points(change.high)),
            decided(change.low, change.high, 0.0).into(),
        ]);
    }
    for speed in &comparison.speed {
        let limits = speed.low.zip(speed.high);
        changes.add_row([
            format!("speed against {}, {} problems", speed.baseline, speed.problems),
            String::new(),
            String::new(),
            format!("x {:.3}", speed.ratio),
            limits.map_or_else(|| "-".into(), |(low, high)| format!("{low:.3} to {high:.3}")),
            limits.map_or("undecided", |(low, high)| decided(low, high, 1.0)).into(),
        ]);
    }
    let _ = writeln!(out, "{}", indent(&changes.to_string()));
    for flip in &comparison.flips {
        let word = if flip.a.0 == 0 { "solved now" } else { "no more" };
        let _ = write!(
            out,
            "  {word:<10} {}: {} of {}, then {} of {}",
            plain(&flip.id),
            flip.a.0,
            flip.a.1,
            flip.b.0,
            flip.b.1
        );
        if let Some(reason) = &flip.reason {
            let _ = write!(out, " ({})", plain(&reason.chars().take(160).collect::<String>()));
        }
        out.push('\n');
    }
    out.trim_end().to_owned()
}

/// What an interval says of a change.
fn decided(low: f64, high: f64, nothing: f64) -> &'static str {
    if low > nothing {
        "better"
    } else if high < nothing {
        "worse"
    } else {
        "undecided"
    }
}
