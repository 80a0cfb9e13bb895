//! Statements: what they bind, and how the places after them are reached.

use ruff_python_ast::{
    Decorator, ExceptHandler, Expr, Pattern, Stmt, StmtClassDef, StmtFor, StmtFunctionDef, StmtIf, StmtMatch, StmtTry,
    StmtWhile, StmtWith,
};
use ruff_text_size::Ranged;

use super::args::Args;
use super::arms::Clause;
use super::call::Back;
use super::engine::{Body, Engine, Kind, MAIN, ObjectKind};
use super::value::{Effect, Guard, STATE, Set, Value};
use crate::scope::is_main_guard;

/// How a block may be left early, and how the places where that happens are reached.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Exits {
    /// Out of the function.
    function: Guard,
    /// Out of the innermost loop, or to its next turn.
    turn: Guard,
}

impl Exits {
    fn join(&mut self, other: Self) {
        self.function = self.function.max(other.function);
        self.turn = self.turn.max(other.turn);
    }

    fn any(self) -> Guard {
        self.function.max(self.turn)
    }
}

impl<'a> Engine<'_, 'a> {
    pub(super) fn block(&mut self, stmts: &'a [Stmt]) -> Exits {
        let before = self.guard;
        let mut exits = Exits::default();
        for stmt in stmts {
            let exit = self.stmt(stmt);
            exits.join(exit);
            // What follows an early exit runs only where that was not taken.
            self.guard = self.guard.max(exit.any());
        }
        self.guard = before;
        exits
    }

    fn stmt(&mut self, stmt: &'a Stmt) -> Exits {
        match stmt {
            Stmt::Expr(stmt) => {
                self.expr(&stmt.value);
            }
            Stmt::Assign(assign) => {
                let set = self.expr(&assign.value);
                for target in &assign.targets {
                    self.assign(target, &set);
                }
            }
            Stmt::AnnAssign(assign) => {
                if let Some(value) = &assign.value {
                    let set = self.expr(value);
                    self.assign(&assign.target, &set);
                }
            }
            Stmt::AugAssign(assign) => {
                let left = self.expr(&assign.target);
                let right = self.expr(&assign.value);
                let set = match (assign.op, left.values()) {
                    (ruff_python_ast::Operator::Add, &[Value::Object(object)]) => {
                        self.pour(object, &right);
                        left
                    }
                    _ => self.arithmetic(&[&left, &right], stmt.range()),
                };
                self.assign(&assign.target, &set);
            }
            Stmt::Return(give) => {
                let set = give.value.as_deref().map_or_else(Set::plain, |value| self.expr(value));
                self.touch_result(&set);
                self.give(set);
                return Exits { function: self.guard, turn: Guard::Never };
            }
            Stmt::Break(_) | Stmt::Continue(_) => return Exits { function: Guard::Never, turn: self.guard },
            Stmt::If(_) if is_main_guard(stmt, self.scope) => {}
            Stmt::If(branch) => return self.branch(branch),
            Stmt::For(stmt) => return self.for_loop(stmt),
            Stmt::While(stmt) => return self.while_loop(stmt),
            Stmt::Try(stmt) => return self.try_block(stmt),
            Stmt::With(stmt) => return self.with(stmt),
            Stmt::Match(stmt) => return self.match_block(stmt),
            Stmt::FunctionDef(def) => self.define(def),
            Stmt::ClassDef(def) => self.class_def(def),
            Stmt::Import(import) => {
                for alias in &import.names {
                    let full: &str = &alias.name;
                    let root = full.split('.').next().unwrap_or(full);
                    let (name, path) = alias.asname.as_ref().map_or((root, root), |asname| (asname.as_str(), full));
                    self.import(name, path);
                }
            }
            Stmt::ImportFrom(import) => {
                let module = import.module.as_ref().map_or("", |module| module.as_str());
                for alias in import.names.iter().filter(|alias| &*alias.name != "*") {
                    let name = alias.asname.as_ref().unwrap_or(&alias.name);
                    self.import(name, &format!("{module}.{}", alias.name));
                }
            }
            Stmt::Raise(raise) => {
                let before = std::mem::replace(&mut self.talks, true);
                for part in [&raise.exc, &raise.cause].into_iter().flatten() {
                    self.expr(part);
                }
                self.talks = before;
            }
            Stmt::Assert(assert) => {
                let test = self.expr(&assert.test);
                let open = self.is_open(&test);
                if let Some(message) = &assert.msg {
                    let before = std::mem::replace(&mut self.talks, true);
                    self.under(open, |it| it.expr(message));
                    self.talks = before;
                }
            }
            Stmt::Delete(_)
            | Stmt::TypeAlias(_)
            | Stmt::Global(_)
            | Stmt::Nonlocal(_)
            | Stmt::Pass(_)
            | Stmt::IpyEscapeCommand(_) => {}
        }
        Exits::default()
    }

    fn import(&mut self, name: &str, path: &str) {
        let path = crate::names::canonical(path);
        let value = self.path(&path);
        self.bind_name(name, &Set::of(value));
    }

    /// Gives a value to a name of the current scope.
    pub(super) fn bind_name(&mut self, name: &str, set: &Set) {
        let home = self.scopes.lookup(name, self.scope).map_or(self.scope, |(home, _)| home);
        let sym = self.sym(name);
        let cell = self.variable(home, sym);
        let open = self.guard == Guard::Open || self.outlives(home);
        self.write(cell, &set.clone().opened(open));
        if self.report.is_some() {
            let all = self.cells[cell as usize].set.clone();
            self.touch_binding(&all, set);
        }
    }

    pub(super) fn assign(&mut self, target: &'a Expr, set: &Set) {
        match target {
            Expr::Name(name) => self.bind_name(&name.id, set),
            Expr::Attribute(attribute) => {
                let base = self.expr(&attribute.value);
                let name = self.sym(&attribute.attr);
                self.set_attribute(&base, Some(name), set);
            }
            Expr::Subscript(subscript) => {
                let base = self.expr(&subscript.value);
                let index = self.expr(&subscript.slice);
                self.set_item(&base, &index, set, target);
            }
            Expr::Starred(starred) => {
                let object = self.object(starred.range(), 1, ObjectKind::Container);
                self.add_to(object, set);
                self.assign(&starred.value, &Set::of(Value::Object(object)));
            }
            Expr::Tuple(_) | Expr::List(_) => {
                let targets = crate::scope::elements(target);
                let starred = targets.iter().any(Expr::is_starred_expr);
                let random = self.note_order(set, target.range(), true);
                for (index, target) in targets.iter().enumerate() {
                    let part = if starred { self.iterate(set) } else { self.unpack(set, index) };
                    self.assign(target, &part.opened(random));
                }
            }
            _ => {}
        }
    }

    fn set_item(&mut self, base: &Set, index: &Set, value: &Set, target: &'a Expr) {
        for &of in base.values() {
            match of {
                Value::Tensor(origin) => {
                    let indices = match index.values() {
                        [Value::Object(object)] => self.elements(*object),
                        _ => index.clone(),
                    };
                    if indices.has_tensor() {
                        self.note(target.range(), Effect::Compute, base.open);
                    }
                    self.copy(origin, value);
                    self.touch();
                }
                Value::Object(object) => match self.objects[object as usize].kind {
                    ObjectKind::Namespace => {
                        let owner = self.elements(object);
                        match self.strings(index) {
                            Some(names) => names.iter().for_each(|&name| self.set_attribute(&owner, Some(name), value)),
                            None => self.set_attribute(&owner, None, value),
                        }
                    }
                    ObjectKind::Globals => {
                        for name in self.strings(index).unwrap_or_default() {
                            let cell = self.variable(crate::scope::MODULE, name);
                            self.write(cell, &value.clone().opened(self.unit != MAIN));
                        }
                    }
                    _ => self.store(object, index, value),
                },
                Value::Instance(class) => {
                    let name = self.sym("__setitem__");
                    let method = self.instance_attribute(class, name, target.range());
                    if !method.is_empty() {
                        let args = Args::of([index.clone(), value.clone()]);
                        let (effect, _) = self.invoke_all(&method, &args, target.range());
                        self.note(target.range(), effect, base.open);
                    }
                }
                // A library may call what it is given: `self._forward_hooks[0] = hook`.
                Value::Path(_) | Value::Unknown => {
                    self.call_back(&Args::of([value.clone()]), Back::Unknown);
                }
                _ => {}
            }
        }
    }

    fn branch(&mut self, branch: &'a StmtIf) -> Exits {
        let before = self.guard;
        let test = self.expr(&branch.test);
        let mut open = self.is_open(&test);
        let (mut exits, touch) = self.touching(|it| it.under(open, |it| it.block(&branch.body)));
        let mut clauses = vec![Clause { test: Some(&*branch.test), body: &branch.body, open, touch }];
        for clause in &branch.elif_else_clauses {
            let mut own = false;
            if let Some(test) = &clause.test {
                let test = self.under(open, |it| it.expr(test));
                own = self.is_open(&test);
                open |= own;
            }
            let (exit, touch) = self.touching(|it| it.under(open, |it| it.block(&clause.body)));
            clauses.push(Clause { test: clause.test.as_ref(), body: &clause.body, open: own, touch });
            exits.join(exit);
        }
        self.chain(&clauses);
        self.guard = before;
        exits
    }

    fn for_loop(&mut self, stmt: &'a StmtFor) -> Exits {
        let set = self.expr(&stmt.iter);
        let random = self.note_order(&set, stmt.iter.range(), false);
        let each = self.iterate(&set).opened(random);
        let open = set.open || each.open;
        let exits = self.turns(open, |it| {
            it.assign(&stmt.target, &each);
            it.block(&stmt.body)
        });
        let rest = self.under(exits.turn == Guard::Open, |it| it.block(&stmt.orelse));
        Exits { function: exits.function.max(rest.function), turn: rest.turn }
    }

    fn while_loop(&mut self, stmt: &'a StmtWhile) -> Exits {
        let test = self.expr(&stmt.test);
        let open = self.is_open(&test);
        let exits = self.turns(open, |it| it.block(&stmt.body));
        let rest = self.under(open || exits.turn == Guard::Open, |it| it.block(&stmt.orelse));
        Exits { function: exits.function.max(rest.function), turn: rest.turn }
    }

    /// The body of a loop. If it may be left for reasons that are not settled, so may every turn after the first.
    fn turns(&mut self, open: bool, mut body: impl FnMut(&mut Self) -> Exits) -> Exits {
        let exits = self.under(open, &mut body);
        if exits.any() == Guard::Open && !open && self.guard != Guard::Open {
            return self.under(true, &mut body);
        }
        exits
    }

    /// With handlers, the body may be left anywhere, and nothing settles whether it is.
    fn try_block(&mut self, stmt: &'a StmtTry) -> Exits {
        let before = self.guard;
        let open = !stmt.handlers.is_empty() && !only_imports(stmt);
        let mut exits =
            if stmt.handlers.is_empty() { self.block(&stmt.body) } else { self.under(open, |it| it.block(&stmt.body)) };
        for handler in &stmt.handlers {
            let ExceptHandler::ExceptHandler(handler) = handler;
            if let Some(kind) = &handler.type_ {
                self.expr(kind);
            }
            let before = self.no_room;
            self.no_room |= is_out_of_resources(handler);
            let exit = self.under(open, |it| {
                if let Some(name) = &handler.name {
                    it.bind_name(name, &Set::unknown());
                }
                it.block(&handler.body)
            });
            self.no_room = before;
            exits.join(exit);
        }
        let exit = self.under(open, |it| it.block(&stmt.orelse));
        exits.join(exit);
        let exit = self.block(&stmt.finalbody);
        exits.join(exit);
        self.guard = before;
        exits
    }

    fn with(&mut self, stmt: &'a StmtWith) -> Exits {
        let mut swallows = false;
        for item in &stmt.items {
            let manager = self.expr(&item.context_expr);
            swallows |= !manager.values().iter().all(|&value| self.lets_errors_pass(value));
            let entered = self.enter(&manager, item.range());
            if let Some(target) = &item.optional_vars {
                self.assign(target, &entered);
            }
        }
        if swallows { self.under(true, |it| it.block(&stmt.body)) } else { self.block(&stmt.body) }
    }

    /// Whether a context manager surely does not swallow errors.
    fn lets_errors_pass(&self, manager: Value) -> bool {
        match manager {
            Value::Path(path) => {
                let path = self.interner.text(path);
                path.starts_with("torch.") || path.starts_with("triton.") || path.starts_with("contextlib.nullcontext")
            }
            Value::Tensor(_) => true,
            _ => false,
        }
    }

    /// `with manager as …`
    fn enter(&mut self, manager: &Set, place: ruff_text_size::TextRange) -> Set {
        let mut entered = Set::default().opened(manager.open);
        for &value in manager.values() {
            match value {
                Value::Instance(class) => {
                    for name in ["__enter__", "__exit__"] {
                        let name = self.sym(name);
                        let method = self.instance_attribute(class, name, place);
                        if !method.is_empty() {
                            let (effect, set) = self.invoke_all(&method, &Args::any(Set::plain()), place);
                            self.note(place, effect, method.open);
                            entered.join(&set);
                        }
                    }
                }
                Value::Object(object) => {
                    entered.join(&self.elements(object));
                }
                _ => {
                    entered.add(value);
                }
            }
        }
        entered
    }

    fn match_block(&mut self, stmt: &'a StmtMatch) -> Exits {
        let subject = self.expr(&stmt.subject);
        let mut open = self.is_open(&subject);
        let mut exits = Exits::default();
        let mut clauses = Vec::new();
        for case in &stmt.cases {
            self.pattern(&case.pattern, &subject);
            if let Some(test) = &case.guard {
                let test = self.under(open, |it| it.expr(test));
                open |= self.is_open(&test);
            }
            let (exit, touch) = self.touching(|it| it.under(open, |it| it.block(&case.body)));
            clauses.push(Clause { test: None, body: &case.body, open, touch });
            exits.join(exit);
        }
        self.chain(&clauses);
        exits
    }

    /// The names of a pattern may be the subject or any part of it.
    fn pattern(&mut self, pattern: &'a Pattern, subject: &Set) {
        let mut part = subject.clone();
        part.join(&self.iterate(subject));
        match pattern {
            Pattern::MatchAs(it) => {
                if let Some(name) = &it.name {
                    self.bind_name(name, &part);
                }
                if let Some(inner) = &it.pattern {
                    self.pattern(inner, &part);
                }
            }
            Pattern::MatchStar(it) => {
                if let Some(name) = &it.name {
                    let all = self.collect(&[&part], it.range());
                    self.bind_name(name, &all);
                }
            }
            Pattern::MatchMapping(it) => {
                if let Some(name) = &it.rest {
                    self.bind_name(name, &part);
                }
                it.patterns.iter().for_each(|inner| self.pattern(inner, &part));
            }
            Pattern::MatchSequence(it) => it.patterns.iter().for_each(|inner| self.pattern(inner, &part)),
            Pattern::MatchOr(it) => it.patterns.iter().for_each(|inner| self.pattern(inner, &part)),
            Pattern::MatchClass(it) => {
                it.arguments.patterns.iter().for_each(|inner| self.pattern(inner, &part));
                it.arguments.keywords.iter().for_each(|inner| self.pattern(&inner.pattern, &part));
            }
            Pattern::MatchValue(it) => {
                self.expr(&it.value);
            }
            Pattern::MatchSingleton(_) => {}
        }
    }

    fn define(&mut self, def: &'a StmtFunctionDef) {
        let mut value = Set::of(self.function_value(def));
        let unit = self.unit_of(Body::Function(def), def.range(), self.class);
        if let &[Value::Kernel(_)] = value.values() {
            for decorator in &def.decorator_list {
                self.expr(&decorator.expression);
            }
            self.bind_name(&def.name, &value);
            return;
        }
        self.defaults(unit, &def.parameters);
        if falls_through(&def.body) {
            let result = self.units[unit as usize].result;
            self.write(result, &Set::plain());
        }
        for decorator in def.decorator_list.iter().rev() {
            value = self.decorated(decorator, value, Some(unit));
        }
        self.bind_name(&def.name, &value);
    }

    fn decorated(&mut self, decorator: &'a Decorator, value: Set, unit: Option<u32>) -> Set {
        let callee = self.expr(&decorator.expression);
        if let (&[Value::Path(path)], Some(unit)) = (callee.values(), unit) {
            let kind = match self.interner.text(path) {
                "builtins.staticmethod" => Some(Kind::Static),
                "builtins.classmethod" => Some(Kind::OfClass),
                "builtins.property" | "functools.cached_property" => Some(Kind::Property),
                _ => None,
            };
            if let Some(kind) = kind {
                self.units[unit as usize].kind = kind;
                return value;
            }
        }
        // `@x.setter`
        if let Expr::Attribute(attribute) = &decorator.expression
            && matches!(&*attribute.attr, "setter" | "getter" | "deleter")
        {
            // What it does is done where the attribute is set.
            if let (Some(unit), Some(class)) = (unit, self.class) {
                self.apply(unit, Some(Value::Instance(class)), &Args::any(Set::of(Value::Tensor(STATE))));
                self.reach(unit, Guard::Settled);
            }
            return value;
        }
        let (effect, mut result) = self.invoke_all(&callee, &Args::of([value.clone()]), decorator.range());
        self.note(decorator.range(), effect, callee.open);
        // A library's decorator may hand on the function, or something that calls it.
        let foreign = callee.values().iter().any(|value| matches!(value, Value::Path(_) | Value::Unknown));
        if foreign && !value.values().iter().all(|value| result.values().contains(value)) {
            result.join(&value);
        }
        result
    }

    fn class_def(&mut self, def: &'a StmtClassDef) {
        let class = self.class_of(def);
        let mut bases = Set::default();
        if let Some(arguments) = &def.arguments {
            for base in &arguments.args {
                let set = self.expr(base);
                bases.join(&set);
            }
            for keyword in &arguments.keywords {
                let set = self.expr(&keyword.value);
                if keyword.arg.as_deref() == Some("metaclass") {
                    self.classes[class as usize].meta.join(&set);
                    for &value in set.values() {
                        if let Value::Class(meta) = value {
                            self.operators(meta);
                        }
                    }
                }
            }
        }
        self.classes[class as usize].bases.join(&bases);
        let (scope, outer) = (self.scope, self.class);
        self.scope = self.classes[class as usize].scope;
        self.class = Some(class);
        self.block(&def.body);
        (self.scope, self.class) = (scope, outer);
        let mut value = Set::of(Value::Class(class));
        for decorator in def.decorator_list.iter().rev() {
            value = self.decorated(decorator, value, None);
        }
        self.bind_name(&def.name, &value);
    }
}

