//! One output against the oracle's, under one profile.

use tilewright_contract::{ExpectedTensor, Metrics, Profile, Rule, Worst};

use crate::figures::{Element, Figures};
use crate::groups::{Groups, unravel};
use crate::scan::{Limits, Overview, Scan, Sources, Typical};
use crate::value::{figure, integer, text};

/// What the comparison of one tensor gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    pub pass: bool,
    /// `worst.case` and `worst.regime` are empty: the caller knows them.
    pub metrics: Metrics,
    /// How far off, as a multiple of what the profile allows; infinite where no number can tell.
    pub severity: f64,
    /// The condition that failed, with its figures.
    pub why: Option<String>,
    /// A remark on a pass that proves little, such as a reference without a finite number.
    pub note: Option<String>,
}

/// Buffers that cannot belong together. Ours to prevent, so never the candidate's fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JudgeError {
    #[error("{path}: {what} has {got} bytes, but the shape and dtype need {want}")]
    Size { path: String, what: &'static str, got: usize, want: usize },
    #[error("{path}: {got} draws, at least {want} needed")]
    Draws { path: String, got: usize, want: usize },
}

/// Compares `got` with the reference's result of one tensor.
///
/// All three byte strings are contiguous and in logical order: `native` and `got` in `expected.dtype`, `float64` in
/// float64. Integers and bools must be equal. Reads in pieces, so a large output costs no further large buffer.
///
/// # Errors
/// A byte string of the wrong length; shape and dtype are the business of [`crate::check_output`].
pub fn judge(
    profile: &Profile,
    expected: &ExpectedTensor,
    native: &[u8],
    float64: Option<&[u8]>,
    got: &[u8],
) -> Result<Comparison, JudgeError> {
    check_sizes(expected, native, float64, got)?;
    Ok(compare(profile, expected, (native, float64, got), Typical::default()))
}

/// Whether the bytes can belong to this tensor.
pub(crate) fn check_sizes(
    expected: &ExpectedTensor,
    native: &[u8],
    float64: Option<&[u8]>,
    got: &[u8],
) -> Result<(), JudgeError> {
    let numel = expected.shape.iter().product::<u64>() as usize;
    let size = expected.dtype.size() as usize;
    for (what, bytes, size) in
        [("the reference", Some(native), size), ("the float64 reference", float64, 8), ("the output", Some(got), size)]
    {
        let want = numel * size;
        if let Some(bytes) = bytes.filter(|bytes| bytes.len() != want) {
            return Err(JudgeError::Size { path: expected.path.clone(), what, got: bytes.len(), want });
        }
    }
    Ok(())
}

/// [`judge`] with bytes (native, float64, got) of the right sizes, and what is usual for this tensor.
pub(crate) fn compare(
    profile: &Profile,
    expected: &ExpectedTensor,
    (native, float64, got): (&[u8], Option<&[u8]>, &[u8]),
    typical: Typical,
) -> Comparison {
    if must_equal(profile, expected) {
        return exact(expected, native, got);
    }
    Judgement::new(profile, expected, Sources::new(profile, expected, native, float64, got), typical).finish()
}

/// Whether every bit has to be the reference's.
pub fn must_equal(profile: &Profile, expected: &ExpectedTensor) -> bool {
    !expected.dtype.is_float() || (profile.exact_copies && expected.copy_only)
}

/// As [`judge`], by figures that were made elsewhere.
pub fn judge_figures(profile: &Profile, expected: &ExpectedTensor, figures: &Figures) -> Comparison {
    let (scan, first) = (figures.scan, figures.scan.worst.map_or(0, |(_, at)| at));
    let element = figures.element.as_ref();
    let bytes = |of: fn(&Element) -> &[u8]| element.map_or(&[][..], of);
    let (native, got) = (bytes(|element| &element.native), bytes(|element| &element.got));
    if must_equal(profile, expected) {
        let (mismatched, elements) = (scan.mismatched, scan.elements);
        let worst = element.map(|_| place(expected, (native, got), first, first));
        return bitwise(expected, Metrics { mismatched, elements, worst, ..Metrics::default() });
    }
    let float64 = element.and_then(|element| element.float64.as_deref());
    // Whether there is a float64 reference decides which golden is told; the element's bytes are all that is read of it.
    let mut sources = Sources::new(profile, expected, native, float64, got);
    sources.unit = figures.unit;
    let limits = Limits::new(profile, expected.dtype, figures.unit, &Overview::default());
    Judgement { profile, expected, sources, limits, groups: Groups::new(&expected.shape), scan, first }.finish()
}

