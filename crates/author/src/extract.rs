//! Finds the candidate in what a language model said.

use serde::{Deserialize, Serialize};

/// Bytes of a candidate; what is longer was not written to be read.
const MAX_SOURCE: usize = 256 << 10;
/// What a candidate defines.
const CLASS: &str = "class ModelNew";
/// Tags around a model's thoughts.
const THOUGHTS: [(&str, &str); 3] =
    [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<reasoning>", "</reasoning>")];

/// The candidate in a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extracted {
    pub source: String,
    /// What was done to get it, where that was not plain.
    pub notes: Vec<String>,
}

/// Why there is no candidate in a reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "why")]
pub enum NoCode {
    #[error("the answer is empty")]
    Empty,
    #[error("the answer ends within its thoughts: there is no code after them")]
    OnlyThoughts,
    #[error("the answer was cut off at its greatest number of tokens, before the code was complete")]
    Truncated,
    #[error("there is no code in the answer: give one ```python block with the whole file")]
    NoBlock,
    #[error("none of the {blocks} code blocks in the answer defines ModelNew: give the whole file in one block")]
    NoModelNew { blocks: usize },
    #[error("the code has {bytes} bytes; {MAX_SOURCE} are allowed")]
    TooLong { bytes: usize },
}

struct Block<'a> {
    language: &'a str,
    text: &'a str,
    closed: bool,
}

/// The candidate in a reply. `truncated`: the server says that the reply was cut off.
///
/// Of several blocks the last one with `ModelNew` counts, since models correct themselves; Python blocks before it are put in
/// front where it holds no kernel of its own.
pub fn extract(reply: &str, truncated: bool) -> Result<Extracted, NoCode> {
    if reply.trim().is_empty() {
        return Err(if truncated { NoCode::Truncated } else { NoCode::Empty });
    }
    let text = without_thoughts(reply).ok_or(NoCode::OnlyThoughts)?;
    let found = match blocks(&text) {
        blocks if blocks.is_empty() => bare(&text, truncated)?,
        blocks => chosen(&blocks, truncated)?,
    };
    match found.source.len() {
        bytes if bytes > MAX_SOURCE => Err(NoCode::TooLong { bytes }),
        _ => Ok(found),
    }
}

/// The answer without thoughts; none where it never leaves them.
fn without_thoughts(reply: &str) -> Option<String> {
    let mut text = reply.to_owned();
    for (open, close) in THOUGHTS {
        // Where the prompt's template has opened the thoughts, only their end is in the answer.
        if let (None, Some(end)) = (text.find(open), text.find(close)) {
            text = text.split_off(end + close.len());
        }
        while let Some(start) = text.find(open) {
            let Some(end) = text[start..].find(close) else {
                text.truncate(start);
                break;
            };
            text.replace_range(start..start + end + close.len(), "");
        }
    }
    (!text.trim().is_empty()).then_some(text)
}

/// The fenced blocks of a Markdown text, also one that its end leaves open.
fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, &str, usize)> = None;
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let start = offset;
        offset += line.len();
        let bare = line.trim();
        match open {
            Some((fence, language, from)) => {
                // A closing fence is at least as long as the opening one, and nothing follows it.
                if bare.starts_with(fence) && bare.chars().all(|c| fence.starts_with(c)) {
                    blocks.push(Block { language, text: &text[from..start], closed: true });
                    open = None;
                }
            }
            None => {
                let mark = if bare.starts_with("```") { '`' } else { '~' };
                let length = bare.chars().take_while(|&c| c == mark).count();
                if length >= 3 {
                    open = Some((&bare[..length], bare[length..].trim(), offset));
                }
            }
        }
    }
    if let Some((_, language, from)) = open {
        blocks.push(Block { language, text: &text[from..], closed: false });
    }
    blocks
}

fn chosen(blocks: &[Block<'_>], truncated: bool) -> Result<Extracted, NoCode> {
    let python: Vec<&Block<'_>> = blocks.iter().filter(|block| block.may_be_python()).collect();
    let mut notes = Vec::new();
    let Some(index) = python.iter().rposition(|block| block.text.contains(CLASS)) else {
        let cut = truncated && blocks.last().is_some_and(|block| !block.closed);
        return Err(if cut { NoCode::Truncated } else { NoCode::NoModelNew { blocks: blocks.len() } });
    };
    let block = python[index];
    if !block.closed {
        if truncated {
            return Err(NoCode::Truncated);
        }
        notes.push("the last code block is not closed".into());
    } else if truncated && python[index + 1..].iter().any(|later| !later.closed) {
        notes.push("the answer was cut off within a later code block; the one before it is taken".into());
    }
    let mut source = block.text.to_owned();
    if !source.contains("triton.jit") && index > 0 {
        notes.push(format!("{} code blocks are put together", index + 1));
        source = python[..=index].iter().map(|block| block.text).collect::<Vec<_>>().join("\n");
    } else if python.iter().filter(|block| block.text.contains(CLASS)).count() > 1 {
        notes.push("several code blocks define ModelNew: the last one is taken".into());
    }
    Ok(Extracted { source: dedented(&source), notes })
}

impl Block<'_> {
    fn may_be_python(&self) -> bool {
        let language = self.language.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        matches!(language.to_ascii_lowercase().as_str(), "" | "python" | "py" | "python3" | "triton")
    }
}

