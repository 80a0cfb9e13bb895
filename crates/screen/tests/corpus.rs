//! The screen on the labelled candidates, and its modules under the real Triton.

mod support;

use std::fs;
use std::path::PathBuf;

use tilewright_contract::Tier;
use tilewright_screen::{Cut, cut};

use support::{Module, crate_root, execute};

struct Candidate {
    id: String,
    label: String,
    source: String,
}

/// Labelled candidates: `TILEWRIGHT_CORPUS`, or the folder beside the repository. Empty if there is none.
fn corpus() -> Vec<Candidate> {
    let folder = std::env::var_os("TILEWRIGHT_CORPUS")
        .map_or_else(|| crate_root().join("../../../shared/corpus"), PathBuf::from);
    let Ok(labels) = fs::read_to_string(folder.join("labels.csv")) else {
        eprintln!("no corpus at {}: nothing checked", folder.display());
        return Vec::new();
    };
    let rows = labels.lines().skip(1).filter_map(|line| {
        let mut fields = line.split(',');
        let (id, problem, label) = (fields.next()?, fields.next()?, fields.next()?);
        let source = fs::read_to_string(folder.join("candidates").join(problem).join(format!("{id}.py"))).ok()?;
        Some(Candidate { id: id.to_owned(), label: label.to_owned(), source })
    });
    rows.collect()
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
        let decorators = candidate.source.lines().filter(|line| matches!(line.trim(), "@triton.jit" | "@jit")).count();
        assert_eq!(cut.kernels.len(), decorators, "{}", candidate.id);
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
    execute(&modules).unwrap();
}

#[test]
fn the_problems_of_this_repository_have_clean_candidates() {
    let Ok(folders) = fs::read_dir(crate_root().join("../../problems")) else { return };
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
