//! Walks a file once and asks the rules.

use std::collections::HashSet;

use ruff_python_ast::visitor::Visitor;
use ruff_python_ast::{self as ast, ExceptHandler, Expr, ExprCall, ExprContext, ModModule, Stmt, StmtTry};
use ruff_text_size::{Ranged, TextRange, TextSize};
use tilewright_contract::{Finding, Tier};

use super::{
    PATH_RULES, Rule, below_any, global_state, import_not_allowed, introspection, no_triton_kernel, patched_module,
    precision_flag, process_control, tensor_subclass, torch_compute,
};
use crate::cut::Discovered;
use crate::names::Names;
use crate::scope::{BindingKind, Hooks, MODULE, ScopeId, ScopeKind, Scopes, Walker, elements, is_main_guard};
use crate::source::Source;

/// Attributes that lead into frames, code and namespaces.
const INNER_ATTRIBUTES: [&str; 22] = [
    "__globals__",
    "__code__",
    "__closure__",
    "__subclasses__",
    "__builtins__",
    "__defaults__",
    "__kwdefaults__",
    "__loader__",
    "__getattribute__",
    "__self__",
    "f_locals",
    "f_globals",
    "f_back",
    "f_code",
    "f_builtins",
    "tb_frame",
    "gi_frame",
    "gi_code",
    "cr_frame",
    "ag_frame",
    "cell_contents",
    "_unsafe_update_src",
];

/// Methods of a namespace that change it.
const DICT_CHANGES: [&str; 7] = ["update", "setdefault", "pop", "popitem", "clear", "__setitem__", "__delitem__"];

pub(crate) fn check<'a>(
    module: &'a ModModule,
    source: &Source,
    scopes: &Scopes<'a>,
    names: &Names<'_, 'a>,
    found: &Discovered<'a>,
) -> Vec<Finding> {
    let mut used = Used(HashSet::new());
    used.visit_body(&module.body);
    let checker = Checker {
        source,
        scopes,
        names,
        found,
        used: used.0,
        guards: Vec::new(),
        inner: HashSet::new(),
        seen: HashSet::new(),
        findings: Vec::new(),
    };
    let mut walker = Walker { hooks: checker, scope: MODULE };
    walker.visit_body(&module.body);
    let mut checker = walker.hooks;
    if found.jitted.is_empty() && found.strange.is_empty() {
        let message = "the file has no Triton kernel: no function is decorated with `triton.jit`";
        checker.report(&no_triton_kernel::RULE, None, message.to_owned());
    }
    checker.findings
}

/// All names that are read anywhere.
struct Used<'a>(HashSet<&'a str>);

impl<'a> Visitor<'a> for Used<'a> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Name(name) = expr
            && name.ctx == ExprContext::Load
        {
            self.0.insert(&name.id);
        }
        ast::visitor::walk_expr(self, expr);
    }
}

struct Checker<'s, 'a> {
    source: &'s Source,
    scopes: &'s Scopes<'a>,
    names: &'s Names<'s, 'a>,
    found: &'s Discovered<'a>,
    used: HashSet<&'a str>,
    /// Ranges of open `try` bodies whose handlers expect a failing import.
    guards: Vec<TextRange>,
    /// Expressions that are the base of an attribute already looked at.
    inner: HashSet<TextRange>,
    /// One finding a rule and line.
    seen: HashSet<(&'static str, u32)>,
    findings: Vec<Finding>,
}

impl<'a> Checker<'_, 'a> {
    fn report(&mut self, rule: &Rule, at: Option<TextSize>, message: String) {
        self.report_as(rule, rule.tier, at, message);
    }

    fn report_as(&mut self, rule: &Rule, tier: Tier, at: Option<TextSize>, message: String) {
        let (line, column) = at.map_or((0, 0), |at| (self.source.line(at), self.source.column(at)));
        if self.seen.insert((rule.id, line)) {
            let help = Some(rule.help.to_owned());
            self.findings.push(Finding { rule: rule.id.to_owned(), tier, message, line, column, help });
        }
    }

    /// Whether a rule that goes by path covers it; reports it.
    fn path(&mut self, path: &str, at: TextSize) -> bool {
        let mut any = false;
        for rule in PATH_RULES {
            if rule.covers(path) {
                let shown = path.strip_prefix("builtins.").unwrap_or(path);
                self.report(&rule.rule, Some(at), format!("`{shown}` {}", rule.what));
                any = true;
            }
        }
        any
    }

