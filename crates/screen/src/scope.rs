//! Scopes and bindings: what a name in a candidate may stand for.

use ruff_python_ast::visitor::{Visitor, walk_except_handler, walk_expr, walk_parameters, walk_pattern, walk_stmt};
use ruff_python_ast::{
    self as ast, Comprehension, ExceptHandler, Expr, ExprContext, ModModule, Parameters, Pattern, Stmt, StmtClassDef,
    StmtFunctionDef,
};
use ruff_text_size::{Ranged, TextRange, TextSize};
use rustc_hash::{FxHashMap, FxHashSet};

pub(crate) type ScopeId = usize;
pub(crate) const MODULE: ScopeId = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScopeKind {
    Module,
    Class,
    /// Functions, lambdas and comprehensions.
    Function,
}

#[derive(Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) kind: ScopeKind,
    pub(crate) parent: Option<ScopeId>,
    pub(crate) bindings: FxHashMap<&'a str, Vec<Binding<'a>>>,
    /// Names declared `global` here, and those declared `nonlocal`.
    outer: FxHashMap<&'a str, ScopeId>,
}

/// One place where a name gets a value.
#[derive(Debug, Clone)]
pub(crate) struct Binding<'a> {
    pub(crate) kind: BindingKind<'a>,
    /// Where the name stands.
    pub(crate) at: TextSize,
    /// The statement that binds; none for parameters and comprehensions.
    pub(crate) stmt: Option<&'a Stmt>,
    /// Compound statements of the same scope around it, outermost first.
    pub(crate) inside: Vec<&'a Stmt>,
}

#[derive(Debug, Clone)]
pub(crate) enum BindingKind<'a> {
    /// `import a.b` binds `a` to `a`; `import a.b as c` binds `c` to `a.b`; `from a import b` binds `b` to `a.b`.
    Import {
        path: String,
    },
    /// `name = value`, also one name of a chained or element-wise assignment.
    Value(&'a Expr),
    /// An element of a literal sequence that a `for` runs over.
    Element(&'a Expr),
    Function(&'a StmtFunctionDef),
    Class,
    Parameter,
    /// Anything else: unpacking, augmented assignment, `del`, `with`, `except`, assignment through `global`.
    Other,
}

/// A star import: it may bind any name of the module.
#[derive(Debug)]
pub(crate) struct Star<'a> {
    pub(crate) module: &'a str,
    pub(crate) stmt: &'a Stmt,
    pub(crate) at: TextSize,
}

#[derive(Debug)]
pub(crate) struct Scopes<'a> {
    /// `from module import *`, in source order.
    pub(crate) stars: Vec<Star<'a>>,
    scopes: Vec<Scope<'a>>,
    by_range: FxHashMap<TextRange, ScopeId>,
}

impl<'a> Scopes<'a> {
    pub(crate) fn of(module: &'a ModModule) -> Self {
        let root = Scope::new(ScopeKind::Module, None);
        let scopes = Self { stars: Vec::new(), scopes: vec![root], by_range: FxHashMap::default() };
        let mut walker = Walker {
            hooks: Builder { scopes, inside: vec![Vec::new()], bound: FxHashSet::default(), stmts: Vec::new() },
            scope: MODULE,
        };
        walker.visit_body(&module.body);
        walker.hooks.scopes
    }

    pub(crate) fn get(&self, id: ScopeId) -> &Scope<'a> {
        &self.scopes[id]
    }

    /// The scope that a function, class, lambda or comprehension opens.
    pub(crate) fn opened_by(&self, node: TextRange) -> ScopeId {
        self.by_range.get(&node).copied().unwrap_or(MODULE)
    }

    /// The scope in which `name`, read in `scope`, is bound, and its bindings there.
    pub(crate) fn lookup(&self, name: &str, scope: ScopeId) -> Option<(ScopeId, &[Binding<'a>])> {
        let mut at = Some(scope);
        while let Some(id) = at {
            let here = &self.scopes[id];
            if let Some(&outer) = here.outer.get(name) {
                return self.scopes[outer].bindings.get(name).map(|found| (outer, found.as_slice()));
            }
            // A class body's names are seen by the body itself only.
            if (id == scope || here.kind != ScopeKind::Class)
                && let Some(found) = here.bindings.get(name)
            {
                return Some((id, found));
            }
            at = here.parent;
        }
        None
    }

    /// Whether `scope` is `ancestor` or lies in it.
    pub(crate) fn within(&self, scope: ScopeId, ancestor: ScopeId) -> bool {
        let mut at = Some(scope);
        while let Some(id) = at {
            if id == ancestor {
                return true;
            }
            at = self.scopes[id].parent;
        }
        false
    }

    fn nearest_function(&self, mut id: ScopeId) -> Option<ScopeId> {
        while let Some(parent) = self.scopes[id].parent {
            if self.scopes[parent].kind == ScopeKind::Function {
                return Some(parent);
            }
            id = parent;
        }
        None
    }
}

