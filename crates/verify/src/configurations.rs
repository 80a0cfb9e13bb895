//! Which configurations of autotuned kernels are executed: all, or some of many.
//!
//! The choice must be a secret, so that no wrong one hides among many, and the candidate runs where traces are made.
//! So a first trace says how many there are, and a second one is told which to take.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use tilewright_contract::{Choice, OracleCase, VerdictKind};
use tilewright_stage::{Further, KernelSite, Trace, TraceRequest};

use crate::draft::Stop;
use crate::pipeline::{Candidate, Verifier};
use crate::problem::derive;

/// Configurations besides the first that are traced, compiled and executed.
const MOST: usize = 63;

impl Verifier {
    /// A trace under one case with as many configurations as are executed.
    pub(crate) fn trace_case(&self, candidate: &Candidate<'_>, case: &OracleCase) -> Result<Trace, Stop> {
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
        let further = first.further();
        if further <= MOST {
            return Ok(first);
        }
        let second = trace(Further::These(&chosen(further, derive(self.options.seed, b"configurations"))))?;
        if autotuners(&second) != autotuners(&first) {
            let message = "the autotune configurations are others in another process";
            return Err(Stop::new(VerdictKind::Rejected, "hidden-state", message)
                .help("let the configurations depend on shapes, dtypes and the device alone"));
        }
        Ok(second)
    }
}

/// Places of `MOST` of so many, in order. The same for every case that has as many.
fn chosen(further: usize, seed: u64) -> Vec<usize> {
    let mut places = rand::seq::index::sample(&mut ChaCha8Rng::seed_from_u64(seed), further, MOST).into_vec();
    places.sort_unstable();
    places
}

fn autotuners(trace: &Trace) -> &[Choice] {
    trace.plans.first().map_or(&[], |plan| &plan.choices)
}

/// Says that not every configuration of the autotuners is executed, where that is so.
pub(crate) fn left_out(trace: &Trace) -> Option<String> {
    let all = trace.further().saturating_add(1);
    let executed = trace.plans.iter().filter(|plan| plan.is_usual()).count();
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

    #[test]
    fn the_seed_alone_chooses_and_nothing_is_chosen_twice() {
        for further in [MOST + 1, 200, usize::MAX] {
            let places = chosen(further, 1);
            assert_eq!(places, chosen(further, 1));
            assert_ne!(places, chosen(further, 2));
            assert_eq!(places.len(), MOST);
            assert!(places.is_sorted_by(|a, b| a < b) && places.iter().all(|at| *at < further));
        }
    }
}
