//! The state of the analysis: units of code, the cells that values flow through, and the work list.

use std::collections::BTreeMap;

use ruff_python_ast::{ExprLambda, Parameters, Stmt, StmtClassDef, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange, TextSize};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::args::Args;
use super::intern::{Interner, Sym};
use super::library;
use super::special::Special;
use super::value::{ClassId, Guard, INPUT, ObjId, Origin, Set, UnitId, Value};
use crate::Calls;
use crate::cut::Discovered;
use crate::names::Names;
use crate::scope::{MODULE, ScopeId, Scopes};

/// Evaluations of an expression that are allowed for each byte of the file (candidates need a quarter of that), and those to begin with.
const STEPS_A_BYTE: usize = 1;
const STEPS: usize = 20_000;

/// The class that a candidate must have.
const MODEL: &str = "ModelNew";

/// The unit of the module's own statements.
pub(super) const MAIN: UnitId = 0;

pub(super) type CellId = u32;

/// Nothing is known yet about what stands at an offset; a name there that the file does not bind.
pub(super) const NOTHING: u32 = u32::MAX;
pub(super) const UNBOUND: u32 = u32::MAX - 1;

/// What is known about calling a path.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub(super) row: library::Call,
    pub(super) special: Option<Special>,
    pub(super) arithmetic: bool,
    /// It is below `torch.ops`.
    pub(super) op: bool,
}

/// What is evaluated as one piece, again whenever something changes that it read.
#[derive(Clone, Copy)]
pub(super) enum Body<'a> {
    Module(&'a [Stmt]),
    Function(&'a StmtFunctionDef),
    Lambda(&'a ExprLambda),
    /// The call of `forward` that everything starts from.
    Entry,
}

/// How a function in a class gets its first argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    Static,
    OfClass,
    Property,
}

pub(super) struct Unit<'a> {
    pub(super) body: Body<'a>,
    pub(super) scope: ScopeId,
    pub(super) kind: Kind,
    /// The class in which it is nested, at any depth.
    pub(super) within: Option<ClassId>,
    pub(super) result: CellId,
    /// The iterator that a generator function returns.
    pub(super) generator: Option<ObjId>,
    /// How it is reached from `forward`.
    pub(super) guard: Guard,
    /// Whether it is evaluated at all: reached from `forward`, from `__init__` or from the module's statements.
    pub(super) live: bool,
    queued: bool,
}

impl<'a> Unit<'a> {
    pub(super) fn parameters(&self) -> Option<&'a Parameters> {
        match self.body {
            Body::Module(_) | Body::Entry => None,
            Body::Function(def) => Some(&def.parameters),
            Body::Lambda(lambda) => lambda.parameters.as_deref(),
        }
    }
}

/// A variable, an attribute or a result.
#[derive(Default)]
pub(super) struct Cell {
    pub(super) set: Set,
    readers: SmallVec<[UnitId; 2]>,
}

pub(super) struct Class {
    pub(super) scope: ScopeId,
    pub(super) bases: Set,
    /// Its metaclass, if it names one.
    pub(super) meta: Set,
}

/// A container, an iterator, a partial or a namespace, known by the place that makes it.
pub(super) struct Object {
    pub(super) kind: ObjectKind,
    /// Elements whose key is not known.
    pub(super) rest: CellId,
    /// Elements by constant key: text, or `#3` for an index.
    pub(super) keyed: Vec<(Sym, CellId)>,
    /// The unit that makes it.
    pub(super) maker: UnitId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Container,
    /// A set or frozenset: its order may change from process to process.
    Unordered,
    /// A container or iterator with the elements of a set in the order of that set.
    Shuffled,
    /// `nn.Sequential`: a call goes through its elements.
    Chain,
    /// `functools.partial`: `rest` holds the functions, `keyed` the arguments (`#0`, or by name).
    Partial,
    /// `x.__dict__`, `vars(x)`: `rest` holds `x`.
    Namespace,
    /// `globals()`
    Globals,
}

