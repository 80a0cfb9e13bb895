//! Statistics of measured times, and when there are enough of them. Times are device times in microseconds.
//!
//! Calls are timed in blocks, and each block has its memory elsewhere. Times of one block share what is new in the next:
//! where memory lies, how the device's clocks stand. So a block counts as one figure, the median of its calls (a time has a
//! floor and a long tail), and what the figures differ by holds all that differs from one verdict to the next.

use std::ops::Range;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use tilewright_contract::Estimate;

/// Blocks behind an interval, at least and at most. Of fewer, a bootstrap knows too little of the tails.
pub const BLOCKS: Range<usize> = 8..24;
/// Half an interval's width, as a share, that is narrow enough.
const NARROW: f64 = 0.003;
/// Resamples behind an interval.
const RESAMPLES: usize = 1000;
/// Share of resamples on each side of an interval.
const TAIL: f64 = 0.025;
/// Standard deviations of a normal distribution within which 95 % lie, on each side of the mean.
const NORMAL: f64 = 1.959_964;

/// The middle value; the mean of the two in the middle where their number is even. None of no times.
pub fn median(times: &[f64]) -> Option<f64> {
    let mut times = times.to_vec();
    times.sort_unstable_by(f64::total_cmp);
    let middle = times.len() / 2;
    let upper = *times.get(middle)?;
    Some(if times.len() % 2 == 1 { upper } else { (times[middle - 1] + upper) / 2.0 })
}

/// The geometric mean of positive figures, one a block, with its 95 % interval; none of less than two.
///
/// Percentiles of bootstrap means (Efron 1979), stretched until they are as wide as Student's t asks for: of a few figures
/// the plain percentiles are too narrow (Hesterberg 2015, "What Teachers Should Know About the Bootstrap", 5.1). The draws
/// have a fixed seed: equal figures give an equal answer.
pub fn estimate(figures: &[f64]) -> Option<Estimate> {
    let logs: Vec<f64> = figures.iter().map(|figure| figure.ln()).collect();
    let (value, count) = (mean(&logs), logs.len() as f64);
    // Means of resamples vary less than means of so many figures do, by this root.
    let stretch = student(logs.len())? / NORMAL * (count / (count - 1.0)).sqrt();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(0);
    let mut draw = || (0..logs.len()).map(|_| logs[rng.random_range(0..logs.len())]).sum::<f64>() / count;
    let mut means: Vec<f64> = (0..RESAMPLES).map(|_| draw()).collect();
    means.sort_unstable_by(f64::total_cmp);
    let end = |share: f64| (value + stretch * (means[((RESAMPLES - 1) as f64 * share).round() as usize] - value)).exp();
    let (value, low, high) = (value.exp(), end(TAIL), end(1.0 - TAIL));
    Some(Estimate { value, low: low.min(value), high: high.max(value) })
}

/// How many times faster `ours` are than `theirs`, figures of blocks that were timed in pairs, one right after the other:
/// what drifts hits both, and is no part of the interval.
pub fn speedup(theirs: &[f64], ours: &[f64]) -> Option<Estimate> {
    let ratios: Vec<f64> = theirs.iter().zip(ours).map(|(theirs, ours)| theirs / ours).collect();
    estimate(&ratios)
}

/// Whether there are so many figures, or their interval is so narrow, that more would tell little.
pub fn enough(figures: &[f64]) -> bool {
    figures.len() >= BLOCKS.end || figures.len() >= BLOCKS.start && spread(figures) <= NARROW
}

/// Half the width of that interval as a share of the value, by Student's t: quick enough to be asked after every block.
fn spread(figures: &[f64]) -> f64 {
    let logs: Vec<f64> = figures.iter().map(|figure| figure.ln()).collect();
    let (count, mean) = (logs.len() as f64, mean(&logs));
    let squares: f64 = logs.iter().map(|log| (log - mean) * (log - mean)).sum();
    student(logs.len()).map_or(f64::INFINITY, |t| t * (squares / (count - 1.0) / count).sqrt())
}

fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len() as f64
}

/// Standard errors within which the mean of so many figures lies with 95 %: the quantile of Student's t by its expansion
/// around the normal one's (Abramowitz and Stegun 26.7.5), within 0.01 % from eight figures on.
fn student(count: usize) -> Option<f64> {
    let (freedom, z) = (count.checked_sub(1).filter(|&freedom| freedom > 0)? as f64, NORMAL);
    let terms = [
        (z.powi(3) + z) / 4.0,
        (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0,
        (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0,
        (79.0 * z.powi(9) + 776.0 * z.powi(7) + 1482.0 * z.powi(5) - 1920.0 * z.powi(3) - 945.0 * z) / 92_160.0,
    ];
    Some(terms.iter().rev().fold(0.0, |sum, term| (sum + term) / freedom) + z)
}

#[cfg(test)]
mod tests;
