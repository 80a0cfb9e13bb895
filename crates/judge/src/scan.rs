//! The figures of one output in one or two passes over it, group by group.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tilewright_contract::{Dtype, ExpectedTensor, Golden, NonFinite, Profile, Rule, Tolerance};

use crate::figures::{as_text, place_as_text};
use crate::groups::Groups;
use crate::value::{decode, number, quantum, round_to, text};

/// Added to `|g|` in relative errors, as in the Ascend standards.
const TINY: f64 = 1e-7;
/// A group's scale is at least this share of the rms of the whole output: a row of near-zeros beside ordinary rows
/// is the rest of a cancellation, and has its neighbours' rounding errors.
const FLOOR: f64 = 1.0 / 1024.0;

/// The bytes to compare.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sources<'a> {
    dtype: Dtype,
    golden: Golden,
    nan_fails: bool,
    pub(crate) native: &'a [u8],
    float64: Option<&'a [u8]>,
    pub(crate) got: &'a [u8],
    /// Values are divided by this power of two, so that squares of huge or minute float64 values stay in range.
    pub(crate) unit: f64,
}

/// One group's elements as float64, in units of [`Sources::unit`].
#[derive(Default)]
struct Window {
    native: Vec<f64>,
    golden: Vec<f64>,
    got: Vec<f64>,
}

impl<'a> Sources<'a> {
    pub(crate) fn new(
        profile: &Profile,
        expected: &ExpectedTensor,
        native: &'a [u8],
        float64: Option<&'a [u8]>,
        got: &'a [u8],
    ) -> Self {
        let golden = if float64.is_some() { profile.golden } else { Golden::Native };
        let nan_fails = profile.non_finite == NonFinite::NanFails;
        Self { dtype: expected.dtype, golden, nan_fails, native, float64, got, unit: 1.0 }
    }

    fn load(&self, range: std::ops::Range<usize>, window: &mut Window) {
        let size = self.dtype.size() as usize;
        let raw = range.start * size..range.end * size;
        window.native.clear();
        window.golden.clear();
        window.got.clear();
        decode(self.dtype, &self.native[raw.clone()], &mut window.native);
        decode(self.dtype, &self.got[raw], &mut window.got);
        match self.float64.filter(|_| self.golden != Golden::Native) {
            Some(wide) => decode(Dtype::F64, &wide[range.start * 8..range.end * 8], &mut window.golden),
            None => window.golden.extend_from_slice(&window.native),
        }
        if self.golden == Golden::Rounded {
            window.golden.iter_mut().for_each(|g| *g = round_to(self.dtype, *g));
        }
        if self.unit != 1.0 {
            let values = window.native.iter_mut().chain(&mut window.golden).chain(&mut window.got);
            values.for_each(|v| *v /= self.unit);
        }
    }

    /// What element `at` should be: the golden value, and the native one where only that is a number in this dtype.
    pub(crate) fn golden_text(&self, at: usize, dtype: Dtype) -> String {
        let size = dtype.size() as usize;
        let native = text(dtype, &self.native[at * size..(at + 1) * size]);
        let Some(wide) = self.float64.filter(|_| self.golden != Golden::Native) else { return native };
        let mut value = Vec::with_capacity(1);
        decode(Dtype::F64, &wide[at * 8..(at + 1) * 8], &mut value);
        let exact = value[0];
        if round_to(dtype, exact).is_finite() {
            // As many digits as the dtype can hold, and a few more.
            let digits = if dtype == Dtype::F64 { 17 } else { 9 };
            return number(format!("{exact:.digits$e}").parse().unwrap_or(exact));
        }
        native
    }
}

/// What is usual for a tensor over all calls of its kind: for outputs too small to show their own scale.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Typical {
    /// Largest rms of the golden in one call.
    pub(crate) scale: f64,
    /// Largest rms of what the reference in its own dtype is off by.
    pub(crate) error: f64,
}

impl Typical {
    /// Of one call.
    pub(crate) fn of(expected: &ExpectedTensor, native: &[u8], float64: Option<&[u8]>) -> Self {
        let (mut rounded, mut golden) = (Vec::new(), Vec::new());
        decode(expected.dtype, native, &mut rounded);
        match float64 {
            Some(wide) => decode(Dtype::F64, wide, &mut golden),
            None => golden.clone_from(&rounded),
        }
        let (scale, error) = rms(&golden, &rounded);
        Self { scale, error }
    }