pub(super) struct Engine<'s, 'a> {
    pub(super) scopes: &'s Scopes<'a>,
    pub(super) names: &'s Names<'s, 'a>,
    pub(super) found: &'s Discovered<'a>,
    pub(super) interner: Interner,
    pub(super) units: Vec<Unit<'a>>,
    pub(super) cells: Vec<Cell>,
    pub(super) classes: Vec<Class>,
    pub(super) objects: Vec<Object>,
    units_by_place: FxHashMap<TextRange, UnitId>,
    classes_by_place: FxHashMap<TextRange, ClassId>,
    objects_by_place: FxHashMap<(u32, u32), ObjId>,
    variables: FxHashMap<(ScopeId, Sym), CellId>,
    attributes: FxHashMap<(ClassId, Sym), CellId>,
    calls: FxHashMap<Sym, Known>,
    methods: FxHashMap<Sym, library::Call>,
    /// What stands at an offset of the file: the variable of a name, the symbol of an attribute.
    pub(super) at: Vec<u32>,
    /// Names that the file does not bind.
    pub(super) unbound: FxHashMap<Sym, Set>,
    /// `#0`, `#1`, …
    pub(super) indices: Vec<Sym>,
    /// What is analysed: `forward` alone, or with backward passes.
    pub(super) called: Calls,
    /// Which function is called is not settled.
    pub(super) picked: bool,
    /// Calls within calls.
    pub(super) depth: u32,
    /// `torch.library.custom_op("ns::name", …)` by `torch.ops.ns.name`.
    pub(super) ops: FxHashMap<Sym, CellId>,
    /// Origins whose memory a launch was given.
    pub(super) launched: Vec<Origin>,
    /// `(to, from)`: memory that is copied into other memory.
    pub(super) copied: Vec<(Origin, Origin)>,
    /// A launch was given memory that is not known by place.
    pub(super) launched_unknown: bool,
    queue: Vec<UnitId>,
    pub(super) steps: usize,
    /// The unit that is evaluated.
    pub(super) unit: UnitId,
    /// The scope in which names are read.
    pub(super) scope: ScopeId,
    /// How the current place is reached, within its unit.
    pub(super) guard: Guard,
    pub(super) report: Option<super::report::Report>,
    /// The class whose body is evaluated.
    pub(super) class: Option<ClassId>,
    /// Kernels that `forward` launches, and those that are used in any other way.
    pub(super) launched_kernels: Vec<UnitId>,
    pub(super) used_kernels: Vec<UnitId>,
    /// The unit of the call that everything starts from.
    pub(super) entry: UnitId,
    /// What `ModelNew(…)` gives.
    model: CellId,
    /// The name of the attribute that stands for those set under unknown names.
    pub(super) any_name: Sym,
    /// Whether the text of an error is evaluated: it may list a set.
    pub(super) talks: bool,
    /// Places where the order of a set or the hash of a text gives a value, and whether that surely changes.
    pub(super) orders: BTreeMap<(TextSize, TextSize), bool>,
    /// What the arms and units do that are evaluated, outermost first.
    pub(super) touches: Vec<super::arms::Touch>,
    /// Within a handler for a launch that the device has no room for.
    pub(super) no_room: bool,
}

impl<'s, 'a> Engine<'s, 'a> {
    pub(super) fn new(
        body: &'a [Stmt],
        bytes: usize,
        scopes: &'s Scopes<'a>,
        names: &'s Names<'s, 'a>,
        found: &'s Discovered<'a>,
    ) -> Self {
        let mut interner = Interner::default();
        let any_name = interner.sym("*");
        let mut engine = Self {
            scopes,
            names,
            found,
            interner,
            units: Vec::new(),
            cells: Vec::new(),
            classes: Vec::new(),
            objects: Vec::new(),
            units_by_place: FxHashMap::default(),
            classes_by_place: FxHashMap::default(),
            objects_by_place: FxHashMap::default(),
            variables: FxHashMap::default(),
            attributes: FxHashMap::default(),
            calls: FxHashMap::default(),
            methods: FxHashMap::default(),
            at: vec![NOTHING; bytes + 1],
            unbound: FxHashMap::default(),
            indices: Vec::new(),
            called: Calls::Forward,
            picked: false,
            depth: 0,
            ops: FxHashMap::default(),
            launched: Vec::new(),
            copied: Vec::new(),
            launched_unknown: false,
            queue: Vec::new(),
            steps: STEPS + STEPS_A_BYTE * bytes,
            unit: MAIN,
            scope: MODULE,
            guard: Guard::Always,
            report: None,
            class: None,
            launched_kernels: Vec::new(),
            used_kernels: Vec::new(),
            entry: MAIN,
            model: 0,
            any_name,
            talks: false,
            orders: BTreeMap::new(),
            touches: Vec::new(),
            no_room: false,
        };
        engine.add_unit(Body::Module(body), MODULE, None);
        engine.entry = engine.add_unit(Body::Entry, MODULE, None);
        engine.model = engine.new_cell();
        engine
    }

    // Units ------------------------------------------------------------------------------------------------------

