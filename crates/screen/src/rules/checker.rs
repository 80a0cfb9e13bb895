//! Walks a file once and asks the rules.

use rustc_hash::FxHashSet;

use ruff_python_ast::visitor::Visitor;
use ruff_python_ast::{self as ast, ExceptHandler, Expr, ExprCall, ExprContext, ModModule, Stmt, StmtTry};
use ruff_text_size::{Ranged, TextRange, TextSize};
use tilewright_contract::{Finding, Tier};

use super::{
    PATH_RULES, Rule, advice, allowed_names, any_covers, below_any, call_counter, class_machinery, format_attribute,
    global_state, import_not_allowed, indirect_attribute, introspection, kernel_attribute, kernel_name, may_cover,
    no_triton_kernel, overrides_operator, patched_module, precision_flag, process_control, reads_environment,
    result_cache, sniffs_identity, sniffs_text, sniffs_type, tensor_subclass, torch_compute, work_at_import,
};
use crate::cut::Discovered;
use crate::names::Names;
use crate::scope::{BindingKind, Hooks, MODULE, ScopeId, ScopeKind, Scopes, Walker, elements, is_main_guard};
use crate::source::Source;

/// Methods of a namespace that change it.
const DICT_CHANGES: [&str; 7] = ["update", "setdefault", "pop", "popitem", "clear", "__setitem__", "__delitem__"];

/// How the environment variables begin that torch, Triton, the compilers below them and the driver read.
const FRAMEWORKS: [&str; 11] =
    ["TRITON", "TORCH", "PYTORCH", "CUDA", "NVIDIA", "CUBLAS", "CUDNN", "NCCL", "MLIR", "LLVM", "PYTHON"];

pub(crate) fn check<'a>(
    module: &'a ModModule,
    source: &Source,
    scopes: &Scopes<'a>,
    names: &Names<'_, 'a>,
    found: &Discovered<'a>,
) -> Vec<Finding> {
    let mut used = Used(FxHashSet::default());
    used.visit_body(&module.body);
    let checker = Checker {
        source,
        scopes,
        names,
        found,
        used: used.0,
        guards: Vec::new(),
        inner: FxHashSet::default(),
        called: FxHashSet::default(),
        plain: FxHashSet::default(),
        quiet_until: TextSize::new(0),
        kernel: TextRange::default(),
        init: TextRange::default(),
        loops: TextRange::default(),
        seen: FxHashSet::default(),
        findings: Vec::new(),
    };
    let mut walker = Walker { hooks: checker, scope: MODULE };
    walker.visit_body(&module.body);
    let mut checker = walker.hooks;
    if found.jitted.is_empty() && found.strange.is_empty() {
        let message = "the file has no Triton kernel: no function is decorated with `triton.jit`";
        checker.report(&no_triton_kernel::RULE, None, message.to_owned());
    }
    checker.findings.extend(advice::advise(module, source, scopes, names, found));
    checker.findings
}

/// All names that are read anywhere.
struct Used<'a>(FxHashSet<&'a str>);

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

/// What the rules see, and where they report.
pub(super) struct Checker<'s, 'a> {
    source: &'s Source,
    pub(super) scopes: &'s Scopes<'a>,
    pub(super) names: &'s Names<'s, 'a>,
    found: &'s Discovered<'a>,
    used: FxHashSet<&'a str>,
    /// Ranges of open `try` bodies whose handlers expect a failing import.
    guards: Vec<TextRange>,
    /// Expressions that are the base of an attribute already looked at.
    inner: FxHashSet<TextRange>,
    /// Callees of calls already looked at.
    called: FxHashSet<TextRange>,
    /// Parameters, by the offset of their name, that are no tensors as far as annotation and default tell.
    plain: FxHashSet<TextSize>,
    /// End of the `raise`, `assert` or logging call that is being visited: there, tensors may be turned into text.
    quiet_until: TextSize,
    /// Body of the jit function that was entered last.
    kernel: TextRange,
    /// The `__init__` that was entered last.
    init: TextRange,
    /// The loop at module level that was entered last.
    loops: TextRange,
    /// One finding a rule and line.
    seen: FxHashSet<(&'static str, u32)>,
    findings: Vec<Finding>,
}

impl<'a> Checker<'_, 'a> {
    pub(super) fn report(&mut self, rule: &Rule, at: Option<TextSize>, message: String) {
        self.report_as(rule, rule.tier, at, message);
    }

