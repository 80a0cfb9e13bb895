//! `tilewright screen` and `tilewright rule` through the real binary, without Python.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;
use tilewright_contract::{Screening, Tier};

const CLEAN: &str = "\
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), B=128)
        return out
";

struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::cargo_bin("tilewright").unwrap();
        // Neither Python nor a search path: nothing of the kind may be needed.
        command.current_dir(self.0.path()).env_clear().args(arguments).output().unwrap()
    }

    fn json(&self, arguments: &[&str]) -> (i32, Screening) {
        let output = self.run(&[&["screen", "--json"], arguments].concat());
        (output.status.code().unwrap(), serde_json::from_slice(&output.stdout).unwrap())
    }
}

fn suspicious() -> String {
    CLEAN.replace("        out =", "        seen = id(x)\n        out =")
}

fn refused() -> String {
    format!("import ctypes\n{CLEAN}")
}

#[test]
fn a_clean_file_exits_with_0_and_a_refused_one_with_1() {
    let bench = Bench::new();
    bench.write("clean.py", CLEAN);
    bench.write("odd.py", suspicious());
    bench.write("bad.py", refused());
    for (file, strict, code) in
        [("clean.py", false, 0), ("odd.py", false, 0), ("odd.py", true, 1), ("bad.py", false, 1)]
    {
        let arguments: &[&str] = if strict { &["screen", "--strict", file] } else { &["screen", file] };
        let output = bench.run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn people_see_the_line_the_place_and_what_to_do_instead() {
    let bench = Bench::new();
    bench.write("bad.py", refused());
    let text = String::from_utf8(bench.run(&["screen", "bad.py"]).stdout).unwrap();
    for part in
        ["proof: native-code", "bad.py:1:8", "import ctypes", "──────", "write the kernel in Triton", "1 refused"]
    {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
}

#[test]
fn what_a_file_holds_cannot_play_tricks_on_the_terminal() {
    let bench = Bench::new();
    bench.write("bad.py", "import ctypes # \u{1b}[2J\u{202e}\u{200b}\u{9b}1m\n");
    let text = String::from_utf8(bench.run(&["screen", "bad.py"]).stdout).unwrap();
    assert!(text.contains("import ctypes # \u{fffd}[2J"), "{text:?}");
    assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{200b}', '\u{9b}']), "{text:?}");
}

#[test]
fn one_bad_file_does_not_stop_the_rest_of_a_folder() {
    let bench = Bench::new();
    bench.write("all/a.py", "def f(:\n");
    bench.write("all/b.py", b"x = '\0'\n");
    bench.write("all/c.py", "");
    bench.write("all/deep/d.py", CLEAN);
    bench.write("all/e.py", format!("x = {}", "(".repeat(100_000)));
    bench.write("all/notes.txt", "not a candidate");
    let (code, screening) = bench.json(&["all"]);
    assert_eq!((code, screening.schema.as_str()), (1, Screening::SCHEMA));
    let told: Vec<_> = screening
        .files
        .iter()
        .map(|file| (file.candidate.path.as_str(), file.clean, file.findings.first().map(|found| found.rule.as_str())))
        .collect();
    assert_eq!(
        told,
        [
            ("all/a.py", false, Some("syntax-error")),
            ("all/b.py", false, Some("unreadable")),
            ("all/c.py", false, Some("unreadable")),
            ("all/deep/d.py", true, None),
            ("all/e.py", false, Some("unreadable")),
        ]
    );
    assert_eq!(screening.files[3].kernels, ["kernel"]);
    assert!(screening.files.iter().all(|file| file.candidate.digest.starts_with("blake3:")));
}

#[test]
fn standard_input_is_a_file_too_and_a_missing_file_is_a_usage_error() {
    let bench = Bench::new();
    let mut command = Command::cargo_bin("tilewright").unwrap();
    let output = command.args(["screen", "-", "--json"]).write_stdin(refused()).output().unwrap();
    let screening: Screening = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), screening.files[0].candidate.path.as_str()), (Some(1), "-"));
    assert_eq!(screening.files[0].findings[0].tier, Tier::Proof);

    let output = bench.run(&["screen", "nowhere.py"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no file or folder nowhere.py"));
    assert_eq!(bench.run(&["screen", "--json", "--sarif", "."]).status.code(), Some(2));
}

/// What the SARIF 2.1.0 schema requires of the parts that the log has, and what it says about values.
#[test]
fn the_sarif_log_is_valid() {
    let bench = Bench::new();
    bench.write("a folder/bäd.py", refused());
    bench.write("broken.py", "x = (\n");
    bench.write("odd.py", suspicious());
    let output = bench.run(&["screen", "--sarif", "."]);
    assert_eq!(output.status.code(), Some(1));
    let typed: serde_sarif::sarif::Sarif = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(typed.runs.len(), 1);

    let log: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(log["version"], "2.1.0");
    assert!(log["$schema"].as_str().unwrap().ends_with("sarif-2.1.0.json"));
    let run = &log["runs"][0];
    let driver = &run["tool"]["driver"];
    assert_eq!(driver["name"], "tilewright");
    assert_eq!(run["invocations"][0]["executionSuccessful"], true);
    let rules = driver["rules"].as_array().unwrap();
    let ids: BTreeSet<_> = rules.iter().map(|rule| rule["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), rules.len(), "rule ids are unique");
    for rule in rules {
        for text in [&rule["shortDescription"]["text"], &rule["help"]["text"]] {
            assert!(!text.as_str().unwrap().is_empty(), "{rule}");
        }
        assert!(is_level(&rule["defaultConfiguration"]["level"]));
    }
    let results = run["results"].as_array().unwrap();
    let mut levels = BTreeSet::new();
    for result in results {
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        assert!(is_level(&result["level"]));
        levels.insert(result["level"].as_str().unwrap());
        let index = result["ruleIndex"].as_u64().unwrap() as usize;
        assert_eq!(rules[index]["id"], result["ruleId"]);
        let place = &result["locations"][0]["physicalLocation"];
        let uri = place["artifactLocation"]["uri"].as_str().unwrap();
        assert!(uri.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~/%".contains(&byte)), "{uri}");
        if let Some(region) = place.get("region") {
            assert!(region["startLine"].as_u64().unwrap() >= 1 && region["startColumn"].as_u64().unwrap() >= 1);
        }
    }
    assert_eq!(levels, BTreeSet::from(["error", "warning"]));
    let uris = results.iter().map(|result| &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]);
    assert!(uris.into_iter().any(|uri| uri == "./a%20folder/b%C3%A4d.py"));
}

fn is_level(level: &Value) -> bool {
    ["none", "note", "warning", "error"].iter().any(|known| level == known)
}

#[test]
fn every_rule_has_a_page_that_says_what_why_and_instead() {
    let bench = Bench::new();
    let list = String::from_utf8(bench.run(&["rule"]).stdout).unwrap();
    assert!(list.lines().count() > 60, "{list}");
    let output = bench.run(&["rule", "--pages", "pages"]);
    assert!(output.status.success());
    let index = fs::read_to_string(bench.0.path().join("pages/README.md")).unwrap();
    for line in list.lines() {
        let id = line.split_whitespace().nth(1).unwrap();
        let page = fs::read_to_string(bench.0.path().join(format!("pages/{id}.md"))).unwrap();
        assert!(index.contains(&format!("[{id}]({id}.md)")), "{id} is not in the index");
        for heading in ["## What it does\n", "## Why", "nstead\n"] {
            assert!(page.contains(heading), "{id} has no {heading:?}:\n{page}");
        }
    }
    let page = String::from_utf8(bench.run(&["rule", "torch-compute"]).stdout).unwrap();
    assert!(page.starts_with("# torch-compute\n") && page.contains("In the trace"));
    let output = bench.run(&["rule", "no-such-rule"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn advice_for_an_npu_is_given_where_it_is_asked_for() {
    let bench = Bench::new();
    bench.write("clean.py", CLEAN.replace("B=128)", "B=128, num_warps=4)"));
    let (code, plain) = bench.json(&["clean.py"]);
    assert_eq!((code, plain.files[0].findings.len()), (0, 0));
    let (code, asked) = bench.json(&["clean.py", "--for", "ascend"]);
    let told: Vec<_> =
        asked.files[0].findings.iter().map(|found| (found.rule.as_str(), found.tier, found.line)).collect();
    assert_eq!((code, told), (0, vec![("ascend-config", Tier::Advice, 15)]));
}

#[test]
fn a_computation_that_no_trace_could_clear_refuses() {
    let bench = Bench::new();
    let text = CLEAN.replace(
        "        return out\n",
        "        pick = (out.clone, lambda: torch.relu(x))\n        return pick[n > 3]()\n",
    );
    let text = text.replace("forward(self, x)", "forward(self, x, n)");
    let (status, screening) = bench.json(&[bench.write("chosen.py", text).to_str().unwrap()]);
    let found = &screening.files[0].findings;
    assert!(found.iter().any(|finding| finding.rule == "unproven-branch" && finding.tier == Tier::Proof), "{found:?}");
    assert_eq!(status, 1);
}
