//! Every problem of the repository with its candidate, and our own corpus, through the real stages.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tilewright_cell::{Zygote, ZygoteOptions, find_python};
use tilewright_contract::{Verdict, VerdictKind};
use tilewright_stage::{Cache, Stage, StageOptions};
use tilewright_verify::{Device, Group, Mode, Options, Verifier, parse_arch};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A verifier with one trial a problem: what is tested is the path, not the precision.
fn verifier(cache: &Path) -> Verifier {
    verifier_within(cache, Duration::from_secs(300))
}

fn verifier_within(cache: &Path, timeout: Duration) -> Verifier {
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
        timing: None,
        timeout,
        strict: false,
        confirm: 0.0,
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
    every_kernel_is_read(cache.path(), 45);
}

/// What the cache holds of Triton IR is read, makes sense, and is the same after printing and reading again.
fn every_kernel_is_read(cache: &Path, at_least: usize) {
    let mut pending = vec![cache.to_owned()];
    let mut count = 0;
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let Ok(text) = String::from_utf8(std::fs::read(&path).unwrap()) else { continue };
        if !text.contains("tt.func public") {
            continue;
        }
        let read = |text: &str| tilewright_ttir::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let module = read(&text);
        tilewright_ttir::verify(&module).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(read(&module.to_string()).to_string(), module.to_string(), "{text}");
        count += 1;
    }
    assert!(count >= at_least, "only {count} kernels in the cache");
}

