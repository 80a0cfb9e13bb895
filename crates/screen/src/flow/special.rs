//! Library functions that lead to other values: `getattr`, `partial`, `map`, `nn.Sequential` and the like.

use ruff_text_size::TextRange;

use super::args::Args;
use super::call::Back;
use super::engine::{Body, Engine, Known, ObjectKind};
use super::intern::Sym;
use super::library::Gives;
use super::value::{COMPUTED, Effect, ObjId, PLACES, Set, Value};

/// Functions of libraries that lead to other values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Special {
    Getattr,
    Setattr,
    Namespace,
    Type,
    IsInstance,
    HasAttr,
    Super,
    Import,
    Partial,
    Map,
    Filter,
    StarMap,
    Reduce,
    Accumulate,
    AttrGetter,
    MethodCaller,
    ItemGetter,
    GetItem,
    CallOf,
    MethodType,
    Container,
    Unordered,
    Sorted,
    Hash,
    Chain,
    Zip,
    Enumerate,
    Next,
    Choice,
    Wraps,
    Jit,
    Same,
    CustomOp,
}

impl Special {
    pub(super) fn of(path: &str) -> Option<Self> {
        Some(match path {
            "builtins.getattr" => Self::Getattr,
            "builtins.setattr" | "builtins.object.__setattr__" | "builtins.type.__setattr__" => Self::Setattr,
            "builtins.vars" | "builtins.globals" | "builtins.locals" => Self::Namespace,
            "builtins.type" => Self::Type,
            "builtins.isinstance" | "builtins.issubclass" => Self::IsInstance,
            "builtins.hasattr" => Self::HasAttr,
            "builtins.super" => Self::Super,
            "builtins.__import__" | "importlib.import_module" => Self::Import,
            "functools.partial" | "functools.partialmethod" => Self::Partial,
            "builtins.map" => Self::Map,
            "builtins.filter" => Self::Filter,
            "itertools.starmap" => Self::StarMap,
            "functools.reduce" => Self::Reduce,
            "itertools.accumulate" => Self::Accumulate,
            "operator.attrgetter" => Self::AttrGetter,
            "operator.methodcaller" => Self::MethodCaller,
            "operator.itemgetter" => Self::ItemGetter,
            "operator.getitem" => Self::GetItem,
            "operator.call" => Self::CallOf,
            "types.MethodType" => Self::MethodType,
            "types.SimpleNamespace"
            | "collections.namedtuple"
            | "builtins.dict"
            | "collections.OrderedDict"
            | "collections.defaultdict"
            | "collections.deque"
            | "builtins.list"
            | "builtins.tuple"
            | "builtins.reversed"
            | "builtins.iter"
            | "builtins.bytearray"
            | "builtins.memoryview"
            | "array.array"
            | "itertools.chain"
            | "itertools.chain.from_iterable"
            | "itertools.cycle"
            | "itertools.islice"
            | "itertools.repeat"
            | "torch.nn.ModuleList"
            | "torch.nn.ModuleDict"
            | "torch.nn.ParameterList"
            | "torch.nn.ParameterDict" => Self::Container,
            "builtins.set" | "builtins.frozenset" => Self::Unordered,
            "builtins.sorted" => Self::Sorted,
            "builtins.hash" => Self::Hash,
            "torch.nn.Sequential" => Self::Chain,
            "builtins.zip" => Self::Zip,
            "builtins.enumerate" => Self::Enumerate,
            "builtins.next" => Self::Next,
            "random.choice" | "random.choices" | "secrets.choice" | "random.sample" => Self::Choice,
            "functools.wraps" => Self::Wraps,
            "triton.jit" | "triton.jit()" => Self::Jit,
            "torch.library.wrap_triton"
            | "torch._library.triton.wrap_triton"
            | "contextlib.contextmanager"
            | "contextlib.asynccontextmanager" => Self::Same,
            "torch.library.custom_op" | "torch.library.triton_op" => Self::CustomOp,
            _ => return None,
        })
    }
}

