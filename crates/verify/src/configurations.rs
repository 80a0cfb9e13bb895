//! Which configurations of autotuned kernels are executed: all, or some of many, and mixtures of several autotuners'.
//!
//! The choice must be a secret, so that no wrong one hides among many, and the candidate runs where traces are made.
//! So a first trace says how many there are, and a second one is told which to take.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tilewright_contract::{Choice, OracleCase, Plan, VerdictKind};
use tilewright_stage::{Further, KernelSite, Mix, Trace, TraceRequest};

use crate::draft::Stop;
use crate::pipeline::{Candidate, Verifier};
use crate::problem::derive;

/// Configurations besides the first that are traced, compiled and executed.
const MOST: usize = 63;

/// Calls in which more than one autotuner takes another configuration than its first.
const MIXED: usize = 8;

impl Verifier {
    /// A trace under one case with as many configurations as are executed; of the problem's own case mixtures too.
    pub(crate) fn trace_case(&self, candidate: &Candidate<'_>, case: &OracleCase, own: bool) -> Result<Trace, Stop> {
        let kernels = &candidate.cut.kernels;
        let kernels: Vec<_> =
            kernels.iter().map(|kernel| KernelSite { name: kernel.name.clone(), line: kernel.line }).collect();
        let trace = |further| {
            self.stage.trace(&TraceRequest {
                source: &candidate.source,
                signature: &case.signature,
                kernels: &kernels,
                calls: &candidate.cut.calls,
                target: &self.options.target,
                further,
            })
        };
        let first = trace(Further::UpTo(MOST))?;
        let counts: Vec<usize> = autotuners(&first).iter().map(|choice| choice.of).collect();
        let mut random = ChaCha8Rng::seed_from_u64(derive(self.options.seed, b"configurations"));
        let mut calls = single(&counts, &mut random);
        let mixed = if own { mixed(&counts, &mut random) } else { Vec::new() };
        if mixed.is_empty() && first.further() <= MOST {
            return Ok(first);
        }
        calls.extend(mixed);
        let second = trace(Further::These(&calls))?;
        if autotuners(&second) != autotuners(&first) {
            let message = "the autotune configurations are others in another process";
            return Err(Stop::new(VerdictKind::Rejected, "hidden-state", message)
                .help("let the configurations depend on shapes, dtypes and the device alone"));
        }
        Ok(second)
    }
}

/// Calls in which one autotuner takes another configuration than its first, in order; `MOST` of all. The same for every
/// case that has as many.
fn single(counts: &[usize], random: &mut ChaCha8Rng) -> Vec<Mix> {
    let all = counts.iter().fold(0, |all: usize, of| all.saturating_add(of.max(&1) - 1));
    let mut ranks = rand::seq::index::sample(random, all, MOST.min(all)).into_vec();
    ranks.sort_unstable();
    let mut choices = counts.iter().enumerate();
    let (mut start, mut next) = (0, choices.next());
    let mut calls = Vec::new();
    for rank in ranks {
        while let Some((place, of)) = next {
            let further = of.max(&1) - 1;
            if rank - start < further {
                calls.push(vec![(place, rank - start + 1)]);
                break;
            }
            start += further;
            next = choices.next();
        }
    }
    calls
}

/// Calls in which every autotuner takes a configuration at random, and more than one another than its first: at most
/// `MIXED`, none twice. A wrong pair is one that no autotuner shows by itself.
fn mixed(counts: &[usize], random: &mut ChaCha8Rng) -> Vec<Mix> {
    let drawn = (0..MIXED * 8).map(|_| {
        let taken = counts.iter().enumerate().map(|(place, of)| (place, random.random_range(0..(*of).max(1))));
        taken.filter(|(_, index)| *index > 0).collect::<Mix>()
    });
    let mut seen = BTreeSet::new();
    drawn.filter(|mix| mix.len() > 1 && seen.insert(mix.clone())).take(MIXED).collect()
}

fn autotuners(trace: &Trace) -> &[Choice] {
    trace.plans.first().map_or(&[], |plan| &plan.choices)
}

/// Says that not every configuration of the autotuners is executed, where that is so.
pub(crate) fn left_out(trace: &Trace) -> Option<String> {
    let by_itself = |plan: &&Plan| plan.is_usual() && plan.choices.iter().filter(|choice| choice.index > 0).count() < 2;
    let all = trace.further().saturating_add(1);
    let executed = trace.plans.iter().filter(by_itself).count();
    (executed < all).then(|| format!("{executed} of {all} autotune configurations are executed, chosen by chance"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn plan(function: &str, index: usize, of: usize) -> Value {
        json!({
            "schema": "tilewright.plan/1", "buffers": [], "kernels": [], "steps": [], "output": {"kind": "none"},
            "choices": [{"function": function, "index": index, "of": of, "config": "BLOCK: 64"}],
        })
    }

    #[test]
    fn configurations_that_are_left_out_are_said() {
        let note = |plans: Vec<Value>| left_out(&serde_json::from_value(json!({ "plans": plans })).unwrap());
        let circumstance = || plan(Choice::CIRCUMSTANCE, 1, 2);
        assert_eq!(note(vec![plan("k", 0, 2), plan("k", 1, 2), circumstance()]), None);
        assert_eq!(note(vec![plan("k", 0, 1)]), None);
        let said = note(vec![plan("k", 0, 5), plan("k", 3, 5), circumstance()]).unwrap();
        assert!(said.starts_with("2 of 5 autotune configurations"), "{said}");
        // What a trace says is a claim: no number of it may overflow.
        let claimed = json!({"function": "k", "index": 0, "of": usize::MAX, "config": ""});
        let mut first = plan("k", 0, usize::MAX);
        first["choices"] = json!([claimed, claimed]);
        assert!(note(vec![first]).is_some());
    }

    fn seeded(seed: u64) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(seed)
    }

    #[test]
    fn the_seed_alone_chooses_and_nothing_is_chosen_twice() {
        for counts in [vec![1, MOST + 3, 0], vec![100, 1, 2, 101], vec![usize::MAX, usize::MAX]] {
            let calls = single(&counts, &mut seeded(1));
            assert_eq!(calls, single(&counts, &mut seeded(1)));
            assert_ne!(calls, single(&counts, &mut seeded(2)));
            assert_eq!(calls.len(), MOST);
            assert!(calls.is_sorted_by(|a, b| a < b), "{calls:?}");
            assert!(calls.iter().flatten().all(|(place, index)| (1..counts[*place]).contains(index)), "{calls:?}");
        }
        assert_eq!(single(&[2, 1, 0, 3], &mut seeded(1)), [vec![(0, 1)], vec![(3, 1)], vec![(3, 2)]]);
        assert!(single(&[], &mut seeded(1)).is_empty());
    }

    #[test]
    fn mixtures_change_more_than_one_choice() {
        for counts in [vec![], vec![9], vec![1, 50, 0, 1]] {
            assert!(mixed(&counts, &mut seeded(1)).is_empty(), "{counts:?}");
        }
        // Two of two have one mixture.
        assert_eq!(mixed(&[2, 1, 2], &mut seeded(1)), [vec![(0, 1), (2, 1)]]);
        let many = mixed(&[4, 1, 5, usize::MAX], &mut seeded(1));
        assert_eq!(many.len(), MIXED);
        assert_ne!(many, mixed(&[4, 1, 5, usize::MAX], &mut seeded(2)));
        assert!(many.iter().all(|mix| mix.len() > 1));
    }
}
