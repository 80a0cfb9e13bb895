//! `tilewright bench` through the real binary: a run that is killed and goes on, its parts joined, samples of an author,
//! its report, what is refused, and the repository's own problems and corpus.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../author/tests/support/server.rs"]
#[expect(dead_code, reason = "this program uses a part")]
mod server;

mod author;
mod repository;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const PROBLEM: &str = r#"
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x * FACTOR


def get_inputs():
    return [torch.randn(8, 40)]


def get_init_inputs():
    return []
"#;

const CANDIDATE: &str = r#"
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * FACTOR, mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        scale[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y
"#;

/// A KernelBench checkout of two problems, and a run folder with five samples of the first and one of the second.
struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Self {
        let bench = Self(tempfile::tempdir().unwrap());
        bench.write("KernelBench/level1/1_double.py", &PROBLEM.replace("FACTOR", "2.0"));
        bench.write("KernelBench/level1/2_triple.py", &PROBLEM.replace("FACTOR", "3.0"));
        for sample in 0..5 {
            let factor = if sample == 3 { "2.5" } else { "2.0" };
            let text = format!("# sample {sample}\n{}", CANDIDATE.replace("FACTOR", factor));
            bench.write(&format!("samples/level_1_problem_1_sample_{sample}_kernel.py"), &text);
        }
        bench.write("samples/level_1_problem_2_sample_0_kernel.py", "I cannot do that.\n");
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("tilewright"));
        command.current_dir(self.0.path()).env("TILEWRIGHT_CACHE", self.path("cache")).arg("bench").args(args);
        let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
        if std::env::var_os("TILEWRIGHT_PYTHON").is_none() && python.is_file() {
            command.env("TILEWRIGHT_PYTHON", python);
        }
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

const RUN: [&str; 6] = ["run", "KernelBench", "samples", "--trials", "1", "--no-controls"];

fn verdicts(log: &Path) -> usize {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.split_inclusive('\n').filter(|line| line.starts_with("{\"verdict\"") && line.ends_with('\n')).count()
}

/// Waits until something is so, or the program has ended.
fn until(child: &mut Child, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(300);
    while !is_so() && Instant::now() < deadline && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Killed after the first verdict, a run goes on with the others: five samples give five results, each once.
#[test]
fn a_killed_run_goes_on_and_every_sample_counts_once() {
    let bench = Bench::new();
    let log = bench.path("runs/a/run.jsonl");
    let mut args = RUN.to_vec();
    args.extend(["--out", "runs/a", "--jobs", "1", "--json"]);
    let mut child = bench.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until(&mut child, || verdicts(&log) > 0);
    // A second run in the same folder does not mix its lines in, however slow the first one is.
    assert!(Command::new("kill").args(["-STOP", &child.id().to_string()]).status().unwrap().success());
    let second = bench.run(&args);
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(2), "{said}");
    assert!(said.contains("in use by another run"), "{said}");
    child.kill().unwrap();
    child.wait().unwrap();
    let before = verdicts(&log);
    assert!(before >= 1);
    // What was being written when it was killed.
    let whole = fs::read_to_string(&log).unwrap();
    fs::write(&log, format!("{whole}{{\"verdict\":{{\"schema\":\"tilewright.ver")).unwrap();

    let report = bench.json(&args);
    assert_eq!(verdicts(&log), 6);
    let counts = &report["counts"];
    assert_eq!((counts["samples"].as_u64(), counts["accepted"].as_u64()), (Some(6), Some(4)), "{counts}");
    assert_eq!((counts["failed"].as_u64(), counts["missing"].as_u64()), (Some(2), Some(0)), "{counts}");
    let correct = report["standards"][0]["groups"][0]["correct"]["value"].as_f64().unwrap();
    assert!((correct - (4.0 / 5.0 + 0.0) / 2.0).abs() < 1e-12);
    // An answer without a candidate is a sample that fails.
    assert_eq!(report["problems"][1]["verdicts"]["compile_error"], 1);
    // Nothing is timed on a CPU, and nothing pretends to be.
    assert_eq!(report["standards"][0]["groups"][0]["speed"], Value::Array(Vec::new()));

    // A third time there is nothing to do.
    let again = bench.run(&args);
    assert!(String::from_utf8_lossy(&again.stderr).contains("6 texts have a verdict, 0 are to be verified"));
    assert_eq!(verdicts(&log), 6);
}

/// Two machines take a part each; the parts make one report, and a third run takes both over under other paths.
#[test]
fn parts_join_by_content() {
    let bench = Bench::new();
    for part in ["1/2", "2/2"] {
        let mut args = RUN.to_vec();
        let out = format!("runs/{}", &part[..1]);
        args.extend(["--out", &out, "--shard", part]);
        let output = bench.run(&args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let report = bench.json(&["report", "runs/1", "runs/2", "--json", "--html", "page.html"]);
    assert_eq!((&report["counts"]["samples"], &report["counts"]["problems"]), (&Value::from(6), &Value::from(2)));
    assert!(fs::read_to_string(bench.path("page.html")).unwrap().contains("1_double"));

    // Elsewhere, and one sample under another number.
    fs::rename(bench.path("samples"), bench.path("moved")).unwrap();
    let (old, new) = ("moved/level_1_problem_1_sample_4_kernel.py", "moved/level_1_problem_1_sample_9_kernel.py");
    fs::rename(bench.path(old), bench.path(new)).unwrap();
    let mut args = vec!["run", "KernelBench", "moved", "--trials", "1", "--no-controls"];
    args.extend(["--out", "runs/3", "--join", "runs/1", "--join", "runs/2", "--json"]);
    let output = bench.run(&args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("6 texts have a verdict, 0 are to be verified"), "{said}");
    let joined: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(joined["counts"], report["counts"]);
    assert_eq!(joined["problems"][0]["outcomes"][4]["index"], 9);

    // Both found the same, so nothing changed; what is exported has every sample.
    let comparison = bench.json(&["compare", "runs/1", "runs/3", "--json"]);
    assert_eq!((&comparison["common"], &comparison["flips"]), (&Value::from(1), &Value::Array(Vec::new())));
    let exported = bench.json(&["export", "runs/3", "--eval-results", "1"]);
    assert_eq!(exported["1"].as_array().unwrap().len(), 5);
}

#[test]
fn what_is_refused_says_what_and_where() {
    let bench = Bench::new();
    bench.write("empty/readme.txt", "");
    bench.write("other/run.jsonl", "[workspace]\n");
    let profile =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles/kernelbench.toml")).unwrap();
    // A tolerance as text, as some readers of YAML take 5e-2.
    assert!(profile.contains("rtol = 1e-4"));
    bench.write("text.toml", &profile.replacen("rtol = 1e-4", "rtol = \"1e-4\"", 1));
    for (args, words) in [
        (vec!["run", "absent", "samples", "--out", "o"], "absent"),
        (vec!["run", "empty", "samples", "--out", "o"], "no problems in it"),
        (vec!["run", "KernelBench", "empty", "--out", "o"], "no sample of a problem of KernelBench"),
        (vec!["run", "KernelBench", "samples", "--out", "o", "--level", "2"], "no problem is left by the filters"),
        (vec!["run", "KernelBench", "samples", "--out", "o", "--shard", "3/2"], "is no part"),
        (vec!["run", "KernelBench", "samples", "--out", "o", "--numbers", "x"], "is no range"),
        (vec!["run", "KernelBench", "samples", "--out", "other"], "not a line of an earlier run"),
        (vec!["run", "KernelBench", "samples", "--out", "o", "--profile", "text.toml"], "text.toml"),
        (vec!["report", "absent"], "failed to read absent"),
        (vec!["report", "other"], "not a line of a run"),
        (vec!["run", "empty/readme.txt", "samples", "--out", "o"], "a suite is a folder"),
        (vec!["run", "KernelBench", "empty/readme.txt", "--out", "o"], "samples are a folder"),
        (vec!["run", "KernelBench", "samples", "--out", "empty/readme.txt"], "it is no folder"),
        (vec!["export", "absent"], "--csv"),
        (vec!["import", "absent", "--level", "1", "--out", "o"], "failed to read absent"),
    ] {
        let output = bench.run(&args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
        assert!(output.stdout.is_empty());
    }
}
