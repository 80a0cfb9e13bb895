//! What the advice about kernels looks at: each jit function taken apart, with its launches and configurations.

use rustc_hash::{FxHashMap, FxHashSet};

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, ExprBinOp, ExprCall, Operator, Stmt, StmtFunctionDef, StmtWhile};
use ruff_text_size::{Ranged, TextSize};
use tilewright_contract::{Finding, Tier};

use super::Rule;
use crate::cut::Discovered;
use crate::names::Names;
use crate::scope::{BindingKind, Hooks, MODULE, ScopeId, ScopeKind, Scopes, Walker};
use crate::source::Source;

/// Bounds the work of following one expression.
const STEPS: usize = 64;

/// A jit function.
pub(super) struct Kernel<'a> {
    pub(super) def: &'a StmtFunctionDef,
    /// The scope of its body.
    pub(super) scope: ScopeId,
    /// Parameters annotated `tl.constexpr`.
    pub(super) constexprs: FxHashSet<&'a str>,
    /// The other parameters.
    pub(super) runtime: FxHashSet<&'a str>,
    /// Calls of `triton.language`, in source order.
    pub(super) calls: Vec<Call<'a>>,
    /// `name += value`
    pub(super) sums: Vec<(&'a str, &'a Expr)>,
    pub(super) assigns: Vec<(&'a str, &'a Expr)>,
    pub(super) whiles: Vec<&'a StmtWhile>,
    /// Multiplications and divisions.
    pub(super) products: Vec<&'a ExprBinOp>,
    pub(super) quotients: Vec<&'a ExprBinOp>,
    /// What a loop counts up to, and what is compared.
    pub(super) bounds: Vec<&'a Expr>,
    /// `kernel[grid](…)` in the file.
    pub(super) launches: Vec<Launch<'a>>,
    /// `triton.Config(…)` of its autotuner, and the autotuner itself.
    pub(super) configs: Vec<&'a ExprCall>,
    pub(super) autotune: Option<&'a ExprCall>,
}

pub(super) struct Call<'a> {
    /// Below `triton.language`, such as `load`.
    pub(super) name: String,
    pub(super) call: &'a ExprCall,
    /// Whether it stands in an `if` of the kernel.
    pub(super) conditional: bool,
}

#[derive(Clone, Copy)]
pub(super) struct Launch<'a> {
    pub(super) call: &'a ExprCall,
    pub(super) grid: &'a Expr,
    pub(super) scope: ScopeId,
}

/// What the rules see, and where they report.
pub(super) struct Kernels<'s, 'a> {
    pub(super) source: &'s Source,
    pub(super) scopes: &'s Scopes<'a>,
    pub(super) names: &'s Names<'s, 'a>,
    seen: FxHashSet<(&'static str, u32)>,
    pub(super) findings: Vec<Finding>,
}

impl<'s, 'a> Kernels<'s, 'a> {
    pub(super) fn new(source: &'s Source, scopes: &'s Scopes<'a>, names: &'s Names<'s, 'a>) -> Self {
        Self { source, scopes, names, seen: FxHashSet::default(), findings: Vec::new() }
    }

    pub(super) fn report(&mut self, rule: &Rule, at: TextSize, message: impl Into<String>) {
        self.report_as(rule, rule.tier, at, message);
    }

    pub(super) fn report_as(&mut self, rule: &Rule, tier: Tier, at: TextSize, message: impl Into<String>) {
        let (line, column) = (self.source.line(at), self.source.column(at));
        if self.seen.insert((rule.id, line)) {
            let help = Some(rule.help.to_owned());
            let message = message.into();
            self.findings.push(Finding { rule: rule.id.to_owned(), tier, message, line, column, help });
        }
    }