impl<'a> Engine<'_, 'a> {
    /// Calls something imported or built in.
    pub(super) fn library_call(&mut self, path: Sym, args: &Args, place: TextRange) -> (Effect, Set) {
        let Known { row, special, arithmetic, op } = self.known_call(path);
        if let Some(result) = special.and_then(|which| self.special(which, args, place)) {
            return result;
        }
        if op && let Some(found) = self.custom_op(path, args, place) {
            return found;
        }
        let open = row.open || args.all().any(|set| set.open);
        let mut effect = row.effect;
        if arithmetic {
            effect = effect.max(self.arithmetic_on(args));
            if effect == Effect::Compute {
                return (effect, Set::of(Value::Tensor(COMPUTED)).opened(open));
            }
        }
        if row.calls {
            let hook = self.interner.text(path).ends_with("_hook");
            effect = effect.max(self.call_back(args, if hook { Back::Hook } else { Back::Known }));
        }
        let mut result = match row.gives {
            Gives::Plain => {
                let open = args.all().any(|set| !set.has_tensor() && self.is_open(set));
                Set::plain().opened(open)
            }
            Gives::Memory => self.allocation(place),
            Gives::Moved => self.tensors(args),
            Gives::Computed => Set::of(Value::Tensor(COMPUTED)),
            Gives::Instance => {
                let open = args.all().any(|set| !set.has_tensor() && self.is_open(set));
                match self.interner.result(path) {
                    Some(instance) => Set::of(Value::Path(instance)).opened(open),
                    None => Set::unknown(),
                }
            }
            Gives::Arguments => {
                let mut all = Set::default();
                args.all().for_each(|set| {
                    all.join(set);
                });
                if all.values().iter().any(|value| matches!(value, Value::Object(_))) {
                    let sets: Vec<Set> = args.all().cloned().collect();
                    let made = self.collect(&sets.iter().collect::<Vec<_>>(), place);
                    for &value in all.clone().values() {
                        if let Value::Object(object) = value {
                            all.join(&self.elements(object));
                        }
                    }
                    all.join(&made);
                }
                // `functools.lru_cache(maxsize=…)`: the function comes later.
                let name = self.interner.text(path);
                let decorator = name.starts_with("functools.") || name.starts_with("dataclasses.");
                if decorator
                    && all.values().iter().all(|value| matches!(value, Value::Plain | Value::Int(_)))
                    && let Some(instance) = self.interner.result(path)
                {
                    all = Set::of(Value::Path(instance));
                }
                if all.is_empty() { self.collect(&[], place) } else { all }
            }
            Gives::Unknown => {
                let mut all = Set::unknown();
                args.all().for_each(|set| {
                    all.join(set);
                });
                all
            }
        };
        // Instances of torch's classes hold what they were made from.
        if row.gives == Gives::Instance && self.interner.text(path).contains("TensorDescriptor") {
            result.join(&self.tensors(args));
        }
        (effect, result.opened(open))
    }

    /// New memory, known by the place that makes it.
    pub(super) fn allocation(&mut self, place: TextRange) -> Set {
        let origin = PLACES + place.start().to_u32();
        self.allocates(origin, place);
        Set::of(Value::Tensor(origin))
    }

    /// The tensors among arguments and their elements.
    fn tensors(&mut self, args: &Args) -> Set {
        let mut found = Set::default();
        let mut rest = false;
        for set in args.all() {
            found.open |= set.open;
            for &value in set.values() {
                match value {
                    Value::Tensor(_) => {
                        found.add(value);
                    }
                    Value::Object(object) => {
                        for &value in self.elements(object).values() {
                            if matches!(value, Value::Tensor(_)) {
                                found.add(value);
                            }
                        }
                    }
                    Value::Unknown => rest = true,
                    _ => {}
                }
            }
        }
        if found.is_empty() || rest {
            found.add(Value::Tensor(super::value::STATE));
        }
        found
    }

    /// The effect of a builtin that does arithmetic on its arguments or on their elements.
    fn arithmetic_on(&mut self, args: &Args) -> Effect {
        let mut effect = Effect::Clear;
        for set in args.all() {
            for &value in set.values() {
                let inner = match value {
                    Value::Object(object) => self.elements(object),
                    _ => Set::of(value),
                };
                if inner.has_tensor() || inner.values().contains(&Value::Any) {
                    return Effect::Compute;
                }
                if inner.values().contains(&Value::Unknown) {
                    effect = Effect::Unknown;
                }
            }
        }
        effect
    }

    fn special(&mut self, which: Special, args: &Args, place: TextRange) -> Option<(Effect, Set)> {
        let clear = |set: Set| Some((Effect::Clear, set));
        match which {
            Special::Getattr => {
                let base = args.first();
                let names = args.at(1).cloned().unwrap_or_default();
                let mut found = self.attribute_named(&base, &names, place);
                if let Some(default) = args.positional.get(2) {
                    // Which of the two it is depends on the object.
                    let tensor = found.values().iter().any(|value| matches!(value, Value::TensorMethod(..)));
                    found.join(default);
                    found.open |= tensor;
                }
                clear(found)
            }
            Special::Setattr => {
                let base = args.first();
                let value = args.at(2).cloned().unwrap_or_default();
                match args.at(1).and_then(|names| self.strings(names)) {
                    Some(names) => names.into_iter().for_each(|name| self.set_attribute(&base, Some(name), &value)),
                    None => self.set_attribute(&base, None, &value),
                }
                clear(Set::plain())
            }
            Special::Namespace => {
                let first = args.first();
                let kind = if first.is_empty() { ObjectKind::Globals } else { ObjectKind::Namespace };
                let object = self.object(place, 4, kind);
                let rest = self.objects[object as usize].rest;
                self.write(rest, &first);
                // What else is in a namespace is the evaluator's business.
                clear(Set::of(Value::Object(object)).opened(kind == ObjectKind::Globals))
            }
            Special::Type => clear(self.type_of(&args.first(), place)),
            Special::IsInstance => {
                let open = self.is_open_class_test(&args.first(), &args.at(1).cloned().unwrap_or_default());
                clear(Set::plain().opened(open))
            }
            Special::HasAttr => {
                let first = args.first();
                clear(Set::plain().opened(first.open || !first.is_inert()))
            }
            Special::Super => {
                let mut found = Set::default();
                for &class in args.first().values() {
                    for &receiver in args.at(1).cloned().unwrap_or_default().values() {
                        if let (Value::Class(class), Value::Instance(receiver)) = (class, receiver) {
                            found.add(Value::Super(class, receiver));
                        }
                    }
                }
                clear(found)
            }
            Special::Import => {
                let mut found = Set::default();
                match self.strings(&args.first()) {
                    Some(names) => names.into_iter().for_each(|name| {
                        let module = crate::names::canonical(self.interner.text(name)).into_owned();
                        found.add(self.path(&module));
                    }),
                    None => {
                        found.add(Value::Any);
                    }
                }
                clear(found.opened(args.first().open))
            }
            Special::Partial => {
                let object = self.object(place, 5, ObjectKind::Partial);
                let rest = self.objects[object as usize].rest;
                self.write(rest, &args.first());
                for (index, set) in args.positional.iter().skip(1).enumerate() {
                    let cell = self.indexed(object, index);
                    self.write(cell, set);
                }
                for (name, set) in &args.keywords {
                    let cell = self.element(object, *name);
                    self.write(cell, set);
                }
                if let Some(more) = &args.more {
                    let key = self.sym("#*");
                    let cell = self.element(object, key);
                    self.write(cell, more);
                }
                clear(Set::of(Value::Object(object)))
            }
            Special::Map | Special::Filter | Special::StarMap | Special::Reduce | Special::Accumulate => {
                Some(self.mapped(which, args, place))
            }
            Special::AttrGetter | Special::MethodCaller => {
                let mut found = Set::default().opened(args.first().open);
                match self.strings(&args.first()) {
                    Some(names) => names.into_iter().for_each(|attr| {
                        let caller = which == Special::MethodCaller;
                        found.add(if caller { Value::MethodCaller(attr) } else { Value::AttrGetter(attr) });
                    }),
                    None => {
                        found.add(Value::Any);
                    }
                }
                clear(found)
            }
            Special::ItemGetter => clear(Set::of(Value::ItemGetter)),
            Special::GetItem => {
                let index = args.at(1).cloned().unwrap_or_default();
                clear(self.item(&args.first(), &index, place))
            }
            Special::CallOf => {
                let rest = Args { positional: args.positional.iter().skip(1).cloned().collect(), ..args.clone() };
                Some(self.invoke_all(&args.first(), &rest, place))
            }
            Special::MethodType => clear(self.method_type(args)),
            Special::Container => {
                let mut random = false;
                for set in args.all() {
                    random |= self.note_order(set, place, false);
                }
                let shuffled = args.all().cloned().collect::<Vec<_>>().iter().any(|set| self.is_shuffled(set));
                let made = self.container(args, place, ObjectKind::Container);
                if shuffled {
                    self.retype(&made, ObjectKind::Shuffled);
                }
                clear(made.opened(random))
            }
            Special::Sorted => clear(self.container(args, place, ObjectKind::Container)),
            Special::Unordered => clear(self.container(args, place, ObjectKind::Unordered)),
            Special::Hash => {
                self.note_hash(&args.first(), place);
                clear(Set::plain().opened(true))
            }
            Special::Chain => clear(self.container(args, place, ObjectKind::Chain)),
            Special::Zip | Special::Enumerate => clear(self.zipped(which, args, place)),
            Special::Wraps => clear(Set::of(self.path("functools.wraps()"))),
            Special::Choice => {
                let each = self.iterate(&args.first());
                clear(each.opened(true))
            }
            Special::Next => {
                self.note_order(&args.first(), place, true);
                let mut each = self.iterate(&args.first());
                if let Some(default) = args.positional.get(1) {
                    each.join(default);
                }
                clear(each.opened(true))
            }
            Special::Jit => {
                let mut found = Set::default();
                for &value in args.first().values() {
                    found.add(match value {
                        Value::Function(unit) => Value::Kernel(unit),
                        other => other,
                    });
                }
                if found.is_empty() {
                    return None;
                }
                clear(found)
            }
            Special::Same => clear(args.first()),
            Special::CustomOp => {
                if let Some(names) = self.strings(&args.first()) {
                    let object = self.object(place, 6, ObjectKind::Namespace);
                    for name in names {
                        let cell = self.element(object, name);
                        self.write(cell, &Set::plain());
                    }
                    if let Some(function) = args.positional.get(1) {
                        self.register_op(object, function);
                        return clear(function.clone());
                    }
                    // The decorator registers what it is applied to.
                    return clear(Set::of(Value::ObjectMethod(object, self.any_name)));
                }
                None
            }
        }
    }

    pub(super) fn register_op(&mut self, object: ObjId, function: &Set) {
        for (name, _) in self.objects[object as usize].keyed.clone() {
            let op = self.interner.text(name).replace("::", ".");
            let op = self.sym(&op);
            let cell = match self.ops.get(&op) {
                Some(&cell) => cell,
                None => {
                    let cell = self.new_cell();
                    self.ops.insert(op, cell);
                    cell
                }
            };
            self.write(cell, function);
        }
    }

    /// `torch.ops.ns.name(…)` of an operator that the file registers.
    fn custom_op(&mut self, path: Sym, args: &Args, place: TextRange) -> Option<(Effect, Set)> {
        let name = self.interner.text(path).strip_prefix("torch.ops.")?;
        let op = name.split('.').take(2).collect::<Vec<_>>().join(".");
        let op = self.sym(&op);
        let &cell = self.ops.get(&op)?;
        let functions = self.read(cell);
        Some(self.invoke_all(&functions, args, place))
    }

    fn type_of(&mut self, of: &Set, place: TextRange) -> Set {
        let mut found = Set::default().opened(of.open);
        for &value in of.values() {
            match value {
                Value::Instance(class) => {
                    found.add(Value::Class(class));
                }
                Value::Plain | Value::Int(_) | Value::Str(_) | Value::Object(_) => {
                    found.add(Value::Plain);
                }
                Value::Tensor(_) => {
                    found.add(self.path("torch.Tensor"));
                    found.open = true;
                }
                _ => {
                    found.add(Value::Unknown);
                    found.open = true;
                }
            }
        }
        let _ = place;
        found
    }

    /// Whether `isinstance(first, classes)` may tell a fake tensor from a real one.
    fn is_open_class_test(&mut self, first: &Set, classes: &Set) -> bool {
        if first.open || classes.open {
            return true;
        }
        if first.is_inert() {
            return false;
        }
        let mut all = Set::default();
        for &value in classes.values() {
            match value {
                Value::Object(object) => all.join(&self.elements(object)),
                _ => all.add(value),
            };
        }
        !all.values().iter().all(|value| match value {
            Value::Path(path) => {
                let path = self.interner.text(*path);
                path == "torch.Tensor" || path.starts_with("builtins.") || path.starts_with("typing.")
            }
            Value::Plain => true,
            _ => false,
        })
    }

    fn method_type(&mut self, args: &Args) -> Set {
        let mut found = Set::default();
        for &function in args.first().values() {
            for &receiver in args.at(1).cloned().unwrap_or_default().values() {
                found.add(match (function, receiver) {
                    (Value::Function(unit), Value::Instance(class)) => Value::Bound(unit, class),
                    (other, _) => other,
                });
            }
        }
        found
    }

    /// The unit of a function definition, registered as a kernel where it is one.
    pub(super) fn function_value(&mut self, def: &'a ruff_python_ast::StmtFunctionDef) -> Value {
        let unit = self.unit_of(Body::Function(def), def.range, self.class);
        if self.found.jitted.contains_key(&def.range) { Value::Kernel(unit) } else { Value::Function(unit) }
    }
}
