//! What the screen finds depends on what a candidate means, not on how it is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, ParseOptions, parse_unchecked};
use ruff_text_size::Ranged;
use tilewright_screen::cut;

/// Real candidates: those of this repository, and the blocks of the flow examples.
fn candidates() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![root.join("problems"), root.join("corpus/honest"), root.join("corpus/hack")];
    let mut files: Vec<PathBuf> = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "py") && !path.ends_with("problem.py") {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut texts: Vec<String> = files.iter().filter_map(|file| fs::read_to_string(file).ok()).collect();
    texts.push(include_str!("cut/aliases.py").to_owned());
    texts.push(include_str!("cut/nested.py").to_owned());
    texts
}

/// A token and where it stands.
struct Token {
    kind: TokenKind,
    start: usize,
    end: usize,
}

fn tokens(text: &str) -> Vec<Token> {
    let parsed = parse_unchecked(text, ParseOptions::from(Mode::Module));
    let logical = parsed.tokens().iter().filter(|token| !token.kind().is_trivia());
    let token = |token: &ruff_python_ast::token::Token| Token {
        kind: token.kind(),
        start: token.start().to_usize(),
        end: token.end().to_usize(),
    };
    logical.map(token).collect()
}

/// What is found, by original line: rules with their tiers, and calls.
fn found(text: &str, line: impl Fn(u32) -> u32) -> Option<Vec<String>> {
    let cut = cut(text.as_bytes()).ok()?;
    let findings = cut.findings.iter().map(|f| format!("{} {} {:?}", line(f.line), f.rule, f.tier));
    let calls = cut.calls.iter().map(|c| format!("{}-{} call {}", line(c.line), line(c.end_line), c.certain));
    let kernels = cut.kernels.iter().map(|kernel| format!("{} kernel", line(kernel.line)));
    let mut all: Vec<String> = findings.chain(calls).chain(kernels).collect();
    all.sort();
    Some(all)
}

/// Names that the file binds by plain assignment and uses as names only: not as attributes, keywords or in imports.
fn local_names(text: &str, tokens: &[Token]) -> BTreeSet<String> {
    let word = |token: &Token| &text[token.start..token.end];
    let (mut bound, mut other) = (BTreeSet::new(), BTreeSet::new());
    let mut open = 0;
    let mut import = false;
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).map_or(TokenKind::Newline, |at| tokens[at].kind);
        let after = tokens.get(at + 1).map_or(TokenKind::Newline, |token| token.kind);
        match token.kind {
            TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace => open += 1,
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace => open -= 1,
            TokenKind::Import | TokenKind::From => import = true,
            TokenKind::Newline => import = false,
            TokenKind::Name => {
                let name = word(token).to_owned();
                let keyword = open > 0 && after == TokenKind::Equal;
                let definition = matches!(before, TokenKind::Def | TokenKind::Class | TokenKind::Global);
                if before == TokenKind::Dot || keyword || import || definition {
                    other.insert(name);
                } else if open == 0 && after == TokenKind::Equal && name.len() > 1 {
                    bound.insert(name);
                }
            }
            // What a string names is found through it.
            TokenKind::String | TokenKind::FStringMiddle => {
                other.extend(word(token).split(|c: char| !(c.is_alphanumeric() || c == '_')).map(str::to_owned));
            }
            _ => {}
        }
    }
    bound.retain(|name| !other.contains(name) && !name.starts_with("__"));
    bound
}

fn renamed(text: &str, tokens: &[Token], name: &str, new: &str) -> String {
    let mut result = String::new();
    let mut at = 0;
    for token in tokens.iter().filter(|token| token.kind == TokenKind::Name && &text[token.start..token.end] == name) {
        result.push_str(&text[at..token.start]);
        result.push_str(new);
        at = token.end;
    }
    result + &text[at..]
}

