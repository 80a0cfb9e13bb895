//! The `stochastic` standard: a reference that consumes random numbers, judged in distribution.
//!
//! Reference and candidate each give several draws on the same inputs. Nobody expects equal masks; what has to agree:
//! 1. every draw's mean, rms and share of zeros (a wrong keep-probability, a scale left out);
//! 2. the mean of every element over the draws (a wrong value anywhere), against what mixing the draws of both sides
//!    at random gives, so that no independence of the elements is assumed;
//! 3. where the reference knows only zero and one other value of an element (dropout at the end), that value;
//! 4. that draws vary at all, about as much as the reference's;
//! 5. the law of the elements about their means, and how they depend on each other (`joint`).

use tilewright_contract::{Dtype, ExpectedTensor, Metrics};

use crate::compare::{Comparison, JudgeError, bounded};
use crate::groups::Groups;
use crate::joint::{Draws, SIGMAS, apart, average, variance};
use crate::value::{decode, figure};

/// Fewest draws on either side.
pub const FEWEST_DRAWS: usize = 4;
/// Random mixtures of the draws that condition 2 is held against.
const MIXTURES: usize = 16;
/// Elements that condition 2 looks at, evenly spread, beyond which it is sure enough.
const LOOKED_AT: usize = 1 << 18;
/// How many times more or less than the reference's draws the candidate's may vary.
const VARIATION: f64 = 12.0;

/// Compares draws of one tensor on the same inputs; bytes as for [`crate::judge`].
///
/// # Errors
/// A byte string of the wrong length, or fewer than [`FEWEST_DRAWS`] draws on a side.
pub fn judge_stochastic(
    expected: &ExpectedTensor,
    reference: &[&[u8]],
    got: &[&[u8]],
) -> Result<Comparison, JudgeError> {
    let groups = check(expected, reference, got)?;
    let sums = Sums::of(expected.dtype, groups, reference, got);
    let dtype = expected.dtype;
    let first = [sums.finite(), sums.features(dtype), sums.variation(dtype), sums.elements(dtype), sums.kept(dtype)];
    let mut checks = first.to_vec();
    checks.extend(Draws::of(dtype, groups.total(), reference, got).checks(&expected.shape));
    let severity = checks.iter().map(|(severity, _)| *severity).fold(0.0, f64::max);
    let why = checks.into_iter().find(|(severity, _)| *severity > 1.0).map(|(_, why)| why);
    Ok(Comparison { pass: why.is_none(), metrics: sums.metrics(), severity, why, note: None })
}

/// Compares how two tensors of equally many elements depend on each other: a returned mask is the one that was applied.
/// Draws of each side on the same inputs, in the same order for both tensors.
///
/// # Errors
/// As [`judge_stochastic`].
pub fn judge_together(first: Side<'_>, second: Side<'_>) -> Result<Comparison, JudgeError> {
    let draws = |side: &Side<'_>| {
        let elements = check(side.expected, side.reference, side.got)?.total();
        Ok::<_, JudgeError>(Draws::of(side.expected.dtype, elements, side.reference, side.got))
    };
    let (severity, what) = draws(&first)?.with(&draws(&second)?);
    let why = (severity > 1.0).then(|| format!("together with {}: {what}", first.expected.path));
    Ok(Comparison { pass: why.is_none(), metrics: Metrics::default(), severity, why, note: None })
}

/// One of two tensors that are judged together.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    pub expected: &'a ExpectedTensor,
    pub reference: &'a [&'a [u8]],
    pub got: &'a [&'a [u8]],
}

/// The groups of a tensor, once its draws are enough and of the right size.
fn check(expected: &ExpectedTensor, reference: &[&[u8]], got: &[&[u8]]) -> Result<Groups, JudgeError> {
    let groups = Groups::new(&expected.shape);
    let want = groups.total() * expected.dtype.size() as usize;
    for (what, draws) in [("a draw of the reference", reference), ("a draw of the output", got)] {
        if draws.len() < FEWEST_DRAWS {
            return Err(JudgeError::Draws { path: expected.path.clone(), got: draws.len(), want: FEWEST_DRAWS });
        }
        if let Some(draw) = draws.iter().find(|draw| draw.len() != want) {
            return Err(JudgeError::Size { path: expected.path.clone(), what, got: draw.len(), want });
        }
    }
    Ok(groups)
}