impl Scope<'_> {
    fn new(kind: ScopeKind, parent: Option<ScopeId>) -> Self {
        Self { kind, parent, bindings: FxHashMap::default(), outer: FxHashMap::default() }
    }
}

/// What a [`Walker`] calls on its way.
pub(crate) trait Hooks<'a> {
    /// The scope that `node` opens inside `parent`.
    fn open(&mut self, node: TextRange, kind: ScopeKind, parent: ScopeId) -> ScopeId;
    fn close(&mut self) {}
    fn stmt(&mut self, _stmt: &'a Stmt, _scope: ScopeId) {}
    fn leave_stmt(&mut self, _stmt: &'a Stmt, _scope: ScopeId) {}
    fn expr(&mut self, _expr: &'a Expr, _scope: ScopeId) {}
    fn parameters(&mut self, _parameters: &'a Parameters, _scope: ScopeId) {}
    /// A name bound by an `except` clause or a pattern.
    fn bind_name(&mut self, _name: &'a ast::Identifier, _scope: ScopeId) {}
    /// Whether to leave a statement out.
    fn skip(&self, _stmt: &'a Stmt, _scope: ScopeId) -> bool {
        false
    }
}

/// Visits every node together with the scope in which it is evaluated.
pub(crate) struct Walker<H> {
    pub(crate) hooks: H,
    pub(crate) scope: ScopeId,
}

impl<'a, H: Hooks<'a>> Walker<H> {
    fn inside(&mut self, node: TextRange, kind: ScopeKind, visit: impl FnOnce(&mut Self)) {
        let outer = self.scope;
        self.scope = self.hooks.open(node, kind, outer);
        visit(self);
        self.hooks.close();
        self.scope = outer;
    }

    fn function(&mut self, def: &'a StmtFunctionDef) {
        for decorator in &def.decorator_list {
            self.visit_decorator(decorator);
        }
        walk_parameters(self, &def.parameters);
        if let Some(returns) = &def.returns {
            self.visit_annotation(returns);
        }
        self.inside(def.range(), ScopeKind::Function, |walker| {
            walker.hooks.parameters(&def.parameters, walker.scope);
            walker.visit_body(&def.body);
        });
    }

    fn class(&mut self, def: &'a StmtClassDef) {
        for decorator in &def.decorator_list {
            self.visit_decorator(decorator);
        }
        if let Some(arguments) = &def.arguments {
            self.visit_arguments(arguments);
        }
        self.inside(def.range(), ScopeKind::Class, |walker| walker.visit_body(&def.body));
    }

    fn comprehension(&mut self, node: TextRange, generators: &'a [Comprehension], elements: [Option<&'a Expr>; 2]) {
        if let Some(first) = generators.first() {
            self.visit_expr(&first.iter);
        }
        self.inside(node, ScopeKind::Function, |walker| {
            for (index, generator) in generators.iter().enumerate() {
                if index > 0 {
                    walker.visit_expr(&generator.iter);
                }
                walker.visit_expr(&generator.target);
                for test in &generator.ifs {
                    walker.visit_expr(test);
                }
            }
            for element in elements.into_iter().flatten() {
                walker.visit_expr(element);
            }
        });
    }
}

impl<'a, H: Hooks<'a>> Visitor<'a> for Walker<H> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        if self.hooks.skip(stmt, self.scope) {
            return;
        }
        self.hooks.stmt(stmt, self.scope);
        match stmt {
            Stmt::FunctionDef(def) => self.function(def),
            Stmt::ClassDef(def) => self.class(def),
            _ => walk_stmt(self, stmt),
        }
        self.hooks.leave_stmt(stmt, self.scope);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        self.hooks.expr(expr, self.scope);
        let node = expr.range();
        match expr {
            Expr::Lambda(lambda) => {
                if let Some(parameters) = &lambda.parameters {
                    walk_parameters(self, parameters);
                }
                self.inside(node, ScopeKind::Function, |walker| {
                    if let Some(parameters) = &lambda.parameters {
                        walker.hooks.parameters(parameters, walker.scope);
                    }
                    walker.visit_expr(&lambda.body);
                });
            }
            Expr::ListComp(comp) => self.comprehension(node, &comp.generators, [Some(&*comp.elt), None]),
            Expr::SetComp(comp) => self.comprehension(node, &comp.generators, [Some(&*comp.elt), None]),
            Expr::Generator(comp) => self.comprehension(node, &comp.generators, [Some(&*comp.elt), None]),
            Expr::DictComp(comp) => {
                self.comprehension(node, &comp.generators, [comp.key.as_deref(), Some(&*comp.value)]);
            }
            _ => walk_expr(self, expr),
        }
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(clause) = handler;
        if let Some(name) = &clause.name {
            self.hooks.bind_name(name, self.scope);
        }
        walk_except_handler(self, handler);
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        let name = match pattern {
            Pattern::MatchAs(pattern) => pattern.name.as_ref(),
            Pattern::MatchStar(pattern) => pattern.name.as_ref(),
            Pattern::MatchMapping(pattern) => pattern.rest.as_ref(),
            _ => None,
        };
        if let Some(name) = name {
            self.hooks.bind_name(name, self.scope);
        }
        walk_pattern(self, pattern);
    }
}

