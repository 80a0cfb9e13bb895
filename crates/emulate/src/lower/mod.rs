//! Turns a function of Triton IR into steps over registers.
//!
//! Calls are inlined, constants and ranges become registers that are set once, and operations that leave the order
//! of elements alone (splat, reshape, expand_dims) become other names for their operand's register.

mod attrs;
mod constants;
mod control;
mod math;
mod memory;
mod plain;
mod reach;
mod share;

use std::collections::HashSet;

use tilewright_ttir::{Func, Loc, LocId, Module, Op, Region as IrRegion, Type, ValueId};

use crate::block::Block;
use crate::code::{Code, Hint, Program, Reg, Step};
use crate::fault::Unsupported;
use crate::types::{Elem, ValueType};

pub(crate) type Result<T> = std::result::Result<T, Unsupported>;

/// A kernel's code and the types of its parameters.
pub(crate) struct Lowered {
    pub(crate) program: Program,
    pub(crate) params: Vec<ValueType>,
}

/// Inlining multiplies code; no real kernel comes near.
const MAX_STEPS: usize = 200_000;
const MAX_CALL_DEPTH: usize = 64;
/// Of loops, branches and calls within each other: both lowering and running recurse.
const MAX_DEPTH: usize = 100;
/// Of all blocks of one program.
const MAX_BYTES: usize = 1 << 30;

pub(crate) fn lower(module: &Module, entry: &str) -> Result<Lowered> {
    let Some(func) = module.funcs.iter().find(|func| func.name == entry) else {
        return Err(Unsupported { op: "tt.func".into(), line: 0, why: format!("there is no function `{entry}`") });
    };
    let file = func.loc.and_then(|loc| module.position(loc)).map(|(file, ..)| file);
    let mut lower = Lower {
        module,
        file,
        registers: Vec::new(),
        constants: Vec::new(),
        booleans: HashSet::new(),
        calls: Vec::new(),
        count: 0,
        depth: 0,
    };
    let mut frame = Frame { func, regs: vec![None; func.values.len()] };
    let mut params = Vec::new();
    let mut param_regs = Vec::new();
    for &value in &func.params {
        let ty = lower.type_of(&frame, value, 0)?;
        let reg = lower.register(&ty);
        lower.registers[reg.0 as usize].pinned = true;
        frame.regs[value.0 as usize] = Some(reg);
        param_regs.push(reg);
        params.push(ty);
    }
    let mut steps = Vec::new();
    lower.function_body(&mut frame, &mut steps)?;
    let written = reach::analyse(&lower.registers, &param_regs, &mut steps);
    let (mut program, bytes) = share::share(lower.registers, lower.constants, param_regs, steps);
    program.written = written;
    if bytes > MAX_BYTES {
        let why = format!("its blocks take {} MiB at once", bytes >> 20);
        return Err(Unsupported { op: format!("kernel `{entry}`"), line: 0, why });
    }
    Ok(Lowered { program, params })
}

/// What is known of a register before registers are shared.
struct Register {
    ty: ValueType,
    /// Holds its value over all programs of a launch: parameters and constants.
    pinned: bool,
}

struct Lower<'m> {
    module: &'m Module,
    /// The kernel's file: lines of other files (Triton's library) are not the candidate's.
    file: Option<&'m str>,
    registers: Vec<Register>,
    constants: Vec<(Reg, Block)>,
    /// Bytes loaded through pointers to booleans.
    booleans: HashSet<Reg>,
    /// Names of the functions being inlined.
    calls: Vec<&'m str>,
    count: usize,
    depth: usize,
}

/// One function in the course of being lowered.
struct Frame<'m> {
    func: &'m Func,
    regs: Vec<Option<Reg>>,
}

impl<'m> Lower<'m> {
    fn register(&mut self, ty: &ValueType) -> Reg {
        self.registers.push(Register { ty: ty.clone(), pinned: false });
        Reg(self.registers.len() as u32 - 1)
    }

    fn constant(&mut self, ty: &ValueType, block: Block) -> Reg {
        let reg = self.register(ty);
        self.registers[reg.0 as usize].pinned = true;
        self.constants.push((reg, block));
        reg
    }

