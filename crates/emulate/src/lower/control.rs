//! Loops, branches, calls and operations with regions.

use tilewright_ttir::{Attr, Op, Region as IrRegion, ValueId};

use super::{Frame, Lower, MAX_CALL_DEPTH, Result, attrs, branches};
use crate::code::{Blocks, Code, End, FloatOp, For, If, IntOp, Move, Moves, Reg, Region, Simple, Step, Target, While};

/// Yielded values in pairs with the registers they go to. A source made inside (from register `inside` on) that is
/// passed once may give away its storage.
struct Transfer {
    inside: u32,
}

impl<'m> Lower<'m> {
    /// The body of a function whose parameters are bound: single blocks inline, others as basic blocks.
    pub(super) fn function_body(&mut self, frame: &mut Frame<'m>, steps: &mut Vec<Step>) -> Result<Vec<Reg>> {
        let func = frame.func;
        let Some(first) = func.body.blocks.first() else {
            return Err(super::Unsupported { op: "tt.func".into(), line: 0, why: "a function without a body".into() });
        };
        if let ([block], Some(last)) = (func.body.blocks.as_slice(), first.ops.last())
            && last.name == "tt.return"
        {
            self.ops(frame, &block.ops[..block.ops.len() - 1], steps)?;
            return self.operand_regs(frame, last);
        }
        let mut results = Vec::new();
        for ty in &func.results {
            let Some(ty) = crate::types::ValueType::of(ty) else {
                let why = format!("a result of type {}", super::shown(ty));
                return Err(super::Unsupported { op: "tt.func".into(), line: self.line(func.loc), why });
            };
            results.push(self.register(&ty));
        }
        let blocks = self.basic_blocks(frame, &func.body, &results, self.line(func.loc))?;
        steps.push(blocks);
        Ok(results)
    }

    pub(super) fn lower_call(&mut self, frame: &mut Frame<'m>, op: &'m Op, steps: &mut Vec<Step>) -> Result<()> {
        let Some(Attr::Symbol(name)) = op.attrs.get("callee") else {
            return Err(self.unsupported(op, "a call of an unknown function"));
        };
        let Some(func) = self.module.funcs.iter().find(|func| &func.name == name) else {
            return Err(self.unsupported(op, &format!("there is no function `{name}`")));
        };
        if self.calls.contains(&func.name.as_str()) || self.calls.len() >= MAX_CALL_DEPTH {
            return Err(self.unsupported(op, "recursion"));
        }
        if func.params.len() != op.operands.len() || func.results.len() != op.results.len() {
            return Err(self.unsupported(op, "a call that does not fit the function"));
        }
        let mut inner = Frame { func, regs: vec![None; func.values.len()] };
        for (&param, &operand) in func.params.iter().zip(&op.operands) {
            let reg = self.reg_of(frame, operand, op)?;
            self.bind(&mut inner, param, reg, op)?;
        }
        self.calls.push(&func.name);
        let results = self.function_body(&mut inner, steps)?;
        self.calls.pop();
        if results.len() != op.results.len() {
            return Err(self.unsupported(op, "a function that returns something else"));
        }
        for (&value, reg) in op.results.iter().zip(results) {
            self.bind(frame, value, reg, op)?;
        }
        Ok(())
    }

    /// Registers of a block's arguments.
    fn block_args(&mut self, frame: &mut Frame, args: &[ValueId], op: &Op) -> Result<Vec<Reg>> {
        args.iter().map(|&value| self.define(frame, value, op)).collect()
    }

    fn next_register(&self) -> u32 {
        self.registers.len() as u32
    }

