//! What of a file's text says something: layout, comments, docstrings and the names of its own variables do not.

use ruff_python_ast::token::TokenKind;
use ruff_python_ast::visitor::{Visitor, walk_expr, walk_parameter, walk_stmt};
use ruff_python_ast::{self as ast, Expr, ExprContext, ModModule, Parameter, Stmt};
use ruff_python_parser::{Mode, ParseOptions, parse_unchecked};
use ruff_text_size::Ranged;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::source::Source;
use crate::{ScreenError, parse};

/// The file's tokens without comments, docstrings and layout, its own variables, parameters and functions numbered in the order
/// in which they appear. Files with the same normal form do the same; not all that do the same have the same.
///
/// # Errors
/// As [`crate::cut`].
pub fn normal_form(bytes: &[u8]) -> Result<String, ScreenError> {
    // Bounds the nesting, and with it what the recursion below takes of the stack.
    crate::cut(bytes)?;
    let run = std::thread::scope(|threads| {
        let normal = std::thread::Builder::new().stack_size(crate::STACK).spawn_scoped(threads, || normal(bytes));
        match normal {
            Ok(thread) => thread.join().map_err(|_| "it panicked".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    });
    run.unwrap_or_else(|problem| Err(ScreenError::Thread(problem)))
}

fn normal(bytes: &[u8]) -> Result<String, ScreenError> {
    let source = Source::read(bytes)?;
    let module = parse::parse(&source)?;
    let names = Names::of(&module);
    Ok(tokens(&source.text, &names))
}

/// Where names stand, and which of them others outside the file may know.
#[derive(Default)]
struct Names<'a> {
    /// Places of names that stand for variables, by their start.
    places: FxHashMap<u32, &'a str>,
    /// Names that get a value in the file.
    bound: FxHashSet<&'a str>,
    /// Names that mean something by their spelling: imported, of classes and attributes, keywords of calls, in strings.
    known: FxHashSet<&'a str>,
    docstrings: FxHashSet<u32>,
    in_class: bool,
}

impl<'a> Names<'a> {
    fn of(module: &'a ModModule) -> Self {
        let mut names = Self::default();
        names.docstring(&module.body);
        names.visit_body(&module.body);
        names
    }

    fn docstring(&mut self, body: &[Stmt]) {
        if let Some(Stmt::Expr(first)) = body.first()
            && first.value.is_string_literal_expr()
            // A body that holds nothing else needs it.
            && body.len() > 1
        {
            self.docstrings.insert(first.start().to_u32());
        }
    }

    fn own(&self, name: &str) -> bool {
        self.bound.contains(name) && !self.known.contains(name)
    }
}

impl<'a> Visitor<'a> for Names<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        let outer = self.in_class;
        match stmt {
            Stmt::FunctionDef(function) => {
                self.docstring(&function.body);
                let name = function.name.as_str();
                if self.in_class {
                    self.known.insert(name);
                } else {
                    self.bound.insert(name);
                    self.places.insert(function.name.start().to_u32(), name);
                }
                self.in_class = false;
            }
            Stmt::ClassDef(class) => {
                self.docstring(&class.body);
                self.known.insert(class.name.as_str());
                self.in_class = true;
            }
            Stmt::Import(import) => import.names.iter().for_each(|alias| self.alias(alias)),
            Stmt::ImportFrom(import) => import.names.iter().for_each(|alias| self.alias(alias)),
            Stmt::Global(global) => self.known.extend(global.names.iter().map(ast::Identifier::as_str)),
            Stmt::Nonlocal(nonlocal) => self.known.extend(nonlocal.names.iter().map(ast::Identifier::as_str)),
            Stmt::Try(_) | Stmt::Match(_) => self.names_within(stmt),
            _ => {}
        }
        walk_stmt(self, stmt);
        self.in_class = outer;
    }

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        let name = parameter.name.as_str();
        self.bound.insert(name);
        self.places.insert(parameter.name.start().to_u32(), name);
        walk_parameter(self, parameter);
    }

    fn visit_keyword(&mut self, keyword: &'a ast::Keyword) {
        self.known.extend(keyword.arg.as_ref().map(ast::Identifier::as_str));
        self.visit_expr(&keyword.value);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) => {
                self.places.insert(name.start().to_u32(), name.id.as_str());
                if name.ctx != ExprContext::Load {
                    let set = if self.in_class { &mut self.known } else { &mut self.bound };
                    set.insert(name.id.as_str());
                }
            }
            Expr::StringLiteral(text) => {
                text.value.iter().for_each(|part| {
                    self.known.insert(&part.value);
                });
            }
            _ => {}
        }
        walk_expr(self, expr);
    }
}

impl<'a> Names<'a> {
    fn alias(&mut self, alias: &'a ast::Alias) {
        self.known.insert(alias.asname.as_ref().map_or(alias.name.as_str(), ast::Identifier::as_str));
    }