    fn type_of(&self, frame: &Frame, value: ValueId, line: u32) -> Result<ValueType> {
        let ty = frame.func.values.get(value.0 as usize).map(|info| &info.ty);
        ty.and_then(ValueType::of).ok_or_else(|| Unsupported {
            op: "a value".into(),
            line,
            why: ty.map_or("that does not exist".into(), |ty| format!("of type {}", shown(ty))),
        })
    }

    fn operand_type(&self, frame: &Frame, op: &Op, index: usize) -> Result<ValueType> {
        match op.operands.get(index) {
            Some(&value) => self.type_of(frame, value, self.line(op.loc)),
            None => Err(self.unsupported(op, "an operand is missing")),
        }
    }

    fn result_type(&self, frame: &Frame, op: &Op, index: usize) -> Result<ValueType> {
        match op.results.get(index) {
            Some(&value) => self.type_of(frame, value, self.line(op.loc)),
            None => Err(self.unsupported(op, "a result is missing")),
        }
    }

    fn reg_of(&self, frame: &Frame, value: ValueId, op: &Op) -> Result<Reg> {
        let reg = frame.regs.get(value.0 as usize).copied().flatten();
        reg.ok_or_else(|| self.unsupported(op, "an operand is used before it is defined"))
    }

    fn operand_regs(&self, frame: &Frame, op: &Op) -> Result<Vec<Reg>> {
        op.operands.iter().map(|&value| self.reg_of(frame, value, op)).collect()
    }

    fn bind(&self, frame: &mut Frame, value: ValueId, reg: Reg, op: &Op) -> Result<()> {
        match frame.regs.get_mut(value.0 as usize) {
            Some(slot) => {
                *slot = Some(reg);
                Ok(())
            }
            None => Err(self.unsupported(op, "a value that does not exist")),
        }
    }

    fn unsupported(&self, op: &Op, why: &str) -> Unsupported {
        Unsupported { op: op.name.clone(), line: self.line(op.loc), why: why.to_owned() }
    }

    /// The innermost line within the kernel's own file, or any line if none is.
    fn line(&self, loc: Option<LocId>) -> u32 {
        let Some(loc) = loc else { return 0 };
        self.own_line(loc, 64).or_else(|| self.module.position(loc).map(|(_, line, _)| line)).unwrap_or(0)
    }

    fn own_line(&self, loc: LocId, depth: u32) -> Option<u32> {
        let depth = depth.checked_sub(1)?;
        match self.module.locs.get(loc.0 as usize)? {
            Loc::Unknown => None,
            Loc::File { file, line, .. } => (Some(file.as_str()) == self.file).then_some(*line),
            Loc::Named(_, child) => self.own_line(*child, depth),
            Loc::Call { callee, caller } => self.own_line(*callee, depth).or_else(|| self.own_line(*caller, depth)),
            Loc::Fused(parts) => parts.iter().find_map(|part| self.own_line(*part, depth)),
        }
    }

