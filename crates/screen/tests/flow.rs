//! The flow analysis on the examples in `tests/flow/*.md`.
//!
//! A Python block is a candidate. `# certain` or `# open` at the end of a line wants that many open calls to start on
//! that line, in order (`# certain, open`); `# branch` and `# otherwise` want a branch that must be taken, and the test of
//! an `if` that must fail; `# finds: rule` wants a finding of the analysis. Nothing else may be there, but for the launch in
//! `fast`, which is open wherever `fast(x)` is.
//! Imports stand before each block, and a kernel and a function `fast(x)` that launches it after it. What is found there,
//! or about the whole file, is wanted on the block's first line.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use tilewright_contract::{OpenCall, Watched};
use tilewright_screen::cut;

const IMPORTS: &str =
    "import torch, triton, functools, operator; import torch.nn as nn; import triton.language as tl\n";
const KERNEL: &str = "

@triton.jit
def kernel(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


def fast(x, *rest):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), B=64)
    return out
";
/// The launch in `fast`.
const LAUNCH: &str = "kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), B=64)";
const RULES: [&str; 5] =
    ["no-launch-reachable", "result-not-from-launch", "unreached-kernel", "other-inputs-fallback", "set-order"];

const MARKS: [&str; 4] = ["certain", "open", "branch", "otherwise"];

/// Each fenced Python block with its heading.
fn blocks(text: &str) -> Vec<(String, String)> {
    let (mut heading, mut open, mut found) = (String::new(), None::<String>, Vec::new());
    for line in text.lines() {
        match &mut open {
            Some(block) if line == "```" => {
                found.push((heading.clone(), std::mem::take(block)));
                open = None;
            }
            Some(block) => {
                block.push_str(line);
                block.push('\n');
            }
            None if line == "```python" => open = Some(String::new()),
            None if line.starts_with('#') => heading = line.to_owned(),
            None => {}
        }
    }
    found
}

fn wanted(block: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (index, line) in block.lines().enumerate() {
        let Some((_, marks)) = line.split_once("  # ") else { continue };
        for mark in marks.split(", ").map(|mark| mark.trim_start_matches("finds: ")) {
            if MARKS.contains(&mark) || RULES.contains(&mark) {
                found.push(format!("{} {mark}", index + 1));
            }
        }
    }
    found.sort();
    found
}

/// What is found, by the line of the block.
fn seen(block: &str) -> Vec<String> {
    let cut = cut(format!("{IMPORTS}{block}{KERNEL}").as_bytes()).unwrap_or_else(|error| panic!("{error}:\n{block}"));
    let line = |line: u32| match line.saturating_sub(1) {
        line if line as usize > block.lines().count() => 1,
        line => line.max(1),
    };
    let mark = |call: &OpenCall| match (call.certain, call.what) {
        (true, _) => "certain",
        (_, Watched::Call) => "open",
        (_, Watched::Branch) => "branch",
        (_, Watched::Otherwise) => "otherwise",
    };
    let calls = cut.calls.iter().filter(|call| call.certain || !call.text.starts_with(LAUNCH));
    let calls = calls.map(|call| format!("{} {}", line(call.line), mark(call)));
    let findings = cut.findings.iter().filter(|finding| RULES.contains(&&*finding.rule));
    let mut found: Vec<String> =
        calls.chain(findings.map(|finding| format!("{} {}", line(finding.line), finding.rule))).collect();
    found.sort();
    found
}

#[test]
fn calls_are_open_where_the_examples_say_and_nowhere_else() {
    let (mut checked, mut wrong) = (0, String::new());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/flow");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        for (heading, block) in blocks(&fs::read_to_string(&file).unwrap()) {
            let (want, got) = (wanted(&block), seen(&block));
            if got != want {
                let name = file.file_name().unwrap_or_default().display();
                let _ = writeln!(wrong, "{name} {heading}\n  wanted {want:?}\n  got    {got:?}\n{block}");
            }
            checked += 1;
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(checked > 60, "only {checked} blocks");
}
