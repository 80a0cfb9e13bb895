//! From a kernel to everything that its text needs.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use ruff_python_ast::visitor::Visitor;
use ruff_python_ast::{Expr, ExprContext, Stmt, StmtFunctionDef, StmtIf, StmtTry};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::discover::{Discovered, Form, Jitted, wrapped};
use super::obstacle::{Obstacle, Reason};
use super::pure::{Impure, Key, Need, Purity, defaults};
use crate::names::Names;
use crate::scope::{Binding, BindingKind, Hooks, MODULE, ScopeId, ScopeKind, Scopes, Star, Walker};
use crate::source::Source;

/// A piece of the kernel-only module.
#[derive(Debug, Clone)]
pub(crate) enum Item<'a> {
    /// One alias of an import statement, by its offset.
    Import {
        stmt: &'a Stmt,
        at: TextSize,
    },
    Value {
        name: &'a str,
        annotation: Option<&'a Expr>,
        value: &'a Expr,
    },
    /// `name = target`, where the file says `name = triton.jit(target)`.
    Alias {
        name: &'a str,
        target: &'a str,
        at: TextSize,
    },
    Kernel {
        def: &'a StmtFunctionDef,
        form: Form<'a>,
    },
    /// A compile-time function and its decorator.
    Constexpr {
        def: &'a StmtFunctionDef,
        decorator: &'a Expr,
    },
    /// An import with a fallback.
    Try(&'a StmtTry),
    /// Constants that depend on other constants.
    If(&'a StmtIf),
}

#[derive(Debug, Clone)]
struct Node<'a> {
    items: Vec<Item<'a>>,
    needs: Vec<Need<'a>>,
}

const MAX_STEPS: usize = 1 << 20;

/// Stands for whatever the file's star imports bind.
const STARS: &str = "*";

/// Lines listed in one message.
const MAX_LINES: usize = 5;

