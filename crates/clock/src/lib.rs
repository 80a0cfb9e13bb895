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
/// What verdicts on equal kernels differ by beyond what their blocks do, as a standard deviation and a share (seen on an H200
/// for kernels that arithmetic bounds; the device's clocks).
const BETWEEN: f64 = 0.001;
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

/// The geometric mean of the middle half of positive figures, one a block, with its 95 % interval; none of less than two.
/// What lies outside of the middle half, such as a block during which something else had the device, has no weight.
///
/// The interval is a bootstrap's (Efron 1979, percentile method). That of the plain mean would be too narrow for so few
/// figures; that of the middle half is not, as the tests show. The draws have a fixed seed: equal figures give an equal
/// answer.
pub fn estimate(figures: &[f64]) -> Option<Estimate> {
    let mut logs: Vec<f64> = figures.iter().map(|figure| figure.ln()).collect();
    logs.sort_unstable_by(f64::total_cmp);
    logs.get(1)?;
    let value = midmean(&logs);
    let (mut rng, mut drawn) = (Xoshiro256PlusPlus::seed_from_u64(0), logs.clone());
    let mut draw = || {
        drawn.fill_with(|| logs[rng.random_range(0..logs.len())]);
        drawn.sort_unstable_by(f64::total_cmp);
        midmean(&drawn)
    };
    let mut means: Vec<f64> = (0..RESAMPLES).map(|_| draw()).collect();
    means.sort_unstable_by(f64::total_cmp);
    let reach = |share: f64| (means[((RESAMPLES - 1) as f64 * share).round() as usize] - value).hypot(NORMAL * BETWEEN);
    let (low, high) = (value - reach(TAIL), value + reach(1.0 - TAIL));
    Some(Estimate { value: value.exp(), low: low.exp(), high: high.exp() })
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

/// About half the width of that interval as a share of the value: two standard errors, cheap enough to be asked after every
/// block.
fn spread(figures: &[f64]) -> f64 {
    let logs: Vec<f64> = figures.iter().map(|figure| figure.ln()).collect();
    let (count, mean) = (logs.len() as f64, mean(&logs));
    let squares: f64 = logs.iter().map(|log| (log - mean) * (log - mean)).sum();
    2.0 * (squares / (count - 1.0) / count).sqrt()
}

/// The mean of the middle half of sorted figures.
fn midmean(sorted: &[f64]) -> f64 {
    let outside = sorted.len() / 4;
    mean(&sorted[outside..sorted.len() - outside])
}

fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len() as f64
}

#[cfg(test)]
mod tests;
