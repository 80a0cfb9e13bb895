//! Operations on each element for itself.

use tilewright_ttir::FloatKind;

use super::cast::{cast, float_to_int};
use super::{Machine, flow};
use crate::block::{Block, Lanes, map1, map2, map3};
use crate::code::{Code, FloatOp, FloatRelation, FloatUnary, IntOp, IntPredicate, IntUnary, Step};
use crate::convert;
use crate::fault::{DefectKind, Fault};
use crate::functions::LaneFn;
use crate::numeric::{Float, Int};
use crate::types::Class;

impl Machine<'_> {
    pub(super) fn elementwise(&mut self, step: &Step) -> Result<(), Fault> {
        let mut out = self.out(step)?;
        let done = self.compute(step, &mut out);
        self.report.flops += flops(&step.code) * out.len() as u64;
        self.put(step, out);
        if done.is_none() {
            return Err(self.malformed("operands of unexpected types"));
        }
        self.flow(step);
        if let Code::Int(op) = step.code {
            self.find_defects(step, op);
        }
        Ok(())
    }

    /// Divisions by zero, and wrapped arithmetic that an address may depend on.
    fn find_defects(&mut self, step: &Step, op: IntOp) {
        use IntOp::{CeilDivS, CeilDivU, DivS, DivU, FloorDivS, RemS, RemU};
        let [Some(a), Some(b)] = [0, 1].map(|index| step.args.get(index).map(|&reg| self.reg(reg))) else { return };
        let found = match (op, a, b) {
            (DivS | DivU | RemS | RemU | CeilDivS | CeilDivU | FloorDivS, _, by) => {
                zeros(by).map(|lanes| (DefectKind::DivisionByZero, lanes))
            }
            (_, Block::I32(a), Block::I32(b)) if step.offset => {
                flow::wraps(op, a, b).map(|lanes| (DefectKind::Overflow, lanes))
            }
            _ => None,
        };
        if let Some((kind, lanes)) = found {
            self.born(step, kind, &lanes);
        }
    }

    /// None if the operands' types do not fit.
    fn compute(&self, step: &Step, out: &mut Block) -> Option<()> {
        if let Code::Flushed { code, result } = &step.code {
            let args: Vec<Block> = step.args.iter().map(|&reg| flushed(self.reg(reg).clone())).collect();
            self.compute_on(code, args.len(), |index| args.get(index), out)?;
            if *result {
                *out = flushed(std::mem::take(out));
            }
            return Some(());
        }
        self.compute_on(&step.code, step.args.len(), |index| step.args.get(index).map(|&reg| self.reg(reg)), out)
    }

    fn compute_on<'b>(
        &self,
        code: &Code,
        count: usize,
        arg: impl Fn(usize) -> Option<&'b Block>,
        out: &mut Block,
    ) -> Option<()> {
        match *code {
            Code::ProgramId(axis) => set_i32(out, *self.task.program.get(axis)?),
            Code::NumPrograms(axis) => set_i32(out, *self.grid.get(axis)?),
            Code::Int(op) => int_op(op, arg(0)?, arg(1)?, out),
            Code::IntUnary(op) => int_unary(op, arg(0)?, out),
            Code::Float(op, kind) => {
                float_op(op, arg(0)?, arg(1)?, out)?;
                round(kind, out)
            }
            Code::FloatUnary(op, kind) => {
                float_unary(op, arg(0)?, out)?;
                round(kind, out)
            }
            Code::Fma(kind) => {
                match (arg(0)?, arg(1)?, arg(2)?) {
                    (Block::F32(a), Block::F32(b), Block::F32(c)) if kind == FloatKind::F32 => {
                        map3(a, b, c, f32s(out), f32::fma);
                    }
                    (Block::F32(a), Block::F32(b), Block::F32(c)) => map3(a, b, c, f32s(out), convert::fma_odd),
                    (Block::F64(a), Block::F64(b), Block::F64(c)) => map3(a, b, c, f64s(out), f64::fma),
                    _ => return None,
                }
                round(kind, out)
            }
            Code::Clamp { kind, propagate_nan } => {
                match (arg(0)?, arg(1)?, arg(2)?) {
                    (Block::F32(x), Block::F32(low), Block::F32(high)) => {
                        map3(x, low, high, f32s(out), |x, low, high| clamp(x, low, high, propagate_nan));
                    }
                    (Block::F64(x), Block::F64(low), Block::F64(high)) => {
                        map3(x, low, high, f64s(out), |x, low, high| clamp(x, low, high, propagate_nan));
                    }
                    _ => return None,
                }
                round(kind, out)
            }
            Code::Math1(f, kind) => {
                match arg(0)? {
                    Block::F32(a) => map1(a, f32s(out), |x| f(f64::from(x)) as f32),
                    Block::F64(a) => map1(a, f64s(out), f),
                    _ => return None,
                }
                round(kind, out)
            }
            Code::Math2(f, kind) => {
                match (arg(0)?, arg(1)?) {
                    (Block::F32(a), Block::F32(b)) => {
                        map2(a, b, f32s(out), |x, y| f(f64::from(x), f64::from(y)) as f32);
                    }
                    (Block::F64(a), Block::F64(b)) => map2(a, b, f64s(out), f),
                    _ => return None,
                }
                round(kind, out)
            }
            Code::FloatInt(f, kind) => {
                match (arg(0)?, arg(1)?) {
                    (Block::F32(a), Block::I32(b)) => map2(a, b, f32s(out), |x, n| f(f64::from(x), n) as f32),
                    (Block::F64(a), Block::I32(b)) => map2(a, b, f64s(out), f),
                    _ => return None,
                }
                round(kind, out)
            }
            Code::Test(f) => {
                match arg(0)? {
                    Block::F32(a) => map1(a, i32s(out), |x| i32::from(f(f64::from(x)))),
                    Block::F64(a) => map1(a, i32s(out), |x| i32::from(f(x))),
                    _ => return None,
                }
                Some(())
            }
            Code::RoundToInt { round, signed } => {
                // A whole number of the source's type is one of its values.
                let whole = match arg(0)? {
                    Block::F32(a) => Block::F32(a.iter().map(|&x| round(f64::from(x)) as f32).collect()),
                    Block::F64(a) => Block::F64(a.iter().map(|&x| round(x)).collect()),
                    _ => return None,
                };
                float_to_int(signed, false, &whole, out)
            }
            Code::Truth => compare_int(IntPredicate::Ne, arg(0)?, arg(1)?, i8s(out)),
            Code::CompareInt(predicate) => compare_int(predicate, arg(0)?, arg(1)?, i8s(out)),
            Code::CompareFloat { relation, ordered } => compare_float(relation, ordered, arg(0)?, arg(1)?, i8s(out)),
            Code::Select => select(arg(0)?, arg(1)?, arg(2)?, out),
            Code::Cast(how) => cast(how, arg(0)?, out),
            Code::AddPtr(size) => {
                let (Block::I64(pointers), out) = (arg(0)?, i64s(out)) else { return None };
                // Vectors multiply 64-bit integers slowly, and sizes are powers of two.
                if size.count_ones() == 1 {
                    let shift = size.trailing_zeros();
                    add_pointers(pointers, arg(1)?, out, |offset| offset << shift)
                } else {
                    add_pointers(pointers, arg(1)?, out, |offset| offset.wrapping_mul(size))
                }
            }
            Code::Lanes(function, class) => {
                let args: Vec<&Block> = (0..count).map(arg).collect::<Option<_>>()?;
                lane_by_lane(function, class, &args, out)
            }
            Code::Assembly(ref assembly) => {
                let args: Vec<&Block> = (0..count).map(arg).collect::<Option<_>>()?;
                assembly.run(&args, out)
            }
            _ => None,
        }
    }
}

