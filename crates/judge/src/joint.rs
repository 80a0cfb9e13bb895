//! How the elements of random outputs are distributed around their means, and depend on each other: within a draw,
//! between draws, and between outputs.
//!
//! Every element is centred and scaled over the draws of both sides together, so that all draws are alike if reference
//! and candidate follow one law. Each draw then gives a few figures, and a figure's mean over the candidate's draws is
//! held against its mean over the reference's, in standard errors of its spread over draws. Nothing is assumed about
//! the law itself: a reference may have dependent elements (one-hot rows, a mask for each channel).

use tilewright_contract::Dtype;

use crate::value::{decode, figure};

/// How many standard errors a figure may be off: one in 10^8 with sixteen draws on each side.
pub(crate) const SIGMAS: f64 = 8.0;
/// Elements that are looked at: the first ones, since neighbours matter.
const WINDOW: usize = 1 << 16;
/// Fewer elements than this say nothing about a law.
const FEWEST: usize = 16;
/// Fewest groups of elements whose sums are compared.
const GROUPS: usize = 8;
/// What rounding may do to a figure; figures are of size one.
const SLACK: f64 = 0.02;
/// Draws as alike as this are the same draw, where the reference's are never half as alike.
const REPEATED: f64 = 0.9;
/// Pairs of draws that are the same before it is no chance: sixteen draws of eight masks have at least as many.
const REPEATS: usize = 8;

/// Draws of one tensor: the reference's first, each element centred and scaled.
pub(crate) struct Draws {
    draws: Vec<Vec<f32>>,
    reference: usize,
    /// Elements that vary.
    live: usize,
}

/// A severity (more than one fails), and what is wrong.
pub(crate) type Check = (f64, String);