    pub(super) fn report_as(&mut self, rule: &Rule, tier: Tier, at: Option<TextSize>, message: String) {
        let (line, column) = at.map_or((0, 0), |at| (self.source.line(at), self.source.column(at)));
        if self.seen.insert((rule.id, line)) {
            let help = Some(rule.help.to_owned());
            self.findings.push(Finding { rule: rule.id.to_owned(), tier, message, line, column, help });
        }
    }

    /// Turns the finding of a rule on a line into one that refuses.
    fn harden(&mut self, rule: &Rule, at: TextSize) {
        let line = self.source.line(at);
        let told = self.findings.iter_mut().rev().find(|found| found.line == line && found.rule == rule.id);
        if let Some(finding) = told {
            finding.tier = Tier::Proof;
        }
    }

    /// Whether `at` lies in a `raise`, an `assert` or a warning: text for people.
    pub(super) fn is_quiet(&self, at: TextSize) -> bool {
        at < self.quiet_until
    }

    /// Whether code of `scope` runs when a function is called.
    pub(super) fn in_function(&self, scope: ScopeId) -> bool {
        let mut at = Some(scope);
        while let Some(id) = at {
            let here = self.scopes.get(id);
            if here.kind == ScopeKind::Function {
                return true;
            }
            at = here.parent;
        }
        false
    }

    /// Whether `name` is a jit function of the file.
    pub(super) fn is_kernel(&self, name: &str, scope: ScopeId) -> bool {
        self.scopes.lookup(name, scope).is_some_and(|(_, bindings)| {
            bindings.iter().any(|binding| match binding.kind {
                BindingKind::Function(def) => self.found.jitted.contains_key(&def.range()),
                _ => false,
            })
        })
    }

    /// Whether `at` lies in a loop at module level.
    pub(super) fn in_loop(&self, at: TextSize) -> bool {
        self.loops.contains(at)
    }

    /// Whether `name`, used in `scope`, is bound by the function around it.
    pub(super) fn is_local(&self, name: &str, scope: ScopeId) -> bool {
        let home = self.scopes.lookup(name, scope).map(|(home, _)| home);
        home.is_some_and(|home| self.scopes.get(home).kind == ScopeKind::Function)
    }

    /// Whether `name` is declared `global` in `scope`, or `nonlocal` of a function that is no method: the local of a
    /// method ends with its call.
    pub(super) fn is_declared_outer(&self, name: &str, scope: ScopeId) -> bool {
        self.scopes.lookup(name, scope).is_some_and(|(home, _)| {
            let around = self.scopes.get(home).parent;
            home != scope && around.is_none_or(|around| self.scopes.get(around).kind != ScopeKind::Class)
        })
    }

    /// Whether a parameter whose name stands at `at` is no tensor as far as its annotation and default tell.
    pub(super) fn is_plain(&self, at: TextSize) -> bool {
        self.plain.contains(&at)
    }

    /// Reports what the rules that go by path say. Whether one of them refuses the file.
    fn path(&mut self, path: &str, at: TextSize) -> bool {
        if !may_cover(path) {
            return false;
        }
        let mut refused = false;
        // A module by its bare name does nothing yet.
        let bare = !path.contains('.');
        for rule in PATH_RULES {
            if rule.covers(path) && !(bare && rule.rule.tier != Tier::Proof) {
                let shown = path.strip_prefix("builtins.").unwrap_or(path);
                self.report(&rule.rule, Some(at), format!("`{shown}` {}", rule.what));
                refused |= rule.rule.tier == Tier::Proof;
            }
        }
        refused
    }

