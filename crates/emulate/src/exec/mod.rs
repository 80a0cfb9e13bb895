//! Runs a lowered kernel over a grid, one program after the other.

mod access;
mod dot;
mod elementwise;
mod fold;
mod shape;
mod tile;

pub(crate) use access::Update;

use std::time::Instant;

use crate::block::{Block, View};
use crate::code::{Blocks, Code, End, For, If, Moves, Program, Reg, Region, Step, While};
use crate::fault::{Fault, Limits, Report, Site};
use crate::memory::Memory;
use crate::types::Class;

/// The state of one launch.
pub(crate) struct Machine<'a> {
    regs: Vec<Block>,
    memory: &'a mut Memory,
    limits: &'a Limits,
    report: Report,
    grid: [u32; 3],
    program: [u32; 3],
    line: u32,
    /// Counts loop rounds, so that the clock is not read at each.
    rounds: u32,
}

/// An argument of a launch, checked against the parameter it is for.
pub(crate) fn run(
    program: &Program,
    grid: [u32; 3],
    params: Vec<Block>,
    memory: &mut Memory,
    limits: &Limits,
) -> Result<Report, Fault> {
    let mut regs: Vec<Block> = program.classes.iter().map(|&class| Block::new(class)).collect();
    for (reg, value) in program.constants.iter().cloned().chain(program.params.iter().copied().zip(params)) {
        regs[reg.0 as usize] = value;
    }
    let mut machine =
        Machine { regs, memory, limits, report: Report::default(), grid, program: [0; 3], line: 0, rounds: 0 };
    for z in 0..grid[2] {
        for y in 0..grid[1] {
            for x in 0..grid[0] {
                machine.program = [x, y, z];
                machine.check_deadline()?;
                machine.run(&program.steps)?;
            }
        }
    }
    Ok(machine.report)
}