/// `try: import …` with fallbacks: what is installed is the same wherever the file runs.
fn only_imports(stmt: &StmtTry) -> bool {
    let plain = |expr: &Expr| {
        let mut at = expr;
        while let Expr::Attribute(attribute) = at {
            at = &attribute.value;
        }
        at.is_literal_expr() || at.is_name_expr() || matches!(at, Expr::Compare(compare) if compare.left.is_name_expr())
    };
    let harmless = |stmt: &Stmt| match stmt {
        Stmt::Import(_) | Stmt::ImportFrom(_) | Stmt::Pass(_) => true,
        Stmt::Assign(assign) => plain(&assign.value),
        Stmt::Try(inner) => only_imports(inner),
        _ => false,
    };
    let imports = |stmt: &Stmt| matches!(stmt, Stmt::Import(_) | Stmt::ImportFrom(_));
    let handlers = stmt.handlers.iter().flat_map(|handler| {
        let ExceptHandler::ExceptHandler(handler) = handler;
        &handler.body
    });
    stmt.body.iter().any(imports) && stmt.body.iter().chain(&stmt.orelse).chain(handlers).all(harmless)
}

/// Whether a function may end without `return`.
fn falls_through(body: &[Stmt]) -> bool {
    match body.last() {
        Some(Stmt::Return(_) | Stmt::Raise(_)) => false,
        Some(Stmt::With(with)) => falls_through(&with.body),
        Some(Stmt::If(branch)) => {
            let clauses = &branch.elif_else_clauses;
            falls_through(&branch.body)
                || clauses.last().is_none_or(|last| last.test.is_some())
                || clauses.iter().any(|clause| falls_through(&clause.body))
        }
        _ => true,
    }
}

/// Whether a handler is for launches that need more than the device has, and for nothing else.
fn is_out_of_resources(handler: &ruff_python_ast::ExceptHandlerExceptHandler) -> bool {
    let name = match handler.type_.as_deref() {
        Some(Expr::Name(name)) => &*name.id,
        Some(Expr::Attribute(attribute)) => &*attribute.attr,
        _ => return false,
    };
    name == "OutOfResources"
}