/// Rounding that a dtype's own arithmetic is allowed, relative to the rms.
fn slack(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::F64 => 1e-9,
        Dtype::F16 => 4e-3,
        Dtype::Bf16 => 3e-2,
        Dtype::F8E4M3 => 1.5e-1,
        Dtype::F8E5M2 => 3e-1,
        _ => 2e-5,
    }
}

/// Figures of one draw.
#[derive(Debug, Clone, Copy, Default)]
struct Draw {
    sum: f64,
    squares: f64,
    zeros: f64,
    non_finite: u64,
}

/// Figures of all draws: the reference's first.
struct Sums {
    draws: Vec<Draw>,
    reference: usize,
    elements: usize,
    /// Sum over elements of the squared difference of the means: as labelled, then for each mixture.
    distances: Vec<f64>,
    /// Sum over elements of the squared mean of the reference.
    mean_squares: f64,
    /// Sum over elements of the variance between draws, of the reference and of the candidate.
    variance: [f64; 2],
    /// Elements with at least two reference draws other than zero, and those of them where these agree.
    nonzero: u64,
    settled: u64,
    /// Squared differences of the candidate's values from settled ones, their count, and the settled squares.
    kept: (f64, u64, f64),
}

impl Sums {
    fn of(dtype: Dtype, groups: Groups, reference: &[&[u8]], got: &[&[u8]]) -> Self {
        let draws: Vec<&[u8]> = reference.iter().chain(got).copied().collect();
        let mixtures = mixtures(reference.len(), draws.len());
        let mut sums = Self {
            draws: vec![Draw::default(); draws.len()],
            reference: reference.len(),
            elements: groups.total(),
            distances: vec![0.0; mixtures.len()],
            mean_squares: 0.0,
            variance: [0.0; 2],
            nonzero: 0,
            settled: 0,
            kept: (0.0, 0, 0.0),
        };
        let size = dtype.size() as usize;
        let stride = groups.total().div_ceil(LOOKED_AT).max(1);
        let mut window = vec![Vec::new(); draws.len()];
        let mut column = vec![0.0; draws.len()];
        for group in 0..groups.len() {
            let range = groups.range(group);
            for (draw, values) in draws.iter().zip(&mut window) {
                values.clear();
                decode(dtype, &draw[range.start * size..range.end * size], values);
            }
            for (figures, values) in sums.draws.iter_mut().zip(&window) {
                figures.add(values);
            }
            let first = range.start.next_multiple_of(stride) - range.start;
            for at in (first..range.len()).step_by(stride) {
                column.iter_mut().zip(&window).for_each(|(value, values)| *value = values[at]);
                if column.iter().all(|value| value.is_finite()) {
                    sums.element(dtype, &column, &mixtures);
                }
            }
        }
        sums
    }

    fn element(&mut self, dtype: Dtype, column: &[f64], mixtures: &[Vec<bool>]) {
        for (distance, mixture) in self.distances.iter_mut().zip(mixtures) {
            let difference = mean(column, mixture, true) - mean(column, mixture, false);
            *distance += difference * difference;
        }
        let (reference, got) = column.split_at(self.reference);
        let ([first, second], [mean, _]) = ([reference, got].map(variance), [reference, got].map(average));
        self.variance[0] += first;
        self.variance[1] += second;
        self.mean_squares += mean * mean;
        let mut values = reference.iter().copied().filter(|v| *v != 0.0);
        let (Some(value), true) = (values.next(), reference.iter().filter(|v| **v != 0.0).count() > 1) else { return };
        self.nonzero += 1;
        if values.any(|other| (other - value).abs() > 1e-6 * slack(dtype).max(1e-5) * value.abs()) {
            return;
        }
        self.settled += 1;
        for kept in got.iter().filter(|v| **v != 0.0) {
            self.kept.0 += (kept - value).powi(2);
            self.kept.1 += 1;
            self.kept.2 += value * value;
        }
    }

    fn finite(&self) -> (f64, String) {
        let count = |draws: &[Draw]| draws.iter().map(|draw| draw.non_finite).sum::<u64>();
        let (reference, got) = self.draws.split_at(self.reference);
        let bad = if count(reference) == 0 { count(got) } else { 0 };
        let severity = if bad > 0 { f64::INFINITY } else { 0.0 };
        (severity, format!("{bad} elements of the draws are NaN or infinite; the reference has none"))
    }