/// Bit by bit: integers, bools, and copies where the profile says so.
fn exact(expected: &ExpectedTensor, native: &[u8], got: &[u8]) -> Comparison {
    let size = expected.dtype.size() as usize;
    let mut metrics = Metrics { elements: (native.len() / size) as u64, ..Metrics::default() };
    let mut worst: Option<(f64, usize)> = None;
    let (mut sum, mut squares, mut golden) = (0.0, 0.0, 0.0);
    // Most outputs are equal, and slices compare at the speed of memory.
    let step = (1 << 16) * size;
    for (start, (a, b)) in native.chunks(step).zip(got.chunks(step)).enumerate() {
        if a == b {
            continue;
        }
        for (at, (want, got)) in a.chunks_exact(size).zip(b.chunks_exact(size)).enumerate() {
            if want == got {
                continue;
            }
            let (difference, reference) = distance(expected, want, got);
            metrics.mismatched += 1;
            if difference.is_finite() {
                let relative = difference / reference.max(1e-7);
                metrics.max_abs = metrics.max_abs.max(difference);
                metrics.max_rel = metrics.max_rel.max(relative);
                sum += relative;
                squares += difference * difference;
                golden += reference * reference;
            }
            if worst.is_none_or(|(score, _)| difference > score) {
                worst = Some((difference, start * (step / size) + at));
            }
        }
    }
    if metrics.mismatched > 0 {
        metrics.mean_rel = bounded(sum / metrics.elements as f64);
        metrics.rms = bounded((squares / golden.max(f64::MIN_POSITIVE)).sqrt());
    }
    metrics.worst = worst.map(|(_, at)| place(expected, (native, got), 0, at));
    bitwise(expected, metrics)
}

fn bitwise(expected: &ExpectedTensor, metrics: Metrics) -> Comparison {
    let pass = metrics.mismatched == 0;
    let kind = if expected.dtype.is_float() { "only copied by the reference" } else { expected.dtype.name() };
    let why = (!pass).then(|| {
        format!(
            "{} of {} elements differ; this output is {kind}, so it must be equal",
            metrics.mismatched, metrics.elements
        )
    });
    Comparison { pass, severity: if pass { 0.0 } else { f64::INFINITY }, why, note: None, metrics }
}

/// `|got - want|` and `|want|` of two unequal elements; infinite where they are not numbers.
fn distance(expected: &ExpectedTensor, want: &[u8], got: &[u8]) -> (f64, f64) {
    if let (Some(a), Some(b)) = (integer(expected.dtype, want), integer(expected.dtype, got)) {
        return ((a - b).unsigned_abs() as f64, a.unsigned_abs() as f64);
    }
    let mut pair = Vec::with_capacity(2);
    crate::decode(expected.dtype, want, &mut pair);
    crate::decode(expected.dtype, got, &mut pair);
    let difference = (pair[1] - pair[0]).abs();
    (if difference.is_nan() { f64::INFINITY } else { difference }, pair[0].abs())
}

/// Element `at` in words; the bytes (want, got) start with element `first`.
fn place(expected: &ExpectedTensor, (want, got): (&[u8], &[u8]), first: usize, at: usize) -> Worst {
    let size = expected.dtype.size() as usize;
    let raw = (at - first) * size..(at - first + 1) * size;
    Worst {
        path: expected.path.clone(),
        index: unravel(at, &expected.shape),
        got: text(expected.dtype, &got[raw.clone()]),
        want: text(expected.dtype, &want[raw]),
        case: String::new(),
        regime: String::new(),
    }
}

/// JSON has no infinities.
pub(crate) fn bounded(value: f64) -> f64 {
    if value.is_nan() { f64::MAX } else { value.clamp(-f64::MAX, f64::MAX) }
}

/// A scan of a whole output, and the verdict on it.
struct Judgement<'a> {
    profile: &'a Profile,
    expected: &'a ExpectedTensor,
    sources: Sources<'a>,
    limits: Limits,
    groups: Groups,
    scan: Scan,
    /// The element that the bytes of `sources` start with.
    first: usize,
}

impl<'a> Judgement<'a> {
    fn new(profile: &'a Profile, expected: &'a ExpectedTensor, mut sources: Sources<'a>, typical: Typical) -> Self {
        let groups = Groups::new(&expected.shape);
        let overview = Overview::of(&mut sources, groups, profile.rule, typical);
        let limits = Limits::new(profile, expected.dtype, sources.unit, &overview);
        let scan = Scan::of(&sources, &limits, groups);
        Self { profile, expected, sources, limits, groups, scan, first: 0 }
    }

    fn finish(self) -> Comparison {
        let (severity, why) = self.decide();
        let pass = why.is_none();
        let scan = &self.scan;
        let nothing = scan.elements > 0 && scan.finite == 0;
        let note = (pass && nothing).then(|| {
            format!("{}: the reference holds no finite number; only the pattern was compared", self.expected.path)
        });
        Comparison { pass, severity, why, note, metrics: self.metrics() }
    }