    /// The values that `name` gets in `scope`, the first of them where there are many.
    pub(super) fn values(&self, name: &str, scope: ScopeId) -> Vec<&'a Expr> {
        let Some((_, bindings)) = self.scopes.lookup(name, scope) else { return Vec::new() };
        let value = |kind: &BindingKind<'a>| match kind {
            BindingKind::Value(value) => Some(*value),
            _ => None,
        };
        bindings.iter().filter_map(|binding| value(&binding.kind)).take(STEPS).collect()
    }

    /// Whether `wanted` holds for `expr`, for a part of it, or for a value of a name in it.
    pub(super) fn any(&self, expr: &'a Expr, scope: ScopeId, wanted: &dyn Fn(&Expr) -> bool) -> bool {
        let mut todo = vec![expr];
        let mut steps = STEPS;
        let mut followed = FxHashSet::default();
        while let Some(expr) = todo.pop() {
            if steps == 0 {
                return false;
            }
            steps -= 1;
            if wanted(expr) {
                return true;
            }
            if let Expr::Name(name) = expr
                && followed.insert(name.id.as_str())
            {
                todo.extend(self.values(&name.id, scope));
            }
            let mut parts = Parts(Vec::new());
            walk_expr(&mut parts, expr);
            todo.extend(parts.0);
        }
        false
    }

    /// Whether `expr` is a call of `triton.language.NAME`.
    pub(super) fn is_call(&self, expr: &Expr, name: &str, scope: ScopeId) -> bool {
        let Expr::Call(call) = expr else { return false };
        let known = match &*call.func {
            Expr::Name(_) => true,
            Expr::Attribute(attribute) => attribute.attr.as_str() == name,
            _ => false,
        };
        known && self.names.is(&call.func, scope, &[&format!("triton.language.{name}"), &format!("triton.{name}")])
    }

    /// The value of an integer that the file shows: a literal, arithmetic, or a name bound once to such.
    pub(super) fn integer(&self, expr: &Expr, scope: ScopeId) -> Option<i64> {
        self.fold(expr, scope, &mut STEPS.clone())
    }

    fn fold(&self, expr: &Expr, scope: ScopeId, steps: &mut usize) -> Option<i64> {
        *steps = steps.checked_sub(1)?;
        match expr {
            Expr::NumberLiteral(number) => number.value.as_int().and_then(|value| value.as_i64()),
            Expr::Name(name) => match self.scopes.lookup(&name.id, scope)? {
                (home, [binding]) => match binding.kind {
                    BindingKind::Value(value) => self.fold(value, home, steps),
                    _ => None,
                },
                _ => None,
            },
            Expr::Call(call) if self.is_call(expr, "constexpr", scope) => {
                self.fold(call.arguments.args.first()?, scope, steps)
            }
            Expr::BinOp(operation) => {
                let (left, right) =
                    (self.fold(&operation.left, scope, steps)?, self.fold(&operation.right, scope, steps)?);
                match operation.op {
                    Operator::Add => left.checked_add(right),
                    Operator::Sub => left.checked_sub(right),
                    Operator::Mult => left.checked_mul(right),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// Collects the direct parts of an expression.
struct Parts<'a>(Vec<&'a Expr>);

impl<'a> Visitor<'a> for Parts<'a> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        self.0.push(expr);
    }
}

/// Whether `expr` casts to, or names, one of the 16-bit floating-point types.
pub(super) fn is_half(names: &Names<'_, '_>, expr: &Expr, scope: ScopeId) -> bool {
    names.is(expr, scope, &["triton.language.float16", "triton.language.bfloat16"])
}

/// `x` for `x.to(type)`, with the type.
pub(super) fn cast(expr: &Expr) -> Option<(&Expr, &Expr)> {
    let Expr::Call(call) = expr else { return None };
    let Expr::Attribute(method) = &*call.func else { return None };
    let to = call.arguments.find_argument_value("dtype", 0)?;
    (&*method.attr == "to").then_some((&*method.value, to))
}

/// Takes every jit function of a file apart.
pub(super) fn collect<'a>(
    body: &'a [Stmt],
    found: &Discovered<'a>,
    scopes: &Scopes<'a>,
    names: &Names<'_, 'a>,
) -> Vec<Kernel<'a>> {
    let mut walker = Walker { hooks: Launches { scopes, found, launches: Vec::new() }, scope: MODULE };
    walker.visit_body(body);
    let launches = walker.hooks.launches;
    let mut jitted: Vec<_> = found.jitted.values().collect();
    jitted.sort_by_key(|jitted| jitted.def.start());
    let mut kernels: Vec<_> = jitted
        .into_iter()
        .map(|jitted| {
            let scope = scopes.opened_by(jitted.def.range());
            let mut body = Body { kernel: Kernel::new(jitted.def, scope), names, conditional: 0 };
            body.header(jitted.scope);
            body.visit_body(&jitted.def.body);
            body.kernel
        })
        .collect();
    let index: FxHashMap<_, usize> = kernels.iter().map(|kernel| kernel.def.range()).zip(0..).collect();
    for (def, launch) in launches {
        if let Some(&at) = index.get(&def.range()) {
            kernels[at].launches.push(launch);
        }
    }
    kernels
}

