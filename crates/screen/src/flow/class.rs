//! Classes of the file: what their attributes are, where those come from, and `torch.autograd.Function`.

use ruff_text_size::TextRange;

use crate::Calls;

use super::args::Args;
use super::engine::{Engine, Kind, ObjectKind};
use super::intern::Sym;
use super::value::{ClassId, Effect, Guard, STATE, Set, UnitId, Value};

/// Bases of a class that are followed.
const MOST_BASES: usize = 16;

impl<'a> Engine<'_, 'a> {
    /// What the body of a class, or code about it, binds to a name; `None` if nothing does.
    pub(super) fn class_variable(&mut self, class: ClassId, attr: Sym) -> Option<Set> {
        let scope = self.classes[class as usize].scope;
        let cell = match self.known_variable(scope, attr) {
            Some(cell) => cell,
            None if self.scopes.get(scope).bindings.contains_key(self.interner.text(attr)) => {
                self.variable(scope, attr)
            }
            None => return None,
        };
        Some(self.read(cell))
    }

    /// The classes of this file that a class inherits from, itself first, and the library's classes.
    pub(super) fn lineage(&self, class: ClassId) -> (Vec<ClassId>, Vec<Value>) {
        let (mut own, mut foreign) = (vec![class], Vec::new());
        let mut at = 0;
        while at < own.len() && own.len() < MOST_BASES {
            for &base in self.classes[own[at] as usize].bases.values() {
                match base {
                    Value::Class(base) if !own.contains(&base) => own.push(base),
                    Value::Class(_) => {}
                    other if !foreign.contains(&other) => foreign.push(other),
                    _ => {}
                }
            }
            at += 1;
        }
        (own, foreign)
    }

    /// Whether a class is a kind of `torch.nn.Module`, whose constructor keeps none of its arguments.
    pub(super) fn is_module(&self, class: ClassId) -> bool {
        let (_, foreign) = self.lineage(class);
        foreign.iter().any(|base| matches!(base, Value::Path(path) if self.interner.text(*path).starts_with("torch.")))
    }

    /// An attribute of an instance; methods are bound, properties are called.
    pub(super) fn instance_attribute(&mut self, class: ClassId, attr: Sym, place: TextRange) -> Set {
        match self.interner.text(attr) {
            "__class__" => return Set::of(Value::Class(class)),
            "__dict__" => {
                let object = self.object(place, 4, ObjectKind::Namespace);
                let rest = self.objects[object as usize].rest;
                self.write(rest, &Set::of(Value::Instance(class)));
                return Set::of(Value::Object(object));
            }
            _ => {}
        }
        self.looked_up(class, class, 0, attr, place)
    }

    /// `super().attr`
    pub(super) fn inherited(&mut self, class: ClassId, receiver: ClassId, attr: Sym, place: TextRange) -> Set {
        self.looked_up(class, receiver, 1, attr, place)
    }

    pub(super) fn looked_up(
        &mut self,
        class: ClassId,
        receiver: ClassId,
        skip: usize,
        attr: Sym,
        place: TextRange,
    ) -> Set {
        let (own, foreign) = self.lineage(class);
        let mut found = Set::default();
        let mut known = false;
        if skip == 0 {
            let (cell, any) = (self.attribute_cell(class, attr), self.attribute_cell(class, self.any_name));
            found.join(&self.read(cell));
            found.join(&self.read(any));
        }
        for &class in own.iter().skip(skip) {
            if class != receiver {
                let cell = self.attribute_cell(class, attr);
                found.join(&self.read(cell));
            }
            if let Some(set) = self.class_variable(class, attr) {
                found.join(&self.bind(&set, receiver, Value::Instance(receiver), place));
                known = true;
                break;
            }
        }
        // Where an instance has it only at times, what its class has counts too.
        if known || !found.is_empty() {
            return found;
        }
        for base in foreign {
            match base {
                Value::Path(path) => {
                    if let Some(instance) = self.interner.result(path) {
                        found.join(&self.path_attribute(instance, attr, place));
                    }
                }
                _ => {
                    found.join(&Set::unknown());
                }
            }
        }
        let getter = self.sym("__getattr__");
        if attr != getter && self.interner.text(attr) != "__call__" {
            for &class in &own {
                if let Some(set) = self.class_variable(class, getter) {
                    let method = self.bind(&set, receiver, Value::Instance(receiver), place);
                    let (effect, set) = self.invoke_all(&method, &Args::of([Set::of(Value::Str(attr))]), place);
                    self.note(place, effect, method.open);
                    found.join(&set);
                }
            }
        }
        found
    }

    pub(super) fn class_attribute(&mut self, class: ClassId, attr: Sym, place: TextRange) -> Set {
        let (own, foreign) = self.lineage(class);
        let name = self.interner.text(attr);
        if matches!(name, "__name__" | "__doc__" | "__qualname__" | "__module__") {
            return Set::plain();
        }
        if name == "apply" && foreign.iter().any(|base| self.is_path(*base, "torch.autograd.Function")) {
            self.backward(class);
            return Set::of(Value::Apply(class));
        }
        for class in own {
            if let Some(set) = self.class_variable(class, attr) {
                let mut found = Set::default().opened(set.open);
                for &value in set.values() {
                    found.add(match value {
                        Value::Function(unit) if self.units[unit as usize].kind == Kind::OfClass => {
                            Value::OfClass(unit, class)
                        }
                        other => other,
                    });
                }
                return found;
            }
        }
        let mut found = Set::default();
        for base in foreign {
            if let Value::Path(path) = base {
                found.join(&self.path_attribute(path, attr, place));
            } else {
                found.join(&Set::unknown());
            }
        }
        found
    }

    /// What `forward` and `setup_context` of an `autograd.Function` are.
    pub(super) fn passes(&mut self, class: ClassId) -> [Set; 2] {
        let (own, _) = self.lineage(class);
        ["forward", "setup_context"].map(|name| {
            let name = self.sym(name);
            own.iter().find_map(|&class| self.class_variable(class, name)).unwrap_or_default()
        })
    }

    /// Functions that `apply` of an `autograd.Function` calls.
    pub(super) fn applied(&mut self, class: ClassId) -> Vec<UnitId> {
        let passes = self.passes(class);
        passes.iter().flat_map(functions).collect()
    }

    /// Calls `apply` of an `autograd.Function`: its `forward`, and then `setup_context` where there is one.
    pub(super) fn apply_function(&mut self, class: ClassId, args: &Args, place: TextRange) -> (Effect, Set) {
        let [forward, setup] = self.passes(class);
        let after: Vec<UnitId> = functions(&setup).collect();
        let mut callee = Set::default().opened(forward.open);
        for &value in forward.values() {
            callee.add(match value {
                // The context has the methods of `torch.autograd.Function`.
                Value::Function(unit) if after.is_empty() => Value::Bound(unit, class),
                other => other,
            });
        }
        let (effect, output) = self.invoke_all(&callee, args, place);
        if !after.is_empty() {
            let inputs = self.object(place, 8, ObjectKind::Container);
            for (index, set) in args.positional.iter().enumerate() {
                let cell = self.indexed(inputs, index);
                self.write(cell, set);
            }
            let rest = self.objects[inputs as usize].rest;
            args.more.iter().for_each(|more| self.write(rest, more));
            for unit in after {
                let args = Args::of([Set::of(Value::Object(inputs)), output.clone()]);
                self.apply(unit, Some(Value::Instance(class)), &args);
            }
        }
        (effect, output)
    }

    /// The backward pass of an `autograd.Function`: its launches count as uses, but `forward` alone does not reach it.
    pub(super) fn backward(&mut self, class: ClassId) {
        let name = self.sym("backward");
        for &value in self.class_variable(class, name).unwrap_or_default().values() {
            if let Value::Function(unit) = value
                && let Some(parameters) = self.units[unit as usize].parameters()
            {
                let args = Args::any(Set::of(Value::Tensor(STATE)));
                self.bind_parameters(unit, parameters, Some(Value::Instance(class)), &args);
                let guard = if self.called == Calls::Forward { Guard::Never } else { self.reached() };
                self.reach(unit, guard);
            }
        }
    }

    /// Turns functions of a class body into methods.
    pub(super) fn bind(&mut self, set: &Set, class: ClassId, receiver: Value, place: TextRange) -> Set {
        let mut found = Set::default().opened(set.open);
        for &value in set.values() {
            match (value, receiver) {
                (Value::Function(unit), Value::Instance(_)) => match self.units[unit as usize].kind {
                    Kind::Static => {
                        found.add(value);
                    }
                    Kind::OfClass => {
                        found.add(Value::OfClass(unit, class));
                    }
                    Kind::Plain => {
                        found.add(Value::Bound(unit, class));
                    }
                    Kind::Property => {
                        let args = Args::default();
                        let (_, set) = self.invoke(Value::Bound(unit, class), &args, place, false);
                        found.join(&set);
                    }
                },
                _ => {
                    found.add(value);
                }
            }
        }
        found
    }
}

/// The functions in a set.
fn functions(set: &Set) -> impl Iterator<Item = UnitId> + '_ {
    set.values().iter().filter_map(|value| match value {
        Value::Function(unit) => Some(*unit),
        _ => None,
    })
}
