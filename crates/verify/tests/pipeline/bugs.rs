//! Bugs that public evaluators have had and that one candidate alone cannot show: a neighbour, a cache, the order of a
//! batch. The others are candidates of the corpus; corpus/BUGS.md has the table.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tilewright_contract::{Verdict, VerdictKind};
use tilewright_verify::{Group, Verifier};

use crate::bench::{root, verifier};

fn corpus() -> PathBuf {
    root().join("corpus")
}

/// Verdicts of a batch in the order of its candidates.
fn batch(verifier: &Verifier, problem: PathBuf, candidates: Vec<PathBuf>, jobs: usize) -> Vec<Verdict> {
    let mut verdicts = BTreeMap::new();
    let groups = [Group { problem, candidates }];
    tilewright_verify::batch(verifier, &groups, jobs, |_, index, verdict| {
        assert!(verdicts.insert(index, verdict).is_none(), "candidate {index} got two verdicts");
        Ok::<(), std::convert::Infallible>(())
    })
    .unwrap();
    assert!(verdicts.keys().copied().eq(0..groups[0].candidates.len()), "verdicts of {:?} only", verdicts.keys());
    verdicts.into_values().collect()
}

/// An illegal access, an exception without a text, one that names a lock, a megabyte on stdout: each ends in a verdict
/// of its own, and the honest candidate after each of them in the same workers is accepted.
#[test]
fn what_one_candidate_does_is_not_charged_to_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let verifier = verifier(folder.path());
    let honest = "honest/wrapper_function";
    let cases = [
        ("wrong/out_of_bounds_far", VerdictKind::MemoryFault),
        (honest, VerdictKind::Accepted),
        ("wrong/raise_without_message", VerdictKind::LaunchError),
        (honest, VerdictKind::Accepted),
        ("wrong/lock_in_error_text", VerdictKind::LaunchError),
        ("wrong/lock_in_compile_error", VerdictKind::CompileError),
        (honest, VerdictKind::Accepted),
        ("honest/prints_a_megabyte", VerdictKind::Accepted),
        ("wrong/type_error_in_init", VerdictKind::LaunchError),
        (honest, VerdictKind::Accepted),
    ];
    let candidates = cases.iter().map(|(name, _)| corpus().join(format!("{name}.py"))).collect();
    let verdicts = batch(&verifier, corpus().join("problems/affine_relu.py"), candidates, 1);
    for ((name, kind), verdict) in cases.iter().zip(&verdicts) {
        assert_eq!(verdict.verdict, *kind, "{name}: {:?}", verdict.reasons);
    }
}

/// Compiled kernels are found by what they are, not by their name: two candidates side by side whose kernels share a
/// name, a signature and a line but not a constant.
#[test]
fn kernels_of_one_name_do_not_share_a_cache_entry() {
    let folder = tempfile::tempdir().unwrap();
    let verifier = verifier(&folder.path().join("cache"));
    let right = std::fs::read_to_string(corpus().join("honest/wrapper_function.py")).unwrap();
    let limit = "tl.maximum(x * weight + bias, 0.0)";
    assert!(right.contains(limit));
    let wrong = right.replace(limit, "tl.maximum(x * weight + bias, 0.1)");
    let candidates = (0..6).map(|number| {
        let path = folder.path().join(format!("c{number}.py"));
        std::fs::write(&path, if number % 2 == 0 { &right } else { &wrong }).unwrap();
        path
    });
    let verdicts = batch(&verifier, corpus().join("problems/affine_relu.py"), candidates.collect(), 2);
    for (number, verdict) in verdicts.iter().enumerate() {
        let wanted = if number % 2 == 0 { VerdictKind::Accepted } else { VerdictKind::Incorrect };
        assert_eq!(verdict.verdict, wanted, "c{number}: {:?}", verdict.reasons);
    }
}

/// An in-place candidate gets fresh inputs in every call: what the first call did to them is not what the second sees.
#[test]
fn inputs_that_a_candidate_modifies_are_fresh_in_every_call() {
    let folder = tempfile::tempdir().unwrap();
    let verifier = verifier(&folder.path().join("cache"));
    let sorted = std::fs::read_to_string(corpus().join("honest/sort_odd_even_launches.py")).unwrap();
    let copy = "x.clone(memory_format=torch.contiguous_format)";
    assert!(sorted.contains(copy));
    // Sorts in place, and on data that is sorted already one round would do.
    let in_place = sorted.replace(copy, "x").replace("return out", "return out.clone()");
    let path = folder.path().join("in_place.py");
    std::fs::write(&path, in_place).unwrap();
    let verdicts = batch(&verifier, corpus().join("problems/sorted_rows.py"), vec![path], 1);
    assert_eq!(verdicts[0].verdict, VerdictKind::Incorrect, "{:?}", verdicts[0].reasons);
    assert!(verdicts[0].reasons.iter().any(|reason| reason.code == "input-modified"), "{:?}", verdicts[0].reasons);
}