/// The text with lines inserted before statements and spaces added between tokens, and the original line of each line.
fn reformatted(text: &str, tokens: &[Token], choices: &[u8]) -> (String, BTreeMap<u32, u32>) {
    let mut choice = choices.iter().copied().cycle();
    let (mut result, mut at, mut lines) = (String::new(), 0, BTreeMap::new());
    let mut copy = |result: &mut String, part: &str, original: &mut u32| {
        for c in part.chars() {
            lines.insert(result.matches('\n').count() as u32 + 1, *original);
            result.push(c);
            *original += u32::from(c == '\n');
        }
    };
    let mut original = 1;
    let mut in_fstring = 0;
    for (index, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::FStringStart => in_fstring += 1,
            TokenKind::FStringEnd => in_fstring -= 1,
            _ => {}
        }
        let next = tokens.get(index + 1).map_or(text.len(), |next| next.start);
        copy(&mut result, &text[at..token.end.max(at)], &mut original);
        at = token.end.max(at);
        let gap = text.get(token.end..next).unwrap_or("");
        match (token.kind, choice.next().unwrap_or(0) % 8) {
            (TokenKind::Newline, 0) => result.push('\n'),
            (TokenKind::Newline, 1) => result.push_str("# a remark: x = torch.softmax(x)\n"),
            (TokenKind::Newline, 2) => result.push_str("        # deeper\n\n"),
            (TokenKind::Newline | TokenKind::Indent | TokenKind::Dedent, _) => {}
            (_, 3 | 4) if gap.starts_with(' ') && !gap.contains(['\n', '\\', '#']) && in_fstring == 0 => {
                result.push_str("  ");
            }
            _ => {}
        }
    }
    copy(&mut result, &text[at..], &mut original);
    lines.insert(result.matches('\n').count() as u32 + 1, original);
    (result, lines)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn renaming_a_name_changes_nothing(which: prop::sample::Index, name: prop::sample::Index) {
        let all = candidates();
        let text = &all[which.index(all.len())];
        let tokens = tokens(text);
        let names: Vec<String> = local_names(text, &tokens).into_iter().collect();
        if !names.is_empty() {
            let name = &names[name.index(names.len())];
            let other = renamed(text, &tokens, name, &format!("{name}_renamed"));
            prop_assert_eq!(found(text, |line| line), found(&other, |line| line), "{} in\n{}", name, text);
        }
    }

    #[test]
    fn blank_lines_remarks_and_spaces_change_nothing(
        which: prop::sample::Index,
        choices in proptest::collection::vec(any::<u8>(), 1..40),
    ) {
        let all = candidates();
        let text = &all[which.index(all.len())];
        let (other, lines) = reformatted(text, &tokens(text), &choices);
        let original = |line: u32| if line == 0 { 0 } else { lines.get(&line).copied().unwrap_or(line) };
        prop_assert_eq!(found(text, |line| line), found(&other, original), "{}", other);
    }

    #[test]
    fn damaged_candidates_are_survived(
        which: prop::sample::Index,
        edits in proptest::collection::vec((0usize..5, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..8),
    ) {
        let all = candidates();
        let text = &all[which.index(all.len())];
        let words: Vec<&str> = tokens(text).iter().map(|token| &text[token.start..token.end]).collect();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (edit, a, b) in edits {
            let (line, other) = (a.index(lines.len()), b.index(lines.len()));
            match edit {
                0 if lines.len() > 1 => { lines.remove(line); }
                1 => { let copy = lines[other].clone(); lines.insert(line, copy); }
                2 => lines.swap(line, other),
                3 => lines[line] = lines[line].trim_start().to_owned(),
                _ if !words.is_empty() => {
                    let word = words[b.index(words.len())].to_owned();
                    let at = a.index(lines[line].len() + 1);
                    if lines[line].is_char_boundary(at) { lines[line].insert_str(at, &word); }
                }
                _ => {}
            }
        }
        let text = lines.join("\n");
        if let Err(error) = cut(text.as_bytes()) {
            prop_assert!(!matches!(error, tilewright_screen::ScreenError::Thread(_)), "{error}\n{text}");
        }
    }
}
