//! Containers: what makes them out of others (`map`, `zip`, `dict` …), and their methods.

use ruff_text_size::TextRange;

use super::args::Args;
use super::call::Back;
use super::engine::{Engine, ObjectKind};
use super::intern::Sym;
use super::special::Special;
use super::value::{Effect, ObjId, Set, Value};

impl Engine<'_, '_> {
    /// `values.append(x)`, `table.get(key)`, `table.items()`, …
    pub(super) fn object_method(&mut self, object: ObjId, name: Sym, args: &Args, place: TextRange) -> (Effect, Set) {
        let clear = |set: Set| (Effect::Clear, set);
        if name == self.any_name {
            let function = args.first();
            self.register_op(object, &function);
            return clear(function);
        }
        let method = self.interner.text(name).to_owned();
        let kind = self.objects[object as usize].kind;
        match method.as_str() {
            "get" | "pop" | "setdefault" | "__getitem__" => {
                let key = args.first();
                let base = Set::of(Value::Object(object));
                if kind == ObjectKind::Unordered {
                    let open = self.note_order(&base, place, true);
                    return clear(self.elements(object).opened(open));
                }
                let mut found = match args.positional.is_empty() {
                    true => self.elements(object),
                    false => self.item(&base, &key, place),
                };
                // Which one it is depends on whether the key is there.
                if let Some(default) = args.positional.get(1) {
                    found.join(default);
                    if method == "setdefault" {
                        self.store(object, &key, default);
                    }
                } else if method == "get" {
                    found.add(Value::Plain);
                }
                clear(found.opened(self.is_open(&key)))
            }
            "append" | "add" | "appendleft" | "extend" | "update" | "insert" | "remove" | "sort" | "reverse"
            | "rotate" | "clear" | "discard" | "__setitem__" | "__ior__" | "__iadd__" | "push" => {
                if kind == ObjectKind::Namespace {
                    let of = self.elements(object);
                    let values: Vec<Set> = args.all().cloned().collect();
                    for value in values {
                        let each = self.iterate(&value);
                        self.set_attribute(&of, None, &each);
                    }
                    return clear(Set::plain());
                }
                for set in args.all().cloned().collect::<Vec<_>>() {
                    match method.as_str() {
                        "extend" | "update" | "__ior__" | "__iadd__" => self.pour(object, &set),
                        _ => self.add_to(object, &set),
                    }
                }
                if !matches!(method.as_str(), "append" | "add" | "extend" | "update" | "__setitem__") {
                    // Places move: any element may be anywhere.
                    let all = self.elements(object);
                    self.add_to(object, &all);
                }
                for (name, set) in &args.keywords {
                    let cell = self.element(object, *name);
                    self.write(cell, set);
                }
                clear(Set::plain())
            }
            "items" => {
                let pair = self.object(place, 2, ObjectKind::Container);
                let list = self.object(place, 1, ObjectKind::Container);
                let mut keys = Set::plain();
                for (key, _) in self.objects[object as usize].keyed.clone() {
                    if !self.interner.text(key).starts_with('#') {
                        keys.add(Value::Str(key));
                    }
                }
                let values = self.elements(object);
                let (first, second) = (self.indexed(pair, 0), self.indexed(pair, 1));
                self.write(first, &keys);
                self.write(second, &values);
                self.add_to(list, &Set::of(Value::Object(pair)));
                clear(Set::of(Value::Object(list)))
            }
            "values" | "copy" | "children" | "modules" | "__iter__" => clear(Set::of(Value::Object(object))),
            "keys" => clear(Set::of(Value::Object(object))),
            "popitem" | "popleft" | "__next__" | "send" | "throw" | "close" => {
                let each = self.elements(object);
                clear(each.opened(true))
            }
            "index" | "count" | "__len__" | "__contains__" => clear(Set::plain()),
            "forward" | "__call__" => self.invoke(Value::Object(object), args, place, false),
            "parameters"
            | "named_parameters"
            | "to"
            | "cuda"
            | "half"
            | "float"
            | "train"
            | "eval"
            | "register_forward_hook"
            | "register_forward_pre_hook"
            | "requires_grad_"
            | "add_module"
            | "register_module"
            | "apply" => {
                for set in args.all().cloned().collect::<Vec<_>>() {
                    self.add_to(object, &set);
                }
                (self.call_back(args, Back::Known), Set::of(Value::Object(object)))
            }
            _ if kind == ObjectKind::Namespace || kind == ObjectKind::Globals => (Effect::Unknown, Set::unknown()),
            _ => {
                // An attribute of a `SimpleNamespace`, or a method that is not known.
                let values = self.elements(object);
                let callable: Vec<Value> = values
                    .values()
                    .iter()
                    .copied()
                    .filter(|value| !matches!(value, Value::Plain | Value::Int(_) | Value::Str(_) | Value::Tensor(_)))
                    .collect();
                let mut result = Set::unknown();
                let mut effect = Effect::Unknown;
                for value in callable {
                    let (worst, set) = self.invoke(value, args, place, true);
                    effect = effect.max(worst);
                    result.join(&set);
                }
                (effect, result)
            }
        }
    }

