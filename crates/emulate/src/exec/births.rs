//! Where NaN and infinities are made: the first lanes of steps that are not finite though what they are made of is.

use super::Machine;
use super::space::Space;
use crate::block::Block;
use crate::code::{Cast, Code, Dot, FloatOp, FloatUnary, Region, Step};
use crate::fault::Birth;

/// How far from a number: greater is worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Finite,
    Infinite,
    Nan,
}

impl Machine<'_> {
    /// Notes the births of a step that has just run. A NaN is born where no operand is one, an infinity where all operands
    /// are finite.
    pub(super) fn find_births(&mut self, step: &Step) {
        let Some(operation) = operation(&step.code) else { return };
        let site = self.site();
        let mut births = Vec::new();
        for &out in &step.outs {
            let block = self.reg(out);
            for (lane, value) in (0..block.len()).map(|lane| (lane, value(block, lane))) {
                if value == Value::Finite {
                    continue;
                }
                let worst = self.sources(step, lane).into_iter().max().unwrap_or(Value::Finite);
                if value == Value::Nan && worst < Value::Nan || worst == Value::Finite {
                    births.push(Birth { infinite: value == Value::Infinite, operation, lane, site });
                }
            }
        }
        if let Space::Whole(memory) = &mut self.space {
            births.into_iter().for_each(|birth| memory.findings.note_birth(birth));
        }
    }

    /// The values that a lane of a step's result is made of.
    fn sources(&self, step: &Step, lane: usize) -> Vec<Value> {
        let arg = |index: usize| step.args.get(index).map(|&reg| self.reg(reg));
        let at = |index: usize, lane: usize| arg(index).map_or(Value::Finite, |block| value(block, lane));
        match &step.code {
            Code::Dot(Dot { m, n, k, .. }) => {
                let (row, batch, col) = (lane / n, lane / (m * n), lane % n);
                let products = (0..*k).flat_map(|p| [at(0, row * k + p), at(1, (batch * k + p) * n + col)]);
                products.chain([at(2, lane)]).collect()
            }
            Code::Reduce { shape: [_, extent, inner], .. } => {
                let first = lane / inner * extent * inner + lane % inner;
                (0..*extent).map(|i| at(0, first + i * inner)).collect()
            }
            Code::Scan { shape: [_, extent, inner], reverse, .. } => {
                let (place, first) = (lane / inner % extent, lane / (extent * inner) * extent * inner + lane % inner);
                let before = if *reverse { place..*extent } else { 0..place + 1 };
                before.map(|i| at(0, first + i * inner)).collect()
            }
            _ => (0..step.args.len()).map(|index| at(index, lane)).collect(),
        }
    }
}

fn value(block: &Block, lane: usize) -> Value {
    let lane = if block.len() == 1 { 0 } else { lane };
    let (finite, nan) = match block {
        Block::F32(v) => v.get(lane).map_or((true, false), |x| (x.is_finite(), x.is_nan())),
        Block::F64(v) => v.get(lane).map_or((true, false), |x| (x.is_finite(), x.is_nan())),
        _ => (true, false),
    };
    match (finite, nan) {
        (true, _) => Value::Finite,
        (_, true) => Value::Nan,
        _ => Value::Infinite,
    }
}

/// What a step that computes floats is called; None for one that moves values or computes none. Within a region its own
/// steps are looked at.
fn operation(code: &Code) -> Option<&'static str> {
    let simple = |region: &Region, name| region.simple.is_some().then_some(name);
    Some(match code {
        Code::Float(op, _) => match op {
            FloatOp::Add => "an addition",
            FloatOp::Sub => "a subtraction",
            FloatOp::Mul => "a multiplication",
            FloatOp::Div => "a division",
            FloatOp::Rem => "a remainder",
            FloatOp::MinNum | FloatOp::Minimum => "a minimum",
            FloatOp::MaxNum | FloatOp::Maximum => "a maximum",
            FloatOp::CopySign => "copysign",
        },
        Code::FloatUnary(op, _) => match op {
            FloatUnary::Sqrt => "sqrt",
            FloatUnary::Rsqrt => "rsqrt",
            FloatUnary::Exp => "exp",
            FloatUnary::Exp2 => "exp2",
            FloatUnary::Log => "log",
            FloatUnary::Log2 => "log2",
            _ => "a rounding",
        },
        Code::Fma(_) => "fma",
        Code::Clamp { .. } => "clamp",
        Code::Math1(..) | Code::Math2(..) | Code::FloatInt(..) => "a mathematical function",
        Code::Cast(Cast::Float { .. } | Cast::IntToFloat { .. }) => "a conversion",
        Code::Dot(_) => "tt.dot",
        Code::Reduce { region, .. } => return simple(region, "a reduction"),
        Code::Scan { region, .. } => return simple(region, "a scan"),
        _ => return None,
    })
}