    pub(crate) fn max(self, other: Self) -> Self {
        Self { scale: self.scale.max(other.scale), error: self.error.max(other.error) }
    }
}

/// Rms of the golden, and of the difference to the native reference, over elements where both are finite.
fn rms(golden: &[f64], native: &[f64]) -> (f64, f64) {
    let (mut squares, mut error, mut count) = (0.0, 0.0, 0u64);
    for (g, n) in golden.iter().zip(native).filter(|(g, n)| g.is_finite() && n.is_finite()) {
        count += 1;
        squares += g * g;
        error += (n - g) * (n - g);
    }
    let count = count.max(1) as f64;
    ((squares / count).sqrt(), (error / count).sqrt())
}

/// What has to be known of the whole output before its elements can be judged.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Overview {
    /// Rms of the golden.
    rms: f64,
    /// Rms of what the reference in its own dtype is off by.
    reference_error: f64,
    /// In units of the sources.
    typical: Typical,
}

impl Overview {
    /// Reads the reference once, where the rule or the dtype need it, and sets [`Sources::unit`].
    pub(crate) fn of(sources: &mut Sources, groups: Groups, rule: Rule, typical: Typical) -> Self {
        if sources.dtype == Dtype::F64 {
            let largest = reduce(
                sources,
                groups,
                0.0,
                |_, window, most| window.golden.iter().filter(|g| g.is_finite()).fold(most, |m: f64, g| m.max(g.abs())),
                f64::max,
            );
            if largest > 0.0 && !(1e-120..1e120).contains(&largest) {
                sources.unit = 2f64.powi((largest.log2() as i32).max(-1000));
            }
        }
        if rule != Rule::ScaledRms {
            return Self::default();
        }
        let (count, golden, error) = reduce(
            sources,
            groups,
            (0u64, 0.0, 0.0),
            |_, window, (mut count, mut golden, mut error)| {
                for (g, n) in window.golden.iter().zip(&window.native).filter(|(g, n)| g.is_finite() && n.is_finite()) {
                    count += 1;
                    golden += g * g;
                    error += (n - g) * (n - g);
                }
                (count, golden, error)
            },
            |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2),
        );
        let count = count.max(1) as f64;
        let typical = Typical { scale: typical.scale / sources.unit, error: typical.error / sources.unit };
        Self { rms: (golden / count).sqrt(), reference_error: (error / count).sqrt(), typical }
    }
}

/// Folds over the groups of a batch, batches in parallel; the results join in order, so sums are reproducible.
fn reduce<T: Copy + Send + Sync>(
    sources: &Sources,
    groups: Groups,
    start: T,
    fold: impl Fn(usize, &Window, T) -> T + Sync,
    join: impl Fn(T, T) -> T,
) -> T {
    let work = |batch: std::ops::Range<usize>| {
        let mut window = Window::default();
        batch.fold(start, |state, group| {
            sources.load(groups.range(group), &mut window);
            fold(group, &window, state)
        })
    };
    let batches = groups.batches();
    if batches.len() < 2 {
        return batches.into_iter().map(work).fold(start, join);
    }
    let parts: Vec<T> = batches.into_par_iter().map(work).collect();
    parts.into_iter().fold(start, join)
}

/// What an element may be off by.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    rule: Rule,
    /// In units of the sources.
    pub(crate) tolerance: Tolerance,
    tiny: f64,
    quantum: f64,
    overview: Overview,
    rtol: f64,
}

impl Limits {
    pub(crate) fn new(profile: &Profile, dtype: Dtype, unit: f64, overview: &Overview) -> Self {
        let mut tolerance = profile.tolerance(dtype).clone();
        let rtol = tolerance.rtol;
        tolerance.atol /= unit;
        tolerance.small_threshold /= unit;
        tolerance.small_error /= unit;
        Self {
            rule: profile.rule,
            tolerance,
            tiny: TINY / unit,
            quantum: quantum(dtype) / unit,
            overview: *overview,
            rtol,
        }
    }

