//! Room in the host's memory.

use tilewright_stage::{Permit, Permits};

use crate::pipeline::Candidate;
use crate::replay::TrialOf;

/// Share of the host's memory that stays free: problems are loaded beside candidates that allocate.
const SCARCE: f64 = 0.15;
/// Share of what is free at the start that candidates may hold until they are judged, all together.
const CANDIDATES: u64 = 4;
/// What is taken to be free where the system does not tell.
const UNKNOWN: u64 = 8 << 30;

/// Bytes for what candidates leave behind until it is judged: those of them whose data go through the host's memory.
pub(crate) fn for_candidates() -> Permits {
    Permits::new(free().unwrap_or(UNKNOWN) / CANDIDATES)
}

/// What a problem's data may take: they lie in the oracle's process and then in ours.
pub(crate) fn for_problem() -> u64 {
    free().unwrap_or(UNKNOWN) / 2
}

/// What one problem's data may take in our memory after they were fetched from a GPU, before it is loaded anew.
pub(crate) fn for_copies() -> u64 {
    free().unwrap_or(UNKNOWN) / 8
}

impl Candidate<'_> {
    /// Waits until there is room for what its trials leave behind, beside what other candidates hold.
    pub(crate) fn room<'r>(&self, of: &'r Permits, trials: &[TrialOf<'_>]) -> Permit<'r> {
        // Contents before and after.
        let nbytes = trials.iter().map(|trial| trial.built.plan.nbytes().saturating_mul(2));
        let nbytes = nbytes.fold(0, u64::saturating_add);
        self.waited.during(|| of.take(nbytes))
    }
}

/// Whether less of the host's memory is free than should be. Unknown is not scarce.
pub(crate) fn is_scarce() -> bool {
    let share = |text: &str| Some(field(text, "MemAvailable:")? as f64 / field(text, "MemTotal:")? as f64);
    meminfo().and_then(|text| share(&text)).is_some_and(|free| free < SCARCE)
}

/// Bytes that are free for use, by the kernel's own account.
fn free() -> Option<u64> {
    meminfo().and_then(|text| field(&text, "MemAvailable:"))
}

fn meminfo() -> Option<String> {
    std::fs::read_to_string("/proc/meminfo").ok()
}

/// A field in bytes.
fn field(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_or_unknown() {
        let text = "MemTotal:       1000 kB\nMemFree:         10 kB\nMemAvailable:    250 kB\n";
        assert_eq!(field(text, "MemAvailable:"), Some(250 << 10));
        assert_eq!(field("MemTotal: 1000 kB\n", "MemAvailable:"), None);
        assert_eq!(field("MemTotal: x kB\n", "MemTotal:"), None);
    }
}