type Moment = (&'static str, fn(f64) -> f64);

impl Draws {
    pub(crate) fn of(dtype: Dtype, elements: usize, reference: &[&[u8]], got: &[&[u8]]) -> Self {
        let bytes = elements.min(WINDOW) * dtype.size() as usize;
        let decoded = reference.iter().chain(got).map(|draw| {
            let mut values = Vec::new();
            decode(dtype, &draw[..bytes], &mut values);
            values
        });
        let decoded: Vec<Vec<f64>> = decoded.collect();
        let mut draws = vec![vec![0.0f32; elements.min(WINDOW)]; decoded.len()];
        let mut live = 0;
        for at in 0..elements.min(WINDOW) {
            let column: Vec<f64> = decoded.iter().map(|draw| draw[at]).collect();
            let (mean, deviation) = (average(&column), spread(&column));
            if deviation > 1e-6 * mean.abs() && deviation.is_finite() {
                live += 1;
                draws.iter_mut().zip(&column).for_each(|(draw, value)| draw[at] = ((value - mean) / deviation) as f32);
            }
        }
        Self { draws, reference: reference.len(), live }
    }

    /// All that one tensor's draws can be wrong in.
    pub(crate) fn checks(&self, shape: &[u64]) -> Vec<Check> {
        if self.live < FEWEST {
            return Vec::new();
        }
        let mut checks = self.law();
        checks.extend(self.groups(shape));
        checks.push(self.repeats());
        checks
    }

    /// Moments beyond mean and variance.
    fn law(&self) -> Vec<Check> {
        let moments: [Moment; 3] = [("absolute", f64::abs), ("third", |z| z.powi(3)), ("fourth", |z| z.powi(4))];
        let check = |(name, moment): Moment| {
            self.compare(
                &format!("{name} moment of the elements about their means"),
                self.each(|draw| draw.iter().map(|z| moment(f64::from(*z))).sum::<f64>() / self.live as f64),
            )
        };
        moments.into_iter().map(check).collect()
    }

    /// How far sums over groups of elements vary, beside what independent elements give: more where elements of a group
    /// go together, less where they make up for each other.
    fn groups(&self, shape: &[u64]) -> Vec<Check> {
        let count = self.draws[0].len();
        let check = |(name, key, groups): (String, Key, usize)| {
            let values = self.each(|draw| {
                let mut sums = vec![0.0f64; groups];
                let mut squares = 0.0;
                for (at, z) in draw.iter().enumerate() {
                    sums[key.of(at)] += f64::from(*z);
                    squares += f64::from(z * z);
                }
                sums.iter().map(|sum| sum * sum).sum::<f64>() / squares.max(f64::MIN_POSITIVE)
            });
            self.compare(&format!("variance of sums over {name}, in units of independent elements,"), values)
        };
        partitions(shape, count).into_iter().map(check).collect()
    }

    /// Draws that come again.
    fn repeats(&self) -> Check {
        let (reference, got) = self.draws.split_at(self.reference);
        let alike = |draws: &[Vec<f32>], limit: f64| {
            let pairs = draws.iter().enumerate().flat_map(|(at, a)| draws[at + 1..].iter().map(move |b| (a, b)));
            pairs.filter(|(a, b)| correlation(a, b) >= limit).count()
        };
        let repeated = alike(got, REPEATED);
        if repeated < REPEATS || alike(reference, REPEATED / 2.0) > 0 {
            return (0.0, String::new());
        }
        (f64::INFINITY, format!("{repeated} pairs of {} draws are the same; the reference's all differ", got.len()))
    }

    /// Whether two tensors of equally many elements depend on each other, element by element, as the reference's do:
    /// a mask that is returned is the one that was applied.
    pub(crate) fn with(&self, other: &Self) -> Check {
        let live = self.live.min(other.live);
        if live < FEWEST || self.draws[0].len() != other.draws[0].len() {
            return (0.0, String::new());
        }
        let product = |(a, b): (&Vec<f32>, &Vec<f32>)| dot(a, b) / live as f64;
        let values: Vec<f64> = self.draws.iter().zip(&other.draws).map(product).collect();
        self.compare("correlation of the elements", values)
    }

    fn each(&self, feature: impl Fn(&[f32]) -> f64) -> Vec<f64> {
        self.draws.iter().map(|draw| feature(draw)).collect()
    }

    fn compare(&self, name: &str, values: Vec<f64>) -> Check {
        let (severity, want, have) = apart(&values, self.reference, SLACK);
        (severity, format!("the {name} is {} over the draws, the reference's {}", figure(have), figure(want)))
    }
}

/// How far the mean of the candidate's values is from the reference's, in units of what is allowed; and both means.
pub(crate) fn apart(values: &[f64], reference: usize, slack: f64) -> (f64, f64, f64) {
    let (first, second) = values.split_at(reference);
    let error = (variance(first) / first.len() as f64 + variance(second) / second.len() as f64).sqrt();
    let (want, have) = (average(first), average(second));
    ((want - have).abs() / (SIGMAS * error + slack).max(f64::MIN_POSITIVE), want, have)
}

/// Which group an element is in.
#[derive(Clone, Copy)]
struct Key {
    block: usize,
    period: usize,
}

impl Key {
    fn of(self, at: usize) -> usize {
        at / self.block % self.period
    }
}

/// Neighbours in memory, by powers of two; rows of every rank; and what has one index along an axis.
fn partitions(shape: &[u64], count: usize) -> Vec<(String, Key, usize)> {
    let mut found = Vec::new();
    let mut add = |name: String, block: usize, period: usize| {
        let groups = count.div_ceil(block).min(period);
        if groups >= GROUPS && groups < count {
            found.push((name, Key { block, period }, groups));
        }
    };
    for power in 1..12 {
        add(format!("{} neighbours", 1usize << power), 1 << power, usize::MAX);
    }
    let mut block = 1usize;
    for (axis, extent) in shape.iter().enumerate().rev() {
        let extent = *extent as usize;
        if !block.is_power_of_two() {
            add(format!("the axes from {}", axis + 1), block, usize::MAX);
        }
        add(format!("equal indices of axis {axis}"), block, extent);
        add(format!("equal indices of the axes from {axis}"), 1, block.saturating_mul(extent));
        block = block.saturating_mul(extent);
    }
    found
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum()
}

fn correlation(a: &[f32], b: &[f32]) -> f64 {
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(f64::MIN_POSITIVE)
}

pub(crate) fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Unbiased variance.
pub(crate) fn variance(values: &[f64]) -> f64 {
    let mean = average(values);
    values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len().max(2) - 1) as f64
}

fn spread(values: &[f64]) -> f64 {
    variance(values).sqrt()
}
