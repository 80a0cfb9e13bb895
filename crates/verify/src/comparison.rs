//! What a comparison with the reference found, and why one ends early.

use tilewright_contract::{BaselineTime, DeviceLimits, Work};
use tilewright_stage::StageError;

use crate::draft::Stop;
use crate::limits;

/// What the times of equal candidates differ by between preparations, as a share, where it was not measured: the largest
/// that was seen (H200, coefficient of variation of 8 to 20 verdicts: 0.3 to 0.8 %).
const SCATTER: f64 = 0.008;
/// And at least: a few preparations may happen to agree.
const LEAST_SCATTER: f64 = 0.001;

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

/// What a comparison with the reference found.
#[derive(Default)]
pub(crate) struct Comparison {
    /// The candidate's cold times.
    pub(crate) ours: Vec<f64>,
    pub(crate) baselines: Vec<BaselineTime>,
    pub(crate) work: Option<Work>,
    pub(crate) limits: Option<DeviceLimits>,
}

impl Comparison {
    /// What preparations differ by, as a share.
    pub(crate) fn scatter(&self) -> f64 {
        let known = self.limits.as_ref().zip(self.work);
        let found = known.and_then(|(limits, work)| limits::scatter(limits, work));
        found.map_or(SCATTER, |scatter| scatter.max(LEAST_SCATTER))
    }
}