    fn metrics(&self) -> Metrics {
        let (scan, unit) = (&self.scan, self.sources.unit);
        let rms = if scan.squares == 0.0 { 0.0 } else { (scan.squares / scan.golden.max(f64::MIN_POSITIVE)).sqrt() };
        Metrics {
            max_abs: bounded(scan.max_abs * unit),
            max_rel: bounded(scan.max_rel),
            mean_rel: bounded(scan.mean_rel()),
            rms: bounded(rms),
            mismatched: scan.mismatched,
            elements: scan.elements,
            worst: scan.worst.map(|(_, at)| self.worst(at)),
        }
    }

    fn worst(&self, at: usize) -> Worst {
        let bytes = (self.sources.native, self.sources.got);
        let mut worst = place(self.expected, bytes, self.first, at);
        worst.want = self.sources.golden_text(at - self.first, self.expected.dtype);
        worst
    }

    /// Severity, and the condition that fails.
    fn decide(&self) -> (f64, Option<String>) {
        let (scan, tolerance) = (&self.scan, &self.limits.tolerance);
        if scan.pattern > 0 {
            return (f64::INFINITY, Some(self.pattern_text()));
        }
        let mean = scan.mean_rel();
        let (element_score, outside) = (scan.worst.map_or(0.0, |(score, _)| score), scan.mismatched);
        let elements = || {
            format!(
                "{outside} of {} elements are outside the tolerance, the worst {} times",
                scan.elements,
                figure(element_score)
            )
        };
        match self.profile.rule {
            Rule::Elementwise => (element_score, (outside > 0).then(elements)),
            Rule::MereMare | Rule::MereMareTruncated => {
                let severity = element_score.max(mean / tolerance.rtol);
                if scan.finite > 0 && mean >= tolerance.rtol {
                    return (
                        severity.max(1.0),
                        Some(format!(
                            "the mean relative error is {}, below {} wanted",
                            figure(mean),
                            figure(self.limits.rtol_text())
                        )),
                    );
                }
                (severity, (outside > 0).then(elements))
            }
            Rule::ThreeWay => {
                let matched = if scan.finite == 0 { 1.0 } else { scan.matched as f64 / scan.finite as f64 };
                let severity = element_score.max(mean / tolerance.mean_rel);
                if outside > 0 {
                    return (severity, Some(elements()));
                }
                if matched < tolerance.matched_ratio {
                    let what = format!(
                        "{:.1} % of the elements match, {:.1} % wanted",
                        matched * 100.0,
                        tolerance.matched_ratio * 100.0
                    );
                    return (severity.max(1.0), Some(what));
                }
                let high = scan.finite > 0 && mean >= tolerance.mean_rel;
                let what = || {
                    format!("the mean relative error is {}, below {} wanted", figure(mean), figure(tolerance.mean_rel))
                };
                (if high { severity.max(1.0) } else { severity }, high.then(what))
            }
            Rule::ScaledRms => {
                let severity = scan.group.map_or(0.0, |(score, _)| score).max(element_score);
                if let Some((score, group)) = scan.group.filter(|(score, _)| *score > 1.0) {
                    return (severity, Some(self.group_text(score, group)));
                }
                (severity, (outside > 0).then(elements))
            }
            Rule::MeanAndShare => {
                let share = if scan.finite == 0 { 0.0 } else { outside as f64 / scan.finite as f64 };
                let severity = (mean / tolerance.mean_rel).max(share / tolerance.mismatch);
                if scan.finite > 0 && mean >= tolerance.mean_rel {
                    let what = format!(
                        "the mean relative error is {}, below {} wanted",
                        figure(mean),
                        figure(tolerance.mean_rel)
                    );
                    return (severity.max(1.0), Some(what));
                }
                let what = || {
                    format!(
                        "{:.2} % of the elements are outside, {:.2} % allowed",
                        share * 100.0,
                        tolerance.mismatch * 100.0
                    )
                };
                (severity, (share > tolerance.mismatch).then(what))
            }
        }
    }

    fn group_text(&self, score: f64, group: usize) -> String {
        let allowed = self.limits.tolerance.rms_tol;
        let range = self.groups.range(group);
        let place = if range.len() == self.groups.total() {
            String::new()
        } else {
            let (first, last) =
                (unravel(range.start, &self.expected.shape), unravel(range.end - 1, &self.expected.shape));
            format!(" over {first:?} to {last:?}")
        };
        let (error, allowed) = (figure(score * allowed), figure(allowed));
        format!("rms error{place} is {error} of the reference's rms, {allowed} allowed")
    }

    fn pattern_text(&self) -> String {
        let scan = &self.scan;
        let what = if scan.extra_nan == scan.pattern {
            "NaN where the reference is a number"
        } else if scan.extra_inf == scan.pattern {
            "infinite where the reference is finite"
        } else if scan.both_nan == scan.pattern {
            "NaN; this profile refuses a NaN also where the reference has one"
        } else {
            "NaN or infinite where the reference is not, or the other way round"
        };
        format!("{} of {} elements are {what}", scan.pattern, scan.elements)
    }
}