/// Pointers plus offsets of any integer type, which `scale` turns into bytes.
#[inline(always)]
fn add_pointers(pointers: &[i64], offsets: &Block, out: &mut Vec<i64>, scale: impl Fn(i64) -> i64) -> Option<()> {
    match offsets {
        Block::I32(offsets) => map2(pointers, offsets, out, |p, o| p.wrapping_add(scale(i64::from(o)))),
        Block::I64(offsets) => map2(pointers, offsets, out, |p, o| p.wrapping_add(scale(o))),
        Block::I16(offsets) => map2(pointers, offsets, out, |p, o| p.wrapping_add(scale(i64::from(o)))),
        Block::I8(offsets) => map2(pointers, offsets, out, |p, o| p.wrapping_add(scale(i64::from(o)))),
        _ => return None,
    }
    Some(())
}

/// Floating operations on each element.
fn flops(code: &Code) -> u64 {
    match code {
        Code::Float(..) | Code::FloatUnary(..) | Code::Math1(..) | Code::Math2(..) | Code::FloatInt(..) => 1,
        Code::Fma(_) | Code::Clamp { .. } => 2,
        Code::Flushed { code, .. } => flops(code),
        _ => 0,
    }
}

/// Which elements are zero, if any are.
fn zeros(block: &Block) -> Option<Vec<bool>> {
    fn find<T: Copy + Default + PartialEq>(v: &[T]) -> Option<Vec<bool>> {
        v.contains(&T::default()).then(|| v.iter().map(|&x| x == T::default()).collect())
    }
    match block {
        Block::I8(v) => find(v),
        Block::I16(v) => find(v),
        Block::I32(v) => find(v),
        Block::I64(v) => find(v),
        _ => None,
    }
}