/// Records the bindings.
struct Builder<'a> {
    scopes: Scopes<'a>,
    /// Open compound statements of each open scope.
    inside: Vec<Vec<&'a Stmt>>,
    /// Offsets of names that are bound already as something better than `Other`.
    bound: FxHashSet<TextSize>,
    stmts: Vec<&'a Stmt>,
}

impl<'a> Builder<'a> {
    fn bind(&mut self, name: &'a str, at: TextSize, kind: BindingKind<'a>, scope: ScopeId) {
        let (scope, kind) = match self.scopes.scopes[scope].outer.get(name) {
            Some(&outer) => (outer, BindingKind::Other),
            None => (scope, kind),
        };
        let binding = Binding {
            kind,
            at,
            stmt: self.stmts.last().copied(),
            inside: self.inside.last().cloned().unwrap_or_default(),
        };
        self.scopes.scopes[scope].bindings.entry(name).or_default().push(binding);
    }

    /// Binds what can be told apart in an assignment; the rest becomes `Other` when its names are visited.
    fn assign(&mut self, target: &'a Expr, value: &'a Expr, scope: ScopeId) {
        match (target, value) {
            (Expr::Name(name), _) => {
                self.bound.insert(name.start());
                self.bind(&name.id, name.start(), BindingKind::Value(value), scope);
            }
            (Expr::Tuple(_) | Expr::List(_), Expr::Tuple(_) | Expr::List(_)) => {
                let (targets, values) = (elements(target), elements(value));
                let starred = targets.iter().chain(values).any(Expr::is_starred_expr);
                if targets.len() == values.len() && !starred {
                    for (target, value) in targets.iter().zip(values) {
                        self.assign(target, value, scope);
                    }
                }
            }
            _ => {}
        }
    }
}

/// The elements of a tuple or list display.
pub(crate) fn elements(expr: &Expr) -> &[Expr] {
    match expr {
        Expr::Tuple(tuple) => &tuple.elts,
        Expr::List(list) => &list.elts,
        _ => &[],
    }
}

fn is_compound(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::If(_) | Stmt::For(_) | Stmt::While(_) | Stmt::With(_) | Stmt::Try(_) | Stmt::Match(_))
}