    fn add_unit(&mut self, body: Body<'a>, scope: ScopeId, class: Option<ClassId>) -> UnitId {
        let result = self.new_cell();
        let id = self.units.len() as UnitId;
        self.units.push(Unit {
            body,
            scope,
            within: class.or(self.units.get(self.unit as usize).and_then(|unit| unit.within)),
            kind: Kind::Plain,
            result,
            generator: None,
            guard: Guard::Never,
            live: false,
            queued: false,
        });
        id
    }

    pub(super) fn unit_of(&mut self, body: Body<'a>, place: TextRange, class: Option<ClassId>) -> UnitId {
        if let Some(&unit) = self.units_by_place.get(&place) {
            return unit;
        }
        let unit = self.add_unit(body, self.scopes.opened_by(place), class);
        self.units_by_place.insert(place, unit);
        unit
    }

    /// Says that a unit runs, and how it is reached from `forward`.
    pub(super) fn reach(&mut self, unit: UnitId, guard: Guard) {
        let it = &mut self.units[unit as usize];
        if !it.live || it.guard < guard {
            it.live = true;
            it.guard = it.guard.max(guard);
            self.enqueue(unit);
        }
    }

    fn enqueue(&mut self, unit: UnitId) {
        let it = &mut self.units[unit as usize];
        if it.live && !it.queued && self.report.is_none() {
            it.queued = true;
            self.queue.push(unit);
        }
    }

    /// The whole analysis. Whether it came to an end within the allowed steps.
    pub(super) fn run(&mut self) -> bool {
        self.reach(self.entry, Guard::Always);
        self.reach(MAIN, Guard::Never);
        self.settle()
    }

    /// Evaluates what is queued until nothing changes. Whether that came to an end within the allowed steps.
    fn settle(&mut self) -> bool {
        while let Some(unit) = self.queue.pop() {
            self.units[unit as usize].queued = false;
            self.evaluate(unit);
            if self.steps == 0 {
                return false;
            }
        }
        true
    }

    /// Evaluates one unit.
    pub(super) fn evaluate(&mut self, unit: UnitId) {
        let it = &self.units[unit as usize];
        let (body, scope) = (it.body, it.scope);
        (self.unit, self.scope, self.class) = (unit, scope, None);
        self.guard = if unit == MAIN { Guard::Always } else { it.guard.max(Guard::Always) };
        match body {
            Body::Module(stmts) => {
                self.block(stmts);
                self.construct_model();
            }
            Body::Entry => self.call_model(),
            Body::Function(def) => {
                self.block(&def.body);
            }
            Body::Lambda(lambda) => {
                let set = self.expr(&lambda.body);
                self.give(set);
            }
        }
    }

    /// `ModelNew(…)`, as part of what runs once.
    fn construct_model(&mut self) {
        let name = self.sym(MODEL);
        let cell = self.variable(MODULE, name);
        let classes = self.read(cell);
        let (_, model) = self.invoke_all(&classes, &Args::any(Set::plain()), TextRange::default());
        self.write(self.model, &model);
    }

    /// `model(…)`
    fn call_model(&mut self) {
        let model = self.read(self.model);
        let (_, result) = self.invoke_all(&model, &Args::any(Set::of(Value::Tensor(INPUT))), TextRange::default());
        self.give(result);
    }

    /// Whether the file has a model at all.
    pub(super) fn has_model(&self) -> bool {
        !self.cells[self.model as usize].set.is_empty()
    }

    /// How the current place is reached from `forward`.
    pub(super) fn reached(&self) -> Guard {
        match self.units[self.unit as usize].guard {
            Guard::Never => Guard::Never,
            _ => self.guard,
        }
    }

    // Cells ------------------------------------------------------------------------------------------------------

    pub(super) fn new_cell(&mut self) -> CellId {
        self.cells.push(Cell::default());
        self.cells.len() as CellId - 1
    }

    pub(super) fn read(&mut self, cell: CellId) -> Set {
        let unit = self.unit;
        let cell = &mut self.cells[cell as usize];
        if !cell.readers.contains(&unit) {
            cell.readers.push(unit);
        }
        cell.set.clone()
    }

    pub(super) fn write(&mut self, cell: CellId, set: &Set) {
        if self.report.is_some() {
            return;
        }
        if self.cells[cell as usize].set.join(set) {
            for index in 0..self.cells[cell as usize].readers.len() {
                let reader = self.cells[cell as usize].readers[index];
                self.enqueue(reader);
            }
        }
    }

    /// Adds to the result of the current unit.
    pub(super) fn give(&mut self, set: Set) {
        let open = self.guard == Guard::Open;
        let cell = self.units[self.unit as usize].result;
        self.write(cell, &set.opened(open));
    }

