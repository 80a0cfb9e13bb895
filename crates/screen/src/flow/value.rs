//! What an expression may evaluate to.

use smallvec::SmallVec;

use super::intern::Sym;

pub(super) type UnitId = u32;
pub(super) type ClassId = u32;
pub(super) type ObjId = u32;
/// Where a tensor's memory was made: an allocation's place in the file, or one of the constants below.
pub(super) type Origin = u32;

/// Memory that a torch computation filled.
pub(super) const COMPUTED: Origin = 0;
/// Parameters, buffers and constants of the module.
pub(super) const STATE: Origin = 1;
/// What `forward` is called with.
pub(super) const INPUT: Origin = 2;
/// Any memory.
pub(super) const MIXED: Origin = 3;
/// The first origin that stands for a place.
pub(super) const PLACES: Origin = 16;

/// Distinct values in one set; more become [`Value::Any`].
const MOST: usize = 48;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Value {
    /// A number, shape, dtype, `None` or text that cannot be folded: nothing that computes on tensors when called.
    Plain,
    Int(i32),
    Str(Sym),
    /// Something imported or built in, and what calling it gives: `torch.nn.Linear`, `torch.nn.Linear().weight`.
    Path(Sym),
    Function(UnitId),
    /// A method and the class of its receiver, an instance.
    Bound(UnitId, ClassId),
    /// A class method and its class.
    OfClass(UnitId, ClassId),
    Class(ClassId),
    /// `apply` of an `autograd.Function`.
    Apply(ClassId),
    Instance(ClassId),
    /// `super()` in the first class, for a receiver of the second.
    Super(ClassId, ClassId),
    /// A jit function, or `kernel.warmup(…)`.
    Kernel(u32),
    /// `kernel[grid]`, `kernel.run`
    Launcher(u32),
    /// A dict, list, tuple, set, iterator, partial or namespace.
    Object(ObjId),
    /// A method of an object.
    ObjectMethod(ObjId, Sym),
    Tensor(Origin),
    TensorMethod(Origin, Sym),
    /// `operator.attrgetter("…")` and `operator.methodcaller("…")`
    AttrGetter(Sym),
    MethodCaller(Sym),
    ItemGetter,
    /// A method of something unknown.
    UnknownMethod(Sym),
    /// Nothing is known about it.
    Unknown,
    /// It may be any function of torch.
    Any,
}

impl Value {
    /// What stands for this value in a set that tells fewer things apart.
    fn widened(self) -> Self {
        match self {
            Self::Int(_) | Self::Str(_) => Self::Plain,
            Self::Tensor(_) => Self::Tensor(MIXED),
            other => other,
        }
    }
}

/// A set of values, and whether which of them it is depends on more than the signature.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Set {
    values: SmallVec<[Value; 3]>,
    /// Constants and tensors are not told apart any more.
    wide: bool,
    pub(super) open: bool,
}

impl Set {
    pub(super) fn of(value: Value) -> Self {
        Self { values: SmallVec::from_slice(&[value]), wide: false, open: false }
    }

    pub(super) fn plain() -> Self {
        Self::of(Value::Plain)
    }

    pub(super) fn unknown() -> Self {
        Self { values: SmallVec::from_slice(&[Value::Unknown]), wide: false, open: true }
    }

    pub(super) fn opened(mut self, open: bool) -> Self {
        self.open |= open;
        self
    }

    pub(super) fn values(&self) -> &[Value] {
        &self.values
    }

    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds a value; whether that changed the set.
    pub(super) fn add(&mut self, value: Value) -> bool {
        let value = if self.wide { value.widened() } else { value };
        let Err(at) = self.values.binary_search(&value) else { return false };
        if self.values.last() == Some(&Value::Any) {
            return false;
        }
        if self.values.len() < MOST {
            self.values.insert(at, value);
        } else if self.wide {
            self.values = SmallVec::from_slice(&[Value::Any]);
        } else {
            // Constants become one value, and so do tensors, which makes room for the rest.
            self.wide = true;
            let all = std::mem::take(&mut self.values);
            all.into_iter().chain([value]).for_each(|value| {
                self.add(value);
            });
        }
        true
    }

    /// Adds all of another set; whether anything changed.
    pub(super) fn join(&mut self, other: &Self) -> bool {
        let mut changed = other.open && !self.open;
        self.open |= other.open;
        for &value in &other.values {
            changed |= self.add(value);
        }
        changed
    }

    pub(super) fn has_tensor(&self) -> bool {
        self.values.iter().any(|value| matches!(value, Value::Tensor(_)))
    }

    /// Whether nothing in it may be a tensor.
    pub(super) fn is_inert(&self) -> bool {
        !self.values.iter().any(|value| matches!(value, Value::Tensor(_) | Value::Unknown | Value::Any))
    }
}

/// How a place in the code comes to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Guard {
    /// It does not, as far as is known.
    #[default]
    Never,
    /// Whenever `forward` runs.
    Always,
    /// Where a condition holds that the signature settles.
    Settled,
    /// Where something holds that a trace may answer differently than a real run.
    Open,
}

/// What a call may do, from harmless to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effect {
    Clear,
    Unknown,
    Compute,
}
