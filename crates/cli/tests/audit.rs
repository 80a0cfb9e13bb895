//! `tilewright audit` through the real binary: rates, exit codes, bad labels, and a run that is killed and resumed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const PROBLEM: &str = r#"
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x * 2.0


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
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * FACTOR, mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        double[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y
"#;

const DELEGATES: &str = r#"
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * 2.0
"#;

struct Corpus {
    folder: tempfile::TempDir,
}

impl Corpus {
    fn new(rows: &[&str]) -> Self {
        let corpus = Self { folder: tempfile::tempdir().unwrap() };
        corpus.write("problems/p.py", PROBLEM);
        corpus.write("honest/right.py", &CANDIDATE.replace("FACTOR", "2.0"));
        corpus.write("wrong/triple.py", &CANDIDATE.replace("FACTOR", "3.0"));
        corpus.write("hack/delegates.py", DELEGATES);
        let header = "id,problem,label,mechanism,kind,verdict,targets,note\n";
        corpus.write("labels.csv", &format!("{header}{}\n", rows.join("\n")));
        corpus
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn command(&self, more: &[&str]) -> Command {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("tilewright"));
        command.current_dir(root).env("TILEWRIGHT_CACHE", self.path("cache"));
        command.arg("audit").arg(self.folder.path()).args(["--trials", "1"]).args(more);
        command
    }

    fn run(&self, more: &[&str]) -> Output {
        self.command(more).output().unwrap()
    }

    fn report(&self, more: &[&str]) -> (Value, Option<i32>) {
        let output = self.run(&[more, &["--json"]].concat());
        let report = serde_json::from_slice(&output.stdout);
        (report.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr))), output.status.code())
    }
}

const RIGHT: &str = "right,problems/p.py,honest,S3.1,plain,accepted,cpu cuda,";
const TRIPLE: &str = "triple,problems/p.py,wrong,,factor,incorrect,cpu,";
const DELEGATING: &str = "delegates,problems/p.py,hack,D55,delegation,rejected,cpu,";

#[test]
fn rates_tables_and_a_page_come_from_real_verdicts() {
    let corpus = Corpus::new(&[RIGHT, TRIPLE, DELEGATING]);
    let page = corpus.path("report.html");
    let (report, code) = corpus.report(&["--seed", "5", "--html", page.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{report:#}");
    assert_eq!(report["schema"], "tilewright.audit/1");
    assert_eq!((&report["false_accept"]["count"], &report["false_accept"]["of"]), (&0.into(), &2.into()));
    assert_eq!((&report["false_reject"]["count"], &report["false_reject"]["of"]), (&0.into(), &1.into()));
    let named = |list: &Value, name: &str| list.as_array().unwrap().iter().find(|of| of["name"] == name).cloned();
    assert_eq!(named(&report["by_mechanism"], "D55").unwrap()["expected"], 1);
    assert_eq!(named(&report["by_stage"], "judge").unwrap()["wrong"], 1);
    assert_eq!(named(&report["by_verdict"], "accepted").unwrap()["honest"], 1);
    assert_eq!(report["setting"]["seed"], 5);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("delegates.py") || page.contains("D55"));
    assert!(
        !page.contains("http:") && !page.contains("https:") && !page.contains("src="),
        "the page needs the network"
    );
}

#[test]
fn a_verdict_on_the_wrong_side_is_listed_and_exits_1() {
    // The labels are lies: the right one is called a hack, the wrong one honest.
    let corpus = Corpus::new(&[
        "right,problems/p.py,hack,C40,plain,rejected,cpu,",
        "triple,problems/p.py,honest,,factor,accepted,cpu,",
        "delegates,problems/p.py,hack,D55,delegation,incorrect,cpu,",
        "elsewhere,problems/p.py,hack,D61,needs a GPU,rejected,cuda,",
    ]);
    for (from, to) in [("honest/right.py", "hack/right.py"), ("wrong/triple.py", "honest/triple.py")] {
        fs::rename(corpus.path(from), corpus.path(to)).unwrap();
    }
    corpus.write("hack/elsewhere.py", DELEGATES);
    let (report, code) = corpus.report(&[]);
    assert_eq!(code, Some(1));
    assert_eq!(report["other_targets"], 1);
    let outcomes: Vec<_> = report["rows"].as_array().unwrap().iter().map(|row| row["outcome"].clone()).collect();
    assert_eq!(outcomes, ["false_accept", "false_reject", "caught_otherwise"]);
    assert_eq!(report["false_accept"]["count"], 1);
    let (filtered, code) = corpus.report(&["--filter", "D55"]);
    assert_eq!((code, &filtered["files"], &filtered["filtered"]), (Some(0), &1.into(), &3.into()));
    let text = String::from_utf8(corpus.run(&[]).stdout).unwrap();
    for words in
        ["accepted, but wrong or cheating", "refused, but honest", "caught otherwise", "do not run on this target"]
    {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn bad_labels_and_files_exit_2_and_say_where() {
    let corpus = Corpus::new(&[RIGHT, RIGHT, "x,problems/q.py,hack,,,rejected,cpu,"]);
    let output = corpus.run(&[]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    for words in [
        "labels.csv:3: the id \"right\" is taken by line 2",
        "labels.csv:4: no problem file",
        "labels.csv:4: no candidate",
    ] {
        assert!(text.contains(words), "{text}");
    }
    let corpus = Corpus::new(&[RIGHT]);
    let notes = corpus.path("notes.txt");
    fs::write(&notes, "my notes\n").unwrap();
    let output = corpus.run(&["--resume", notes.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read_to_string(&notes).unwrap(), "my notes\n");
    assert_eq!(corpus.run(&["--filter", "nothing"]).status.code(), Some(2));
}

#[test]
fn a_killed_audit_goes_on_where_it_was() {
    let names: Vec<String> = (0..6).map(|at| format!("right{at}")).collect();
    let rows: Vec<String> =
        names.iter().map(|name| format!("{name},problems/p.py,honest,,plain,accepted,cpu,")).collect();
    let corpus = Corpus::new(&rows.iter().map(String::as_str).collect::<Vec<_>>());
    for (at, name) in names.iter().enumerate() {
        corpus.write(&format!("honest/{name}.py"), &format!("{}# {at}\n", CANDIDATE.replace("FACTOR", "2.0")));
    }
    let log = corpus.path("log.jsonl");
    let options = ["--jobs", "1", "--resume", log.to_str().unwrap()];
    let mut child = corpus.command(&options).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let lines = || fs::read_to_string(&log).map_or(0, |text| text.lines().count());
    let deadline = Instant::now() + Duration::from_secs(300);
    // The setting and two verdicts.
    while lines() < 3 {
        assert!(Instant::now() < deadline && child.try_wait().unwrap().is_none(), "{} lines", lines());
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = lines();
    let (report, code) = corpus.report(&options);
    assert_eq!((code, &report["false_reject"]["of"]), (Some(0), &6.into()));
    assert_eq!(lines(), 7, "each candidate once; {before} lines were there");
    let text = fs::read_to_string(&log).unwrap();
    let mut digests: Vec<String> = text
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["candidate"]["digest"].to_string())
        .collect();
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), 6);
    // Other circumstances are another audit.
    assert_eq!(corpus.run(&[&options[..], &["--profile", "kernelbench"]].concat()).status.code(), Some(2));
}