impl<'a> Kernel<'a> {
    fn new(def: &'a StmtFunctionDef, scope: ScopeId) -> Self {
        Self {
            def,
            scope,
            constexprs: FxHashSet::default(),
            runtime: FxHashSet::default(),
            calls: Vec::new(),
            sums: Vec::new(),
            assigns: Vec::new(),
            whiles: Vec::new(),
            products: Vec::new(),
            quotients: Vec::new(),
            bounds: Vec::new(),
            launches: Vec::new(),
            configs: Vec::new(),
            autotune: None,
        }
    }
}

struct Body<'n, 's, 'a> {
    kernel: Kernel<'a>,
    names: &'n Names<'s, 'a>,
    conditional: usize,
}

impl<'a> Body<'_, '_, 'a> {
    /// Parameters and decorators, which are evaluated in `outside`.
    fn header(&mut self, outside: ScopeId) {
        let def = self.kernel.def;
        for parameter in &*def.parameters {
            let constexpr = parameter.annotation().is_some_and(|kind| {
                self.names.is(kind, outside, &["triton.language.constexpr"])
                    || matches!(kind, Expr::StringLiteral(text) if text.value.to_str().ends_with("constexpr"))
            });
            let side = if constexpr { &mut self.kernel.constexprs } else { &mut self.kernel.runtime };
            side.insert(parameter.name().as_str());
        }
        for decorator in &def.decorator_list {
            let Expr::Call(call) = &decorator.expression else { continue };
            if !self.names.is(&call.func, outside, &["triton.autotune"]) {
                continue;
            }
            self.kernel.autotune = Some(call);
            let configs = call.arguments.find_argument_value("configs", 0);
            let configs = configs.map_or(&[][..], crate::scope::elements).iter();
            self.kernel.configs.extend(configs.filter_map(|config| match config {
                Expr::Call(call) if self.names.is(&call.func, outside, &["triton.Config"]) => Some(call),
                _ => None,
            }));
        }
    }
}

impl<'a> Visitor<'a> for Body<'_, '_, 'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Assign(assign) => {
                if let [Expr::Name(name)] = &*assign.targets {
                    self.kernel.assigns.push((&name.id, &assign.value));
                }
            }
            Stmt::AugAssign(assign) if assign.op == Operator::Add => {
                if let Expr::Name(name) = &*assign.target {
                    self.kernel.sums.push((&name.id, &assign.value));
                }
            }
            Stmt::While(stmt) => {
                self.kernel.whiles.push(stmt);
                self.kernel.bounds.push(&stmt.test);
            }
            Stmt::For(stmt) => {
                if let Expr::Call(range) = &*stmt.iter {
                    self.kernel.bounds.extend(&range.arguments.args);
                }
            }
            Stmt::If(_) => {
                self.conditional += 1;
                walk_stmt(self, stmt);
                self.conditional -= 1;
                return;
            }
            _ => {}
        }
        walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Call(call) => {
                let paths = self.names.paths(&call.func, self.kernel.scope);
                if let Some(name) = paths.iter().find_map(|path| path.strip_prefix("triton.language.")) {
                    let conditional = self.conditional > 0;
                    self.kernel.calls.push(Call { name: name.to_owned(), call, conditional });
                }
            }
            Expr::BinOp(operation) if operation.op == Operator::Mult => self.kernel.products.push(operation),
            Expr::BinOp(operation) if operation.op == Operator::Div => self.kernel.quotients.push(operation),
            Expr::Compare(test) => {
                self.kernel.bounds.push(&test.left);
                self.kernel.bounds.extend(&test.comparators);
            }
            _ => {}
        }
        walk_expr(self, expr);
    }
}

/// Finds `kernel[grid](…)` where the name is a jit function of the file.
struct Launches<'n, 'a> {
    scopes: &'n Scopes<'a>,
    found: &'n Discovered<'a>,
    launches: Vec<(&'a StmtFunctionDef, Launch<'a>)>,
}

impl<'a> Hooks<'a> for Launches<'_, 'a> {
    fn open(&mut self, node: ruff_text_size::TextRange, _: ScopeKind, _: ScopeId) -> ScopeId {
        self.scopes.opened_by(node)
    }

    fn expr(&mut self, expr: &'a Expr, scope: ScopeId) {
        let Expr::Call(call) = expr else { return };
        let Expr::Subscript(subscript) = &*call.func else { return };
        let Expr::Name(name) = &*subscript.value else { return };
        let Some((_, bindings)) = self.scopes.lookup(&name.id, scope) else { return };
        for binding in bindings {
            if let BindingKind::Function(def) = binding.kind
                && self.found.jitted.contains_key(&def.range())
            {
                self.launches.push((def, Launch { call, grid: &subscript.slice, scope }));
            }
        }
    }
}
