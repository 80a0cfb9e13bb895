//! The form that kernels are executed in: steps over registers, each step on whole blocks.

use tilewright_ttir::FloatKind;

use crate::block::Block;
use crate::functions::LaneFn;
use crate::functions::assembly::AssemblyCall;
use crate::types::{Class, Elem};

/// A register holds one block. Several values that are equal as arrays (a reshape and its operand) share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Reg(pub(crate) u32);

#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) code: Code,
    pub(crate) args: Vec<Reg>,
    pub(crate) outs: Vec<Reg>,
    /// Line in the candidate's file, 0 if unknown.
    pub(crate) line: u32,
    /// The result goes into the offset of an address.
    pub(crate) offset: bool,
}

/// Values passed to the arguments of a loop or block.
#[derive(Debug, Clone, Default)]
pub(crate) struct Moves {
    pub(crate) pairs: Vec<Move>,
    /// Some source is also a target: all sources are read before any target is written.
    pub(crate) parallel: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Move {
    pub(crate) to: Reg,
    pub(crate) from: Reg,
    /// Nobody reads `from` again before it is written: the two may swap their storage.
    pub(crate) steal: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IntOp {
    Add,
    Sub,
    Mul,
    MulHighS,
    MulHighU,
    DivS,
    DivU,
    CeilDivS,
    CeilDivU,
    FloorDivS,
    RemS,
    RemU,
    And,
    Or,
    Xor,
    Shl,
    ShrS,
    ShrU,
    MinS,
    MaxS,
    MinU,
    MaxU,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IntUnary {
    Abs,
    LeadingZeros,
    TrailingZeros,
    Population,
    Reverse,
    /// Position of the lowest set bit from 1 on, 0 if there is none.
    FirstSet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FloatOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    MinNum,
    MaxNum,
    Minimum,
    Maximum,
    CopySign,
}

/// Float functions with loops of their own; the others go through [`Code::Math1`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FloatUnary {
    Neg,
    Abs,
    Sqrt,
    Rsqrt,
    Exp,
    Exp2,
    Log,
    Log2,
    Floor,
    Ceil,
    Trunc,
    Round,
    RoundEven,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IntPredicate {
    Eq,
    Ne,
    LtS,
    LeS,
    GtS,
    GeS,
    LtU,
    LeU,
    GtU,
    GeU,
}

/// `ordered` decides what a NaN on either side gives: false if ordered, true otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FloatRelation {
    Never,
    Eq,
    Gt,
    Ge,
    Lt,
    Le,
    Ne,
    Always,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cast {
    /// Integers of any width; `signed` is how the source extends. An `i1` source has the values 0 and 1, or 0 and -1.
    Int {
        from: Elem,
        to: Elem,
        signed: bool,
    },
    IntToFloat {
        from: Elem,
        to: FloatKind,
        signed: bool,
    },
    FloatToInt {
        to: Elem,
        signed: bool,
    },
    Float {
        from: FloatKind,
        to: FloatKind,
        truncate: bool,
    },
    Bits {
        from: Elem,
        to: Elem,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtomicOp {
    Add,
    AddF,
    MaxS,
    MinS,
    MaxU,
    MinU,
    And,
    Or,
    Xor,
    Exchange,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Atomic {
    pub(crate) elem: Elem,
    pub(crate) numel: usize,
    pub(crate) mask: bool,
    /// What others did before they released comes before what follows.
    pub(crate) acquire: bool,
    /// What came before comes before what follows in programs that acquire.
    pub(crate) release: bool,
}

/// The region of a reduction, a scan or an elementwise map: `args` are set, `steps` run, `results` are read.
#[derive(Debug, Clone)]
pub(crate) struct Region {
    pub(crate) args: Vec<Reg>,
    pub(crate) steps: Vec<Step>,
    pub(crate) results: Vec<Reg>,
    /// It has branches, so that lanes cannot run together.
    pub(crate) branches: bool,
    /// It is one commutative operation.
    pub(crate) simple: Option<Simple>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Simple {
    Int(IntOp),
    Float(FloatOp, FloatKind),
}

/// A strided view's block: its element type, its shape, and which dimensions are checked against the bounds.
#[derive(Debug, Clone)]
pub(crate) struct Tile {
    pub(crate) elem: Elem,
    pub(crate) block: Vec<usize>,
    /// Masked where outside of the tensor; other dimensions are only checked by the allocation.
    pub(crate) checked: Vec<bool>,
    /// NaN where masked, for loads (a descriptor says so itself).
    pub(crate) pad_nan: bool,
    /// The block's position is given by operands; otherwise the view holds it.
    pub(crate) from_operands: bool,
}

/// How products of `f32` operands are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    Ieee,
    /// Operands cut to tf32.
    Tf32,
    /// Operands split into parts of a narrower type, and the products of these parts added up.
    Tf32x3,
    Bf16x3,
    Bf16x6,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Dot {
    pub(crate) batch: usize,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) precision: Precision,
    pub(crate) result: Elem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScaledKind {
    E2M1,
    E4M3,
    E5M2,
    Half,
}

#[derive(Debug, Clone)]
pub(crate) struct DotScaled {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) kinds: [ScaledKind; 2],
    pub(crate) packed_along_k: [bool; 2],
    /// Which of the optional scale operands are there, and how many elements of K share one.
    pub(crate) scales: [Option<usize>; 2],
}

#[derive(Debug, Clone)]
pub(crate) enum Code {
    ProgramId(usize),
    NumPrograms(usize),
    Int(IntOp),
    IntUnary(IntUnary),
    Float(FloatOp, FloatKind),
    FloatUnary(FloatUnary, FloatKind),
    Fma(FloatKind),
    /// Operands value, low, high.
    Clamp {
        kind: FloatKind,
        propagate_nan: bool,
    },
    /// Computed in `f64`, rounded once.
    Math1(fn(f64) -> f64, FloatKind),
    Math2(fn(f64, f64) -> f64, FloatKind),
    /// Of a float and an `i32`.
    FloatInt(fn(f64, i32) -> f64, FloatKind),
    /// Any function of raw bits, lane by lane; the result's class.
    Lanes(LaneFn, Class),
    /// An elementwise operation on `f32` that takes subnormal numbers as zeros, and gives them as zeros if so said: Triton has
    /// libdevice built so.
    Flushed {
        code: Box<Code>,
        result: bool,
    },
    /// One result of an inline assembly.
    Assembly(Box<AssemblyCall>),
    /// A test of a float: an `i32` of 0 and 1.
    Test(fn(f64) -> bool),
    /// To a saturated integer after rounding by the function.
    RoundToInt {
        round: fn(f64) -> f64,
        signed: bool,
    },
    CompareInt(IntPredicate),
    /// Whether a byte that memory keeps a boolean in is not zero: how Triton loads a boolean.
    Truth,
    CompareFloat {
        relation: FloatRelation,
        ordered: bool,
    },
    Select,
    Cast(Cast),
    /// Pointer plus integer times the pointee's bytes.
    AddPtr(i64),
    Broadcast {
        from: Vec<usize>,
        to: Vec<usize>,
    },
    Transpose {
        shape: Vec<usize>,
        order: Vec<usize>,
    },
    Join {
        numel: usize,
    },
    Split {
        numel: usize,
    },
    Cat {
        numel: [usize; 2],
    },
    Load {
        elem: Elem,
        row: usize,
        mask: bool,
        other: bool,
        /// May be changed by another program at any time: reads like an atomic operation.
        volatile: bool,
    },
    Store {
        elem: Elem,
        row: usize,
        mask: bool,
    },
    AtomicRmw(Atomic, AtomicOp),
    AtomicCas(Atomic),
    /// Operands: base, shape, strides, and for a block pointer the offsets. A descriptor's base and strides are aligned.
    MakeView {
        rank: usize,
        offsets: bool,
        pad_nan: bool,
        elem: Elem,
    },
    Advance,
    /// Operands: the view, then for a descriptor the coordinates.
    LoadTile(Tile),
    /// Operands: the view, the coordinates, the value.
    StoreTile(Tile),
    ReduceTile(Tile, AtomicOp),
    /// Operands: the view, row numbers, column.
    GatherTile(Tile),
    ScatterTile(Tile),
    Dot(Dot),
    DotScaled(Box<DotScaled>),
    Reduce {
        shape: [usize; 3],
        region: Box<Region>,
    },
    Scan {
        shape: [usize; 3],
        reverse: bool,
        region: Box<Region>,
    },
    MapElementwise {
        numel: usize,
        pack: usize,
        region: Box<Region>,
    },
    Histogram {
        bins: usize,
        numel: usize,
        mask: bool,
    },
    /// Operands: source and positions, both `[outer, n, inner]` along the axis.
    Gather {
        source: Vec<usize>,
        index: Vec<usize>,
        axis: usize,
    },
    Assert(String),
    /// `tl.assume`.
    Assume,
    Hint(Box<Hint>),
    For(Box<For>),
    While(Box<While>),
    If(Box<If>),
    Blocks(Box<Blocks>),
}

/// What `tl.multiple_of` and `tl.max_contiguous` say of the operand, by dimension; 1 says nothing.
#[derive(Debug, Clone)]
pub(crate) struct Hint {
    pub(crate) shape: Vec<usize>,
    /// The first of each run of numbers is a multiple of it.
    pub(crate) divisible: Vec<i64>,
    /// Length of the runs of numbers that follow each other.
    pub(crate) contiguous: Vec<i64>,
}

/// Operands of the step: lower bound, upper bound, step. The loop's results are its arguments.
#[derive(Debug, Clone)]
pub(crate) struct For {
    pub(crate) counter: Reg,
    pub(crate) unsigned: bool,
    pub(crate) init: Moves,
    pub(crate) body: Vec<Step>,
    pub(crate) next: Moves,
}

#[derive(Debug, Clone)]
pub(crate) struct While {
    pub(crate) init: Moves,
    pub(crate) before: Vec<Step>,
    pub(crate) condition: Reg,
    pub(crate) forward: Moves,
    pub(crate) after: Vec<Step>,
    pub(crate) next: Moves,
}

#[derive(Debug, Clone)]
pub(crate) struct If {
    pub(crate) arms: [(Vec<Step>, Moves); 2],
}

/// Basic blocks with branches; the first one is entered.
#[derive(Debug, Clone)]
pub(crate) struct Blocks {
    pub(crate) blocks: Vec<(Vec<Step>, End)>,
}

#[derive(Debug, Clone)]
pub(crate) enum End {
    Branch(Target),
    Cond { condition: Reg, then: Target, otherwise: Target },
    Return(Moves),
}

#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) block: usize,
    pub(crate) moves: Moves,
}

/// A lowered kernel, before or after registers are shared.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program {
    pub(crate) classes: Vec<Class>,
    /// Set before the first program runs, never written after.
    pub(crate) constants: Vec<(Reg, Block)>,
    pub(crate) params: Vec<Reg>,
    pub(crate) written: Written,
    pub(crate) steps: Vec<Step>,
}

/// What a kernel may write.
#[derive(Debug, Clone, Default)]
pub(crate) struct Written {
    /// Parameters that point to it; None if it may be anything.
    pub(crate) params: Option<Vec<usize>>,
    /// Bytes of the smallest element accessed through them, and through any pointer.
    pub(crate) granule: usize,
    pub(crate) finest: usize,
    /// It accesses memory in ways that see what other programs do meanwhile: atomically, or by volatile loads.
    pub(crate) orders: bool,
}
