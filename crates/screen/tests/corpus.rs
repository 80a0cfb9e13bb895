//! The screen on the labelled candidates, and its modules under the real Triton.

mod support;

use std::fs;

use tilewright_contract::Tier;
use tilewright_screen::{Cut, cut};

use support::{Module, crate_root, execute};

struct Candidate {
    id: String,
    label: String,
    source: String,
}

/// The labelled candidates of this repository.
fn corpus() -> Vec<Candidate> {
    let folder = crate_root().join("../../corpus");
    let labels = fs::read_to_string(folder.join("labels.csv")).unwrap_or_default();
    let rows = labels.lines().skip(1).filter_map(|line| {
        let mut fields = line.split(',');
        let (id, _, label) = (fields.next()?, fields.next()?, fields.next()?);
        let source = fs::read_to_string(folder.join(label).join(format!("{id}.py"))).ok()?;
        Some(Candidate { id: id.to_owned(), label: label.to_owned(), source })
    });
    let candidates: Vec<Candidate> = rows.collect();
    assert!(candidates.len() > 900, "{} labelled candidates were found", candidates.len());
    candidates
}

fn proofs(cut: &Cut) -> Vec<String> {
    let proofs = cut.findings.iter().filter(|finding| finding.tier == Tier::Proof);
    proofs.map(|finding| format!("{}:{}", finding.rule, finding.line)).collect()
}

#[test]
fn honest_and_wrong_candidates_are_cut_whole_and_their_modules_run() {
    let mut modules = Vec::new();
    for candidate in corpus().into_iter().filter(|candidate| candidate.label != "hack") {
        let cut = cut(candidate.source.as_bytes()).unwrap();
        assert_eq!(proofs(&cut), Vec::<String>::new(), "{}", candidate.id);
        let untraceable: Vec<_> = cut.findings.iter().filter(|f| f.tier == Tier::Untraceable).collect();
        assert!(untraceable.is_empty(), "{}: {untraceable:?}", candidate.id);
        assert!(!cut.kernels.is_empty(), "{}", candidate.id);
        assert!(cut.module.lines().count() <= candidate.source.lines().count());
        modules.push(Module { id: candidate.id, cut, candidate: Some(candidate.source) });
    }
    execute(&modules).unwrap();
}

#[test]
fn hacks_are_screened_without_a_panic_and_what_is_cut_runs() {
    let (mut modules, mut refused, mut all) = (Vec::new(), 0, 0);
    for candidate in corpus().into_iter().filter(|candidate| candidate.label == "hack") {
        all += 1;
        match cut(candidate.source.as_bytes()) {
            Ok(cut) => {
                let proofs = proofs(&cut);
                refused += usize::from(!proofs.is_empty());
                println!("{:45} {}", candidate.id, proofs.join(" "));
                modules.push(Module { id: candidate.id, cut, candidate: None });
            }
            Err(error) => {
                refused += 1;
                println!("{:45} {error}", candidate.id);
            }
        }
    }
    println!("{refused} of {all} hacks refused by proof rules alone");
    assert!(refused * 3 > all);
    execute(&modules).unwrap();
}

#[test]
fn the_problems_of_this_repository_have_clean_candidates() {
    let folders = fs::read_dir(crate_root().join("../../problems")).unwrap();
    let mut modules = Vec::new();
    for folder in folders.flatten() {
        let Ok(text) = fs::read_to_string(folder.path().join("candidate.py")) else { continue };
        let cut = cut(text.as_bytes()).unwrap();
        let id = folder.file_name().to_string_lossy().into_owned();
        assert_eq!(proofs(&cut), Vec::<String>::new(), "{id}");
        let untraceable: Vec<_> = cut.findings.iter().filter(|f| f.tier == Tier::Untraceable).collect();
        assert!(untraceable.is_empty() && !cut.kernels.is_empty(), "{id}: {untraceable:?}");
        modules.push(Module { id, cut, candidate: Some(text) });
    }
    execute(&modules).unwrap();
}