    fn moves(&self, to: &[Reg], from: &[Reg], transfer: Option<Transfer>, op: &Op) -> Result<Moves> {
        if to.len() != from.len() {
            return Err(self.unsupported(op, "a different number of values than expected"));
        }
        let steal = |reg: Reg| {
            transfer.as_ref().is_some_and(|transfer| reg.0 >= transfer.inside)
                && !self.registers[reg.0 as usize].pinned
                && from.iter().filter(|&&other| other == reg).count() == 1
                && !to.contains(&reg)
        };
        let pairs: Vec<Move> = to.iter().zip(from).map(|(&to, &from)| Move { to, from, steal: steal(from) }).collect();
        let parallel = pairs.iter().any(|pair| pair.from != pair.to && to.contains(&pair.from));
        let same_class = |pair: &Move| {
            self.registers[pair.to.0 as usize].ty.class() == self.registers[pair.from.0 as usize].ty.class()
        };
        if !pairs.iter().all(same_class) {
            return Err(self.unsupported(op, "a value of another type than expected"));
        }
        Ok(Moves { pairs, parallel })
    }

    /// Steps of a block and the registers of its terminator's operands.
    fn block_body(
        &mut self,
        frame: &mut Frame<'m>,
        op: &'m Op,
        ops: &'m [Op],
        terminator: &str,
    ) -> Result<(Vec<Step>, Vec<Reg>)> {
        let mut steps = Vec::new();
        let Some((last, ops)) = ops.split_last().filter(|(last, _)| last.name == terminator) else {
            return Err(self.unsupported(op, "a block that does not end as expected"));
        };
        self.ops(frame, ops, &mut steps)?;
        let results = self.operand_regs(frame, last)?;
        Ok((steps, results))
    }

    pub(super) fn lower_for(&mut self, frame: &mut Frame<'m>, op: &'m Op, steps: &mut Vec<Step>) -> Result<()> {
        let operands = self.operand_regs(frame, op)?;
        let (Some((bounds, inits)), [region]) = (operands.split_at_checked(3), op.regions.as_slice()) else {
            return Err(self.unsupported(op, "a loop of this form"));
        };
        let block = self.single_block(op, region)?;
        let args = self.block_args(frame, &block.args, op)?;
        let Some((&counter, args)) = args.split_first() else {
            return Err(self.unsupported(op, "a loop without a counter"));
        };
        let init = self.moves(args, inits, None, op)?;
        let inside = self.next_register();
        let (body, yielded) = self.block_body(frame, op, &block.ops, "scf.yield")?;
        let next = self.moves(args, &yielded, Some(Transfer { inside }), op)?;
        self.bind_results(frame, op, args)?;
        let code = For { counter, unsigned: attrs::flag(op, "unsignedCmp"), init, body, next };
        let line = self.line(op.loc);
        steps.push(Step {
            code: Code::For(Box::new(code)),
            args: bounds.to_vec(),
            outs: Vec::new(),
            line,
            offset: false,
        });
        Ok(())
    }

    fn bind_results(&self, frame: &mut Frame, op: &Op, regs: &[Reg]) -> Result<()> {
        if op.results.len() != regs.len() {
            return Err(self.unsupported(op, "a different number of results than expected"));
        }
        for (&value, &reg) in op.results.iter().zip(regs) {
            self.bind(frame, value, reg, op)?;
        }
        Ok(())
    }

    pub(super) fn lower_while(&mut self, frame: &mut Frame<'m>, op: &'m Op, steps: &mut Vec<Step>) -> Result<()> {
        let inits = self.operand_regs(frame, op)?;
        let [before, after] = op.regions.as_slice() else {
            return Err(self.unsupported(op, "a loop of this form"));
        };
        let (before, after) = (self.single_block(op, before)?, self.single_block(op, after)?);
        let before_args = self.block_args(frame, &before.args, op)?;
        let init = self.moves(&before_args, &inits, None, op)?;
        let after_args = self.block_args(frame, &after.args, op)?;
        let inside = self.next_register();
        let (before_steps, condition) = self.block_body(frame, op, &before.ops, "scf.condition")?;
        let Some((&condition, forwarded)) = condition.split_first() else {
            return Err(self.unsupported(op, "a loop without a condition"));
        };
        let forward = self.moves(&after_args, forwarded, Some(Transfer { inside }), op)?;
        let inside = self.next_register();
        let (after_steps, yielded) = self.block_body(frame, op, &after.ops, "scf.yield")?;
        let next = self.moves(&before_args, &yielded, Some(Transfer { inside }), op)?;
        self.bind_results(frame, op, &after_args)?;
        let code = While { init, before: before_steps, condition, forward, after: after_steps, next };
        let line = self.line(op.loc);
        steps.push(Step { code: Code::While(Box::new(code)), args: Vec::new(), outs: Vec::new(), line, offset: false });
        Ok(())
    }