    /// `module` is what has to be loaded, `paths` are the things that get a name.
    fn import(&mut self, module: &str, paths: &[String], name: Option<&str>, at: TextSize) {
        // `os` and `sys` as such are harmless; their parts are judged where they are used.
        if matches!(module, "os" | "sys") && paths.iter().all(|path| path == module) {
            return;
        }
        let mut covered = false;
        for path in paths {
            covered |= self.path(path, at);
        }
        if covered || import_not_allowed::is_allowed(module) {
            return;
        }
        let guarded = self.guards.iter().any(|guard| guard.contains(at));
        let used = name.is_none_or(|name| self.used.contains(name));
        let (tier, suffix) = match (used, guarded) {
            (true, false) => (Tier::Proof, ""),
            (true, true) => (Tier::Evidence, " (a fallback stands beside it)"),
            (false, _) => (Tier::Evidence, " (it is not used)"),
        };
        let shown = if module.is_empty() { "a module beside the file" } else { module };
        let message = format!("`{shown}` is not on the list of modules that a candidate may import{suffix}");
        self.report_as(&import_not_allowed::RULE, tier, Some(at), message);
    }

    /// `target` gets a value, or is deleted.
    fn target(&mut self, target: &'a Expr, scope: ScopeId) {
        match target {
            Expr::Tuple(_) | Expr::List(_) => {
                for element in elements(target) {
                    self.target(element, scope);
                }
            }
            Expr::Starred(starred) => self.target(&starred.value, scope),
            Expr::Attribute(attribute) => {
                for base in self.patchable(&attribute.value, scope) {
                    self.patch(&base, &attribute.attr, target.start());
                }
            }
            Expr::Subscript(subscript) => {
                if let Some(space) = self.foreign_namespace(&subscript.value, scope) {
                    self.patch(&space, "…", target.start());
                }
            }
            Expr::Name(name) if &*name.id == "__name__" => {
                self.patch("this module", "__name__", target.start());
            }
            _ => {}
        }
    }

    /// Assignment to `base.attr`.
    fn patch(&mut self, base: &str, attr: &str, at: TextSize) {
        if precision_flag::is_flag(base, attr) {
            self.report(&precision_flag::RULE, Some(at), format!("`{base}.{attr}` is set"));
        } else if below_any(base, &["torch.backends"]) {
            let message = format!("`{base}.{attr}` {}", global_state::RULE.what);
            self.report(&global_state::RULE.rule, Some(at), message);
        } else {
            self.report(&patched_module::RULE, Some(at), format!("`{base}.{attr}` is replaced"));
        }
    }

    /// What `expr` is if it is imported or a kernel: nothing that a candidate may change.
    fn patchable(&self, expr: &Expr, scope: ScopeId) -> Vec<String> {
        let mut found = self.names.paths(expr, scope);
        // Names that the file does not bind are no modules.
        found.retain(|path| !path.starts_with("builtins."));
        if let Expr::Name(name) = expr
            && let Some((_, bindings)) = self.scopes.lookup(&name.id, scope)
        {
            let kernel = bindings.iter().any(|binding| match binding.kind {
                BindingKind::Function(def) => self.found.jitted.contains_key(&def.range()),
                _ => false,
            });
            found.extend(kernel.then(|| name.id.to_string()));
        }
        found
    }

    /// What the namespace `expr` belongs to, if it is one that a candidate may not change.
    fn foreign_namespace(&self, expr: &Expr, scope: ScopeId) -> Option<String> {
        if let Expr::Call(call) = expr
            && self.names.is_builtin(&call.func, "globals", scope)
        {
            return Some("globals()".to_owned());
        }
        self.patchable(self.names.namespace_of(expr, scope)?, scope).into_iter().next()
    }

    fn call(&mut self, call: &'a ExprCall, scope: ScopeId) {
        let at = call.start();
        let callees = self.names.paths(&call.func, scope);
        let first = call.arguments.args.first();
        for callee in &callees {
            match callee.as_str() {
                "builtins.setattr"
                | "builtins.delattr"
                | "builtins.object.__setattr__"
                | "builtins.type.__setattr__"
                | "builtins.object.__delattr__" => {
                    let attr = call.arguments.args.get(1).and_then(|name| self.names.string(name, scope));
                    for base in first.map_or(Vec::new(), |first| self.patchable(first, scope)) {
                        self.patch(&base, attr.as_deref().unwrap_or("…"), at);
                    }
                }
                "builtins.getattr" => {
                    let attr = call.arguments.args.get(1).and_then(|name| self.names.string(name, scope));
                    if let Some(attr) = attr.filter(|attr| INNER_ATTRIBUTES.contains(&attr.as_str())) {
                        self.inner_attribute(&attr, at);
                    }
                }
                path if precision_flag::is_call(path) => {
                    self.report(&precision_flag::RULE, Some(at), format!("`{path}` changes a setting of the process"));
                }
                path if torch_compute::is_compute(path) && !PATH_RULES.iter().any(|rule| rule.covers(path)) => {
                    let message = format!("`{path}` looks like computing with torch");
                    self.report(&torch_compute::RULE, Some(at), message);
                }
                _ => {}
            }
        }
        if let Expr::Attribute(method) = &*call.func {
            if DICT_CHANGES.contains(&method.attr.as_str())
                && let Some(space) = self.foreign_namespace(&method.value, scope)
            {
                self.patch(&space, "…", at);
            }
            if matches!(&*method.attr, "__setattr__" | "__delattr__") {
                for base in self.patchable(&method.value, scope) {
                    self.patch(&base, "…", at);
                }
            }
        }
    }

