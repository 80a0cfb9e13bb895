//! Parsing that survives hostile nesting.

use ruff_python_ast::token::TokenKind;
use ruff_python_ast::{Mod, ModModule};
use ruff_python_parser::lexer::lex;
use ruff_python_parser::{Mode, ParseOptions, parse_unchecked};
use ruff_text_size::Ranged;

use crate::ScreenError;
use crate::source::Source;

/// CPython's own limit on open brackets.
const MAX_BRACKETS: usize = 200;
/// CPython's own limit on indentation.
const MAX_INDENTS: usize = 100;
/// Operators that can nest in one expression; CPython's compiler gives up at about as many.
const MAX_OPERATORS: usize = 3000;

/// Parses a module whose [`depth`] is bounded, or says where it is not Python.
pub(crate) fn parse(source: &Source) -> Result<ModModule, ScreenError> {
    let parsed = parse_unchecked(&source.text, ParseOptions::from(Mode::Module));
    if let Some(error) = parsed.errors().iter().min_by_key(|error| error.start()) {
        let at = error.location.start();
        return Err(ScreenError::Syntax {
            line: source.line(at),
            column: source.column(at),
            message: error.error.to_string(),
        });
    }
    match parsed.into_syntax() {
        Mod::Module(module) if !module.body.is_empty() => Ok(module),
        _ => Err(ScreenError::Empty),
    }
}

/// Bounds the depth of the syntax tree before it is built, since visiting and dropping it recurse, and says how deep it
/// is at most: open brackets, operators and indentation that may nest in one another.
pub(crate) fn depth(text: &str) -> Result<usize, ScreenError> {
    let too_deep = |what: &str| Err(ScreenError::TooDeep { what: what.to_owned() });
    let mut lexer = lex(text, Mode::Module);
    let mut open: Vec<(usize, bool)> = Vec::new();
    let mut indents = 0;
    // Operators since the last separator at this bracket level, and at all enclosing levels together.
    let (mut here, mut outside) = (0usize, 0usize);
    // The commas of a lambda's parameters separate nothing that nests.
    let mut in_lambda = false;
    let mut deepest = 0;
    loop {
        match lexer.next_token() {
            TokenKind::EndOfFile => return Ok(deepest),
            TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace => {
                open.push((here, in_lambda));
                outside += here + 1;
                (here, in_lambda) = (0, false);
                if open.len() > MAX_BRACKETS {
                    return too_deep("more than 200 brackets are open at once");
                }
            }
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace => {
                // A call or subscript nests what stands before it.
                if let Some((before, was_in_lambda)) = open.pop() {
                    outside -= before + 1;
                    (here, in_lambda) = (before + 1, was_in_lambda);
                }
            }
            TokenKind::Indent => {
                indents += 1;
                if indents > MAX_INDENTS {
                    return too_deep("more than 100 levels of indentation");
                }
            }
            TokenKind::Dedent => indents = indents.saturating_sub(1),
            TokenKind::Comma if !in_lambda => here = 0,
            TokenKind::Newline | TokenKind::Semi => {
                open.clear();
                (here, outside, in_lambda) = (0, 0, false);
            }
            TokenKind::Lambda => {
                here += 1;
                in_lambda = true;
            }
            kind if kind.is_operator() || kind.is_keyword() => here += 1,
            _ => {}
        }
        deepest = deepest.max(here + outside + indents);
        if here + outside > MAX_OPERATORS {
            return too_deep("more than 3000 operators in one expression");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<ModModule, ScreenError> {
        let source = Source::read(text.as_bytes()).unwrap();
        depth(&source.text)?;
        parse(&source)
    }

    #[test]
    fn a_syntax_error_has_its_place() {
        let error = parsed("x = 1\ndef f(:\n    pass\n").unwrap_err();
        assert!(matches!(error, ScreenError::Syntax { line: 2, column: 7, .. }), "{error}");
        assert_eq!(parsed("# nothing\n\n").unwrap_err(), ScreenError::Empty);
    }

    #[test]
    fn hostile_nesting_is_an_error_and_long_tables_are_not() {
        let n = 200_000;
        for text in [
            "(".repeat(n),
            format!("x = {}1", "-".repeat(n)),
            format!("x = {}1", "not ".repeat(n)),
            format!("x = {}1", "1+".repeat(n)),
            format!("x = {}1", "lambda:".repeat(n / 2)),
            format!("x = {}1", "lambda a, b:".repeat(n / 3)),
            format!("x = a{}", ".a".repeat(n)),
            format!("x = a{}", "()".repeat(n)),
            format!("x = a{}", "[0]".repeat(n)),
            format!("x = {}1", "2**".repeat(n)),
            format!("x = {}", "1 if a else ".repeat(n / 3)),
            (0..n / 100).map(|i| format!("{}if a:\n", " ".repeat(i % 500))).collect(),
        ] {
            let error = parsed(&text).unwrap_err();
            assert!(matches!(error, ScreenError::TooDeep { .. }), "{}: {error}", &text[..20]);
        }
        let table = format!("x = [{}]", "-1.5, ".repeat(n / 2));
        assert!(parsed(&table).is_ok());
    }
}