/// Code that stands in the answer without fences.
fn bare(text: &str, truncated: bool) -> Result<Extracted, NoCode> {
    let starts =
        |line: &&str| ["import ", "from ", "@triton", "class ", "def "].iter().any(|word| line.starts_with(word));
    let first = text.lines().position(|line| starts(&line));
    // The class begins a line, as the code before it does: a sentence that names it is not code.
    let (Some(first), true) = (first, text.lines().any(|line| line.starts_with(CLASS))) else {
        return Err(if truncated { NoCode::Truncated } else { NoCode::NoBlock });
    };
    if truncated {
        return Err(NoCode::Truncated);
    }
    let source = text.lines().skip(first).flat_map(|line| [line, "\n"]).collect();
    Ok(Extracted { source, notes: vec!["the code stands without a fence around it".into()] })
}

/// Without what all lines have in front, as in a block within a list.
fn dedented(text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let common = text.lines().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    text.lines().flat_map(|line| [line.get(common..).unwrap_or_default().trim_end_matches('\r'), "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "import triton\n\n@triton.jit\ndef k(): pass\n\nclass ModelNew:\n    pass\n";

    fn source(reply: &str) -> String {
        extract(reply, false).expect("code").source
    }

    #[test]
    fn the_code_is_found_however_it_is_wrapped() {
        for reply in [
            format!("```python\n{FILE}```"),
            format!("Here you are:\n\n```py\n{FILE}```\nIt is fast."),
            format!("```\n{FILE}```"),
            format!("~~~python\n{FILE}~~~\n"),
            format!("````python\n{FILE}````\n"),
            format!("```python\n{FILE}"),
            format!("```Python title=\"a.py\"\n{FILE}```"),
            format!("<think>```python\nclass ModelNew: 1\n```</think>\n```python\n{FILE}```"),
            format!("so I think it is done</think>\n```python\n{FILE}```"),
            format!("<thinking>a</thinking><think>b</think>```python\n{FILE}```"),
            format!("```bash\nclass ModelNew\n```\n```python\n{FILE}```\n```text\nclass ModelNew out\n```"),
            FILE.to_owned(),
            format!("Sure, here it is.\n{FILE}"),
            format!(
                "1. so:\n\n   ```python\n{}   ```\n",
                FILE.lines().map(|l| format!("   {l}\n")).collect::<String>()
            ),
            format!("```python\r\n{}```", FILE.replace('\n', "\r\n")),
        ] {
            assert_eq!(source(&reply), FILE, "{reply}");
        }
    }

    #[test]
    fn of_several_blocks_the_last_complete_file_counts() {
        let second = FILE.replace("pass\n\nclass", "...\n\nclass");
        assert_eq!(source(&format!("```python\n{FILE}```\nBetter:\n```python\n{second}```")), second);
        let (kernel, class) = FILE.split_at(FILE.find("class").unwrap());
        let parts = extract(&format!("```python\n{kernel}```\nand\n```python\n{class}```"), false).expect("code");
        assert_eq!(parts.source, format!("{kernel}\n{class}"));
        assert_eq!(parts.notes, ["2 code blocks are put together"]);
        let cut = format!("```python\n{FILE}```\nBetter:\n```python\nimport tri");
        assert_eq!(extract(&cut, true).expect("code").source, FILE);
    }

    #[test]
    fn each_way_to_have_no_code_has_its_reason() {
        for (reply, truncated, why) in [
            ("", false, NoCode::Empty),
            (" \n", true, NoCode::Truncated),
            ("<think>let me see", false, NoCode::OnlyThoughts),
            ("<think>let me see</think>", false, NoCode::OnlyThoughts),
            ("I cannot do that.", false, NoCode::NoBlock),
            ("You write class ModelNew:\nfrom torch.nn.Module, above it\n@triton.jit", false, NoCode::NoBlock),
            ("I would begin with", true, NoCode::Truncated),
            ("```python\nclass Model: pass\n```", false, NoCode::NoModelNew { blocks: 1 }),
            ("```python\nimport triton\ndef f(", true, NoCode::Truncated),
            ("```python\nimport triton\nclass ModelNew:\n  def f(", true, NoCode::Truncated),
            ("```python\n```", false, NoCode::NoModelNew { blocks: 1 }),
        ] {
            assert_eq!(extract(reply, truncated), Err(why), "{reply}");
        }
        let long = format!("```python\n{FILE}{}```", "# x\n".repeat(100_000));
        assert!(matches!(extract(&long, false), Err(NoCode::TooLong { bytes }) if bytes > 400_000));
    }

    #[test]
    fn any_text_gives_code_or_a_reason() {
        use proptest::prelude::*;
        let pieces = prop::sample::select(vec![
            "```",
            "```python\n",
            "~~~",
            "\n",
            "<think>",
            "</think>",
            "class ModelNew",
            "@triton.jit",
            "é",
            " ",
            "x\r\n",
        ]);
        proptest!(|(pieces in prop::collection::vec(pieces, 0..30), truncated: bool)| {
            if let Ok(found) = extract(&pieces.concat(), truncated) {
                prop_assert!(found.source.contains(CLASS));
            }
        });
    }
}
