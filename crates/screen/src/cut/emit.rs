//! Writes the kernel-only module, every piece on the lines it has in the candidate.

use std::borrow::Cow;

use rustc_hash::FxHashSet;

use ruff_python_ast::{ExceptHandler, Expr, Keyword, Stmt, StmtFunctionDef, StmtIf, StmtTry};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::closure::{Item, Needed, is_known_module, keeps_annotation};
use super::discover::Form;
use crate::names::Names;
use crate::scope::ScopeId;
use crate::source::Source;

pub(crate) struct Emitter<'s, 'a> {
    source: &'s Source,
    names: &'s Names<'s, 'a>,
    pieces: Vec<Piece>,
    /// Statements that bind several names are written once.
    written: FxHashSet<TextRange>,
}

/// Text that belongs on a line of the candidate, and on those after it.
struct Piece {
    line: u32,
    /// Where it stands in the candidate: the order of what shares a line.
    at: TextSize,
    text: String,
}

impl<'s, 'a> Emitter<'s, 'a> {
    pub(crate) fn new(source: &'s Source, names: &'s Names<'s, 'a>) -> Self {
        Self { source, names, pieces: Vec::new(), written: FxHashSet::default() }
    }

    pub(crate) fn module(mut self, needed: &Needed<'a>) -> String {
        for (scope, items) in needed.values() {
            for item in items {
                self.item(item, *scope);
            }
        }
        self.pieces.sort_by_key(|piece| (piece.line, piece.at));
        let mut rows = vec![String::new(); self.source.lines()];
        for piece in &self.pieces {
            for (row, part) in rows.iter_mut().skip(piece.line as usize - 1).zip(piece.text.split('\n')) {
                if !row.is_empty() && !row.ends_with(": ") {
                    row.push_str("; ");
                }
                row.push_str(&plain(part));
            }
        }
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows.push(String::new());
        rows.join("\n")
    }

    /// Adds text at the line of `at`.
    fn put(&mut self, at: TextSize, text: String) {
        self.pieces.push(Piece { line: self.source.line(at), at, text });
    }

    fn item(&mut self, item: &Item<'a>, scope: ScopeId) {
        match item {
            Item::Import { stmt, at } => {
                if let Some(text) = import(stmt, Some(*at)) {
                    self.put(*at, text);
                }
            }
            Item::Value { name, annotation, value } => {
                let annotation =
                    annotation.map_or(String::new(), |expr| format!(": {}", self.source.slice(expr.range())));
                let text = format!("{name}{annotation} = {}", self.expr(value));
                self.put(value.start(), text);
            }
            Item::Alias { name, target, at } => {
                if name != target {
                    self.put(*at, format!("{name} = {target}"));
                }
            }
            Item::Kernel { def, form } => {
                let text = if form.wrapper { self.wrapper(def, *form) } else { self.decorator(*form) };
                self.put(form.at, text);
                self.function(def, scope);
            }
            Item::Constexpr { def, decorator } => {
                self.put(decorator.start(), format!("@{}", self.source.slice(decorator.range())));
                self.function(def, scope);
            }
            Item::If(branch) => {
                if self.written.insert(branch.range()) {
                    self.branch(branch, 0, scope);
                }
            }
            Item::Try(guard) => {
                if self.written.insert(guard.range()) {
                    self.guard(guard, 0, scope);
                }
            }
        }
    }

    /// An expression's text, in parentheses where it spans lines.
    fn expr(&self, expr: &Expr) -> String {
        let text = self.source.slice(expr.range());
        if text.contains('\n') { format!("({text})") } else { text.to_owned() }
    }

    fn decorator(&self, form: Form<'a>) -> String {
        let callee = self.source.slice(form.callee.range());
        let keywords = self.jit_keywords(form.keywords);
        if keywords.is_empty() { format!("@{callee}") } else { format!("@{callee}({keywords})") }
    }

    /// `f = triton.jit(f)`
    fn wrapper(&self, def: &StmtFunctionDef, form: Form<'a>) -> String {
        let callee = self.source.slice(form.callee.range());
        let keywords = self.jit_keywords(form.keywords);
        let comma = if keywords.is_empty() { "" } else { ", " };
        format!("{0} = {callee}({0}{comma}{keywords})", def.name)
    }

    /// The arguments of `jit` that are literals and mean something to the compiler.
    fn jit_keywords(&self, keywords: &[Keyword]) -> String {
        let kept = keywords.iter().filter_map(|keyword| {
            let name = keyword.arg.as_deref()?;
            let known = matches!(name, "noinline" | "debug" | "do_not_specialize" | "do_not_specialize_on_alignment");
            let text = self.source.slice(keyword.value.range());
            (known && is_literal(&keyword.value)).then(|| format!("{name}={}", text.replace('\n', " ")))
        });
        kept.collect::<Vec<_>>().join(", ")
    }