macro_rules! storage {
    ($name:ident, $variant:ident, $t:ty) => {
        /// The block's storage, of this type whatever it held before.
        fn $name(block: &mut Block) -> &mut Vec<$t> {
            if !matches!(block, Block::$variant(_)) {
                *block = Block::$variant(Vec::new());
            }
            match block {
                Block::$variant(v) => v,
                _ => unreachable!("the variant was just set"),
            }
        }
    };
}
storage!(i8s, I8, i8);
storage!(i32s, I32, i32);
storage!(i64s, I64, i64);
storage!(f32s, F32, f32);
storage!(f64s, F64, f64);

fn set_i32(out: &mut Block, value: u32) -> Option<()> {
    let out = i32s(out);
    out.clear();
    out.push(value as i32);
    Some(())
}

pub(super) fn round(kind: FloatKind, out: &mut Block) -> Option<()> {
    if let (Block::F32(v), true) = (out, !matches!(kind, FloatKind::F32 | FloatKind::F64)) {
        convert::round_all(kind, v);
    }
    Some(())
}

/// Runs an expression over two integer blocks of equal type with an output of that type.
macro_rules! ints {
    ($a:expr, $b:expr, $out:expr, |$x:ident, $y:ident, $o:ident| $body:expr) => {
        match ($a, $b, $out) {
            (Block::I8($x), Block::I8($y), Block::I8($o)) => $body,
            (Block::I16($x), Block::I16($y), Block::I16($o)) => $body,
            (Block::I32($x), Block::I32($y), Block::I32($o)) => $body,
            (Block::I64($x), Block::I64($y), Block::I64($o)) => $body,
            _ => return None,
        }
    };
}

pub(super) fn int_op(op: IntOp, a: &Block, b: &Block, out: &mut Block) -> Option<()> {
    fn run<T: Int + Lanes>(op: IntOp, a: &[T], b: &[T], out: &mut Vec<T>) {
        match op {
            IntOp::Add => map2(a, b, out, T::add),
            IntOp::Sub => map2(a, b, out, T::sub),
            IntOp::Mul => map2(a, b, out, T::mul),
            IntOp::MulHighS => map2(a, b, out, T::mul_high_s),
            IntOp::MulHighU => map2(a, b, out, T::mul_high_u),
            IntOp::DivS => map2(a, b, out, T::div_s),
            IntOp::DivU => map2(a, b, out, T::div_u),
            IntOp::CeilDivS => map2(a, b, out, T::ceil_div_s),
            IntOp::CeilDivU => map2(a, b, out, T::ceil_div_u),
            IntOp::FloorDivS => map2(a, b, out, T::floor_div_s),
            IntOp::RemS => map2(a, b, out, T::rem_s),
            IntOp::RemU => map2(a, b, out, T::rem_u),
            IntOp::And => map2(a, b, out, T::and),
            IntOp::Or => map2(a, b, out, T::or),
            IntOp::Xor => map2(a, b, out, T::xor),
            IntOp::Shl => map2(a, b, out, T::shl),
            IntOp::ShrS => map2(a, b, out, T::shr_s),
            IntOp::ShrU => map2(a, b, out, T::shr_u),
            IntOp::MinS => map2(a, b, out, T::min),
            IntOp::MaxS => map2(a, b, out, T::max),
            IntOp::MinU => map2(a, b, out, T::min_u),
            IntOp::MaxU => map2(a, b, out, T::max_u),
        }
    }
    ints!(a, b, out, |x, y, o| run(op, x, y, o));
    Some(())
}

