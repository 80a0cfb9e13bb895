//! What must hold of any input, and candidates made from pieces of real ones.

pub mod kernel;

use arbitrary::{Arbitrary, Unstructured};
use tilewright_screen::{Cut, ScreenError, ascend, cut, decode, unscreened};

/// Screens bytes in every way and checks what must hold of the answer.
pub fn screen(bytes: &[u8]) -> Option<Cut> {
    let outcome = cut(bytes);
    assert!(!matches!(outcome, Err(ScreenError::Thread(_))), "the analysis panicked");
    let cut = match outcome {
        Ok(cut) => cut,
        Err(error) => {
            assert!(unscreened(&error).is_some());
            return None;
        }
    };
    let text = decode(bytes).expect("what can be cut can be decoded");
    let lines = text.split('\n').count();
    for finding in cut.findings.iter().chain(&ascend(bytes).expect("what can be cut can be looked at again")) {
        assert!(finding.line as usize <= lines, "{finding:?} lies outside of {lines} lines");
        assert!(!finding.rule.is_empty() && !finding.message.is_empty());
    }
    for call in &cut.calls {
        assert!(call.line >= 1 && call.line <= call.end_line && call.end_line as usize <= lines, "{call:?}");
    }
    assert!(cut.module.split('\n').count() <= lines + 1, "the module has more lines than the file");
    Some(cut)
}

/// Screens a text twice, the second time with a line above it: nothing but the lines of the findings may change.
pub fn stable(text: &str) {
    let Some(first) = screen(text.as_bytes()) else { return };
    // A coding cookie counts in the first two lines only.
    if text.lines().take(2).any(|line| line.contains("coding")) {
        return;
    }
    let second = screen(format!("# one line more\n{text}").as_bytes()).expect("a comment does not make a file wrong");
    let places = |cut: &Cut, shift: u32| -> Vec<(String, u32, u32)> {
        let line = |line: u32| if line == 0 { 0 } else { line + shift };
        cut.findings.iter().map(|found| (found.rule.clone(), line(found.line), found.column)).collect()
    };
    assert_eq!(places(&first, 1), places(&second, 0), "a comment above the file changes the findings");
    assert_eq!(first.calls.len(), second.calls.len(), "a comment above the file changes the open calls");
}

/// Real candidates, to be taken apart.
const SEEDS: &[&str] = &[
    include_str!("../../problems/softmax/candidate.py"),
    include_str!("../../problems/matmul_fp16/candidate.py"),
    include_str!("../../problems/causal_attention_fp16/candidate.py"),
    include_str!("../../problems/activation_by_name/candidate.py"),
    include_str!("../../problems/squared_relu_autograd/candidate.py"),
    include_str!("../../problems/interpolate_list/candidate.py"),
    include_str!("../../crates/screen/tests/rules/sniffing.md"),
    include_str!("../../crates/screen/tests/rules/advice.md"),
    include_str!("../../crates/screen/tests/rules/capabilities.md"),
    include_str!("../../crates/screen/tests/rules/patching.md"),
    include_str!("../../crates/screen/tests/cut/nested.py"),
    include_str!("../../crates/screen/tests/cut/refused.py"),
];

/// What takes the place of a word.
const WORDS: &[&str] = &[
    "torch", "triton", "tl", "self", "forward", "kernel", "x", "lambda", "getattr", "globals()", "__dict__", "os",
    "torch.matmul", "F", "None", "*a", "**k", "x[0]", "f\"{x}\"", "()", "[]", "{}", "1", "-1", "''", "b''", "...",
    "yield", "await x", "x := 1", "if", "else", "for", "while", "try:", "except:", "with", "match x:", "case _:",
    "class", "def", "async", "return", "global x", "nonlocal x", "del x", "import torch", "from torch import *",
    "@triton.jit", "@property", "partial", "super()", "type", "setattr", "exec", "é", "\u{202e}", "\t", "\\\n", ";",
];

/// One change to a candidate; places are taken modulo what there is.
#[derive(Debug, Arbitrary)]
enum Edit {
    DropLine(u16),
    DoubleLine(u16),
    SwapLines(u16, u16),
    Indent(u16, u8),
    /// A line of another candidate.
    Graft(u16, u8, u16),
    /// A word of a line becomes another one.
    Word(u16, u8, u8),
    /// A word of a line becomes a word of another line.
    MoveWord(u16, u8, u16, u8),
    Cut(u16),
}

/// A candidate with some edits.
#[derive(Debug)]
pub struct Candidate(pub String);

impl<'a> Arbitrary<'a> for Candidate {
    fn arbitrary(data: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let seed = usize::from(u8::arbitrary(data)?) % SEEDS.len();
        let mut lines: Vec<String> = python(SEEDS[seed]).lines().map(str::to_owned).collect();
        for edit in data.arbitrary_iter::<Edit>()?.take(64) {
            apply(&mut lines, &edit?);
        }
        Ok(Self(lines.join("\n") + "\n"))
    }
}

/// The code of a page of examples, or the file as it is.
fn python(text: &str) -> String {
    if !text.contains("```python") {
        return text.to_owned();
    }
    text.split("```python\n").skip(1).filter_map(|block| block.split("```").next()).collect()
}

fn apply(lines: &mut Vec<String>, edit: &Edit) {
    let count = lines.len();
    if count == 0 {
        return;
    }
    let at = |place: &u16| usize::from(*place) % count;
    match edit {
        Edit::DropLine(line) => drop(lines.remove(at(line))),
        Edit::DoubleLine(line) => lines.insert(at(line), lines[at(line)].clone()),
        Edit::SwapLines(one, two) => lines.swap(at(one), at(two)),
        Edit::Indent(line, by) => {
            let text = lines[at(line)].trim_start().to_owned();
            lines[at(line)] = " ".repeat(usize::from(by % 5) * 4) + &text;
        }
        Edit::Graft(line, seed, from) => {
            let other = python(SEEDS[usize::from(*seed) % SEEDS.len()]);
            let found = other.lines().nth(usize::from(*from) % other.lines().count().max(1));
            lines.insert(at(line), found.unwrap_or_default().to_owned());
        }
        Edit::Word(line, word, with) => {
            replace(&mut lines[at(line)], *word, WORDS[usize::from(*with) % WORDS.len()]);
        }
        Edit::MoveWord(line, word, from, which) => {
            let source = lines[at(from)].clone();
            if let Some(range) = nth_word(&source, *which) {
                replace(&mut lines[at(line)], *word, &source[range]);
            }
        }
        Edit::Cut(line) => lines.truncate(at(line)),
    }
}

fn replace(line: &mut String, word: u8, with: &str) {
    if let Some(range) = nth_word(line, word) {
        line.replace_range(range, with);
    }
}

/// The byte range of a word, counted modulo the number of words.
fn nth_word(line: &str, nth: u8) -> Option<std::ops::Range<usize>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let words: Vec<_> = line.split(|c: char| !is_word(c)).filter(|word| !word.is_empty()).collect();
    let word = words.get(usize::from(nth).checked_rem(words.len())?)?;
    let start = word.as_ptr() as usize - line.as_ptr() as usize;
    Some(start..start + word.len())
}