    fn each(&self, feature: impl Fn(&Draw) -> f64) -> Vec<f64> {
        self.draws.iter().map(feature).collect()
    }

    /// Condition 1.
    fn features(&self, dtype: Dtype) -> (f64, String) {
        let count = self.elements.max(1) as f64;
        let rms = |draw: &Draw| (draw.squares / count).sqrt();
        let scale = average(&self.draws[..self.reference].iter().map(rms).collect::<Vec<_>>());
        let features = [
            ("share of zeros", 1e-6, self.each(|draw| draw.zeros / count)),
            ("rms", slack(dtype) * scale, self.each(rms)),
            ("mean", slack(dtype) * scale, self.each(|draw| draw.sum / count)),
        ];
        let mut worst = (0.0, String::new());
        for (name, slack, values) in features {
            let got = self.draws.len() - self.reference;
            let (severity, want, have) = apart(&values, self.reference, slack);
            if severity > worst.0 {
                worst = (
                    severity,
                    format!("the {name} over {got} draws is {}, the reference's {}", figure(have), figure(want)),
                );
            }
        }
        worst
    }

    /// Condition 2.
    fn elements(&self, dtype: Dtype) -> (f64, String) {
        let (labelled, mixed) = self.distances.split_at(1);
        let (usual, spread) = (average(mixed), variance(mixed).sqrt());
        let allowed = usual + (SIGMAS * spread).max(0.02 * usual) + slack(dtype).powi(2) * self.mean_squares;
        let severity = if labelled[0] == 0.0 { 0.0 } else { labelled[0] / allowed.max(f64::MIN_POSITIVE) };
        let off = (labelled[0] / usual.max(f64::MIN_POSITIVE)).sqrt();
        (
            severity,
            format!(
                "the means of the elements over the draws are {} times as far from the reference's as chance explains",
                figure(off)
            ),
        )
    }

    /// Condition 3.
    fn kept(&self, dtype: Dtype) -> (f64, String) {
        let (difference, count, squares) = self.kept;
        if count == 0 || self.settled * 100 < self.nonzero * 99 {
            return (0.0, String::new());
        }
        let error = (difference / squares.max(f64::MIN_POSITIVE)).sqrt();
        let what = format!(
            "the values that are kept are off by {} of their rms, {} allowed",
            figure(error),
            figure(slack(dtype))
        );
        (error / slack(dtype), what)
    }

    /// Condition 4.
    fn variation(&self, dtype: Dtype) -> (f64, String) {
        let [reference, got] = self.variance;
        if reference <= slack(dtype).powi(2) * self.mean_squares {
            return (0.0, String::new());
        }
        let ratio = got / reference;
        let what = if got == 0.0 {
            "every draw is the same; the reference draws anew on each call".to_string()
        } else {
            format!("the draws vary {} times as much as the reference's", figure(ratio))
        };
        (ratio.max(1.0 / ratio.max(1e-30)) / VARIATION, what)
    }

    fn metrics(&self) -> Metrics {
        let distance = self.distances.first().copied().unwrap_or(0.0);
        let rms = if distance == 0.0 { 0.0 } else { (distance / self.mean_squares.max(f64::MIN_POSITIVE)).sqrt() };
        Metrics { rms: bounded(rms), elements: self.elements as u64, ..Metrics::default() }
    }
}

impl Draw {
    fn add(&mut self, values: &[f64]) {
        for &value in values {
            if value.is_finite() {
                self.sum += value;
                self.squares += value * value;
                self.zeros += f64::from(u8::from(value == 0.0));
            } else {
                self.non_finite += 1;
            }
        }
    }
}

/// Which draws stand for the reference: as they are, then at random. The order depends on nothing but the counts.
fn mixtures(reference: usize, all: usize) -> Vec<Vec<bool>> {
    let labels: Vec<bool> = (0..all).map(|draw| draw < reference).collect();
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % below
    };
    let mut mixtures = vec![labels.clone()];
    for _ in 0..MIXTURES {
        let mut mixed = labels.clone();
        for at in (1..all).rev() {
            mixed.swap(at, next(at + 1));
        }
        mixtures.push(mixed);
    }
    mixtures
}

fn mean(values: &[f64], labels: &[bool], side: bool) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for (value, _) in values.iter().zip(labels).filter(|(_, label)| **label == side) {
        sum += value;
        count += 1.0;
    }
    sum / count
}