    /// A `def` without its decorators, moved to the left margin, annotations blanked that name host things.
    fn function(&mut self, def: &StmtFunctionDef, scope: ScopeId) {
        let text = &self.source.text;
        let start = def_keyword(def, text);
        let end = def.end().to_usize();
        let mut body = text.as_bytes()[start..end].to_vec();
        let mut blank = |from: TextSize, to: TextSize| {
            for byte in &mut body[from.to_usize() - start..to.to_usize() - start] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
        };
        for parameter in &*def.parameters {
            let parameter = parameter.as_parameter();
            if let Some(annotation) = parameter.annotation()
                && !keeps_annotation(annotation, scope, self.names)
            {
                blank(parameter.name.end(), parameter.end());
            }
        }
        if let Some(returns) = &def.returns {
            let arrow = text[..returns.start().to_usize()].rfind("->").unwrap_or(returns.start().to_usize());
            // The parentheses of a parenthesised annotation lie outside of its range.
            let colon = returns.end().to_usize() + text[returns.end().to_usize()..end].find(':').unwrap_or_default();
            blank(TextSize::new(arrow as u32), TextSize::new(colon as u32));
        }
        let body = String::from_utf8_lossy(&body).into_owned();
        let line = self.source.line(TextSize::new(start as u32));
        let margin = &text[self.source.line_start(line)..start];
        let mut rows = body.split('\n');
        let first = rows.next().unwrap_or_default().to_owned();
        let text = rows.fold(first, |text, row| text + "\n" + row.strip_prefix(margin).unwrap_or(row));
        self.put(TextSize::new(start as u32), text);
    }

    /// A `try` around imports, at a depth of nesting.
    fn guard(&mut self, guard: &StmtTry, depth: usize, scope: ScopeId) {
        self.block(guard.start(), "try:", &guard.body, depth, scope);
        for handler in &guard.handlers {
            let ExceptHandler::ExceptHandler(handler) = handler;
            self.block(handler.start(), "except Exception:", &handler.body, depth, scope);
        }
    }

    /// An `if` over constants, at a depth of nesting.
    fn branch(&mut self, branch: &StmtIf, depth: usize, scope: ScopeId) {
        let header = format!("if {}:", self.expr(&branch.test));
        self.block(branch.start(), &header, &branch.body, depth, scope);
        for clause in &branch.elif_else_clauses {
            let header = clause.test.as_ref().map_or("else:".to_owned(), |test| format!("elif {}:", self.expr(test)));
            self.block(clause.start(), &header, &clause.body, depth, scope);
        }
    }

    fn block(&mut self, at: TextSize, header: &str, body: &[Stmt], depth: usize, scope: ScopeId) {
        let margin = "    ".repeat(depth);
        let mut line = self.source.line(at);
        let one_line = body.iter().all(|stmt| self.source.line(stmt.start()) == line);
        let gap = if one_line { " " } else { "" };
        self.put(at, format!("{margin}{header}{gap}"));
        for stmt in body {
            if let Stmt::Try(inner) = stmt {
                self.guard(inner, depth + 1, scope);
                continue;
            }
            if let Stmt::If(inner) = stmt {
                self.branch(inner, depth + 1, scope);
                continue;
            }
            let text = self.simple(stmt, scope).unwrap_or_else(|| "pass".to_owned());
            let first_of_its_line = self.source.line(stmt.start()) != line;
            line = self.source.line(stmt.start());
            self.put(stmt.start(), if first_of_its_line { format!("{margin}    {text}") } else { text });
        }
    }

    fn simple(&self, stmt: &Stmt, scope: ScopeId) -> Option<String> {
        match stmt {
            Stmt::Import(import) if !import.names.iter().all(|alias| is_known_module(&alias.name)) => None,
            Stmt::ImportFrom(from) if !from.module.as_ref().is_some_and(|module| is_known_module(module)) => None,
            Stmt::Import(_) | Stmt::ImportFrom(_) => import(stmt, None),
            Stmt::Assign(assign) => {
                let target = self.source.slice(assign.targets.first()?.range());
                Some(format!("{target} = {}", self.expr(&assign.value)))
            }
            Stmt::AnnAssign(assign) => {
                let target = self.source.slice(assign.target.range());
                let kept = keeps_annotation(&assign.annotation, scope, self.names);
                let annotation = if kept { self.source.slice(assign.annotation.range()) } else { "object" };
                Some(format!("{target}: {annotation} = {}", self.expr(assign.value.as_deref()?)))
            }
            _ => None,
        }
    }
}

/// An import statement, or the one alias of it that starts at an offset.
fn import(stmt: &Stmt, only: Option<TextSize>) -> Option<String> {
    let (prefix, names) = match stmt {
        Stmt::Import(import) => (String::new(), &import.names),
        Stmt::ImportFrom(import) => (format!("from {} ", import.module.as_ref()?), &import.names),
        _ => return None,
    };
    let aliases = names.iter().filter(|alias| only.is_none_or(|at| alias.start() == at)).map(|alias| {
        alias.asname.as_ref().map_or_else(|| alias.name.to_string(), |asname| format!("{} as {asname}", alias.name))
    });
    Some(format!("{prefix}import {}", aliases.collect::<Vec<_>>().join(", ")))
}

/// Offset of the word `def`.
pub(crate) fn def_keyword(def: &StmtFunctionDef, text: &str) -> usize {
    let name = def.name.start().to_usize();
    text[..name].rfind("def").unwrap_or(name)
}

/// Literals, and tuples or lists of them.
fn is_literal(expr: &Expr) -> bool {
    expr.is_literal_expr()
        || (matches!(expr, Expr::Tuple(_) | Expr::List(_)) && crate::scope::elements(expr).iter().all(is_literal))
}

/// A line without the characters that some of Python's tools take for line ends.
fn plain(row: &str) -> Cow<'_, str> {
    if row.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) {
        return Cow::Borrowed(row);
    }
    let indent = row.len() - row.trim_start_matches([' ', '\t', '\x0c']).len();
    let (margin, rest) = row.split_at(indent);
    let margin = margin.rsplit('\x0c').next().unwrap_or(margin);
    let odd = ['\x0b', '\x0c', '\x1c', '\x1d', '\x1e', '\u{85}', '\u{2028}', '\u{2029}'];
    Cow::Owned(format!("{margin}{}", rest.replace(odd, " ")))
}