fn int_unary(op: IntUnary, a: &Block, out: &mut Block) -> Option<()> {
    fn run<T: Int + Lanes>(op: IntUnary, a: &[T], out: &mut Vec<T>) {
        match op {
            IntUnary::Abs => map1(a, out, T::abs),
            IntUnary::LeadingZeros => map1(a, out, T::leading_zeros),
            IntUnary::TrailingZeros => map1(a, out, T::trailing_zeros),
            IntUnary::Population => map1(a, out, T::population),
            IntUnary::Reverse => map1(a, out, T::reverse),
            IntUnary::FirstSet => map1(a, out, T::first_set),
        }
    }
    // Counts of 64-bit integers may be asked for as 32-bit ones.
    if let (Block::I64(a), Block::I32(out)) = (a, &mut *out) {
        let mut wide = Vec::new();
        run(op, a, &mut wide);
        map1(&wide, out, |x: i64| x as i32);
        return Some(());
    }
    ints!(a, a, out, |x, _same, o| run(op, x, o));
    Some(())
}

pub(super) fn float_op(op: FloatOp, a: &Block, b: &Block, out: &mut Block) -> Option<()> {
    fn run<T: Float + Lanes>(op: FloatOp, a: &[T], b: &[T], out: &mut Vec<T>) {
        match op {
            FloatOp::Add => map2(a, b, out, T::add),
            FloatOp::Sub => map2(a, b, out, T::sub),
            FloatOp::Mul => map2(a, b, out, T::mul),
            FloatOp::Div => map2(a, b, out, T::div),
            FloatOp::Rem => map2(a, b, out, T::rem),
            FloatOp::MinNum => map2(a, b, out, T::min_num),
            FloatOp::MaxNum => map2(a, b, out, T::max_num),
            FloatOp::Minimum => map2(a, b, out, T::minimum),
            FloatOp::Maximum => map2(a, b, out, T::maximum),
            FloatOp::CopySign => map2(a, b, out, T::copy_sign),
        }
    }
    match (a, b) {
        (Block::F32(a), Block::F32(b)) => run(op, a, b, f32s(out)),
        (Block::F64(a), Block::F64(b)) => run(op, a, b, f64s(out)),
        _ => return None,
    }
    Some(())
}

fn float_unary(op: FloatUnary, a: &Block, out: &mut Block) -> Option<()> {
    fn run<T: Float + Lanes>(op: FloatUnary, a: &[T], out: &mut Vec<T>) {
        match op {
            FloatUnary::Neg => map1(a, out, T::neg),
            FloatUnary::Abs => map1(a, out, T::abs),
            FloatUnary::Sqrt => map1(a, out, T::sqrt),
            FloatUnary::Rsqrt => map1(a, out, T::rsqrt),
            FloatUnary::Exp => map1(a, out, T::exp),
            FloatUnary::Exp2 => map1(a, out, T::exp2),
            FloatUnary::Log => map1(a, out, T::log),
            FloatUnary::Log2 => map1(a, out, T::log2),
            FloatUnary::Floor => map1(a, out, T::floor),
            FloatUnary::Ceil => map1(a, out, T::ceil),
            FloatUnary::Trunc => map1(a, out, T::trunc),
            FloatUnary::Round => map1(a, out, T::round),
            FloatUnary::RoundEven => map1(a, out, T::round_even),
        }
    }
    match a {
        Block::F32(a) => run(op, a, f32s(out)),
        Block::F64(a) => run(op, a, f64s(out)),
        _ => return None,
    }
    Some(())
}

fn clamp<T: Float>(x: T, low: T, high: T, propagate_nan: bool) -> T {
    if propagate_nan { x.maximum(low).minimum(high) } else { x.max_num(low).min_num(high) }
}

/// Subnormal numbers of `f32` as zeros of their sign.
fn flushed(mut block: Block) -> Block {
    if let Block::F32(v) = &mut block {
        v.iter_mut().for_each(|x| *x = if x.is_subnormal() { 0f32.copysign(*x) } else { *x });
    }
    block
}

fn lane_by_lane(function: LaneFn, class: Class, args: &[&Block], out: &mut Block) -> Option<()> {
    let n = args.iter().map(|block| block.len()).max().unwrap_or(1);
    let mut lanes = vec![0; args.len()];
    out.clear(class);
    for at in 0..n {
        for (lane, block) in lanes.iter_mut().zip(args) {
            *lane = block.bits(at)?;
        }
        out.push_bits(function(&lanes))?;
    }
    Some(())
}