    pub(super) fn variable(&mut self, scope: ScopeId, name: Sym) -> CellId {
        if let Some(&cell) = self.variables.get(&(scope, name)) {
            return cell;
        }
        let cell = self.new_cell();
        self.variables.insert((scope, name), cell);
        cell
    }

    pub(super) fn known_variable(&self, scope: ScopeId, name: Sym) -> Option<CellId> {
        self.variables.get(&(scope, name)).copied()
    }

    /// Every variable of a scope.
    pub(super) fn variables_of(&self, scope: ScopeId) -> Vec<CellId> {
        let mut cells: Vec<_> =
            self.variables.iter().filter(|(key, _)| key.0 == scope).map(|(_, &cell)| cell).collect();
        cells.sort_unstable();
        cells
    }

    /// Every attribute that instances of a class have.
    pub(super) fn attributes_of(&self, class: ClassId) -> Vec<CellId> {
        let mut cells: Vec<_> = self.attributes.iter().filter(|(key, _)| key.0 == class).map(|(_, &c)| c).collect();
        cells.sort_unstable();
        cells
    }

    /// An attribute that is set on instances of a class, not in its body.
    pub(super) fn attribute_cell(&mut self, class: ClassId, name: Sym) -> CellId {
        if let Some(&cell) = self.attributes.get(&(class, name)) {
            return cell;
        }
        let cell = self.new_cell();
        self.attributes.insert((class, name), cell);
        cell
    }

    // Classes and objects ----------------------------------------------------------------------------------------

    pub(super) fn class_of(&mut self, def: &'a StmtClassDef) -> ClassId {
        if let Some(&class) = self.classes_by_place.get(&def.range()) {
            return class;
        }
        let id = self.classes.len() as ClassId;
        self.classes.push(Class {
            scope: self.scopes.opened_by(def.range()),
            bases: Set::default(),
            meta: Set::default(),
        });
        self.classes_by_place.insert(def.range(), id);
        id
    }

    /// The object that is made at a place; `role` tells several at one place apart.
    pub(super) fn object(&mut self, place: TextRange, role: u32, kind: ObjectKind) -> ObjId {
        let key = (place.start().to_u32(), place.end().to_u32() ^ (role << 24));
        if let Some(&object) = self.objects_by_place.get(&key) {
            return object;
        }
        let rest = self.new_cell();
        let id = self.objects.len() as ObjId;
        self.objects.push(Object { kind, rest, keyed: Vec::new(), maker: self.unit });
        self.objects_by_place.insert(key, id);
        id
    }

    /// The cell of an object's element with a constant key.
    pub(super) fn element(&mut self, object: ObjId, key: Sym) -> CellId {
        let it = &self.objects[object as usize];
        if let Some(&(_, cell)) = it.keyed.iter().find(|(known, _)| *known == key) {
            return cell;
        }
        // Hostile tables: past a number of keys, they are not told apart.
        if it.keyed.len() >= 256 {
            return it.rest;
        }
        let cell = self.new_cell();
        self.objects[object as usize].keyed.push((key, cell));
        cell
    }

    /// All elements of an object.
    pub(super) fn elements(&mut self, object: ObjId) -> Set {
        let it = &self.objects[object as usize];
        let cells: SmallVec<[CellId; 8]> =
            std::iter::once(it.rest).chain(it.keyed.iter().map(|&(_, cell)| cell)).collect();
        let mut all = Set::default();
        for cell in cells {
            let set = self.read(cell);
            all.join(&set);
        }
        all
    }

    // Names of things --------------------------------------------------------------------------------------------

    pub(super) fn sym(&mut self, text: &str) -> Sym {
        self.interner.sym(text)
    }

    pub(super) fn path(&mut self, text: &str) -> Value {
        Value::Path(self.interner.sym(text))
    }

    /// What is known about calling a path.
    pub(super) fn known_call(&mut self, path: Sym) -> Known {
        if let Some(&known) = self.calls.get(&path) {
            return known;
        }
        let text = self.interner.text(path);
        let known = Known {
            row: library::call(text),
            special: Special::of(text),
            arithmetic: library::is_arithmetic(text),
            op: text.starts_with("torch.ops."),
        };
        self.calls.insert(path, known);
        known
    }

    /// The row of the table for a method of tensors.
    pub(super) fn method_row(&mut self, name: Sym) -> library::Call {
        let interner = &self.interner;
        *self.methods.entry(name).or_insert_with(|| library::method_of_tensor(interner.text(name)))
    }
}