    fn inner_attribute(&mut self, attr: &str, at: TextSize) {
        let message = format!("`{attr}` {}", introspection::RULE.what);
        self.report(&introspection::RULE.rule, Some(at), message);
    }

    fn class(&mut self, class: &'a ast::StmtClassDef, scope: ScopeId) {
        for base in class.bases() {
            if self.names.is(base, scope, &tensor_subclass::BASES) {
                let message = format!("class `{}` is a kind of tensor or dispatch mode", class.name);
                self.report(&tensor_subclass::RULE, Some(base.start()), message);
            }
        }
    }
}

/// Whether a handler of `guard` catches a failing import.
fn expects_import_error(guard: &StmtTry) -> bool {
    guard.handlers.iter().any(|handler| {
        let ExceptHandler::ExceptHandler(handler) = handler;
        let Some(kind) = handler.type_.as_deref() else { return true };
        let kinds = if elements(kind).is_empty() { std::slice::from_ref(kind) } else { elements(kind) };
        kinds.iter().any(|kind| {
            matches!(kind, Expr::Name(name)
                if matches!(&*name.id, "ImportError" | "ModuleNotFoundError" | "Exception" | "BaseException"))
        })
    })
}

/// The expressions to which a statement gives a value.
fn targets(stmt: &Stmt) -> Vec<&Expr> {
    match stmt {
        Stmt::Assign(assign) => assign.targets.iter().collect(),
        Stmt::AugAssign(assign) => vec![&assign.target],
        Stmt::AnnAssign(assign) if assign.value.is_some() => vec![&assign.target],
        Stmt::Delete(delete) => delete.targets.iter().collect(),
        Stmt::For(stmt) => vec![&stmt.target],
        Stmt::With(with) => with.items.iter().filter_map(|item| item.optional_vars.as_deref()).collect(),
        _ => Vec::new(),
    }
}

impl<'a> Hooks<'a> for Checker<'_, 'a> {
    fn open(&mut self, node: TextRange, _: ScopeKind, _: ScopeId) -> ScopeId {
        self.scopes.opened_by(node)
    }

    fn skip(&self, stmt: &'a Stmt, scope: ScopeId) -> bool {
        is_main_guard(stmt, scope)
    }

    fn stmt(&mut self, stmt: &'a Stmt, scope: ScopeId) {
        for target in targets(stmt) {
            self.target(target, scope);
        }
        match stmt {
            Stmt::Import(import) => {
                for alias in &import.names {
                    let module: &str = &alias.name;
                    let root = module.split('.').next().unwrap_or(module);
                    let name = alias.asname.as_ref().map_or(root, |asname| asname.as_str());
                    self.import(module, &[module.to_owned()], Some(name), alias.start());
                }
            }
            Stmt::ImportFrom(import) => {
                let module = import.module.as_ref().map_or("", |module| module.as_str());
                let module = if import.level > 0 { "" } else { module };
                for alias in &import.names {
                    let star = &*alias.name == "*";
                    let path = crate::names::canonical(&format!("{module}.{}", alias.name));
                    let name = (!star).then(|| alias.asname.as_ref().unwrap_or(&alias.name).as_str());
                    self.import(module, &[path], name, alias.start());
                }
            }
            Stmt::Try(guard) if expects_import_error(guard) => {
                if let (Some(first), Some(last)) = (guard.body.first(), guard.body.last()) {
                    self.guards.push(TextRange::new(first.start(), last.end()));
                }
            }
            Stmt::ClassDef(class) => self.class(class, scope),
            Stmt::FunctionDef(def) if tensor_subclass::HOOKS.contains(&&*def.name) => {
                let message = format!("`{}` changes what operations on tensors mean", def.name);
                self.report(&tensor_subclass::RULE, Some(def.name.start()), message);
            }
            _ => {}
        }
    }

    fn expr(&mut self, expr: &'a Expr, scope: ScopeId) {
        match expr {
            Expr::Attribute(attribute) => {
                self.inner.insert(attribute.value.range());
                if INNER_ATTRIBUTES.contains(&&*attribute.attr) {
                    self.inner_attribute(&attribute.attr, attribute.attr.start());
                }
            }
            Expr::Call(call) => self.call(call, scope),
            Expr::Name(_) | Expr::Subscript(_) => {}
            _ => return,
        }
        let stored = match expr {
            Expr::Name(name) => name.ctx != ExprContext::Load,
            Expr::Attribute(attribute) => attribute.ctx != ExprContext::Load,
            _ => false,
        };
        if stored || self.inner.contains(&expr.range()) {
            return;
        }
        for path in self.names.paths(expr, scope) {
            // A module of the system that is handed around, rather than one of its parts.
            if matches!(path.as_str(), "os" | "sys") {
                let message = format!("the module `{path}` is passed around as a value");
                self.report(&process_control::RULE.rule, Some(expr.start()), message);
            } else {
                self.path(&path, expr.start());
            }
        }
    }
}