    /// Names that stand as plain text in the tree, after `except … as` and in patterns: they keep their spelling.
    fn names_within(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Try(all) => {
                for ast::ExceptHandler::ExceptHandler(handler) in &all.handlers {
                    self.known.extend(handler.name.as_ref().map(ast::Identifier::as_str));
                }
            }
            Stmt::Match(all) => {
                for case in &all.cases {
                    Captures(&mut self.known).visit_pattern(&case.pattern);
                }
            }
            _ => {}
        }
    }
}

/// The names that a pattern binds.
struct Captures<'n, 'a>(&'n mut FxHashSet<&'a str>);

impl<'a> Visitor<'a> for Captures<'_, 'a> {
    fn visit_pattern(&mut self, pattern: &'a ast::Pattern) {
        let name = match pattern {
            ast::Pattern::MatchAs(pattern) => pattern.name.as_ref(),
            ast::Pattern::MatchStar(pattern) => pattern.name.as_ref(),
            ast::Pattern::MatchMapping(pattern) => pattern.rest.as_ref(),
            _ => None,
        };
        self.0.extend(name.map(ast::Identifier::as_str));
        ast::visitor::walk_pattern(self, pattern);
    }
}

fn tokens(text: &str, names: &Names<'_>) -> String {
    let parsed = parse_unchecked(text, ParseOptions::from(Mode::Module));
    let mut numbers: FxHashMap<&str, usize> = FxHashMap::default();
    let mut out = String::with_capacity(text.len());
    // A docstring's own line end goes with it.
    let mut skip_newline = false;
    for token in parsed.tokens() {
        let range = token.range();
        let start = range.start().to_u32();
        match token.kind() {
            TokenKind::EndOfFile => break,
            TokenKind::Comment | TokenKind::NonLogicalNewline => continue,
            TokenKind::String if names.docstrings.contains(&start) => {
                skip_newline = true;
                continue;
            }
            TokenKind::Newline => {
                if !std::mem::take(&mut skip_newline) {
                    out.push('\n');
                }
                continue;
            }
            TokenKind::Indent => out += "{ ",
            TokenKind::Dedent => out += "} ",
            _ => match names.places.get(&start).filter(|name| names.own(name)) {
                Some(name) => {
                    let next = numbers.len();
                    // No name of Python's begins so.
                    out += &format!("${} ", numbers.entry(name).or_insert(next));
                }
                None => {
                    out += &text[range];
                    out.push(' ');
                }
            },
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
"""A file."""
import torch
import triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Twice."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # where
    for step in range(2):
        tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)

class ModelNew(torch.nn.Module):
    width = 3

    def forward(self, x):
        out = torch.empty_like(x)
        grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)
        scale[grid](x, out, n=x.numel())
        return out
"#;

    fn form(text: &str) -> String {
        normal_form(text.as_bytes()).expect("Python")
    }

    #[test]
    fn layout_comments_and_own_names_make_no_difference() {
        for (old, new) in [
            ("# where", "# here"),
            ("  # where", ""),
            ("    \"\"\"Twice.\"\"\"\n", ""),
            ("\"\"\"A file.\"\"\"\n", ""),
            ("(x, out, n=x.numel())", "(\n            x,\n            out, n=x.numel())"),
            ("\n\nclass", "\n\n\n\nclass"),
            ("at", "offsets"),
            ("x_ptr", "source"),
            ("scale", "double_kernel"),
            ("grid", "programs"),
            ("step", "_"),
            ("meta", "config"),
            ("(self, x)", "(self, y)"),
        ] {
            let changed = match old {
                "(self, x)" => FILE
                    .replace("self, x)", "self, y)")
                    .replace("like(x)", "like(y)")
                    .replace("x.numel", "y.numel")
                    .replace("(x, out", "(y, out"),
                old => FILE.replace(old, new),
            };
            assert_ne!(changed, FILE, "{old}");
            assert_eq!(form(&changed), form(FILE), "{old}");
        }
    }

    #[test]
    fn what_says_something_makes_a_difference() {
        for (old, new) in [
            ("* 2", "* 3"),
            ("range(2)", "range(3)"),
            ("tl.load", "tl.store"),
            ("\"BLOCK\": 64", "\"BLOCK\": 32"),
            ("width", "height"),
            ("ModelNew", "ModelOld"),
            ("forward", "backward"),
            ("x_ptr + at, mask", "out_ptr + at, mask"),
            ("(x_ptr, out_ptr", "(out_ptr, x_ptr"),
            ("n=x.numel()", "m=x.numel()"),
            ("key=[\"n\"]", "key=[\"x_ptr\"]"),
            ("        return out", "    return out"),
            ("at < n) * 2, mask=at < n", "at < n) * 2, mask=at <= n"),
        ] {
            let changed = FILE.replacen(old, new, 1);
            assert_ne!(changed, FILE, "{old}");
            assert!(normal_form(changed.as_bytes()).map_or(true, |changed| changed != form(FILE)), "{old}");
        }
    }

    #[test]
    fn a_name_that_strings_or_keywords_know_keeps_its_spelling() {
        assert!(form(FILE).contains(" n , BLOCK :"), "{}", form(FILE));
        let swapped = FILE.replace("out_ptr, n,", "n, out_ptr,");
        assert_ne!(form(&swapped), form(FILE));
    }
}
