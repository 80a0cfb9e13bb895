//! The screen on the labelled candidates, and its modules under the real Triton.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tilewright_contract::Tier;
use tilewright_screen::{Cut, cut};

struct Candidate {
    id: String,
    label: String,
    source: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Labelled candidates: `TILEWRIGHT_CORPUS`, or the folder beside the repository. Empty if there is none.
fn corpus() -> Vec<Candidate> {
    let folder = std::env::var_os("TILEWRIGHT_CORPUS").map_or_else(|| root().join("../shared/corpus"), PathBuf::from);
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

/// Runs the modules under the virtual environment's Triton; skipped where there is none.
fn execute(modules: &[(String, Cut)]) {
    let python = root().join(".venv/bin/python");
    if !python.exists() {
        eprintln!("no {}: modules not executed", python.display());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (id, cut) in modules {
        let kernels: Vec<_> = cut
            .kernels
            .iter()
            .map(|kernel| serde_json::json!({"name": kernel.name, "line": kernel.line, "params": kernel.params}))
            .collect();
        fs::write(folder.path().join(format!("{id}.py")), &cut.module).unwrap();
        fs::write(folder.path().join(format!("{id}.json")), serde_json::to_string(&kernels).unwrap()).unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exec_modules.py");
    let output = Command::new(python).arg(script).arg(folder.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
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
        assert_eq!(cut.module.lines().count().min(candidate.source.lines().count()), cut.module.lines().count());
        modules.push((candidate.id, cut));
    }
    execute(&modules);
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
                modules.push((candidate.id, cut));
            }
            Err(error) => {
                refused += 1;
                println!("{:45} {error}", candidate.id);
            }
        }
    }
    println!("{refused} of {all} hacks refused by proof rules alone");
    execute(&modules);
}