    pub(crate) fn rtol_text(&self) -> f64 {
        self.rtol
    }

    /// Scale of a group: see [`Rule::ScaledRms`].
    fn scale(&self, golden: f64, error: f64) -> f64 {
        let tolerance = &self.tolerance;
        let own = golden.max(FLOOR * self.overview.rms).max(self.overview.typical.scale);
        let reference = error.max(FLOOR * self.overview.reference_error).max(self.overview.typical.error);
        own.max(reference * tolerance.reference_factor / tolerance.rms_tol)
    }

    fn denominator(&self, golden: f64) -> f64 {
        match self.rule {
            Rule::MereMareTruncated => golden.max(self.rtol * self.tiny / TINY),
            _ => golden + self.tiny,
        }
    }

    /// Largest allowed `|d|` at a golden of this magnitude in a group of this scale.
    fn element(&self, golden: f64, scale: f64) -> f64 {
        let t = &self.tolerance;
        match self.rule {
            Rule::Elementwise | Rule::ThreeWay | Rule::MeanAndShare => t.atol + t.rtol * golden,
            Rule::MereMare | Rule::MereMareTruncated => 10.0 * t.rtol * self.denominator(golden),
            Rule::ScaledRms => t.atol_scaled * scale + t.rtol * golden + self.quantum,
        }
    }

    fn outside(&self, difference: f64, limit: f64) -> bool {
        match self.rule {
            Rule::MereMare | Rule::MereMareTruncated => difference >= limit,
            _ => difference > limit,
        }
    }

    /// The middle condition of [`Rule::ThreeWay`].
    fn matched(&self, difference: f64, golden: f64) -> bool {
        let t = &self.tolerance;
        if golden < t.small_threshold {
            return difference <= t.small_error;
        }
        difference / self.denominator(golden) <= t.mean_rel
    }
}

/// Figures of an output, or of a part of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Scan {
    pub(crate) elements: u64,
    /// Elements that were compared as numbers.
    pub(crate) finite: u64,
    /// Elements that are not finite where they should be, or the other way round.
    pub(crate) pattern: u64,
    pub(crate) extra_nan: u64,
    pub(crate) extra_inf: u64,
    pub(crate) both_nan: u64,
    pub(crate) mismatched: u64,
    pub(crate) matched: u64,
    #[serde(with = "as_text")]
    pub(crate) max_abs: f64,
    #[serde(with = "as_text")]
    pub(crate) max_rel: f64,
    #[serde(with = "as_text")]
    relative: f64,
    /// Sums of squares of the difference and of the golden.
    #[serde(with = "as_text")]
    pub(crate) squares: f64,
    #[serde(with = "as_text")]
    pub(crate) golden: f64,
    /// Largest `|d|` in units of its limit, and where.
    #[serde(with = "place_as_text")]
    pub(crate) worst: Option<(f64, usize)>,
    /// Largest rms error of a group in units of its limit, and which.
    #[serde(with = "place_as_text")]
    pub(crate) group: Option<(f64, usize)>,
}

impl Scan {
    pub(crate) fn of(sources: &Sources, limits: &Limits, groups: Groups) -> Self {
        let fold = |group, window: &Window, mut scan: Self| {
            scan.add(sources, limits, (group, groups.range(group).start), window);
            scan
        };
        reduce(sources, groups, Self::default(), fold, Self::join)
    }

    /// Every figure that is a sum or a maximum of magnitudes.
    pub(crate) fn sums(&self) -> [f64; 5] {
        [self.max_abs, self.max_rel, self.relative, self.squares, self.golden]
    }

    /// Mean of the relative errors over the compared elements; 0 without any.
    pub(crate) fn mean_rel(&self) -> f64 {
        if self.finite == 0 { 0.0 } else { self.relative / self.finite as f64 }
    }