    fn ops(&mut self, frame: &mut Frame<'m>, ops: &'m [Op], steps: &mut Vec<Step>) -> Result<()> {
        for op in ops {
            self.count += 1;
            if self.count > MAX_STEPS {
                return Err(self.unsupported(op, "the kernel is too long"));
            }
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(self.unsupported(op, "it is nested too deeply"));
            }
            self.op(frame, op, steps)?;
            self.hint(frame, op, steps)?;
            self.depth -= 1;
        }
        Ok(())
    }

    fn op(&mut self, frame: &mut Frame<'m>, op: &'m Op, steps: &mut Vec<Step>) -> Result<()> {
        match op.name.as_str() {
            "scf.for" => self.lower_for(frame, op, steps),
            "scf.while" => self.lower_while(frame, op, steps),
            "scf.if" => self.lower_if(frame, op, steps),
            "tt.call" => self.lower_call(frame, op, steps),
            "tt.reduce" | "tt.scan" | "tt.map_elementwise" => self.lower_region_op(frame, op, steps),
            "arith.constant" | "tt.make_range" | "ub.poison" => self.lower_constant(frame, op),
            "tt.print" | "gpu.barrier" => Ok(()),
            "tt.splat" | "tt.unsplat" | "tt.reshape" | "tt.expand_dims" => self.rename(frame, op),
            "tt.elementwise_inline_asm" if math::does_nothing(op) => {
                for &result in &op.results {
                    let ty = self.type_of(frame, result, self.line(op.loc))?;
                    if ty.elem != Elem::I32 {
                        return Err(self.unsupported(op, "a result of this type"));
                    }
                    let nothing = self.constant(&ty, Block::I32(vec![0]));
                    self.bind(frame, result, nothing, op)?;
                }
                Ok(())
            }
            _ if self.is_renaming_cast(frame, op)? => self.rename(frame, op),
            _ => {
                let codes = self.plain(frame, op)?;
                let args = self.arranged_operands(frame, op)?;
                let line = self.line(op.loc);
                if codes.len() > op.results.len().max(1) {
                    return Err(self.unsupported(op, "a result is missing"));
                }
                // Operations with several results become one step a result, except the one that is one step anyway.
                if let [code] = codes.as_slice() {
                    let outs: Vec<Reg> =
                        op.results.iter().map(|&value| self.define(frame, value, op)).collect::<Result<_>>()?;
                    if let (Code::Load { elem: Elem::I8, .. }, Some(&pointer)) = (code, args.first())
                        && self.registers[pointer.0 as usize].ty.pointee == Some(Elem::I1)
                    {
                        self.booleans.extend(&outs);
                    }
                    steps.push(Step { code: code.clone(), args, outs, line, offset: false });
                } else {
                    for (code, &result) in codes.into_iter().zip(&op.results) {
                        let outs = vec![self.define(frame, result, op)?];
                        steps.push(Step { code, args: args.clone(), outs, line, offset: false });
                    }
                }
                Ok(())
            }
        }
    }

    /// What the file says of a result, to be checked.
    fn hint(&mut self, frame: &mut Frame, op: &Op, steps: &mut Vec<Step>) -> Result<()> {
        let (divisible, contiguous) = (attrs::dense(op, "tt.divisibility"), attrs::dense(op, "tt.contiguity"));
        if divisible.is_none() && contiguous.is_none() || op.results.len() != 1 {
            return Ok(());
        }
        let ty = self.result_type(frame, op, 0)?;
        let rank = ty.shape.len().max(1);
        let by_dimension = |values: Option<Vec<i64>>| match values {
            Some(values) if values.len() == rank => values,
            Some(values) if values.len() == 1 => vec![values[0]; rank],
            _ => vec![1; rank],
        };
        let shape = if ty.shape.is_empty() { vec![1] } else { ty.shape.clone() };
        let hint = Hint { shape, divisible: by_dimension(divisible), contiguous: by_dimension(contiguous) };
        let args = vec![self.reg_of(frame, op.results[0], op)?];
        let line = self.line(op.loc);
        steps.push(Step { code: Code::Hint(Box::new(hint)), args, outs: Vec::new(), line, offset: false });
        Ok(())
    }

    /// A new register for a value.
    fn define(&mut self, frame: &mut Frame, value: ValueId, op: &Op) -> Result<Reg> {
        let ty = self.type_of(frame, value, self.line(op.loc))?;
        let reg = self.register(&ty);
        self.bind(frame, value, reg, op)?;
        Ok(reg)
    }

    /// The result is another name for the operand's register.
    fn rename(&mut self, frame: &mut Frame, op: &Op) -> Result<()> {
        let (from, to) = (self.operand_type(frame, op, 0)?, self.result_type(frame, op, 0)?);
        let splat = op.name == "tt.splat" && from.shape.is_empty();
        if from.class() != to.class() || !(splat || from.numel() == to.numel()) {
            return Err(self.unsupported(op, "operand and result do not fit"));
        }
        let reg = self.reg_of(frame, op.operands[0], op)?;
        self.bind(frame, op.results[0], reg, op)
    }

    fn single_block<'r>(&self, op: &Op, region: &'r IrRegion) -> Result<&'r tilewright_ttir::Block> {
        match region.blocks.as_slice() {
            [block] => Ok(block),
            _ => Err(self.unsupported(op, "a region with several blocks")),
        }
    }
}

/// A type for messages.
fn shown(ty: &Type) -> String {
    format!("{ty:?}")
}

/// Whether a step runs other steps by condition.
fn branches(steps: &[Step]) -> bool {
    steps.iter().any(|step| matches!(step.code, Code::If(_) | Code::For(_) | Code::While(_) | Code::Blocks(_)))
}