impl Machine<'_> {
    fn reg(&self, reg: Reg) -> &Block {
        &self.regs[reg.0 as usize]
    }

    fn reg_mut(&mut self, reg: Reg) -> &mut Block {
        &mut self.regs[reg.0 as usize]
    }

    fn arg(&self, step: &Step, index: usize) -> Result<&Block, Fault> {
        step.args.get(index).map(|&reg| self.reg(reg)).ok_or_else(|| self.malformed("an operand is missing"))
    }

    /// Takes the storage of a step's result; [`Machine::put`] gives it back.
    fn out(&mut self, step: &Step) -> Result<Block, Fault> {
        match step.outs.first() {
            Some(&reg) => Ok(std::mem::take(self.reg_mut(reg))),
            None => Err(self.malformed("a result is missing")),
        }
    }

    fn put(&mut self, step: &Step, block: Block) {
        if let Some(&reg) = step.outs.first() {
            *self.reg_mut(reg) = block;
        }
    }

    fn scalar(&self, step: &Step, index: usize) -> Result<i64, Fault> {
        self.arg(step, index)?.scalar().ok_or_else(|| self.malformed("an integer is expected"))
    }

    /// A loop's bound, extended to 64 bits by its signedness.
    fn bound(&self, step: &Step, index: usize, unsigned: bool) -> Result<i64, Fault> {
        Ok(match (self.scalar(step, index)?, self.arg(step, index)?.class()) {
            (x, Class::I8) if unsigned => i64::from(x as u8),
            (x, Class::I16) if unsigned => i64::from(x as u16),
            (x, Class::I32) if unsigned => i64::from(x as u32),
            (x, _) => x,
        })
    }

    fn view(&self, step: &Step, index: usize) -> Result<&View, Fault> {
        match self.arg(step, index)? {
            Block::View(view) => Ok(view),
            _ => Err(self.malformed("a descriptor is expected")),
        }
    }

    fn site(&self) -> Site {
        Site { program: self.program, line: self.line }
    }

    fn malformed(&self, what: &str) -> Fault {
        Fault::Malformed { what: what.to_owned(), site: self.site() }
    }

    fn check_deadline(&self) -> Result<(), Fault> {
        match self.limits.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Fault::Deadline { site: self.site() }),
            _ => Ok(()),
        }
    }

    /// Called once per round of every loop.
    fn tick(&mut self) -> Result<(), Fault> {
        self.rounds = self.rounds.wrapping_add(1);
        if self.rounds.is_multiple_of(64) { self.check_deadline() } else { Ok(()) }
    }

    fn run(&mut self, steps: &[Step]) -> Result<(), Fault> {
        for step in steps {
            self.line = step.line;
            self.step(step)?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), Fault> {
        match &step.code {
            Code::For(code) => self.run_for(step, code),
            Code::While(code) => self.run_while(code),
            Code::If(code) => self.run_if(step, code),
            Code::Blocks(code) => self.run_blocks(code),
            Code::Load { elem, row, mask, other } => self.load(step, *elem, *row, *mask, *other),
            Code::Store { elem, row, mask } => self.store(step, *elem, *row, *mask),
            Code::AtomicRmw { op, elem, numel, mask } => self.atomic_rmw(step, *op, *elem, *numel, *mask),
            Code::AtomicCas { elem, numel } => self.atomic_cas(step, *elem, *numel),
            Code::MakeView { rank, offsets, pad_nan } => self.make_view(step, *rank, *offsets, *pad_nan),
            Code::Advance => self.advance(step),
            Code::LoadTile(tile) => self.load_tile(step, tile),
            Code::StoreTile(tile) => self.store_tile(step, tile),
            Code::ReduceTile(tile, op) => self.reduce_tile(step, tile, *op),
            Code::GatherTile(tile) => self.gather_tile(step, tile),
            Code::ScatterTile(tile) => self.scatter_tile(step, tile),
            Code::Dot(dot) => self.dot(step, dot),
            Code::DotScaled(dot) => self.dot_scaled(step, dot),
            Code::Reduce { shape, region } => self.reduce(step, *shape, region),
            Code::Scan { shape, reverse, region } => self.scan(step, *shape, *reverse, region),
            Code::MapElementwise { numel, pack, region } => self.map_elementwise(step, *numel, *pack, region),
            Code::Histogram { bins, numel, mask } => self.histogram(step, *bins, *numel, *mask),
            Code::Gather { source, index, axis } => self.gather(step, source, index, *axis),
            Code::Broadcast { from, to } => self.broadcast(step, from, to),
            Code::Transpose { shape, order } => self.transpose(step, shape, order),
            Code::Join { numel } => self.join(step, *numel),
            Code::Split { numel } => self.split(step, *numel),
            Code::Cat { numel } => self.cat(step, *numel),
            Code::Assert(message) => self.assert(step, message),
            _ => self.elementwise(step),
        }
    }

    fn assert(&mut self, step: &Step, message: &str) -> Result<(), Fault> {
        match self.arg(step, 0)? {
            Block::I8(conditions) if conditions.contains(&0) => {
                Err(Fault::Assert { message: message.to_owned(), site: self.site() })
            }
            _ => Ok(()),
        }
    }

    fn apply(&mut self, moves: &Moves) {
        if moves.parallel {
            let values: Vec<Block> = moves.pairs.iter().map(|pair| self.reg(pair.from).clone()).collect();
            for (pair, value) in moves.pairs.iter().zip(values) {
                *self.reg_mut(pair.to) = value;
            }
            return;
        }
        for pair in &moves.pairs {
            if pair.to == pair.from {
            } else if pair.steal {
                self.regs.swap(pair.to.0 as usize, pair.from.0 as usize);
            } else {
                let mut to = std::mem::take(self.reg_mut(pair.to));
                to.assign(self.reg(pair.from));
                *self.reg_mut(pair.to) = to;
            }
        }
    }

    fn run_for(&mut self, step: &Step, code: &For) -> Result<(), Fault> {
        let [counter, upper, by] = [0, 1, 2].map(|index| self.bound(step, index, code.unsigned));
        let (mut counter, upper, by) = (counter?, upper?, by?);
        self.apply(&code.init);
        let line = self.line;
        let inside = |counter: i64| if code.unsigned { (counter as u64) < (upper as u64) } else { counter < upper };
        if !inside(counter) {
            return Ok(());
        }
        loop {
            self.tick()?;
            match self.reg_mut(code.counter) {
                Block::I64(v) => set(v, counter),
                Block::I32(v) => set(v, counter as i32),
                Block::I16(v) => set(v, counter as i16),
                Block::I8(v) => set(v, counter as i8),
                _ => return Err(self.malformed("a loop counter is no integer")),
            }
            self.run(&code.body)?;
            self.line = line;
            self.apply(&code.next);
            // A counter that would wrap around has passed every bound.
            let Some(next) = counter.checked_add(by) else { return Ok(()) };
            counter = next;
            if !inside(counter) {
                return Ok(());
            }
        }
    }

    fn run_while(&mut self, code: &While) -> Result<(), Fault> {
        let line = self.line;
        self.apply(&code.init);
        loop {
            self.tick()?;
            self.run(&code.before)?;
            self.line = line;
            let go_on = self.reg(code.condition).scalar().ok_or_else(|| self.malformed("a condition is no integer"))?;
            self.apply(&code.forward);
            if go_on & 1 == 0 {
                return Ok(());
            }
            self.run(&code.after)?;
            self.line = line;
            self.apply(&code.next);
        }
    }

    fn run_if(&mut self, step: &Step, code: &If) -> Result<(), Fault> {
        let condition = self.scalar(step, 0)?;
        let (steps, moves) = &code.arms[usize::from(condition & 1 == 0)];
        self.run(steps)?;
        self.apply(moves);
        Ok(())
    }

    fn run_blocks(&mut self, code: &Blocks) -> Result<(), Fault> {
        let mut current = 0;
        loop {
            self.tick()?;
            let Some((steps, end)) = code.blocks.get(current) else {
                return Err(self.malformed("a branch leads nowhere"));
            };
            self.run(steps)?;
            let target = match end {
                End::Return(moves) => {
                    self.apply(moves);
                    return Ok(());
                }
                End::Branch(target) => target,
                End::Cond { condition, then, otherwise } => match self.reg(*condition).scalar() {
                    Some(value) if value & 1 == 1 => then,
                    Some(_) => otherwise,
                    None => return Err(self.malformed("a condition is no integer")),
                },
            };
            self.apply(&target.moves);
            current = target.block;
        }
    }

    /// Runs a region on its arguments, which the caller has put into its registers.
    fn run_region(&mut self, region: &Region) -> Result<(), Fault> {
        let line = self.line;
        self.run(&region.steps)?;
        self.line = line;
        Ok(())
    }
}

fn set<T>(v: &mut Vec<T>, value: T) {
    v.clear();
    v.push(value);
}