/// The honest half of the corpus; `tilewright audit` runs all of it.
#[test]
fn every_honest_candidate_of_the_corpus_gets_the_verdict_of_its_label() {
    let cache = tempfile::tempdir().unwrap();
    let verifier = verifier(cache.path());
    let corpus = root().join("corpus");
    let mut rows: Vec<Row> =
        csv::Reader::from_path(corpus.join("labels.csv")).unwrap().deserialize().map(Result::unwrap).collect();
    rows.retain(|row| row.label == "honest" && row.targets.split_whitespace().any(|target| target == "cpu"));
    rows.sort_by(|a, b| a.problem.cmp(&b.problem));
    assert!(rows.len() >= 15, "only {} candidates", rows.len());
    let mut wrong = Vec::new();
    for group in rows.chunk_by(|a, b| a.problem == b.problem) {
        let problem = verifier.load(&corpus.join(&group[0].problem));
        for row in group {
            let candidate = corpus.join(&row.label).join(format!("{}.py", row.id));
            let verdict = verifier.verify(&problem, &candidate, &std::fs::read(&candidate).unwrap());
            if row.verdict.split('|').all(|allowed| allowed != verdict.verdict.name()) {
                wrong.push(format!("wanted {}, {}", row.verdict, explain(&verdict)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    every_kernel_is_read(cache.path(), 100);
}

/// A row of `corpus/labels.csv`; `problem` is a path relative to `corpus/`, `verdict` lists alternatives with `|`.
#[derive(serde::Deserialize)]
struct Row {
    id: String,
    problem: String,
    label: String,
    verdict: String,
    targets: String,
}

const SCALED: &str = r#"
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features))

    def forward(self, x):
        return x * self.scale * 2.0


def get_inputs():
    return [torch.randn(16, 40)]


def get_init_inputs():
    return [40]
"#;

/// `ModelNew` that keeps its weights as `init` says, in `self.NAME`, and multiplies by `factor`.
fn scaled(init: &str, name: &str, factor: &str) -> String {
    format!(
        r#"
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_rows(x, s, y, cols, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    m = c < cols
    row = tl.program_id(0) * cols
    tl.store(y + row + c, tl.load(x + row + c, mask=m) * tl.load(s + c, mask=m) * {factor}, mask=m)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        {init}

    def forward(self, x):
        y = torch.empty_like(x)
        scale_rows[(x.shape[0],)](x, self.{name}, y, x.shape[1], BLOCK=64)
        return y
"#
    )
}

#[test]
fn weights_are_matched_by_name_by_value_or_as_folded() {
    let folder = tempfile::tempdir().unwrap();
    let verifier = verifier(&folder.path().join("cache"));
    let problem = folder.path().join("problem.py");
    std::fs::write(&problem, SCALED).unwrap();
    let problem = verifier.load(&problem);
    for (init, name, factor, rule, kind) in [
        ("self.scale = nn.Parameter(torch.rand(features))", "scale", "2.0", "state_dict", VerdictKind::Accepted),
        ("self.gain = nn.Parameter(torch.rand(features))", "gain", "2.0", "value", VerdictKind::Accepted),
        ("self.register_buffer('gain', torch.rand(features) * 2)", "gain", "1.0", "folded", VerdictKind::Accepted),
        // The names say that the weights cannot arrive.
        ("self.gain = nn.Parameter(torch.ones(features))", "gain", "2.0", "state_dict", VerdictKind::Incorrect),
        // Drawn at another place of the generator's stream.
        (
            "torch.rand(3); self.gain = nn.Parameter(torch.rand(features))",
            "gain",
            "2.0",
            "folded",
            VerdictKind::Incorrect,
        ),
    ] {
        let source = scaled(init, name, factor);
        let verdict = verifier.verify(&problem, Path::new("candidate.py"), source.as_bytes());
        assert_eq!(verdict.verdict, kind, "{init}: {}", explain(&verdict));
        assert_eq!(verdict.weights.as_deref(), Some(rule), "{init}");
        if kind == VerdictKind::Incorrect {
            let named = verdict.reasons.iter().find(|reason| reason.code == "weights").unwrap();
            assert!(named.message.contains("lacks scale") && named.message.contains("gain"), "{}", named.message);
        }
    }
}

/// What a device cannot launch is told on a CPU too, and what the kernels take is in the verdict.
#[test]
fn a_launch_past_the_targets_limits_is_refused_on_a_cpu() {
    let folder = tempfile::tempdir().unwrap();
    let verifier = verifier(&folder.path().join("cache"));
    let problem = folder.path().join("problem.py");
    std::fs::write(&problem, SCALED).unwrap();
    let problem = verifier.load(&problem);
    let weights = "self.scale = nn.Parameter(torch.rand(features))";
    let source = scaled(weights, "scale", "2.0").replace("[(x.shape[0],)]", "[(x.shape[0], 70000)]");
    let verdict = verifier.verify(&problem, Path::new("candidate.py"), source.as_bytes());
    assert_eq!(verdict.verdict, VerdictKind::LaunchError, "{}", explain(&verdict));
    assert_eq!(verdict.reasons[0].code, "target-limit");
    assert_eq!(verdict.reasons[0].line, Some(23));
    assert!(verdict.resources.values().all(|resources| resources.registers.is_some()));
}

/// On a GPU such lanes hold whatever was in the register: zeros by luck.
#[test]
fn a_sum_over_undefined_lanes_is_a_memory_fault() {
    let folder = tempfile::tempdir().unwrap();
    let verifier = verifier(&folder.path().join("cache"));
    let problem = folder.path().join("problem.py");
    std::fs::write(&problem, SCALED.replace("x * self.scale * 2.0", "x.sum(1) + self.scale[:1]")).unwrap();
    let problem = verifier.load(&problem);
    let weights = "self.scale = nn.Parameter(torch.rand(features))";
    let summed = |load: &str| {
        scaled(weights, "scale", "2.0").replace("torch.empty_like(x)", "x.new_empty(x.shape[0])").replace(
            "tl.store(y + row + c, tl.load(x + row + c, mask=m) * tl.load(s + c, mask=m) * 2.0, mask=m)",
            &format!("tl.store(y + tl.program_id(0), tl.sum({load}, 0) + tl.load(s))"),
        )
    };
    for (load, kind) in [
        ("tl.load(x + row + c, mask=m)", VerdictKind::MemoryFault),
        ("tl.load(x + row + c, mask=m, other=0.0)", VerdictKind::Accepted),
        ("tl.where(m, tl.load(x + row + c, mask=m), 0.0)", VerdictKind::Accepted),
    ] {
        let verdict = verifier.verify(&problem, Path::new("candidate.py"), summed(load).as_bytes());
        assert_eq!(verdict.verdict, kind, "{load}: {}", explain(&verdict));
        if kind == VerdictKind::MemoryFault {
            assert_eq!(verdict.reasons[0].code, "undefined-lanes");
        }
    }
}

#[test]
fn a_case_without_elements_needs_no_launch() {
    let folder = tempfile::tempdir().unwrap();
    let verifier = verifier(&folder.path().join("cache"));
    let problem = folder.path().join("problem.py");
    let cases = SCALED.replace("torch.randn(16, 40)", "torch.randn(ROWS, 40)");
    std::fs::write(&problem, format!("{cases}\n\nROWS = 16\nCASES = [{{\"ROWS\": 0}}]\n")).unwrap();
    let problem = verifier.load(&problem);
    let weights = "self.scale = nn.Parameter(torch.rand(features))";
    let plain = scaled(weights, "scale", "2.0");
    let guarded = plain.replace("        scale_rows[", "        if x.numel():\n            scale_rows[");
    for source in [plain, guarded] {
        let verdict = verifier.verify(&problem, Path::new("candidate.py"), source.as_bytes());
        assert_eq!(verdict.verdict, VerdictKind::Accepted, "{}", explain(&verdict));
    }
}

/// A neighbour in the batch that never ends must not take the time of an honest candidate.
#[test]
fn an_endless_neighbour_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let verifier = verifier_within(&folder.path().join("cache"), Duration::from_secs(15));
    let problem = folder.path().join("problem.py");
    std::fs::write(&problem, SCALED).unwrap();
    let weights = "self.scale = nn.Parameter(torch.rand(features))";
    let honest = scaled(weights, "scale", "2.0");
    let endless = honest.replace("[(x.shape[0],)]", "[(x.shape[0], 65535, 65535)]");
    let files: Vec<PathBuf> = [("a.py", &endless), ("b.py", &honest), ("c.py", &honest)]
        .into_iter()
        .map(|(name, source)| {
            let path = folder.path().join(name);
            std::fs::write(&path, source).unwrap();
            path
        })
        .collect();
    let mut got = Vec::new();
    let groups = [Group { problem, candidates: files }];
    tilewright_verify::batch(&verifier, &groups, 2, |_, _, verdict| -> Result<(), std::convert::Infallible> {
        got.push((Path::new(&verdict.candidate.path).file_stem().unwrap().to_owned(), verdict.verdict));
        Ok(())
    })
    .unwrap();
    got.sort();
    let kinds: Vec<VerdictKind> = got.into_iter().map(|(_, kind)| kind).collect();
    assert_eq!(kinds, [VerdictKind::Timeout, VerdictKind::Accepted, VerdictKind::Accepted]);
}
