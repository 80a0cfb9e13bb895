//! What a comparison with the reference found, and why one ends early.

use std::time::Duration;

use tilewright_clock::median;
use tilewright_contract::{BaselineTime, DeviceLimits, Work};
use tilewright_stage::StageError;

use crate::draft::Stop;

/// How long a block of calls may take by the clock on the wall.
const BLOCK: Duration = Duration::from_micros(2_000);
/// What no call takes less than, in microseconds: events tell no smaller difference.
const LEAST_US: f64 = 0.03;
/// Calls in a block at most.
pub(crate) const MOST: u32 = 15;
/// Sets of inputs that calls take in turn.
pub(crate) const SETS: u32 = 3;

/// Why a comparison ends early, by whose fault.
pub(crate) enum Trouble {
    Candidate(Stop),
    Baseline(StageError),
}

impl From<Stop> for Trouble {
    fn from(stop: Stop) -> Self {
        Self::Candidate(stop)
    }
}

impl From<StageError> for Trouble {
    fn from(error: StageError) -> Self {
        Self::Baseline(error)
    }
}

/// Times of one side, block by block: each block has its memory elsewhere, so that it counts as one figure.
#[derive(Debug, Clone, Default)]
pub(crate) struct Series {
    /// The median of each block as it was measured, in microseconds.
    pub(crate) blocks: Vec<f64>,
    pub(crate) calls: u32,
}

impl Series {
    /// Adds a block of times, if there are any.
    pub(crate) fn add(&mut self, times: &[f64]) {
        self.blocks.extend(median(times));
        self.calls += times.len() as u32;
    }

    /// The blocks less the cost of measuring; not zero or less, even of what takes as long as nothing does.
    pub(crate) fn net(&self, overhead: f64) -> Vec<f64> {
        self.blocks.iter().map(|us| (us - overhead).max(LEAST_US)).collect()
    }
}

/// Calls in the next block after one of `calls`, which took `seconds` by the clock on the wall with all that was done between
/// them: so many that there is time for many blocks.
pub(crate) fn next_pace(calls: u32, elapsed: Duration) -> u32 {
    let fit = BLOCK.as_secs_f64() / elapsed.as_secs_f64().max(1e-9) * f64::from(calls);
    let pace = (fit as u32).clamp(1, MOST);
    // Each set of inputs as often as the others.
    if pace < SETS { pace } else { pace - pace % SETS }
}

/// What a comparison with the reference found.
#[derive(Default)]
pub(crate) struct Comparison {
    /// The candidate's cold times.
    pub(crate) ours: Series,
    pub(crate) baselines: Vec<BaselineTime>,
    pub(crate) work: Option<Work>,
    pub(crate) limits: Option<DeviceLimits>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_counts_as_its_median() {
        let mut series = Series::default();
        series.add(&[]);
        series.add(&[1.0, 2.0, 9.0]);
        series.add(&[4.0]);
        series.add(&[1.0]);
        assert_eq!((series.net(1.0), series.calls), (vec![1.0, 3.0, LEAST_US], 5));
    }

    /// Blocks are as long as there is time for, and never longer than that but for a single call.
    #[test]
    fn slow_calls_make_short_blocks() {
        let pace = |us: u64| next_pace(10, Duration::from_micros(10 * us));
        assert_eq!((pace(0), pace(10), pace(133), pace(160)), (15, 15, 15, 12));
        assert_eq!((pace(600), pace(1_000), pace(2_000), pace(1_000_000)), (3, 2, 1, 1));
    }
}
