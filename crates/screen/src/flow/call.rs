//! Calls: of functions of the file, of its classes, of kernels and of libraries.

use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::{Ranged, TextRange};
use smallvec::SmallVec;

use super::args::Args;
use super::engine::{Body, Engine, ObjectKind};
use super::intern::Sym;
use super::library::{self, Gives};
use super::value::{COMPUTED, ClassId, Effect, Guard, ObjId, STATE, Set, UnitId, Value};

/// Calls that lead straight to other calls, through partials, properties and the like.
const MOST_DEPTH: u32 = 12;

/// Who calls a function that was handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Back {
    /// A library that passes numbers, and what else it was given: `triton.heuristics`.
    Known,
    /// Torch, with tensors, when `forward` runs.
    Hook,
    /// Nobody knows who, when and with what.
    Unknown,
}

impl<'a> Engine<'_, 'a> {
    pub(super) fn call_expr(&mut self, call: &'a ExprCall, whole: &'a Expr) -> Set {
        if let Expr::Name(name) = &*call.func
            && &*name.id == "super"
            && call.arguments.args.is_empty()
        {
            return self.zero_argument_super();
        }
        let callee = self.expr(&call.func);
        let args = self.arguments(call);
        let (effect, result) = self.invoke_all(&callee, &args, call.range());
        self.note(call.range(), effect, callee.open);
        // A string method that can be folded.
        if result.values() == [Value::Plain]
            && let Expr::Attribute(method) = &*call.func
            && matches!(&*method.attr, "join" | "lower" | "upper" | "strip" | "replace")
            && let Some(text) = self.names.string(whole, self.scope)
        {
            return self.text(&text);
        }
        result
    }

    fn zero_argument_super(&mut self) -> Set {
        let unit = &self.units[self.unit as usize];
        let (Some(class), Some(parameters)) = (unit.within, unit.parameters()) else {
            return Set::unknown();
        };
        let Some(own) = parameters.iter_non_variadic_params().next() else { return Set::unknown() };
        let own = self.name(&own.parameter.name);
        let mut found = Set::default();
        for &value in own.values() {
            if let Value::Instance(receiver) | Value::Class(receiver) = value {
                found.add(Value::Super(class, receiver));
            }
        }
        found
    }

    /// Calls every value of a set.
    pub(super) fn invoke_all(&mut self, callee: &Set, args: &Args, place: TextRange) -> (Effect, Set) {
        if callee.is_empty() {
            // Nothing is known to reach this place (yet).
            let effect = if self.report.is_some() { Effect::Unknown } else { Effect::Clear };
            return (effect, Set::default());
        }
        let mut result = Set::default();
        let mut worst = Effect::Clear;
        let several = callee.values().len() > 1;
        let picked = std::mem::replace(&mut self.picked, several && callee.open);
        for &value in callee.values() {
            let (effect, set) = if several || callee.open {
                self.under(callee.open, |it| it.invoke(value, args, place, callee.open))
            } else {
                self.invoke(value, args, place, false)
            };
            worst = worst.max(effect);
            result.join(&set);
        }
        self.picked = picked;
        (worst, result.opened(callee.open))
    }

    /// Calls one value.
    pub(super) fn invoke(&mut self, callee: Value, args: &Args, place: TextRange, open: bool) -> (Effect, Set) {
        // Partials of themselves, and other chains without end.
        if self.depth >= MOST_DEPTH || self.steps == 0 {
            return (Effect::Unknown, Set::unknown());
        }
        self.steps -= 1;
        self.depth += 1;
        let result = self.invoke_inner(callee, args, place, open);
        self.depth -= 1;
        result
    }

    fn invoke_inner(&mut self, callee: Value, args: &Args, place: TextRange, open: bool) -> (Effect, Set) {
        match callee {
            Value::Plain | Value::Int(_) | Value::Str(_) => {
                (Effect::Clear, Set::plain().opened(args.all().any(|set| self.is_open(set))))
            }
            Value::Path(path) => self.library_call(path, args, place),
            Value::Function(unit) => (Effect::Clear, self.apply(unit, None, args)),
            Value::Bound(unit, class) => (Effect::Clear, self.apply(unit, Some(Value::Instance(class)), args)),
            Value::OfClass(unit, class) => (Effect::Clear, self.apply(unit, Some(Value::Class(class)), args)),
            Value::Class(class) => {
                let (effect, mut made) = self.meta_call(class, args, place);
                made.add(Value::Instance(class));
                (effect.max(self.construct(class, args, place)), made)
            }
            Value::Apply(class) => self.apply_function(class, args, place),
            Value::Instance(class) => self.call_instance(class, args, place),
            Value::Super(..) => (Effect::Unknown, Set::unknown()),
            // `kernel.warmup(…)`
            Value::Kernel(_) => (Effect::Clear, Set::of(callee)),
            Value::Launcher(kernel) => {
                self.launch(kernel, args, open);
                self.launches_at(place);
                (Effect::Clear, Set::of(Value::Kernel(kernel)))
            }
            Value::Object(object) => self.call_object(object, args, place),
            Value::ObjectMethod(object, name) => self.object_method(object, name, args, place),
            Value::Tensor(_) => (Effect::Unknown, Set::unknown()),
            Value::TensorMethod(origin, name) => self.tensor_method(origin, name, args, place),
            Value::AttrGetter(names) => {
                let mut found = args.first();
                let names: Vec<String> = self.interner.text(names).split('.').map(str::to_owned).collect();
                for name in names {
                    let name = self.sym(&name);
                    found = self.attribute(&found, name, place);
                }
                (Effect::Clear, found)
            }
            Value::MethodCaller(name) => {
                let method = self.attribute(&args.first(), name, place);
                self.invoke_all(&method, &Args::any(Set::plain()), place)
            }
            Value::ItemGetter => {
                let each = self.iterate(&args.first());
                (Effect::Clear, each)
            }
            Value::UnknownMethod(name) => {
                let row = self.method_row(name);
                let plain = library::is_plain_method(self.interner.text(name));
                let effect = if plain || row.effect == Effect::Clear { Effect::Clear } else { Effect::Unknown };
                let effect = effect.max(self.call_back(args, Back::Unknown));
                let mut result = Set::unknown();
                args.all().for_each(|set| {
                    result.join(set);
                });
                (effect, result)
            }
            Value::Unknown => {
                let effect = Effect::Unknown.max(self.call_back(args, Back::Unknown));
                let mut result = Set::unknown();
                args.all().for_each(|set| {
                    result.join(set);
                });
                (effect, result)
            }
            Value::Any => {
                self.call_back(args, Back::Unknown);
                let mut result = Set::unknown();
                result.add(Value::Tensor(COMPUTED));
                (Effect::Compute, result)
            }
        }
    }

    /// Calls a function of the file.
    pub(super) fn apply(&mut self, unit: UnitId, receiver: Option<Value>, args: &Args) -> Set {
        if let Some(parameters) = self.units[unit as usize].parameters() {
            self.bind_parameters(unit, parameters, receiver, args);
        }
        let guard = self.reached();
        self.reach(unit, guard);
        self.touch_by(unit);
        let result = self.units[unit as usize].result;
        let set = self.read(result);
        match self.units[unit as usize].body {
            // A coroutine gives its result to who awaits it, or drives it by hand.
            Body::Function(def) if def.is_async => {
                let object = self.object(def.range(), 7, ObjectKind::Container);
                let rest = self.objects[object as usize].rest;
                self.write(rest, &set);
                Set::of(Value::Object(object))
            }
            _ => set,
        }
    }

    /// What the `__call__` of a class's metaclass does instead of making an instance.
    fn meta_call(&mut self, class: ClassId, args: &Args, place: TextRange) -> (Effect, Set) {
        let (mut effect, mut made) = (Effect::Clear, Set::default());
        let name = self.sym("__call__");
        for &meta in self.classes[class as usize].meta.clone().values() {
            let Value::Class(meta) = meta else { continue };
            let method = self.instance_attribute(meta, name, place);
            for &value in method.values() {
                if let Value::Bound(unit, _) = value {
                    made.join(&self.apply(unit, Some(Value::Class(class)), args));
                } else if matches!(value, Value::Unknown | Value::Any) {
                    effect = Effect::Unknown;
                }
            }
        }
        (effect, made)
    }

    fn construct(&mut self, class: ClassId, args: &Args, place: TextRange) -> Effect {
        self.operators(class);
        let mut effect = Effect::Clear;
        let mut own = false;
        for name in ["__new__", "__init__", "__post_init__"] {
            let name = self.sym(name);
            let method = self.instance_attribute(class, name, place);
            let known: SmallVec<[Value; 2]> =
                method.values().iter().copied().filter(|value| matches!(value, Value::Bound(..))).collect();
            for value in known {
                own = true;
                effect = effect.max(self.invoke(value, args, place, method.open).0);
            }
        }
        if !own && !self.is_module(class) {
            // Fields of a dataclass or a named tuple, or what a base of a library is given.
            let any = self.attribute_cell(class, self.any_name);
            let sets: SmallVec<[Set; 4]> = args.positional.iter().chain(&args.more).cloned().collect();
            sets.iter().for_each(|set| self.write(any, set));
            for (name, set) in &args.keywords {
                let cell = self.attribute_cell(class, *name);
                self.write(cell, set);
            }
        }
        effect
    }

    fn call_instance(&mut self, class: ClassId, args: &Args, place: TextRange) -> (Effect, Set) {
        let (mut effect, mut result, mut known) = (Effect::Clear, Set::default(), false);
        for name in ["__call__", "forward"] {
            let name = self.sym(name);
            let method = self.instance_attribute(class, name, place);
            let foreign = |value: &Value| matches!(value, Value::Path(_) | Value::UnknownMethod(_));
            if method.is_empty() || (method.values().iter().all(foreign) && name == self.sym("__call__")) {
                continue;
            }
            known = true;
            let (worst, set) = self.invoke_all(&method, args, place);
            effect = effect.max(worst);
            result.join(&set);
        }
        if known { (effect, result) } else { (Effect::Unknown, Set::unknown()) }
    }

    /// Methods that Python calls by itself, for `a + b`, `for`, `len`, `with` and the like: what they give. They may run
    /// wherever an instance is used, which is not looked for.
    pub(super) fn operators(&mut self, class: ClassId) -> Set {
        let scope = self.classes[class as usize].scope;
        let names: Vec<&str> = self.scopes.get(scope).bindings.keys().copied().collect();
        let mut result = Set::default();
        for name in names {
            let dunder = name.starts_with("__") && !matches!(name, "__init__" | "__call__" | "__new__" | "__class__");
            if !dunder {
                continue;
            }
            let name = self.sym(name);
            let cell = self.variable(scope, name);
            for &value in self.read(cell).values() {
                if let Value::Function(unit) = value {
                    let set = self.apply(unit, Some(Value::Instance(class)), &Args::any(Set::unknown()));
                    let guard = self.reached().max(Guard::Settled);
                    self.reach(unit, guard);
                    result.join(&set);
                }
            }
        }
        result
    }

    fn call_object(&mut self, object: ObjId, args: &Args, place: TextRange) -> (Effect, Set) {
        match self.objects[object as usize].kind {
            ObjectKind::Partial => {
                let functions = self.objects[object as usize].rest;
                let functions = self.read(functions);
                let mut all = Args::default();
                let mut rest = Vec::new();
                for (key, cell) in self.objects[object as usize].keyed.clone() {
                    let set = self.read(cell);
                    if self.interner.text(key) == "#*" {
                        all.more = Some(set);
                    } else if self.interner.text(key).starts_with('#') {
                        rest.push(set);
                    } else {
                        all.keywords.push((key, set));
                    }
                }
                all.positional.extend(rest);
                all.positional.extend(args.positional.iter().cloned());
                all.keywords.extend(args.keywords.iter().cloned());
                if let Some(more) = &args.more {
                    all.more.get_or_insert_default().join(more);
                }
                self.invoke_all(&functions, &all, place)
            }
            ObjectKind::Chain => {
                let layers = self.elements(object);
                let (mut effect, mut result) = (Effect::Clear, Set::default());
                for _ in 0..2 {
                    let mut args = args.clone();
                    if let Some(first) = args.positional.first_mut() {
                        first.join(&result);
                    }
                    let (worst, set) = self.invoke_all(&layers, &args, place);
                    effect = effect.max(worst);
                    result.join(&set);
                }
                (effect, result)
            }
            _ => (Effect::Unknown, Set::unknown()),
        }
    }

    fn tensor_method(&mut self, origin: u32, name: Sym, args: &Args, place: TextRange) -> (Effect, Set) {
        let row = self.method_row(name);
        let text = self.interner.text(name);
        let open = args.all().any(|set| set.open);
        match text {
            "type" if args.all().next().is_none() => return (Effect::Clear, Set::plain()),
            "item" | "tolist" | "numpy" | "__len__" | "__bool__" | "__float__" | "__int__" | "__index__" => {
                return (row.effect, Set::plain().opened(true));
            }
            "copy_" | "set_" => {
                let from = args.first();
                self.copy(origin, &from);
                self.touch();
            }
            // In place.
            _ if text.ends_with('_') && !text.ends_with("__") && text != "requires_grad_" => self.touch(),
            _ => {}
        }
        let result = match row.gives {
            Gives::Moved => Set::of(Value::Tensor(origin)),
            Gives::Memory => self.allocation(place),
            Gives::Computed => Set::of(Value::Tensor(COMPUTED)),
            _ => Set::plain(),
        };
        (row.effect, result.opened(row.open || open))
    }

    /// A library calls functions among its arguments, or among their elements: back into the file, or torch. Those of the
    /// file may be reached from `forward` at least so, also where they are handed over at import.
    pub(super) fn call_back(&mut self, args: &Args, back: Back) -> Effect {
        let (least, mut data) = match back {
            Back::Known => (Guard::Settled, Set::plain()),
            Back::Hook => (Guard::Settled, Set::of(Value::Tensor(STATE))),
            Back::Unknown => (Guard::Open, Set::unknown()),
        };
        let mut effect = Effect::Clear;
        let mut given = Set::default();
        args.all().for_each(|set| {
            given.join(set);
        });
        let mut inner = Set::default();
        for &value in given.values() {
            if let Value::Object(object) = value {
                inner.join(&self.elements(object));
            }
        }
        given.join(&inner);
        for &value in given.values() {
            if matches!(value, Value::Tensor(_) | Value::Unknown) {
                data.add(value);
            }
        }
        let before = (self.guard, self.unit);
        for &value in given.values() {
            match value {
                Value::Function(_) | Value::Bound(..) | Value::OfClass(..) => {
                    // A function that is handed over at import may be called in `forward`.
                    let unit = match value {
                        Value::Function(unit) | Value::Bound(unit, _) | Value::OfClass(unit, _) => unit,
                        _ => continue,
                    };
                    self.invoke(value, &Args::any(data.clone()), TextRange::default(), false);
                    let guard = self.reached().max(least);
                    self.reach(unit, guard);
                }
                Value::Apply(class) => {
                    self.invoke(value, &Args::any(data.clone()), TextRange::default(), false);
                    let guard = self.reached().max(least);
                    self.applied(class).into_iter().for_each(|unit| self.reach(unit, guard));
                }
                Value::Path(path) if self.known_call(path).row.effect == Effect::Compute => effect = Effect::Compute,
                Value::TensorMethod(_, name) => {
                    effect = effect.max(self.method_row(name).effect);
                }
                Value::MethodCaller(name) => {
                    effect = effect.max(self.method_row(name).effect);
                }
                Value::Any => effect = Effect::Compute,
                Value::Object(object) if self.objects[object as usize].kind == ObjectKind::Partial => {
                    effect = effect.max(self.call_object(object, &Args::any(data.clone()), TextRange::default()).0);
                }
                _ => {}
            }
        }
        (self.guard, self.unit) = before;
        effect
    }

    fn launch(&mut self, kernel: u32, args: &Args, open: bool) {
        let _ = open;
        let mut given = Set::default();
        args.all().for_each(|set| {
            given.join(set);
        });
        let mut inner = Set::default();
        for &value in given.values() {
            if let Value::Object(object) = value {
                inner.join(&self.elements(object));
            }
        }
        given.join(&inner);
        let forward = self.reached() != Guard::Never;
        let mut any = false;
        for &value in given.values() {
            match value {
                Value::Tensor(origin) if forward => {
                    any = true;
                    if !self.launched.contains(&origin) {
                        self.launched.push(origin);
                    }
                }
                Value::Kernel(other) => self.launches(other, false),
                Value::Unknown | Value::Any => self.launched_unknown |= forward,
                _ => {}
            }
        }
        // Addresses tell nothing about the memory behind them.
        self.launched_unknown |= forward && !any;
        self.launches(kernel, forward);
    }
}