    /// `map(function, values)` and its kin.
    pub(super) fn mapped(&mut self, which: Special, args: &Args, place: TextRange) -> (Effect, Set) {
        let values: Vec<Set> = args.positional.iter().skip(1).chain(&args.more).cloned().collect();
        let mut each: Vec<Set> = values.iter().map(|set| self.iterate(set)).collect();
        if which == Special::StarMap {
            each = each.iter().map(|set| self.iterate(set)).collect();
        }
        let function = args.first();
        let call = match which {
            Special::Reduce | Special::Accumulate => {
                let mut all = Set::default();
                each.iter().chain(values.get(1)).for_each(|set| {
                    all.join(set);
                });
                Args::of([all.clone(), all])
            }
            Special::StarMap => Args::any(each.into_iter().next().unwrap_or_default()),
            _ => Args::of(each.iter().cloned()),
        };
        let (effect, mut result) = if function.values() == [Value::Plain] {
            (Effect::Clear, values.first().cloned().unwrap_or_default())
        } else {
            self.invoke_all(&function, &call, place)
        };
        if which == Special::Reduce {
            return (effect, result);
        }
        if which == Special::Filter {
            result = call.first();
        }
        let object = self.object(place, 1, ObjectKind::Container);
        self.add_to(object, &result);
        (effect, Set::of(Value::Object(object)))
    }

    /// A container made from arguments: mappings keep their keys.
    pub(super) fn container(&mut self, args: &Args, place: TextRange, kind: ObjectKind) -> Set {
        let object = self.object(place, 1, kind);
        for set in args.all().cloned().collect::<Vec<_>>() {
            let pairs: Vec<Value> = set.values().to_vec();
            for value in pairs {
                match value {
                    Value::Object(_) => self.pour(object, &Set::of(value).opened(set.open)),
                    _ => self.add_to(object, &Set::of(value).opened(set.open)),
                }
            }
        }
        // `dict([(key, value)])`: the elements of elements.
        let inner = self.elements(object);
        for &value in inner.values() {
            if let Value::Object(pair) = value
                && pair != object
            {
                let set = self.elements(pair);
                self.add_to(object, &set);
            }
        }
        for (name, set) in &args.keywords {
            let cell = self.element(object, *name);
            self.write(cell, set);
        }
        Set::of(Value::Object(object))
    }

    /// `zip` and `enumerate`: an iterator over tuples whose parts are told apart.
    pub(super) fn zipped(&mut self, which: Special, args: &Args, place: TextRange) -> Set {
        let object = self.object(place, 1, ObjectKind::Container);
        let pair = self.object(place, 2, ObjectKind::Container);
        let mut parts: Vec<Set> = args.positional.iter().chain(&args.more).cloned().collect();
        let open = parts.iter().any(|set| set.open);
        if which == Special::Enumerate {
            parts.truncate(1);
            parts.insert(0, Set::plain());
        }
        for (index, set) in parts.iter().enumerate() {
            let random = self.note_order(set, place, false);
            let each = self.iterate(set).opened(random);
            let cell = self.indexed(pair, index);
            self.write(cell, &each);
        }
        self.add_to(object, &Set::of(Value::Object(pair)));
        Set::of(Value::Object(object)).opened(open)
    }
}