/// Everything that some kernels need, by name.
pub(crate) type Needed<'a> = BTreeMap<&'a str, (ScopeId, Vec<Item<'a>>)>;

pub(crate) struct Closure<'s, 'a> {
    scopes: &'s Scopes<'a>,
    names: &'s Names<'s, 'a>,
    found: &'s Discovered<'a>,
    source: &'s Source,
    nodes: FxHashMap<Key<'a>, Result<Node<'a>, Obstacle>>,
    /// Scopes of the functions that are cut out as a whole.
    whole: FxHashSet<ScopeId>,
    /// Bounds the work on hostile webs of kernels.
    steps: usize,
}

impl<'s, 'a> Closure<'s, 'a> {
    pub(crate) fn new(
        scopes: &'s Scopes<'a>,
        names: &'s Names<'s, 'a>,
        found: &'s Discovered<'a>,
        source: &'s Source,
    ) -> Self {
        let whole = found.jitted.keys().chain(found.constexpr.keys()).map(|&def| scopes.opened_by(def)).collect();
        Self { scopes, names, found, source, nodes: FxHashMap::default(), whole, steps: MAX_STEPS }
    }

    /// Adds a kernel and what it needs to `needed`, or says what is in the way and leaves `needed` as it was.
    pub(crate) fn add(&mut self, kernel: &Jitted<'a>, needed: &mut Needed<'a>) -> Result<(), Obstacle> {
        let mut fresh = Needed::new();
        let mut todo = vec![Need { key: (kernel.scope, &*kernel.def.name), at: kernel.def.name.start() }];
        while let Some(Need { key: (scope, name), at: used_at }) = todo.pop() {
            self.steps = self.steps.saturating_sub(1);
            if self.steps == 0 {
                return Err(Obstacle::new(Reason::NotPlain, used_at, "the kernels of this file are too entangled"));
            }
            if let Some((owner, _)) = fresh.get(name).or_else(|| needed.get(name)) {
                if *owner != scope {
                    let message = format!("`{name}` is the name of two different things");
                    return Err(Obstacle::new(Reason::NameClash, used_at, message));
                }
                continue;
            }
            let node = self.node((scope, name)).map_err(|obstacle| obstacle.used_at(used_at))?;
            todo.extend(&node.needs);
            fresh.insert(name, (scope, node.items));
        }
        // Not `append`, which rebuilds the whole map.
        needed.extend(fresh);
        Ok(())
    }

    fn node(&mut self, key: Key<'a>) -> Result<Node<'a>, Obstacle> {
        if let Some(known) = self.nodes.get(&key) {
            return known.clone();
        }
        let node = self.resolve(key);
        self.nodes.insert(key, node.clone());
        node
    }

    fn resolve(&self, key: Key<'a>) -> Result<Node<'a>, Obstacle> {
        let (scope, name) = key;
        if name == STARS {
            return Ok(self.stars());
        }
        let bindings = self.scopes.get(scope).bindings.get(name).map_or(&[][..], Vec::as_slice);
        let Some(first) = bindings.first() else {
            return Ok(Node { items: Vec::new(), needs: Vec::new() });
        };
        if self.inside_kernel(scope) {
            let message = format!("`{name}` is bound inside of another kernel");
            return Err(Obstacle::new(Reason::NotPlain, first.at, message));
        }
        if let Some(imports) = self.same_import(name, bindings)? {
            return Ok(imports);
        }
        if bindings.len() > 1
            && let Some(Stmt::Try(guard)) = first.inside.first().copied()
            && bindings.iter().all(|binding| binding.inside.first().is_some_and(|stmt| stmt.range() == guard.range()))
        {
            return self.guarded(name, guard, scope);
        }
        if let Some(node) = self.conditional(bindings, scope) {
            return Ok(node);
        }
        match self.live(name, bindings)? {
            Live::Function(def) => self.function(def, scope),
            Live::Value(binding, value) => self.value(name, binding, value, scope),
        }
    }

    /// The star imports from Triton.
    fn stars(&self) -> Node<'a> {
        let known = self.scopes.stars.iter().filter(|star| is_known_module(star.module));
        Node { items: known.map(|star| Item::Import { stmt: star.stmt, at: star.at }).collect(), needs: Vec::new() }
    }

    /// Whether a scope lies in a function that is cut out as a whole.
    fn inside_kernel(&self, scope: ScopeId) -> bool {
        std::iter::successors(Some(scope), |&id| self.scopes.get(id).parent).any(|id| self.whole.contains(&id))
    }

    /// A name that only ever means one import.
    fn same_import(&self, name: &str, bindings: &[Binding<'a>]) -> Result<Option<Node<'a>>, Obstacle> {
        let mut items = Vec::new();
        let mut only: Option<&str> = None;
        for binding in bindings {
            let BindingKind::Import { path } = &binding.kind else { return Ok(None) };
            if *only.get_or_insert(path) != path {
                return Ok(None);
            }
            let root = path.split('.').next().unwrap_or(path);
            if !matches!(root, "triton" | "math") {
                let message = format!("it uses `{name}`, which is imported from `{path}`");
                return Err(Obstacle::new(Reason::ForeignImport, binding.at, message));
            }
            items.extend(binding.stmt.map(|stmt| Item::Import { stmt, at: binding.at }));
        }
        Ok(Some(Node { items, needs: Vec::new() }))
    }

    /// The binding that is in force when kernels are compiled.
    fn live(&self, name: &str, bindings: &[Binding<'a>]) -> Result<Live<'a>, Obstacle> {
        let reassigned = |at: TextSize| {
            let lines: Vec<String> =
                bindings.iter().take(MAX_LINES).map(|binding| self.source.line(binding.at).to_string()).collect();
            let twice = bindings.iter().all(|binding| matches!(binding.kind, BindingKind::Function(_)));
            let (verb, advice) = match twice {
                true => ("defined", "; define it once, and let a `tl.constexpr` choose inside"),
                false => ("bound", ""),
            };
            let message = format!("it uses `{name}`, which is {verb} on lines {}{advice}", lines.join(", "));
            Err(Obstacle::new(Reason::Reassigned, at, message))
        };
        // `f = triton.jit(f)` after `def f`.
        if let [
            Binding { kind: BindingKind::Function(def), .. },
            Binding { kind: BindingKind::Value(Expr::Call(_)), .. },
        ] = bindings
            && self.found.jitted.get(&def.range()).is_some_and(|jitted| jitted.form.wrapper)
        {
            return Ok(Live::Function(def));
        }
        let replaced = |star: &&Star<'a>| !is_known_module(star.module) && star.at > bindings[0].at;
        if let Some(star) = self.scopes.stars.iter().find(replaced) {
            let message = format!("it uses `{name}`, which `from {} import *` may replace", star.module);
            return Err(Obstacle::new(Reason::Reassigned, star.at, message));
        }
        let plain = bindings.iter().all(|b| matches!(b.kind, BindingKind::Function(_)) && b.inside.is_empty());
        let binding = match bindings {
            [binding] => binding,
            [.., last] if plain => last,
            [.., last] => return reassigned(last.at),
            [] => return reassigned(TextSize::new(0)),
        };
        if matches!(binding.kind, BindingKind::Element(_))
            || binding.inside.iter().any(|stmt| matches!(stmt, Stmt::For(_) | Stmt::While(_)))
        {
            let message = format!("it uses `{name}`, which is bound in a loop");
            return Err(Obstacle::new(Reason::Reassigned, binding.at, message));
        }
        match &binding.kind {
            BindingKind::Function(def) => Ok(Live::Function(def)),
            BindingKind::Value(value) => Ok(Live::Value(binding.clone(), value)),
            BindingKind::Parameter => {
                let message = format!("it uses `{name}`, a parameter of the function around it");
                Err(Obstacle::new(Reason::Captures, binding.at, message))
            }
            BindingKind::Class => {
                let message = format!(
                    "it uses the class `{name}`, which Triton does not allow: give each member that kernels need a \
                     global name of its own, or pass it as a `tl.constexpr` parameter"
                );
                Err(Obstacle::new(Reason::CallsPython, binding.at, message))
            }
            BindingKind::Import { .. } | BindingKind::Element(_) | BindingKind::Other => {
                let message = format!("it uses `{name}`, whose value is known only when the file runs");
                Err(Obstacle::new(Reason::RuntimeValue, binding.at, message))
            }
        }
    }

    fn value(
        &self,
        name: &'a str,
        binding: Binding<'a>,
        value: &'a Expr,
        scope: ScopeId,
    ) -> Result<Node<'a>, Obstacle> {
        if let Expr::Call(call) = value
            && let Some(Expr::Name(target)) = wrapped(call, scope, self.names)
            && let Some((home, _)) = self.scopes.lookup(&target.id, scope)
        {
            let target: &str = &target.id;
            let alias = Item::Alias { name, target, at: call.start() };
            return Ok(Node { items: vec![alias], needs: vec![Need { key: (home, target), at: call.start() }] });
        }
        let mut purity = self.purity(None);
        purity.expr(value, scope).map_err(|impure| self.runtime_value(name, &binding, &impure))?;
        let annotation = match binding.stmt {
            Some(Stmt::AnnAssign(assign)) => Some(&*assign.annotation),
            _ => None,
        };
        let annotation = annotation.filter(|annotation| self.keeps(annotation, scope));
        if let Some(annotation) = annotation {
            // Kept only if it names Triton's own things, so this cannot fail.
            let _ = purity.expr(annotation, scope);
        }
        Ok(Node { items: vec![Item::Value { name, annotation, value }], needs: purity.needs })
    }

    fn runtime_value(&self, name: &str, binding: &Binding<'a>, impure: &Impure) -> Obstacle {
        let message = format!("it uses `{name}`: {}", impure.what);
        let same_line = self.source.line(impure.at) == self.source.line(binding.at);
        Obstacle::new(Reason::RuntimeValue, if same_line { binding.at } else { impure.at }, message)
    }

    fn purity(&self, local: Option<ScopeId>) -> Purity<'_, 'a> {
        Purity { scopes: self.scopes, names: self.names, local, needs: Vec::new() }
    }

    /// Whether an annotation names things of Triton only, so that it can be evaluated in the kernel-only module.
    pub(crate) fn keeps(&self, annotation: &Expr, scope: ScopeId) -> bool {
        keeps_annotation(annotation, scope, self.names)
    }

    fn function(&self, def: &'a StmtFunctionDef, scope: ScopeId) -> Result<Node<'a>, Obstacle> {
        if let Some(jitted) = self.found.jitted.get(&def.range()) {
            return self.kernel(jitted);
        }
        if let Some(&decorator) = self.found.constexpr.get(&def.range()) {
            return self.constexpr_function(def, decorator, scope);
        }
        let message = format!("it uses the plain Python function `{}`", def.name);
        Err(Obstacle::new(Reason::CallsPython, def.name.start(), message))
    }

    fn kernel(&self, jitted: &Jitted<'a>) -> Result<Node<'a>, Obstacle> {
        let (def, form) = (jitted.def, jitted.form);
        let not_plain = |at: TextSize, message: &str| Err(Obstacle::new(Reason::NotPlain, at, message));
        if def.is_async || def.type_params.is_some() {
            return not_plain(def.name.start(), "it is not a plain `def`");
        }
        if form.wrapper && self.inside_kernel(form.scope) {
            return not_plain(form.at, "`jit` is applied inside of another kernel");
        }
        if let Some(at) = jitted.below {
            return not_plain(at, "another decorator is applied before `jit`");
        }
        if form.extra || form.keywords.iter().any(|keyword| keyword.arg.is_none()) {
            return not_plain(form.at, "the arguments of `jit` cannot be read");
        }
        let mut needs = self.callee(form.callee, form.scope)?;
        self.keywords(form)?;
        needs.append(&mut self.signature(def, jitted.scope)?);
        needs.append(&mut self.free_names(def));
        needs.push(Need { key: (MODULE, STARS), at: def.name.start() });
        Ok(Node { items: vec![Item::Kernel { def, form }], needs })
    }

    /// Keyword arguments of `jit` that matter to the compiler must be literals.
    fn keywords(&self, form: Form<'a>) -> Result<(), Obstacle> {
        for keyword in form.keywords {
            let name = keyword.arg.as_deref().unwrap_or_default();
            if matches!(name, "noinline" | "debug") && !keyword.value.is_literal_expr() {
                let message = format!("`{name}` of `jit` is not a literal");
                return Err(Obstacle::new(Reason::NotPlain, keyword.start(), message));
            }
        }
        Ok(())
    }

    /// The names that a decorator spelled `a.b.c` needs.
    fn callee(&self, callee: &'a Expr, scope: ScopeId) -> Result<Vec<Need<'a>>, Obstacle> {
        match callee {
            Expr::Attribute(attribute) => self.callee(&attribute.value, scope),
            Expr::Name(name) => {
                let home = self.scopes.lookup(&name.id, scope).map(|(home, _)| home);
                let need = |home| Need { key: (home, name.id.as_str()), at: name.start() };
                Ok(home.map(need).into_iter().collect())
            }
            _ => Err(Obstacle::new(Reason::NotPlain, callee.start(), "`jit` is not named directly")),
        }
    }

    /// What defaults and annotations need; both are evaluated where the function is defined.
    fn signature(&self, def: &'a StmtFunctionDef, scope: ScopeId) -> Result<Vec<Need<'a>>, Obstacle> {
        let mut purity = self.purity(None);
        for default in defaults(def) {
            purity.expr(default, scope).map_err(|impure| {
                let message = format!("the default of a parameter is not a constant: {}", impure.what);
                Obstacle::new(Reason::RuntimeValue, default.start(), message)
            })?;
        }
        for parameter in &*def.parameters {
            if let Some(annotation) = parameter.annotation()
                && self.keeps(annotation, scope)
            {
                let _ = purity.expr(annotation, scope);
            }
        }
        Ok(purity.needs)
    }

    fn constexpr_function(
        &self,
        def: &'a StmtFunctionDef,
        decorator: &'a Expr,
        scope: ScopeId,
    ) -> Result<Node<'a>, Obstacle> {
        let impure = |impure: Impure| {
            let message = format!("it uses the compile-time function `{}`: {}", def.name, impure.what);
            Obstacle::new(Reason::CallsPython, impure.at, message)
        };
        if def.is_async || def.type_params.is_some() || def.decorator_list.len() != 1 {
            let message = format!("the compile-time function `{}` is not a plain `def`", def.name);
            return Err(Obstacle::new(Reason::NotPlain, def.name.start(), message));
        }
        let inner = self.scopes.opened_by(def.range());
        let mut purity = self.purity(Some(inner));
        purity.body(&def.body, inner).map_err(impure)?;
        let mut needs = purity.needs;
        needs.append(&mut self.callee(decorator, scope)?);
        needs.append(&mut self.signature(def, scope)?);
        Ok(Node { items: vec![Item::Constexpr { def, decorator }], needs })
    }

    /// Names that the body reads and that are bound outside of it.
    fn free_names(&self, def: &'a StmtFunctionDef) -> Vec<Need<'a>> {
        let scope = self.scopes.opened_by(def.range());
        let mut walker = Walker { hooks: Free { scopes: self.scopes, own: scope, needs: Vec::new() }, scope };
        walker.visit_body(&def.body);
        walker.hooks.needs
    }

    /// `try: from triton… import a` with fallbacks: kept as it is, if it holds nothing else.
    fn guarded(&self, name: &str, guard: &'a StmtTry, scope: ScopeId) -> Result<Node<'a>, Obstacle> {
        let mut purity = self.purity(None);
        if self.only_imports(guard, scope, &mut purity) {
            return Ok(Node { items: vec![Item::Try(guard)], needs: purity.needs });
        }
        let message = format!("it uses `{name}`, which a `try` binds to one thing or another");
        Err(Obstacle::new(Reason::RuntimeValue, guard.start(), message))
    }

    /// A constant that an `if` over constants sets, perhaps after a default: kept as it is, if it holds nothing else.
    fn conditional(&self, bindings: &[Binding<'a>], scope: ScopeId) -> Option<Node<'a>> {
        let branch = bindings.last()?.inside.first()?.as_if_stmt()?;
        let inside = |binding: &Binding<'a>| binding.inside.first().is_some_and(|stmt| stmt.range() == branch.range());
        let mut purity = self.purity(None);
        let mut items = Vec::new();
        for (index, binding) in bindings.iter().enumerate() {
            match binding.kind {
                _ if inside(binding) => {}
                BindingKind::Value(value) if index == 0 && binding.inside.is_empty() => {
                    let name = self.source.slice(TextRange::new(binding.at, binding.stmt?.end()));
                    let name = name.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
                    let (name, _) = self.scopes.get(scope).bindings.get_key_value(name)?;
                    let node = self.value(name, binding.clone(), value, scope).ok()?;
                    purity.needs.extend(node.needs);
                    items.extend(node.items);
                }
                _ => return None,
            }
        }
        self.only_constants(branch, scope, &mut purity).then(|| {
            items.push(Item::If(branch));
            Node { items, needs: purity.needs }
        })
    }

    fn only_constants(&self, branch: &'a StmtIf, scope: ScopeId, purity: &mut Purity<'_, 'a>) -> bool {
        let tests =
            std::iter::once(&*branch.test).chain(branch.elif_else_clauses.iter().filter_map(|c| c.test.as_ref()));
        let bodies = std::iter::once(&branch.body).chain(branch.elif_else_clauses.iter().map(|clause| &clause.body));
        tests.into_iter().all(|test| purity.expr(test, scope).is_ok())
            && bodies.into_iter().flatten().all(|stmt| match stmt {
                Stmt::Assign(assign) => {
                    matches!(&*assign.targets, [Expr::Name(_)]) && purity.expr(&assign.value, scope).is_ok()
                }
                Stmt::AnnAssign(assign) => {
                    assign.target.is_name_expr()
                        && (!self.keeps(&assign.annotation, scope) || purity.expr(&assign.annotation, scope).is_ok())
                        && assign.value.as_deref().is_some_and(|value| purity.expr(value, scope).is_ok())
                }
                Stmt::Pass(_) => true,
                Stmt::If(inner) => self.only_constants(inner, scope, purity),
                _ => false,
            })
    }

    fn only_imports(&self, guard: &'a StmtTry, scope: ScopeId, purity: &mut Purity<'_, 'a>) -> bool {
        let handlers = guard.handlers.iter().map(|handler| {
            let ruff_python_ast::ExceptHandler::ExceptHandler(handler) = handler;
            &handler.body
        });
        guard.orelse.is_empty()
            && guard.finalbody.is_empty()
            && std::iter::once(&guard.body).chain(handlers).flatten().all(|stmt| match stmt {
                Stmt::Import(import) => import.names.iter().all(|alias| is_present(&alias.name)),
                Stmt::ImportFrom(import) => {
                    import.level == 0
                        && import.module.as_ref().is_some_and(|module| is_present(module))
                        && import.names.iter().all(|alias| &*alias.name != "*")
                }
                Stmt::Assign(assign) => {
                    matches!(&*assign.targets, [Expr::Name(_)]) && purity.expr(&assign.value, scope).is_ok()
                }
                Stmt::Pass(_) => true,
                Stmt::Try(inner) => self.only_imports(inner, scope, purity),
                _ => false,
            })
    }
}

enum Live<'a> {
    Function(&'a StmtFunctionDef),
    Value(Binding<'a>, &'a Expr),
}

/// Modules that are there whenever a candidate runs at all.
fn is_present(module: &str) -> bool {
    is_known_module(module) || module == "torch"
}

/// Modules that the kernel-only module may import.
pub(crate) fn is_known_module(module: &str) -> bool {
    matches!(module.split('.').next(), Some("triton" | "math"))
}

/// Whether an annotation is made of strings and of Triton's names only.
pub(crate) fn keeps_annotation(annotation: &Expr, scope: ScopeId, names: &Names<'_, '_>) -> bool {
    match annotation {
        Expr::StringLiteral(_) | Expr::NoneLiteral(_) => true,
        Expr::Name(_) | Expr::Attribute(_) => names.settled(&names.paths(annotation, scope), |path| {
            path.starts_with("triton.language.")
                || matches!(
                    path,
                    "builtins.int" | "builtins.float" | "builtins.bool" | "builtins.str" | "builtins.tuple"
                )
        }),
        _ => false,
    }
}

/// The functions of the file that the body of one names.
pub(crate) fn functions_used<'a>(def: &'a StmtFunctionDef, scopes: &Scopes<'a>) -> Vec<TextRange> {
    let scope = scopes.opened_by(def.range());
    let mut walker = Walker { hooks: Free { scopes, own: scope, needs: Vec::new() }, scope };
    walker.visit_body(&def.body);
    let mut found = Vec::new();
    for need in walker.hooks.needs {
        let bindings = scopes.get(need.key.0).bindings.get(need.key.1).map_or(&[][..], Vec::as_slice);
        found.extend(bindings.iter().filter_map(|binding| match binding.kind {
            BindingKind::Function(def) => Some(def.range()),
            _ => None,
        }));
    }
    found
}

struct Free<'s, 'a> {
    scopes: &'s Scopes<'a>,
    own: ScopeId,
    needs: Vec<Need<'a>>,
}

impl<'a> Hooks<'a> for Free<'_, 'a> {
    fn open(&mut self, node: TextRange, _: ScopeKind, _: ScopeId) -> ScopeId {
        self.scopes.opened_by(node)
    }

    fn expr(&mut self, expr: &'a Expr, scope: ScopeId) {
        if let Expr::Name(name) = expr
            && matches!(name.ctx, ExprContext::Load)
            && let Some((home, _)) = self.scopes.lookup(&name.id, scope)
            && !self.scopes.within(home, self.own)
        {
            self.needs.push(Need { key: (home, name.id.as_str()), at: name.start() });
        }
    }
}