fn compare_int(predicate: IntPredicate, a: &Block, b: &Block, out: &mut Vec<i8>) -> Option<()> {
    fn run<T: Int + Lanes>(predicate: IntPredicate, a: &[T], b: &[T], out: &mut Vec<i8>) {
        match predicate {
            IntPredicate::Eq => map2(a, b, out, |x, y| i8::from(x == y)),
            IntPredicate::Ne => map2(a, b, out, |x, y| i8::from(x != y)),
            IntPredicate::LtS => map2(a, b, out, |x, y| i8::from(x < y)),
            IntPredicate::LeS => map2(a, b, out, |x, y| i8::from(x <= y)),
            IntPredicate::GtS => map2(a, b, out, |x, y| i8::from(x > y)),
            IntPredicate::GeS => map2(a, b, out, |x, y| i8::from(x >= y)),
            IntPredicate::LtU => map2(a, b, out, |x, y| i8::from(x.lt_u(y))),
            IntPredicate::LeU => map2(a, b, out, |x, y| i8::from(x.le_u(y))),
            IntPredicate::GtU => map2(a, b, out, |x, y| i8::from(y.lt_u(x))),
            IntPredicate::GeU => map2(a, b, out, |x, y| i8::from(y.le_u(x))),
        }
    }
    match (a, b) {
        (Block::I8(a), Block::I8(b)) => run(predicate, a, b, out),
        (Block::I16(a), Block::I16(b)) => run(predicate, a, b, out),
        (Block::I32(a), Block::I32(b)) => run(predicate, a, b, out),
        (Block::I64(a), Block::I64(b)) => run(predicate, a, b, out),
        _ => return None,
    }
    Some(())
}

fn compare_float(relation: FloatRelation, ordered: bool, a: &Block, b: &Block, out: &mut Vec<i8>) -> Option<()> {
    fn run<T: Float + Lanes>(relation: FloatRelation, ordered: bool, a: &[T], b: &[T], out: &mut Vec<i8>) {
        let unordered = !ordered;
        let nan = |x: T, y: T| x.is_nan() || y.is_nan();
        match relation {
            FloatRelation::Never => map2(a, b, out, |x, y| i8::from(unordered & nan(x, y))),
            FloatRelation::Eq => map2(a, b, out, |x, y| i8::from((x == y) | (unordered & nan(x, y)))),
            FloatRelation::Gt => map2(a, b, out, |x, y| i8::from((x > y) | (unordered & nan(x, y)))),
            FloatRelation::Ge => map2(a, b, out, |x, y| i8::from((x >= y) | (unordered & nan(x, y)))),
            FloatRelation::Lt => map2(a, b, out, |x, y| i8::from((x < y) | (unordered & nan(x, y)))),
            FloatRelation::Le => map2(a, b, out, |x, y| i8::from((x <= y) | (unordered & nan(x, y)))),
            FloatRelation::Ne => map2(a, b, out, |x, y| i8::from((x != y) & (unordered | !nan(x, y)))),
            FloatRelation::Always => map2(a, b, out, |x, y| i8::from(unordered | !nan(x, y))),
        }
    }
    match (a, b) {
        (Block::F32(a), Block::F32(b)) => run(relation, ordered, a, b, out),
        (Block::F64(a), Block::F64(b)) => run(relation, ordered, a, b, out),
        _ => return None,
    }
    Some(())
}

fn select(condition: &Block, a: &Block, b: &Block, out: &mut Block) -> Option<()> {
    fn run<T: Copy + Default>(condition: &[i8], a: &[T], b: &[T], out: &mut Vec<T>) {
        if let &[condition] = condition {
            // One condition for all: a splat of either operand stays one.
            out.clear();
            out.extend_from_slice(if condition != 0 { a } else { b });
        } else {
            map3(condition, a, b, out, |condition, x, y| if condition != 0 { x } else { y });
        }
    }
    let Block::I8(condition) = condition else { return None };
    match (a, b, out) {
        (Block::I8(a), Block::I8(b), Block::I8(out)) => run(condition, a, b, out),
        (Block::I16(a), Block::I16(b), Block::I16(out)) => run(condition, a, b, out),
        (Block::I32(a), Block::I32(b), Block::I32(out)) => run(condition, a, b, out),
        (Block::I64(a), Block::I64(b), Block::I64(out)) => run(condition, a, b, out),
        (Block::F32(a), Block::F32(b), Block::F32(out)) => run(condition, a, b, out),
        (Block::F64(a), Block::F64(b), Block::F64(out)) => run(condition, a, b, out),
        (Block::View(a), Block::View(b), out) => {
            *out = Block::View(if *condition.first()? != 0 { a.clone() } else { b.clone() });
        }
        _ => return None,
    }
    Some(())
}
