//! Triton IR in memory: the generic MLIR shape (operations with operands, results, attributes and regions),
//! with types and attributes as enums. Consumers match on [`Op::name`].

use std::collections::BTreeMap;

/// Index of an SSA value in its function's [`Func::values`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

/// Index of a location in [`Module::locs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LocId(pub u32);

#[derive(Debug, Clone, PartialEq)]
pub struct Module {
    pub funcs: Vec<Func>,
    pub attrs: Attrs,
    /// Every location once, children before the locations that name them.
    pub locs: Vec<Loc>,
    pub loc: Option<LocId>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Func {
    pub name: String,
    pub public: bool,
    /// Block arguments of the entry block, in order.
    pub params: Vec<ValueId>,
    pub param_attrs: Vec<Attrs>,
    pub results: Vec<Type>,
    pub attrs: Attrs,
    pub body: Region,
    /// Type of every value; names are kept for messages only.
    pub values: Vec<ValueInfo>,
    pub loc: Option<LocId>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ValueInfo {
    pub ty: Type,
    /// The printed name without `%`, such as `x_5` or `0`.
    pub name: String,
    /// Of a block argument; a result has its operation's location.
    pub loc: Option<LocId>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Region {
    pub blocks: Vec<Block>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Block {
    pub args: Vec<ValueId>,
    pub ops: Vec<Op>,
}

/// One operation. Attribute names are those of MLIR's generic form (`tt.get_program_id` has `axis`,
/// `arith.cmpi` has `predicate`, `tt.load` has `cache`, `evict`, `isVolatile`, `operandSegmentSizes`, …),
/// whatever the printed form calls them, so that a consumer needs no knowledge of the syntax. An attribute
/// that has a default is always present (`fastmath` is `none` where nothing is printed).
///
/// Operands and regions are in generic order too:
/// - `scf.for`: low, high, step, initial values; its block takes the induction variable and the carried values.
/// - `scf.if`: the second region has no blocks where there is no `else`. `scf.while`: condition, then body.
/// - A `scf.yield` that is not printed is there all the same.
/// - `tt.load`: pointer, mask, other; `operandSegmentSizes` (always `[1, mask, other]`) says which are present.
/// - `tt.dot_scaled`: a, b, c, scale of a, scale of b; `operandSegmentSizes` is `[1, 1, 1, a, b]`.
/// - `tt.descriptor_store` and `tt.descriptor_reduce`: descriptor, value, offsets.
/// - `cf.br` and `cf.cond_br`: what is passed to a block is in `successors` only.
#[derive(Debug, Clone, PartialEq)]
pub struct Op {
    /// Full name, such as `tt.load`.
    pub name: String,
    pub operands: Vec<ValueId>,
    pub results: Vec<ValueId>,
    pub attrs: Attrs,
    pub regions: Vec<Region>,
    /// Target block in the enclosing region, with the operands passed to it (`cf.br`, `cf.cond_br`).
    pub successors: Vec<(usize, Vec<ValueId>)>,
    pub loc: Option<LocId>,
}

pub type Attrs = BTreeMap<String, Attr>;

#[derive(Debug, Clone, PartialEq)]
pub enum Attr {
    Unit,
    Bool(bool),
    /// With its type; an `i1` is [`Attr::Bool`].
    Int(i128, Type),
    /// The value's bits in its own type (`f16`, `bf16`, `f32`, `f64`, fp8), widened to 64 bits.
    Float(u64, Type),
    Str(String),
    /// `@name`
    Symbol(String),
    Type(Type),
    Array(Vec<Attr>),
    /// `array<i32: 1, 2>`
    DenseArray(Vec<i64>),
    /// `dense<…> : tensor<…>`; one element means a splat.
    Dense(Vec<Attr>, Type),
    /// An enumeration case by its keyword: `slt`, `acq_rel`, `gpu`, `tf32`, `fadd`, `evict_last`;
    /// of a flag set, the set flags in their printed order: `none`, `nsw, nuw`, `fast`.
    Enum(String),
    Dict(Attrs),
    /// Anything else, as printed.
    Raw(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Type {
    /// `i1`, `i8`, … (signless)
    Int(u32),
    Index,
    Float(FloatKind),
    /// `!tt.ptr<pointee>` with its address space (1 unless printed otherwise).
    Ptr(Box<Type>, u32),
    /// A ranked tensor of scalars or pointers, encoding dropped.
    Tensor(Vec<u64>, Box<Type>),
    /// `!tt.tensordesc<tensor<…>>`. Its integer elements are signed or unsigned, as `Other("si32")` or
    /// `Other("ui32")`; [`Type::descriptor_block`] reads them.
    TensorDesc(Box<Type>),
    /// `(inputs) -> results`
    Function(Vec<Type>, Vec<Type>),
    /// Any other type, as printed.
    Other(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FloatKind {
    /// `f8E4M3FN`
    E4M3,
    /// `f8E5M2`
    E5M2,
    /// `f8E4M3FNUZ`
    E4M3Uz,
    /// `f8E5M2FNUZ`
    E5M2Uz,
    /// `f8E4M3B11FNUZ`
    E4M3B11Uz,
    F16,
    Bf16,
    Tf32,
    F32,
    F64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Loc {
    Unknown,
    File {
        file: String,
        line: u32,
        column: u32,
    },
    /// `"name"(child)`
    Named(String, LocId),
    /// `callsite(callee at caller)`
    Call {
        callee: LocId,
        caller: LocId,
    },
    Fused(Vec<LocId>),
}