    fn add(&mut self, sources: &Sources, limits: &Limits, (group, start): (usize, usize), window: &Window) {
        let scale = if limits.rule == Rule::ScaledRms { group_scale(limits, window) } else { 0.0 };
        let (mut squares, mut count) = (0.0, 0u64);
        for (at, ((&g, &n), &c)) in window.golden.iter().zip(&window.native).zip(&window.got).enumerate() {
            let at = start + at;
            self.elements += 1;
            let Some(target) = sources.target(g, n, c) else {
                self.refuse(g, c, at);
                continue;
            };
            if !target.is_finite() {
                continue;
            }
            let (difference, golden) = ((c - target).abs(), target.abs());
            let limit = limits.element(golden, scale);
            let relative = difference / limits.denominator(golden);
            let score = if difference == 0.0 { 0.0 } else { difference / limit };
            count += 1;
            squares += difference * difference;
            self.golden += golden * golden;
            self.relative += relative;
            self.max_abs = self.max_abs.max(difference);
            self.max_rel = self.max_rel.max(difference / golden.max(limits.tiny));
            self.mismatched += u64::from(limits.outside(difference, limit));
            self.matched += u64::from(limits.matched(difference, golden));
            keep(&mut self.worst, (score, at));
        }
        self.finite += count;
        self.squares += squares;
        if limits.rule == Rule::ScaledRms && count > 0 {
            let rms = (squares / count as f64).sqrt();
            let allowed = limits.tolerance.rms_tol * scale + limits.quantum;
            keep(&mut self.group, (if rms == 0.0 { 0.0 } else { rms / allowed }, group));
        }
    }

    fn refuse(&mut self, golden: f64, got: f64, at: usize) {
        self.pattern += 1;
        self.mismatched += 1;
        match (golden.is_finite(), got) {
            (_, got) if got.is_nan() && golden.is_nan() => self.both_nan += 1,
            (_, got) if got.is_nan() => self.extra_nan += 1,
            (true, _) => self.extra_inf += 1,
            _ => {}
        }
        keep(&mut self.worst, (f64::INFINITY, at));
    }

    fn join(self, other: Self) -> Self {
        let mut joined = Self {
            elements: self.elements + other.elements,
            finite: self.finite + other.finite,
            pattern: self.pattern + other.pattern,
            extra_nan: self.extra_nan + other.extra_nan,
            extra_inf: self.extra_inf + other.extra_inf,
            both_nan: self.both_nan + other.both_nan,
            mismatched: self.mismatched + other.mismatched,
            matched: self.matched + other.matched,
            max_abs: self.max_abs.max(other.max_abs),
            max_rel: self.max_rel.max(other.max_rel),
            relative: self.relative + other.relative,
            squares: self.squares + other.squares,
            golden: self.golden + other.golden,
            worst: self.worst,
            group: self.group,
        };
        if let Some(worst) = other.worst {
            keep(&mut joined.worst, worst);
        }
        if let Some(group) = other.group {
            keep(&mut joined.group, group);
        }
        joined
    }
}

/// Keeps the larger score; the earlier place where they are equal.
fn keep(best: &mut Option<(f64, usize)>, next: (f64, usize)) {
    if best.is_none_or(|(score, _)| next.0 > score) {
        *best = Some(next);
    }
}

fn group_scale(limits: &Limits, window: &Window) -> f64 {
    let (golden, error) = rms(&window.golden, &window.native);
    limits.scale(golden, error)
}

impl Sources<'_> {
    /// The value that `got` is held against, or `None` where it may not be what it is: a NaN or an infinity has to
    /// be where the reference has it. Where the reference overflows in its own dtype but not in float64, either is right.
    fn target(&self, golden: f64, native: f64, got: f64) -> Option<f64> {
        let rounded = if self.golden == Golden::Native { golden } else { self.overflow(golden) };
        let target = if alike(rounded, got) {
            golden
        } else if alike(native, got) {
            native
        } else {
            return None;
        };
        if got.is_nan() && self.nan_fails {
            None
        } else if got.is_finite() {
            Some(target)
        } else {
            Some(got)
        }
    }

    fn overflow(&self, golden: f64) -> f64 {
        round_to(self.dtype, golden * self.unit)
    }
}

/// Both finite, both NaN, or the same infinity.
fn alike(a: f64, b: f64) -> bool {
    (a.is_finite() && b.is_finite()) || (a.is_nan() && b.is_nan()) || a == b
}