impl<'a> Hooks<'a> for Builder<'a> {
    fn open(&mut self, node: TextRange, kind: ScopeKind, parent: ScopeId) -> ScopeId {
        let id = self.scopes.scopes.len();
        self.scopes.scopes.push(Scope::new(kind, Some(parent)));
        self.scopes.by_range.insert(node, id);
        self.inside.push(Vec::new());
        id
    }

    fn close(&mut self) {
        self.inside.pop();
    }

    fn skip(&self, stmt: &'a Stmt, scope: ScopeId) -> bool {
        is_main_guard(stmt, scope)
    }

    fn stmt(&mut self, stmt: &'a Stmt, scope: ScopeId) {
        self.stmts.push(stmt);
        match stmt {
            Stmt::Import(import) => {
                for alias in &import.names {
                    let full: &str = &alias.name;
                    let root = full.split('.').next().unwrap_or(full);
                    let (name, path) = alias.asname.as_ref().map_or((root, root), |asname| (asname.as_str(), full));
                    self.bind(name, alias.start(), BindingKind::Import { path: path.to_owned() }, scope);
                }
            }
            Stmt::ImportFrom(import) => {
                let module = import.module.as_ref().map_or("", |module| module.as_str());
                let dots = ".".repeat(import.level as usize);
                for alias in &import.names {
                    if &*alias.name == "*" {
                        self.scopes.stars.push(Star { module, stmt, at: alias.start() });
                        continue;
                    }
                    let path = format!("{dots}{module}.{}", alias.name);
                    let name = alias.asname.as_ref().unwrap_or(&alias.name);
                    self.bind(name, alias.start(), BindingKind::Import { path }, scope);
                }
            }
            Stmt::Assign(assign) => {
                for target in &assign.targets {
                    self.assign(target, &assign.value, scope);
                }
            }
            Stmt::AnnAssign(assign) => {
                if let Some(value) = &assign.value {
                    self.assign(&assign.target, value, scope);
                } else if let Expr::Name(name) = &*assign.target {
                    // A bare annotation binds nothing.
                    self.bound.insert(name.start());
                }
            }
            Stmt::For(stmt) => {
                if let (Expr::Name(name), values) = (&*stmt.target, elements(&stmt.iter))
                    && !values.is_empty()
                {
                    self.bound.insert(name.start());
                    for value in values {
                        self.bind(&name.id, name.start(), BindingKind::Element(value), scope);
                    }
                }
            }
            Stmt::FunctionDef(def) => self.bind(&def.name, def.name.start(), BindingKind::Function(def), scope),
            Stmt::ClassDef(def) => self.bind(&def.name, def.name.start(), BindingKind::Class, scope),
            Stmt::Global(global) => {
                for name in &global.names {
                    self.scopes.scopes[scope].outer.insert(name, MODULE);
                }
            }
            Stmt::Nonlocal(nonlocal) => {
                for name in &nonlocal.names {
                    let from = self.scopes.nearest_function(scope).unwrap_or(MODULE);
                    let outer = self.scopes.lookup(name, from).map_or(from, |(outer, _)| outer);
                    self.scopes.scopes[scope].outer.insert(name, outer);
                }
            }
            _ => {}
        }
        if is_compound(stmt)
            && let Some(inside) = self.inside.last_mut()
        {
            inside.push(stmt);
        }
    }

    fn leave_stmt(&mut self, stmt: &'a Stmt, _scope: ScopeId) {
        self.stmts.pop();
        if is_compound(stmt)
            && let Some(inside) = self.inside.last_mut()
        {
            inside.pop();
        }
    }

    fn expr(&mut self, expr: &'a Expr, scope: ScopeId) {
        if let Expr::Name(name) = expr
            && matches!(name.ctx, ExprContext::Store | ExprContext::Del)
            && !self.bound.contains(&name.start())
        {
            self.bind(&name.id, name.start(), BindingKind::Other, scope);
        }
    }

    fn parameters(&mut self, parameters: &'a Parameters, scope: ScopeId) {
        for parameter in parameters {
            self.bind(parameter.name(), parameter.name().start(), BindingKind::Parameter, scope);
        }
    }

    fn bind_name(&mut self, name: &'a ast::Identifier, scope: ScopeId) {
        self.bind(name, name.start(), BindingKind::Other, scope);
    }
}

/// `if __name__ == "__main__":` of a module: never true where a candidate is imported.
pub(crate) fn is_main_guard(stmt: &Stmt, scope: ScopeId) -> bool {
    let Stmt::If(branch) = stmt else { return false };
    let Expr::Compare(test) = &*branch.test else { return false };
    let is_name = |expr: &Expr| matches!(expr, Expr::Name(name) if &*name.id == "__name__");
    let is_main = |expr: &Expr| matches!(expr, Expr::StringLiteral(text) if text.value.to_str() == "__main__");
    let (left, [right]) = (&*test.left, &*test.comparators) else { return false };
    scope == MODULE
        && branch.elif_else_clauses.is_empty()
        && matches!(&*test.ops, [ast::CmpOp::Eq])
        && ((is_name(left) && is_main(right)) || (is_main(left) && is_name(right)))
}
