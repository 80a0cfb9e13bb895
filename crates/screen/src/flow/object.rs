//! Containers, attributes and what is stored in them.

use ruff_text_size::TextRange;

use super::call::{Args, Back};
use super::engine::{Engine, Kind, MAIN, ObjectKind};
use super::intern::Sym;
use super::library::{self, Attribute};
use super::value::{COMPUTED, ClassId, Effect, Guard, ObjId, STATE, Set, UnitId, Value};
use crate::scope::MODULE;

/// Bases of a class that are followed.
const MOST_BASES: usize = 16;

/// Functions may have attributes too; their cells are kept beside those of classes.
const FUNCTION: ClassId = 1 << 31;

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

    /// `getattr(base, names)`, where the names may be known.
    pub(super) fn attribute_named(&mut self, base: &Set, names: &Set, place: TextRange) -> Set {
        if let Some(names_known) = self.strings(names) {
            let mut found = Set::default();
            for name in names_known {
                found.join(&self.attribute(base, name, place));
            }
            return found.opened(names.open);
        }
        let mut found = Set::default().opened(base.open || names.open);
        for &value in base.values() {
            match value {
                // Any function of a module.
                Value::Path(_) | Value::Tensor(_) if names.open => {
                    found.add(Value::Any);
                }
                Value::Instance(class) | Value::Class(class) => {
                    for cell in self.attributes_of(class) {
                        found.join(&self.read(cell));
                    }
                    for cell in self.variables_of(self.classes[class as usize].scope) {
                        let set = self.read(cell);
                        let bound = self.bind(&set, class, value, place);
                        found.join(&bound);
                    }
                }
                Value::Object(object) => {
                    found.join(&self.elements(object));
                }
                _ => {
                    found.add(Value::Unknown);
                }
            }
        }
        found
    }

    /// `base.attr`
    pub(super) fn attribute(&mut self, base: &Set, attr: Sym, place: TextRange) -> Set {
        let mut found = Set::default().opened(base.open);
        for &value in base.values() {
            match value {
                Value::Path(path) => {
                    found.join(&self.path_attribute(path, attr, place));
                }
                Value::Tensor(origin) => match library::attribute_of_tensor(self.interner.text(attr)) {
                    Attribute::Settled => {
                        found.add(Value::Plain);
                    }
                    Attribute::View => {
                        found.add(value);
                    }
                    Attribute::Device => {
                        found.add(self.path("torch.device()"));
                    }
                    Attribute::Gradient => {
                        found.add(Value::Plain);
                        found.open |= origin != STATE;
                    }
                    Attribute::Method => {
                        found.add(Value::TensorMethod(origin, attr));
                    }
                },
                Value::Plain | Value::Int(_) | Value::Str(_) => {
                    found.add(if matches!(value, Value::Str(_)) { value } else { Value::Plain });
                }
                Value::Function(unit) | Value::Bound(unit, _) | Value::OfClass(unit, _) => {
                    found.join(&self.function_attribute(value, unit, attr));
                }
                Value::Class(class) => {
                    found.join(&self.class_attribute(class, attr, place));
                }
                Value::Instance(class) => {
                    found.join(&self.instance_attribute(class, attr, place));
                }
                Value::Super(class, receiver) => {
                    found.join(&self.inherited(class, receiver, attr, place));
                }
                Value::Kernel(kernel) => {
                    let name = self.interner.text(attr);
                    found.add(match name {
                        "run" => Value::Launcher(kernel),
                        "warmup" | "fn" | "kernel" => value,
                        _ => self.path(&format!("triton.kernel().{attr}")),
                    });
                }
                Value::Object(object) => {
                    found.join(&self.object_attribute(object, attr, place));
                }
                Value::Any => {
                    found.add(Value::Any);
                }
                _ => {
                    found.add(Value::UnknownMethod(attr));
                }
            }
        }
        found
    }

    fn path_attribute(&mut self, path: Sym, attr: Sym, place: TextRange) -> Set {
        match self.interner.text(attr) {
            "__call__" | "__wrapped__" => return Set::of(Value::Path(path)),
            "__dict__" => {
                let object = self.object(place, 4, ObjectKind::Namespace);
                let rest = self.objects[object as usize].rest;
                self.write(rest, &Set::of(Value::Path(path)));
                return Set::of(Value::Object(object));
            }
            _ => {}
        }
        let Some(path) = self.interner.extend(path, attr) else { return Set::unknown() };
        match library::is_layer_tensor(self.interner.text(path)) {
            Some(true) => Set::of(Value::Tensor(STATE)),
            Some(false) => Set::plain(),
            None => Set::of(Value::Path(path)),
        }
    }

    fn function_attribute(&mut self, value: Value, unit: UnitId, attr: Sym) -> Set {
        match self.interner.text(attr) {
            "__call__" | "__wrapped__" | "__func__" | "func" | "value" | "default" => return Set::of(value),
            "__name__" | "__doc__" | "__qualname__" | "__module__" => return Set::plain(),
            "register_fake" | "register_autograd" | "register_kernel" | "register_torch_dispatch" => {
                return Set::of(self.path("torch.library.register()"));
            }
            "cache_clear" | "cache_info" | "cache_parameters" => return Set::of(self.path("time.cache")),
            _ => {}
        }
        let cell = self.attribute_cell(FUNCTION | unit, attr);
        let set = self.read(cell);
        if set.is_empty() { Set::of(Value::UnknownMethod(attr)) } else { set }
    }

    fn object_attribute(&mut self, object: ObjId, attr: Sym, place: TextRange) -> Set {
        let it = &self.objects[object as usize];
        match it.kind {
            ObjectKind::Partial if matches!(self.interner.text(attr), "func" | "args" | "keywords") => {
                return self.elements(object);
            }
            _ => {}
        }
        if let Some(&(_, cell)) = it.keyed.iter().find(|(key, _)| *key == attr) {
            return self.read(cell);
        }
        let _ = place;
        Set::of(Value::ObjectMethod(object, attr))
    }

    /// What the body of a class, or code about it, binds to a name; `None` if nothing does.
    fn class_variable(&mut self, class: ClassId, attr: Sym) -> Option<Set> {
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
    fn lineage(&self, class: ClassId) -> (Vec<ClassId>, Vec<Value>) {
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
    fn inherited(&mut self, class: ClassId, receiver: ClassId, attr: Sym, place: TextRange) -> Set {
        self.looked_up(class, receiver, 1, attr, place)
    }

    fn looked_up(&mut self, class: ClassId, receiver: ClassId, skip: usize, attr: Sym, place: TextRange) -> Set {
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

    fn class_attribute(&mut self, class: ClassId, attr: Sym, place: TextRange) -> Set {
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
    fn passes(&mut self, class: ClassId) -> [Set; 2] {
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

    /// The backward pass of an `autograd.Function`: its launches count as uses, but `forward` does not reach it.
    fn backward(&mut self, class: ClassId) {
        let name = self.sym("backward");
        for &value in self.class_variable(class, name).unwrap_or_default().values() {
            if let Value::Function(unit) = value
                && let Some(parameters) = self.units[unit as usize].parameters()
            {
                let args = Args::any(Set::of(Value::Tensor(STATE)));
                self.bind_parameters(unit, parameters, Some(Value::Instance(class)), &args);
                self.reach(unit, Guard::Never);
            }
        }
    }

    pub(super) fn is_path(&self, value: Value, path: &str) -> bool {
        matches!(value, Value::Path(sym) if self.interner.text(sym) == path
            || self.interner.text(sym).strip_prefix("torch.autograd.function") == path.strip_prefix("torch.autograd"))
    }

    /// Turns functions of a class body into methods.
    fn bind(&mut self, set: &Set, class: ClassId, receiver: Value, place: TextRange) -> Set {
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

    // Storing ----------------------------------------------------------------------------------------------------

    /// `base.name = value`; without a name, it may be any.
    pub(super) fn set_attribute(&mut self, base: &Set, name: Option<Sym>, value: &Set) {
        let forward = self.reached() != Guard::Never;
        let open = self.guard == Guard::Open || forward;
        let name = name.unwrap_or(self.any_name);
        for &target in base.values() {
            match target {
                Value::Instance(class) => {
                    let cell = self.attribute_cell(class, name);
                    self.write(cell, &value.clone().opened(open));
                }
                Value::Class(class) => {
                    let scope = self.classes[class as usize].scope;
                    let cell = self.variable(scope, name);
                    self.write(cell, &value.clone().opened(open));
                }
                Value::Function(unit) => {
                    let cell = self.attribute_cell(FUNCTION | unit, name);
                    self.write(cell, &value.clone().opened(open));
                }
                Value::Object(object) => {
                    let key = Set::of(Value::Str(name));
                    self.store(object, &key, value);
                }
                Value::Tensor(origin) => self.copy(origin, value),
                // A library may call what it is given.
                Value::Path(_) | Value::Unknown => {
                    self.call_back(&Args::of([value.clone()]), Back::Unknown);
                }
                _ => {}
            }
        }
    }

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

/// The functions in a set.
fn functions(set: &Set) -> impl Iterator<Item = UnitId> + '_ {
    set.values().iter().filter_map(|value| match value {
        Value::Function(unit) => Some(*unit),
        _ => None,
    })
}