    /// `module` is what has to be loaded, `paths` are the things that get a name.
    fn import(&mut self, module: &str, paths: &[String], name: Option<&str>, at: TextSize) {
        // `os` and `sys` as such are harmless; their parts are judged where they are used.
        if matches!(module, "os" | "sys") && paths.iter().all(|path| path == module) {
            return;
        }
        let allowed = import_not_allowed::is_allowed(module);
        let mut covered = false;
        for path in paths {
            // What is evidence only would say less than that the module is not allowed.
            if allowed || PATH_RULES.iter().any(|rule| rule.rule.tier == Tier::Proof && rule.covers(path)) {
                covered |= self.path(path, at);
                allowed_names::path(self, path, at);
            }
        }
        if covered || allowed {
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
                if self.names.is(&subscript.value, scope, &["os.environ"]) {
                    self.sets_environment(Some(&subscript.slice), scope, target.start());
                }
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

    /// The environment is changed: refused in functions, and where the variable is one that torch, Triton or CUDA read.
    fn sets_environment(&mut self, variable: Option<&Expr>, scope: ScopeId, at: TextSize) {
        let name = variable.and_then(|name| self.names.string(name, scope));
        let read = name.as_deref().is_none_or(|name| FRAMEWORKS.iter().any(|prefix| name.starts_with(prefix)));
        let tier = if read || self.in_function(scope) { Tier::Proof } else { Tier::Evidence };
        let message = format!("the environment variable `{}` is changed", name.as_deref().unwrap_or("…"));
        self.report_as(&global_state::RULE.rule, tier, Some(at), message);
    }

    /// Notes which parameters are no tensors: those of `__init__`, and those with another annotation or default.
    fn parameters_of(&mut self, def: &ast::StmtFunctionDef) {
        for parameter in &*def.parameters {
            let annotated =
                parameter.annotation().is_some_and(|kind| !self.source.slice(kind.range()).contains("Tensor"));
            let default =
                parameter.default().is_some_and(|value| value.is_literal_expr() && !value.is_none_literal_expr());
            let name = parameter.name();
            if annotated || default || &*def.name == "__init__" || matches!(name.as_str(), "self" | "cls" | "ctx") {
                self.plain.insert(name.start());
            }
        }
    }

    fn function(&mut self, def: &'a ast::StmtFunctionDef, scope: ScopeId) {
        if self.found.jitted.contains_key(&def.range())
            && let (Some(first), Some(last)) = (def.body.first(), def.body.last())
        {
            self.kernel = TextRange::new(first.start(), last.end());
        }
        if tensor_subclass::HOOKS.contains(&&*def.name) {
            let message = format!("`{}` changes what operations on tensors mean", def.name);
            self.report(&tensor_subclass::RULE, Some(def.name.start()), message);
        }
        if &*def.name == "__init__" {
            self.init = def.range();
        }
        self.parameters_of(def);
        class_machinery::function(self, def, scope);
        result_cache::function(self, def, scope);
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
        let mut found = self.names.paths(expr, scope).to_vec();
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
        for callee in callees.iter() {
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
                "os.environ.setdefault"
                | "os.environ.pop"
                | "os.putenv"
                | "os.unsetenv"
                | "os.environ.__setitem__"
                | "os.environ.__delitem__" => self.sets_environment(first, scope, at),
                "os.environ.update" | "os.environ.clear" | "os.environ.popitem" => {
                    self.sets_environment(None, scope, at);
                }
                path if precision_flag::is_call(path) => {
                    let message = format!("`{path}` changes a setting of the process");
                    // Weights may be drawn under a seed; what `forward` seeds is the next input.
                    let again = precision_flag::is_seed(path) && self.in_function(scope) && !self.init.contains(at);
                    let rule = if again { &global_state::RULE.rule } else { &precision_flag::RULE };
                    self.report(rule, Some(at), message);
                }
                path if torch_compute::is_compute(path) && !any_covers(path) => {
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
                    let path = crate::names::canonical(&format!("{module}.{}", alias.name)).into_owned();
                    let name = (!star).then(|| alias.asname.as_ref().unwrap_or(&alias.name).as_str());
                    self.import(module, &[path], name, alias.start());
                }
            }
            Stmt::Try(guard) if expects_import_error(guard) => {
                if let (Some(first), Some(last)) = (guard.body.first(), guard.body.last()) {
                    self.guards.push(TextRange::new(first.start(), last.end()));
                }
            }
            Stmt::ClassDef(class) => {
                self.class(class, scope);
                class_machinery::class(self, class, scope);
            }
            Stmt::FunctionDef(def) => self.function(def, scope),
            Stmt::For(_) | Stmt::While(_) if !self.loops.contains(stmt.start()) && scope == MODULE => {
                self.loops = stmt.range();
            }
            Stmt::Raise(_) | Stmt::Assert(_) => self.quiet_until = stmt.end(),
            Stmt::AugAssign(assign) => call_counter::stmt(self, assign, scope),
            _ => {}
        }
    }

    fn expr(&mut self, expr: &'a Expr, scope: ScopeId) {
        if let Expr::Attribute(attribute) = expr {
            self.inner.insert(attribute.value.range());
            introspection::attribute(self, attribute);
        }
        if let Expr::Call(call) = expr {
            self.called.insert(call.func.range());
            self.call(call, scope);
        }
        if !self.kernel.contains(expr.start()) {
            self.host(expr, scope);
        }
        if matches!(expr, Expr::Attribute(_) | Expr::Call(_) | Expr::Name(_) | Expr::Subscript(_)) {
            self.named(expr, scope);
        }
    }
}

impl<'a> Checker<'_, 'a> {
    /// An expression of host code.
    fn host(&mut self, expr: &'a Expr, scope: ScopeId) {
        match expr {
            Expr::Call(call) => {
                if sniffs_text::is_talk(self, call, scope) {
                    self.quiet_until = self.quiet_until.max(call.end());
                }
                indirect_attribute::call(self, call, scope);
                format_attribute::call(self, call, scope);
                overrides_operator::call(self, call, scope);
                work_at_import::call(self, call, scope);
                sniffs_identity::call(self, call, scope);
                sniffs_text::call(self, call, scope);
                sniffs_type::call(self, call, scope);
            }
            Expr::Attribute(attribute) => {
                class_machinery::attribute(self, attribute, scope);
                kernel_attribute::attribute(self, attribute, scope);
                sniffs_identity::attribute(self, attribute);
                sniffs_type::attribute(self, attribute, scope);
            }
            Expr::FString(text) => sniffs_text::fstring(self, text, scope),
            Expr::BinOp(operation) => {
                sniffs_text::percent(self, operation, scope);
                sniffs_identity::operation(self, operation);
            }
            Expr::Compare(test) => {
                sniffs_type::compare(self, test);
                sniffs_identity::key(self, expr);
            }
            Expr::Subscript(_) | Expr::Dict(_) | Expr::Set(_) => sniffs_identity::key(self, expr),
            _ => {}
        }
    }

