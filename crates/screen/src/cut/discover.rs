//! Finds the jit functions of a file.

use rustc_hash::FxHashMap;

use ruff_python_ast::visitor::Visitor;
use ruff_python_ast::{Expr, ExprCall, Keyword, ModModule, Stmt, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::Decorator;
use crate::names::Names;
use crate::scope::{BindingKind, Hooks, MODULE, ScopeId, ScopeKind, Scopes, Walker, is_main_guard};

const JIT: &[&str] = &["triton.jit"];
pub(super) const AUTOTUNE: &[&str] = &["triton.autotune"];
const HEURISTICS: &[&str] = &["triton.heuristics"];
const CONSTEXPR_FUNCTION: &[&str] =
    &["triton.constexpr_function", "triton.language.constexpr_function", "triton.language.constexpr"];

/// A function that becomes a kernel, and how.
#[derive(Debug)]
pub(crate) struct Jitted<'a> {
    pub(crate) def: &'a StmtFunctionDef,
    /// The scope that the definition stands in.
    pub(crate) scope: ScopeId,
    pub(crate) form: Form<'a>,
    /// In source order.
    pub(crate) decorators: Vec<Decorator>,
    /// A decorator between `jit` and the `def`.
    pub(crate) below: Option<TextSize>,
}

/// `@triton.jit`, `@triton.jit(noinline=True)`, or `name = triton.jit(name)` further down.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form<'a> {
    pub(crate) callee: &'a Expr,
    /// Scope in which the callee is evaluated.
    pub(crate) scope: ScopeId,
    pub(crate) keywords: &'a [Keyword],
    /// Positional arguments that are not the function.
    pub(crate) extra: bool,
    /// Where it is applied.
    pub(crate) at: TextSize,
    pub(crate) wrapper: bool,
}

pub(crate) struct Discovered<'a> {
    /// By the range of the definition.
    pub(crate) jitted: FxHashMap<TextRange, Jitted<'a>>,
    /// `constexpr_function` helpers: the range of the definition, and the decorator.
    pub(crate) constexpr: FxHashMap<TextRange, &'a Expr>,
    /// `triton.jit(…)` of something that is not a function of this file.
    pub(crate) strange: Vec<TextSize>,
}

pub(crate) fn discover<'a>(module: &'a ModModule, scopes: &Scopes<'a>, names: &Names<'_, 'a>) -> Discovered<'a> {
    let found = Discovered { jitted: FxHashMap::default(), constexpr: FxHashMap::default(), strange: Vec::new() };
    let mut walker = Walker { hooks: Finder { scopes, names, found }, scope: MODULE };
    walker.visit_body(&module.body);
    walker.hooks.found
}

/// The function that `triton.jit(function, …)` wraps.
pub(crate) fn wrapped<'a>(call: &'a ExprCall, scope: ScopeId, names: &Names<'_, 'a>) -> Option<&'a Expr> {
    let function = call.arguments.args.first()?;
    names.is(&call.func, scope, JIT).then_some(function)
}

struct Finder<'s, 'a> {
    scopes: &'s Scopes<'a>,
    names: &'s Names<'s, 'a>,
    found: Discovered<'a>,
}

impl<'a> Finder<'_, 'a> {
    fn definition(&mut self, def: &'a StmtFunctionDef, scope: ScopeId) {
        let mut form = None;
        let mut below = None;
        let mut decorators = Vec::new();
        for decorator in &def.decorator_list {
            let expr = &decorator.expression;
            let callee = callee(expr);
            if let Some(found) = self.jit_form(expr, scope, decorator.start()) {
                form = Some(found);
                below = None;
                decorators.push(Decorator::Jit);
            } else if self.names.is(callee, scope, AUTOTUNE) {
                decorators.push(Decorator::Autotune);
            } else if self.names.is(callee, scope, HEURISTICS) {
                decorators.push(Decorator::Heuristics);
            } else {
                if self.names.is(callee, scope, CONSTEXPR_FUNCTION) {
                    self.found.constexpr.insert(def.range(), expr);
                }
                below = Some(decorator.start());
            }
        }
        if let Some(form) = form {
            self.found.jitted.insert(def.range(), Jitted { def, scope, form, decorators, below });
        }
    }

    /// The form of a decorator that is `jit`, `jit(…)`, or a name for the latter.
    fn jit_form(&self, expr: &'a Expr, scope: ScopeId, at: TextSize) -> Option<Form<'a>> {
        if self.names.is(expr, scope, JIT) {
            return Some(Form { callee: expr, scope, keywords: &[], extra: false, at, wrapper: false });
        }
        match expr {
            Expr::Call(call) if self.names.is(&call.func, scope, JIT) => Some(Form {
                callee: &call.func,
                scope,
                keywords: &call.arguments.keywords,
                extra: !call.arguments.args.is_empty(),
                at,
                wrapper: false,
            }),
            Expr::Name(name) => match self.scopes.lookup(&name.id, scope)? {
                (home, [binding]) => match binding.kind {
                    BindingKind::Value(value @ Expr::Call(_)) => self.jit_form(value, home, at),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    /// `triton.jit(function)` as an expression.
    fn wrapper(&mut self, call: &'a ExprCall, scope: ScopeId) {
        let Some(function) = wrapped(call, scope, self.names) else { return };
        let def = match function {
            Expr::Name(name) => self.scopes.lookup(&name.id, scope).and_then(|(home, bindings)| {
                bindings.iter().rev().find_map(|binding| match binding.kind {
                    BindingKind::Function(def) => Some((home, def)),
                    _ => None,
                })
            }),
            _ => None,
        };
        let Some((home, def)) = def else {
            self.found.strange.push(call.start());
            return;
        };
        let form = Form {
            callee: &call.func,
            scope,
            keywords: &call.arguments.keywords,
            extra: call.arguments.args.len() > 1,
            at: call.start(),
            wrapper: true,
        };
        let below = def.decorator_list.first().map(Ranged::start);
        self.found.jitted.entry(def.range()).or_insert(Jitted {
            def,
            scope: home,
            form,
            decorators: vec![Decorator::Jit],
            below,
        });
    }
}

fn callee(expr: &Expr) -> &Expr {
    match expr {
        Expr::Call(call) => &call.func,
        _ => expr,
    }
}

impl<'a> Hooks<'a> for Finder<'_, 'a> {
    fn open(&mut self, node: TextRange, _: ScopeKind, _: ScopeId) -> ScopeId {
        self.scopes.opened_by(node)
    }

    fn skip(&self, stmt: &'a Stmt, scope: ScopeId) -> bool {
        is_main_guard(stmt, scope)
    }

    fn stmt(&mut self, stmt: &'a Stmt, scope: ScopeId) {
        if let Stmt::FunctionDef(def) = stmt {
            self.definition(def, scope);
        }
    }

    fn expr(&mut self, expr: &'a Expr, scope: ScopeId) {
        if let Expr::Call(call) = expr {
            self.wrapper(call, scope);
        }
    }
}
