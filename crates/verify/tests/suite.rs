//! Every problem of the repository with its candidate, and our own corpus, through the real stages.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tilewright_cell::{Zygote, ZygoteOptions, find_python};
use tilewright_contract::{Verdict, VerdictKind};
use tilewright_stage::{Cache, Stage, StageOptions};
use tilewright_verify::{Device, Mode, Options, Verifier, parse_arch};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A verifier with one trial a problem: what is tested is the path, not the precision.
fn verifier(cache: &Path) -> Verifier {
    let python = find_python(None).expect("a Python with torch: run `make venv`");
    let zygote = Zygote::start(ZygoteOptions::new(python)).expect("the zygote starts: run `make venv`");
    let stage = Stage::new(Arc::new(zygote), Cache::open(cache).unwrap(), StageOptions::default());
    let options = Options {
        device: Device::Cpu,
        target: parse_arch("sm_90").unwrap(),
        profiles: vec![tilewright_judge::profile(tilewright_judge::DEFAULT_PROFILE).unwrap().unwrap()],
        trials: 1,
        seed: 20_261_129,
        mode: Mode::Replay,
        timeout: Duration::from_secs(300),
        strict: false,
        keep: None,
    };
    Verifier::new(stage, options)
}

fn explain(verdict: &Verdict) -> String {
    let reasons: Vec<_> = verdict.reasons.iter().map(|reason| format!("{} {}", reason.code, reason.message)).collect();
    format!("{}: {}: {}", verdict.candidate.path, verdict.verdict.name(), reasons.join("; "))
}

#[test]
fn every_problem_accepts_its_candidate() {
    let cache = tempfile::tempdir().unwrap();
    let verifier = verifier(cache.path());
    let mut folders: Vec<_> =
        std::fs::read_dir(root().join("problems")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| folder.is_dir());
    folders.sort();
    assert!(folders.len() >= 20, "only {} problems", folders.len());
    let mut wrong = Vec::new();
    for folder in folders {
        let candidate = folder.join("candidate.py");
        let problem = verifier.load(&folder.join("problem.py"));
        let verdict = verifier.verify(&problem, &candidate, &std::fs::read(&candidate).unwrap());
        if verdict.verdict != VerdictKind::Accepted {
            wrong.push(explain(&verdict));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_candidate_of_the_corpus_gets_the_verdict_of_its_label() {
    let cache = tempfile::tempdir().unwrap();
    let verifier = verifier(cache.path());
    let corpus = root().join("corpus");
    let mut rows: Vec<Row> =
        csv::Reader::from_path(corpus.join("labels.csv")).unwrap().deserialize().map(Result::unwrap).collect();
    rows.retain(|row| row.targets.split_whitespace().any(|target| target == "cpu"));
    rows.sort_by(|a, b| a.problem.cmp(&b.problem));
    assert!(rows.len() >= 15, "only {} candidates", rows.len());
    let mut wrong = Vec::new();
    for group in rows.chunk_by(|a, b| a.problem == b.problem) {
        let problem = verifier.load(&root().join("problems").join(&group[0].problem).join("problem.py"));
        for row in group {
            let candidate = corpus.join(&row.label).join(format!("{}.py", row.id));
            let verdict = verifier.verify(&problem, &candidate, &std::fs::read(&candidate).unwrap());
            if verdict.verdict.name() != row.verdict {
                wrong.push(format!("wanted {}, {}", row.verdict, explain(&verdict)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[derive(serde::Deserialize)]
struct Row {
    id: String,
    problem: String,
    label: String,
    verdict: String,
    targets: String,
}
