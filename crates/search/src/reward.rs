//! One number for how good a candidate is.

use tilewright_contract::{LaunchCost, Verdict, VerdictKind};

/// Of an accepted candidate; what it gains by speed comes on top.
const ACCEPTED: f64 = 1.0;
/// A speedup counts up to this factor.
const MAX_SPEEDUP: f64 = 10.0;
/// Rates of a large GPU, for candidates that were not timed. Only their order matters.
const BYTES_PER_US: f64 = 4e6;
const FLOPS_PER_US: f64 = 5e7;
const DOT_FLOPS_PER_US: f64 = 4e8;
const LAUNCH_US: f64 = 2.0;

/// How good a candidate is: at least 1 if it is accepted, below if not.
///
/// Accepted and timed: 1 plus the speedup against the first baseline. Accepted, not timed: 1 plus less than 1, by an estimate from
/// what the emulator counted. Not accepted: by how far it came; nothing for breaking a rule.
pub fn reward(verdict: &Verdict) -> f64 {
    match verdict.verdict {
        VerdictKind::Accepted => ACCEPTED + speed(verdict),
        VerdictKind::Incorrect => 0.3 + 0.2 * right_share(verdict),
        VerdictKind::Race | VerdictKind::Nondeterministic => 0.25,
        VerdictKind::MemoryFault => 0.2,
        VerdictKind::LaunchError | VerdictKind::Timeout | VerdictKind::OutOfMemory | VerdictKind::Unsupported => 0.1,
        VerdictKind::CompileError | VerdictKind::Untraceable => 0.05,
        VerdictKind::Rejected | VerdictKind::ProblemDefect | VerdictKind::Infrastructure => 0.0,
    }
}

fn speed(verdict: &Verdict) -> f64 {
    match verdict.timing.as_ref().and_then(|timing| timing.baselines.first()) {
        Some(baseline) => baseline.speedup.value.clamp(0.0, MAX_SPEEDUP),
        // 1 us gives 0.96, 100 us 0.75, 10 ms 0.5.
        None if !verdict.costs.is_empty() => (1.0 - (1.0 + estimated_us(&verdict.costs)).log10() / 8.0).clamp(0.0, 1.0),
        None => 0.0,
    }
}

/// What the launches would take on a large GPU: memory traffic or operations, whichever is longer, and the launch itself.
/// A roofline, with traffic between what a perfect and what no cache would let through.
fn estimated_us(costs: &[LaunchCost]) -> f64 {
    let one = |cost: &LaunchCost| {
        let unique = cost.unique_bytes as f64;
        let moved = 32.0 * cost.sectors as f64;
        let memory = (unique + 0.1 * (moved - unique).max(0.0)) / BYTES_PER_US;
        let compute = cost.flops as f64 / FLOPS_PER_US + cost.dot_flops as f64 / DOT_FLOPS_PER_US;
        LAUNCH_US + memory.max(compute)
    };
    costs.iter().map(one).sum()
}

/// Of the elements, under the deciding profile as far as it is known.
fn right_share(verdict: &Verdict) -> f64 {
    let failing = verdict.profiles.values().find(|outcome| !outcome.pass).map(|outcome| &outcome.metrics);
    failing
        .filter(|metrics| metrics.elements > 0)
        .map_or(0.0, |metrics| 1.0 - (metrics.mismatched as f64 / metrics.elements as f64).clamp(0.0, 1.0))
}