    pub(super) fn lower_if(&mut self, frame: &mut Frame<'m>, op: &'m Op, steps: &mut Vec<Step>) -> Result<()> {
        let args = self.operand_regs(frame, op)?;
        let results: Vec<Reg> = op.results.iter().map(|&value| self.define(frame, value, op)).collect::<Result<_>>()?;
        let mut arms = [(Vec::new(), Moves::default()), (Vec::new(), Moves::default())];
        for (arm, region) in arms.iter_mut().zip(&op.regions) {
            if region.blocks.is_empty() {
                continue;
            }
            let block = self.single_block(op, region)?;
            let inside = self.next_register();
            let (body, yielded) = self.block_body(frame, op, &block.ops, "scf.yield")?;
            *arm = (body, self.moves(&results, &yielded, Some(Transfer { inside }), op)?);
        }
        if !results.is_empty() && arms.iter().any(|(_, moves)| moves.pairs.len() != results.len()) {
            return Err(self.unsupported(op, "a branch that yields nothing"));
        }
        let line = self.line(op.loc);
        steps.push(Step { code: Code::If(Box::new(If { arms })), args, outs: Vec::new(), line, offset: false });
        Ok(())
    }

    /// Basic blocks, visited so that every definition comes before its uses; unreachable ones stay empty.
    fn basic_blocks(
        &mut self,
        frame: &mut Frame<'m>,
        region: &'m IrRegion,
        results: &[Reg],
        line: u32,
    ) -> Result<Step> {
        let mut blocks = vec![(Vec::new(), End::Return(Moves::default())); region.blocks.len()];
        let mut args: Vec<Option<Vec<Reg>>> = vec![None; region.blocks.len()];
        // The entry's arguments are the region's, which the caller has bound.
        args[0] = Some(Vec::new());
        let mut waiting = vec![0];
        let mut done = vec![false; region.blocks.len()];
        while let Some(index) = waiting.pop() {
            if std::mem::replace(&mut done[index], true) {
                continue;
            }
            let Some((last, ops)) = region.blocks[index].ops.split_last() else {
                let why = "a block without an end".to_owned();
                return Err(super::Unsupported { op: "cf.br".into(), line, why });
            };
            let mut steps = Vec::new();
            self.ops(frame, ops, &mut steps)?;
            let mut targets = Vec::new();
            for (target, passed) in &last.successors {
                let Some(block) = region.blocks.get(*target).filter(|_| *target != 0) else {
                    return Err(self.unsupported(last, "a branch to the entry or to nowhere"));
                };
                let to = match &args[*target] {
                    Some(regs) => regs.clone(),
                    None => self.block_args(frame, &block.args, last)?,
                };
                args[*target] = Some(to.clone());
                let from = passed.iter().map(|&value| self.reg_of(frame, value, last)).collect::<Result<Vec<_>>>()?;
                targets.push(Target { block: *target, moves: self.moves(&to, &from, None, last)? });
                waiting.push(*target);
            }
            let operands = self.operand_regs(frame, last)?;
            let end = match (last.name.as_str(), targets.len()) {
                ("cf.br", 1) => End::Branch(targets.remove(0)),
                ("cf.cond_br", 2) if operands.len() == 1 => {
                    let (then, otherwise) = (targets.remove(0), targets.remove(0));
                    End::Cond { condition: operands[0], then, otherwise }
                }
                ("tt.return" | "tt.map_elementwise.return" | "tt.reduce.return" | "tt.scan.return", 0) => {
                    End::Return(self.moves(results, &operands, None, last)?)
                }
                _ => return Err(self.unsupported(last, "an end of a block of this form")),
            };
            blocks[index] = (steps, end);
        }
        let code = Code::Blocks(Box::new(Blocks { blocks }));
        Ok(Step { code, args: Vec::new(), outs: results.to_vec(), line, offset: false })
    }

