//! Attributes of values, by name or by any of several names.

use ruff_text_size::TextRange;

use super::args::Args;
use super::call::Back;
use super::engine::{Engine, ObjectKind};
use super::intern::Sym;
use super::library::{self, Attribute};
use super::value::{ClassId, Guard, ObjId, STATE, Set, UnitId, Value};

/// Functions may have attributes too; their cells are kept beside those of classes.
const FUNCTION: ClassId = 1 << 31;

impl<'a> Engine<'_, 'a> {
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

    pub(super) fn path_attribute(&mut self, path: Sym, attr: Sym, place: TextRange) -> Set {
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

    pub(super) fn function_attribute(&mut self, value: Value, unit: UnitId, attr: Sym) -> Set {
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

    pub(super) fn object_attribute(&mut self, object: ObjId, attr: Sym, place: TextRange) -> Set {
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

    pub(super) fn is_path(&self, value: Value, path: &str) -> bool {
        matches!(value, Value::Path(sym) if self.interner.text(sym) == path
            || self.interner.text(sym).strip_prefix("torch.autograd.function") == path.strip_prefix("torch.autograd"))
    }

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
}