    /// Something that may be imported or built in, named in full.
    fn named(&mut self, expr: &'a Expr, scope: ScopeId) {
        let stored = match expr {
            Expr::Name(name) => name.ctx != ExprContext::Load,
            Expr::Attribute(attribute) => attribute.ctx != ExprContext::Load,
            Expr::Subscript(subscript) => subscript.ctx != ExprContext::Load,
            _ => false,
        };
        if stored || self.inner.contains(&expr.range()) {
            return;
        }
        let called = self.called.contains(&expr.range());
        let paths = self.names.paths(expr, scope);
        // A name that the file does not bind may come from a star import, but then it may be anything.
        let guessed = paths.iter().any(|path| path.starts_with("builtins."));
        for path in paths.iter() {
            // A module of the system that is handed around, rather than one of its parts.
            if matches!(path.as_str(), "os" | "sys") {
                let message = format!("the module `{path}` is passed around as a value");
                self.report(&process_control::RULE.rule, Some(expr.start()), message);
            } else {
                self.path(path, expr.start());
                if !guessed {
                    allowed_names::path(self, path, expr.start());
                }
                if self.in_function(scope) && reads_environment::RULE.covers(path) {
                    self.harden(&reads_environment::RULE.rule, expr.start());
                }
                sniffs_type::path(self, path, expr.start());
                if self.kernel.contains(expr.start()) {
                    kernel_name::path(self, path, guessed, expr.start());
                }
                let value = !called && !guessed && !expr.is_call_expr() && !any_covers(path);
                if value && torch_compute::is_compute_value(path) {
                    let message = format!("`{path}` looks like computing with torch, and is handed around as a value");
                    self.report(&torch_compute::RULE, Some(expr.start()), message);
                }
            }
        }
    }
}