    pub(super) fn lower_region_op(&mut self, frame: &mut Frame<'m>, op: &'m Op, steps: &mut Vec<Step>) -> Result<()> {
        let ty = self.operand_type(frame, op, 0)?;
        let mut shapes = (0..op.operands.len()).map(|index| self.operand_type(frame, op, index));
        if !shapes.all(|other| other.is_ok_and(|other| other.shape == ty.shape)) {
            return Err(self.unsupported(op, "operands of different shapes"));
        }
        let args = self.operand_regs(frame, op)?;
        let region = Box::new(self.region(frame, op)?);
        let pack = attrs::int(op, "pack").map_or(1, |pack| pack.max(1) as usize);
        let mapped = op.name == "tt.map_elementwise";
        let expected = args.len() * if mapped { pack } else { 2 };
        let returned = op.results.len() * if mapped { pack } else { 1 };
        if region.args.len() != expected || region.results.len() != returned {
            return Err(self.unsupported(op, "a region that does not fit"));
        }
        let code = if mapped {
            let numel = ty.numel();
            if !numel.is_multiple_of(pack) {
                return Err(self.unsupported(op, "a number of elements that the pack does not divide"));
            }
            Code::MapElementwise { numel, pack, region }
        } else {
            let Some(axis) = attrs::axis(op, ty.shape.len()) else {
                return Err(self.unsupported(op, "an axis outside of the shape"));
            };
            let (outer, rest) = ty.shape.split_at(axis);
            let shape = [outer.iter().product(), rest[0], rest[1..].iter().product()];
            match op.name.as_str() {
                "tt.reduce" => Code::Reduce { shape, region },
                _ => Code::Scan { shape, reverse: attrs::flag(op, "reverse"), region },
            }
        };
        let outs = op.results.iter().map(|&value| self.define(frame, value, op)).collect::<Result<_>>()?;
        steps.push(Step { code, args, outs, line: self.line(op.loc), offset: false });
        Ok(())
    }

    fn region(&mut self, frame: &mut Frame<'m>, op: &'m Op) -> Result<Region> {
        let Some(region) = op.regions.first() else {
            return Err(self.unsupported(op, "a region is missing"));
        };
        let Some(entry) = region.blocks.first() else {
            return Err(self.unsupported(op, "an empty region"));
        };
        let args = self.block_args(frame, &entry.args, op)?;
        let (steps, results) = if region.blocks.len() == 1 {
            self.block_body(frame, op, &entry.ops, &format!("{}.return", op.name))?
        } else {
            // What the region returns has the types of the operation's results, `pack` times each.
            let pack = attrs::int(op, "pack").map_or(1, |pack| pack.clamp(1, 64) as usize);
            let mut results = Vec::new();
            for &value in &op.results {
                let ty = self.type_of(frame, value, self.line(op.loc))?;
                let scalar = crate::types::ValueType { shape: Vec::new(), ..ty };
                results.extend((0..pack).map(|_| self.register(&scalar)));
            }
            (vec![self.basic_blocks(frame, region, &results, self.line(op.loc))?], results)
        };
        let simple = simple(&args, &steps, &results);
        Ok(Region { branches: branches(&steps), simple, args, steps, results })
    }
}

/// Recognises a region that is one commutative operation on its two arguments.
fn simple(args: &[Reg], steps: &[Step], results: &[Reg]) -> Option<Simple> {
    let ([a, b], [step], [result]) = (args, steps, results) else { return None };
    if step.outs != [*result] || !(step.args == [*a, *b] || step.args == [*b, *a]) {
        return None;
    }
    match step.code {
        Code::Int(
            op @ (IntOp::Add
            | IntOp::Mul
            | IntOp::And
            | IntOp::Or
            | IntOp::Xor
            | IntOp::MinS
            | IntOp::MaxS
            | IntOp::MinU
            | IntOp::MaxU),
        ) => Some(Simple::Int(op)),
        Code::Float(
            op
            @ (FloatOp::Add | FloatOp::Mul | FloatOp::MinNum | FloatOp::MaxNum | FloatOp::Minimum | FloatOp::Maximum),
            kind,
        ) => Some(Simple::Float(op, kind)),
        _ => None,
    }
}
