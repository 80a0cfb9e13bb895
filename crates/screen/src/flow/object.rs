//! Containers, attributes and what is stored in them.

use ruff_text_size::TextRange;

use super::args::Args;
use super::engine::{Engine, MAIN, ObjectKind};
use super::intern::Sym;
use super::library::{self};
use super::value::{COMPUTED, Effect, Guard, ObjId, STATE, Set, Value};
use crate::scope::MODULE;

impl<'a> Engine<'_, 'a> {
    // Elements ---------------------------------------------------------------------------------------------------

    /// Constant keys that a set surely consists of, as they are kept in objects.
    fn keys(&mut self, key: &Set) -> Option<Vec<Sym>> {
        let mut keys = Vec::new();
        for &value in key.values() {
            keys.push(match value {
                Value::Str(text) => text,
                Value::Int(n) if n >= 0 => self.index(n as usize),
                Value::Int(n) => self.sym(&format!("#{n}")),
                _ => return None,
            });
        }
        (!keys.is_empty()).then_some(keys)
    }

    /// Whether a change to an object, made here, is state that a later call of `forward` sees.
    fn is_state(&self, object: ObjId) -> bool {
        self.reached() != Guard::Never && self.objects[object as usize].maker != self.unit
    }

    /// `object[key] = value`
    pub(super) fn store(&mut self, object: ObjId, key: &Set, value: &Set) {
        let open = self.guard == Guard::Open || key.open || self.is_state(object);
        let value = value.clone().opened(open);
        match self.keys(key) {
            Some(keys) => {
                for key in keys {
                    let cell = self.element(object, key);
                    self.write(cell, &value);
                }
            }
            None => {
                let rest = self.objects[object as usize].rest;
                self.write(rest, &value);
            }
        }
    }

    /// Adds to an object under keys that are not known.
    pub(super) fn add_to(&mut self, object: ObjId, value: &Set) {
        let open = self.guard == Guard::Open || self.is_state(object);
        let rest = self.objects[object as usize].rest;
        self.write(rest, &value.clone().opened(open));
    }

    /// Adds everything that iterating over a set gives, or the entries of the mappings in it.
    pub(super) fn pour(&mut self, object: ObjId, from: &Set) {
        for &value in from.values() {
            if let Value::Object(other) = value {
                let entries = self.objects[other as usize].keyed.clone();
                for (key, cell) in entries {
                    let set = self.read(cell).opened(from.open);
                    let text = self.interner.text(key).starts_with('#');
                    let cell = if text { self.objects[object as usize].rest } else { self.element(object, key) };
                    self.write(cell, &set);
                }
                let rest = self.objects[other as usize].rest;
                let set = self.read(rest).opened(from.open);
                self.add_to(object, &set);
            } else {
                let set = self.iterate(&Set::of(value).opened(from.open));
                self.add_to(object, &set);
            }
        }
    }

    /// A new object, made at a place, with the elements of some.
    pub(super) fn collect(&mut self, parts: &[&Set], place: TextRange) -> Set {
        let unordered = |value: &Value| {
            matches!(value, Value::Object(object)
            if self.objects[*object as usize].kind == ObjectKind::Unordered)
        };
        let kind = match parts.iter().any(|part| part.values().iter().any(unordered)) {
            true => ObjectKind::Unordered,
            false => ObjectKind::Container,
        };
        let object = self.object(place, 1, kind);
        for part in parts {
            self.pour(object, part);
        }
        Set::of(Value::Object(object)).opened(parts.iter().any(|part| part.open))
    }

    /// `object[key]`
    fn pick(&mut self, object: ObjId, key: &Set) -> Set {
        let Some(keys) = self.keys(key) else { return self.elements(object).opened(key.open) };
        let rest = self.objects[object as usize].rest;
        let mut found = self.read(rest);
        for key in keys {
            let text = self.interner.text(key);
            let key = match text.strip_prefix("#-").and_then(|n| n.parse::<usize>().ok()) {
                Some(back) => {
                    let all = &self.objects[object as usize].keyed;
                    let count = all.iter().filter(|(key, _)| self.interner.text(*key).starts_with('#')).count();
                    self.sym(&format!("#{}", count.wrapping_sub(back)))
                }
                None => key,
            };
            let cell =
                self.objects[object as usize].keyed.iter().find(|(known, _)| *known == key).map(|&(_, cell)| cell);
            if let Some(cell) = cell {
                found.join(&self.read(cell));
            }
        }
        found.opened(key.open)
    }

    /// `base[index]`
    pub(super) fn item(&mut self, base: &Set, index: &Set, place: TextRange) -> Set {
        let open = base.open || self.is_open(index) && !self.is_index_of_kernel(base);
        let mut found = Set::default();
        for &value in base.values() {
            match value {
                Value::Kernel(kernel) => {
                    found.add(Value::Launcher(kernel));
                }
                Value::Tensor(origin) => {
                    if self.holds_tensor(index) {
                        self.note(place, Effect::Compute, base.open);
                        found.add(Value::Tensor(COMPUTED));
                    } else {
                        found.add(value);
                        let _ = origin;
                    }
                }
                Value::Object(object) => match self.objects[object as usize].kind {
                    ObjectKind::Namespace => {
                        let of = self.elements(object);
                        found.join(&self.attribute_named(&of, index, place));
                    }
                    ObjectKind::Globals => {
                        found.join(&self.global_named(index));
                    }
                    _ => {
                        found.join(&self.pick(object, index));
                    }
                },
                Value::Instance(class) => {
                    let name = self.sym("__getitem__");
                    let method = self.instance_attribute(class, name, place);
                    let args = Args::of([index.clone()]);
                    let (effect, set) = self.invoke_all(&method, &args, place);
                    self.note(place, effect, base.open || method.open);
                    found.join(&set);
                }
                Value::Path(path) => {
                    let text = self.interner.text(path);
                    let plain = ["torch", "triton", "math", "os", "sys", "typing", "collections"]
                        .iter()
                        .any(|root| text.split('.').next() == Some(root));
                    if text.ends_with("parameters()") || text.ends_with("buffers()") || text.ends_with("state_dict()") {
                        found.add(Value::Tensor(STATE));
                    } else if text.contains("()") || plain {
                        let open = library::is_open_value(text);
                        found.add(if plain { Value::Plain } else { Value::Unknown });
                        found.open |= open;
                    } else {
                        found.add(Value::Path(path));
                    }
                }
                Value::Plain | Value::Int(_) | Value::Str(_) => {
                    found.add(Value::Plain);
                }
                Value::Class(class) => {
                    found.add(value);
                    let name = self.sym("__class_getitem__");
                    for &method in self.class_variable(class, name).unwrap_or_default().values() {
                        if let Value::Function(unit) = method {
                            let args = Args::of([index.clone()]);
                            found.join(&self.apply(unit, Some(value), &args));
                        }
                    }
                }
                Value::Any => {
                    found.add(Value::Any);
                }
                _ => {
                    found.add(Value::Unknown);
                    found.open = true;
                }
            }
        }
        found.opened(open)
    }

    /// A grid decides how much is launched, not what.
    fn is_index_of_kernel(&self, base: &Set) -> bool {
        !base.is_empty() && base.values().iter().all(|value| matches!(value, Value::Kernel(_)))
    }

    /// Whether a subscript is or holds a tensor.
    fn holds_tensor(&mut self, index: &Set) -> bool {
        index.values().iter().any(|&value| match value {
            Value::Tensor(_) => true,
            Value::Object(object) => self.elements(object).has_tensor(),
            _ => false,
        })
    }

    /// What a `for` over a set runs over.
    pub(super) fn iterate(&mut self, set: &Set) -> Set {
        let mut each = Set::default().opened(set.open);
        for &value in set.values() {
            match value {
                Value::Object(object) => {
                    each.join(&self.elements(object));
                    for index in 0..self.objects[object as usize].keyed.len() {
                        let key = self.objects[object as usize].keyed[index].0;
                        if !self.interner.text(key).starts_with('#') {
                            each.add(Value::Str(key));
                        }
                    }
                }
                Value::Tensor(_) | Value::Any => {
                    each.add(value);
                }
                Value::Plain | Value::Int(_) | Value::Str(_) => {
                    each.add(Value::Plain);
                }
                Value::Path(path) => {
                    let text = self.interner.text(path);
                    let known =
                        ["torch.", "triton.", "builtins.range", "itertools."].iter().any(|p| text.starts_with(p));
                    if text.contains("parameters()") || text.contains("buffers()") {
                        each.add(Value::Tensor(STATE));
                    } else if known {
                        each.open |= library::is_open_value(text);
                        each.add(Value::Plain);
                    } else {
                        each.join(&Set::unknown());
                    }
                }
                _ => {
                    each.join(&Set::unknown());
                }
            }
        }
        each
    }

    /// The parts of a set that is unpacked into a number of targets.
    pub(super) fn unpack(&mut self, set: &Set, index: usize) -> Set {
        let mut part = Set::default().opened(set.open);
        for &value in set.values() {
            match value {
                Value::Object(object) => {
                    part.join(&self.pick(object, &Set::of(Value::Int(index as i32))));
                }
                _ => {
                    part.join(&self.iterate(&Set::of(value)));
                }
            }
        }
        part
    }

    // Attributes -------------------------------------------------------------------------------------------------

    // Storing ----------------------------------------------------------------------------------------------------

    /// Notes that a tensor's memory gets what another holds.
    pub(super) fn copy(&mut self, to: u32, from: &Set) {
        for &value in from.values() {
            if let Value::Tensor(from) = value
                && from != to
                && !self.copied.contains(&(to, from))
                && self.copied.len() < 4096
            {
                self.copied.push((to, from));
            }
        }
    }

    /// `globals()[names]`
    pub(super) fn global_named(&mut self, names: &Set) -> Set {
        let cells = match self.strings(names) {
            Some(names) => names.into_iter().map(|name| self.variable(MODULE, name)).collect(),
            None => self.variables_of(MODULE),
        };
        let mut found = Set::default().opened(names.open);
        for cell in cells {
            found.join(&self.read(cell));
        }
        found
    }

    /// Whether what is written to a variable of a scope is state: it lives longer than a call of `forward`.
    pub(super) fn outlives(&self, scope: usize) -> bool {
        self.unit != MAIN
            && self.reached() != Guard::Never
            && !self.scopes.within(scope, self.units[self.unit as usize].scope)
    }
}
