//! Writes the kernel-only module, every piece on the lines it has in the candidate.

use std::collections::HashSet;

use ruff_python_ast::{ExceptHandler, Expr, Keyword, Stmt, StmtFunctionDef, StmtTry};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::closure::{Item, Needed, keeps_annotation};
use super::discover::Form;
use crate::names::Names;
use crate::scope::ScopeId;
use crate::source::Source;

pub(crate) struct Emitter<'s, 'a> {
    source: &'s Source,
    names: &'s Names<'s, 'a>,
    rows: Vec<String>,
    /// Statements that bind several names are written once.
    written: HashSet<TextRange>,
}

impl<'s, 'a> Emitter<'s, 'a> {
    pub(crate) fn new(source: &'s Source, names: &'s Names<'s, 'a>) -> Self {
        Self { source, names, rows: vec![String::new(); source.lines()], written: HashSet::new() }
    }

    pub(crate) fn module(mut self, needed: &Needed<'a>) -> String {
        for (scope, items) in needed.values() {
            for item in items {
                self.item(item, *scope);
            }
        }
        while self.rows.last().is_some_and(String::is_empty) {
            self.rows.pop();
        }
        self.rows.push(String::new());
        self.rows.join("\n")
    }

    fn item(&mut self, item: &Item<'a>, scope: ScopeId) {
        match item {
            Item::Import { stmt, at } => {
                if let Some(text) = import(stmt, Some(*at)) {
                    self.put(self.source.line(*at), &text);
                }
            }
            Item::Value { name, annotation, value } => {
                let annotation =
                    annotation.map_or(String::new(), |expr| format!(": {}", self.source.slice(expr.range())));
                let text = format!("{name}{annotation} = {}", self.expr(value));
                self.put(self.source.line(value.start()), &text);
            }
            Item::Alias { name, target, at } => {
                if name != target {
                    self.put(self.source.line(*at), &format!("{name} = {target}"));
                }
            }
            Item::Kernel { def, form } => {
                let applied = self.source.line(form.at);
                if form.wrapper {
                    let rest = self.jit_keywords(form.keywords);
                    let comma = if rest.is_empty() { "" } else { ", " };
                    let callee = self.source.slice(form.callee.range());
                    self.put_first(applied, &format!("{0} = {callee}({0}{comma}{rest})", def.name));
                } else {
                    let text = self.decorator(*form);
                    self.put(applied, &text);
                }
                self.function(def, scope);
            }
            Item::Constexpr { def, decorator } => {
                self.put(self.source.line(decorator.start()), &format!("@{}", self.source.slice(decorator.range())));
                self.function(def, scope);
            }
            Item::Try(guard) => {
                if self.written.insert(guard.range()) {
                    self.guard(guard, 0);
                }
            }
        }
    }

    /// Adds text that starts on a line; what already stands there comes first.
    fn put(&mut self, line: u32, text: &str) {
        for (index, part) in text.split('\n').enumerate() {
            let Some(row) = self.rows.get_mut(line as usize - 1 + index) else { return };
            if !row.is_empty() {
                row.push_str("; ");
            }
            row.push_str(&plain(part));
        }
    }

    /// As `put`, before what already stands there.
    fn put_first(&mut self, line: u32, text: &str) {
        let Some(row) = self.rows.get_mut(line as usize - 1) else { return };
        let rest = std::mem::take(row);
        *row = if rest.is_empty() { text.to_owned() } else { format!("{text}; {rest}") };
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
        for (index, row) in body.split('\n').enumerate() {
            let row = if index == 0 { row } else { row.strip_prefix(margin).unwrap_or(row) };
            self.put(line + index as u32, row);
        }
    }

    /// A `try` around imports, at a depth of nesting.
    fn guard(&mut self, guard: &StmtTry, depth: usize) {
        self.block(self.source.line(guard.start()), "try:", &guard.body, depth);
        for handler in &guard.handlers {
            let ExceptHandler::ExceptHandler(handler) = handler;
            self.block(self.source.line(handler.start()), "except Exception:", &handler.body, depth);
        }
    }

    fn block(&mut self, line: u32, header: &str, body: &[Stmt], depth: usize) {
        let margin = "    ".repeat(depth);
        let one_line = body.iter().all(|stmt| self.source.line(stmt.start()) == line);
        let simple: Vec<String> = body.iter().filter_map(|stmt| self.simple(stmt)).collect();
        if one_line {
            let simple = if simple.is_empty() { "pass".to_owned() } else { simple.join("; ") };
            self.put(line, &format!("{margin}{header} {simple}"));
            return;
        }
        self.put(line, &format!("{margin}{header}"));
        for stmt in body {
            match stmt {
                Stmt::Try(inner) => self.guard(inner, depth + 1),
                _ => {
                    let at = self.source.line(stmt.start());
                    let text = self.simple(stmt).unwrap_or_else(|| "pass".to_owned());
                    let occupied = self.rows.get(at as usize - 1).is_some_and(|row| !row.is_empty());
                    let text = if occupied { text } else { format!("{margin}    {text}") };
                    self.put(at, &text);
                }
            }
        }
    }

    fn simple(&self, stmt: &Stmt) -> Option<String> {
        match stmt {
            Stmt::Import(_) | Stmt::ImportFrom(_) => import(stmt, None),
            Stmt::Assign(assign) => {
                let target = self.source.slice(assign.targets.first()?.range());
                Some(format!("{target} = {}", self.expr(&assign.value)))
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
fn plain(row: &str) -> String {
    let indent = row.len() - row.trim_start_matches([' ', '\t', '\x0c']).len();
    let (margin, rest) = row.split_at(indent);
    let margin = margin.rsplit('\x0c').next().unwrap_or(margin);
    let odd = ['\x0b', '\x0c', '\x1c', '\x1d', '\x1e', '\u{85}', '\u{2028}', '\u{2029}'];
    format!("{margin}{}", rest.replace(odd, " "))
}
