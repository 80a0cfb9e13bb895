//! Runs a lowered kernel over a grid: programs one after the other, unless one waits for another.

mod access;
mod dot;
mod elementwise;
mod flow;
mod fold;
mod order;
mod port;
mod race;
mod shape;
mod task;
mod tile;
mod traffic;

pub(crate) use port::Update;

use std::collections::VecDeque;
use std::time::Instant;

use crate::block::{Block, View};
use crate::code::{Code, Moves, Program, Reg, Region, Step};
use crate::fault::{Fault, Limits, Report, Site, Usage};
use crate::memory::Memory;
use crate::types::Class;
use race::Races;
use task::{State, Task};
use traffic::Traffic;

/// The state of one launch.
pub(crate) struct Machine<'a> {
    /// The program that is running.
    task: Task<'a>,
    memory: &'a mut Memory,
    races: Races,
    traffic: Traffic,
    limits: &'a Limits,
    report: Report,
    grid: [u32; 3],
    /// Counts loop rounds, so that the clock is not read at each.
    rounds: u32,
}

/// Runs every program of a grid. A program that waits for memory to change is put aside until all others have
/// ended or wait too.
pub(crate) fn run<'a>(
    program: &'a Program,
    grid: [u32; 3],
    params: Vec<Block>,
    memory: &'a mut Memory,
    limits: &'a Limits,
) -> Result<Report, Fault> {
    let races = if limits.bare { Races::default() } else { Races::new(program, grid, &params, memory) };
    memory.settle();
    let task = Task::new(program, &params);
    let mut machine = Machine {
        task,
        memory,
        races,
        traffic: Traffic::default(),
        limits,
        report: Report::default(),
        grid,
        rounds: 0,
    };
    let count: u64 = grid.iter().map(|&extent| u64::from(extent)).product();
    let mut started = 0;
    let mut waiting = VecDeque::new();
    // Changes of memory by all programs, and programs in a row that are stuck.
    let (mut changes, mut stuck) = (0, 0);
    loop {
        if started < count {
            let number = if limits.reverse { count - 1 - started } else { started };
            machine.task.start(program, grid, number);
            started += 1;
        } else if let Some(task) = waiting.pop_front() {
            machine.task = task;
        } else {
            break;
        }
        machine.check_deadline()?;
        let before = machine.task.changes;
        let state = machine.resume()?;
        changes += machine.task.changes - before;
        if state == State::Waiting {
            stuck = if machine.task.put_aside(changes) { stuck + 1 } else { 0 };
            if stuck > waiting.len() && started == count {
                return Err(Fault::Deadlock { site: machine.site() });
            }
            waiting.push_back(std::mem::replace(&mut machine.task, Task::new(program, &params)));
        }
    }
    let Machine { races, traffic, report, .. } = machine;
    Ok(Report {
        benign_races: races.benign,
        unique_bytes: traffic.unique_bytes(),
        sectors: traffic.sectors,
        least_sectors: traffic.least_sectors,
        ..report
    })
}

impl<'a> Machine<'a> {
    fn reg(&self, reg: Reg) -> &Block {
        &self.task.regs[reg.0 as usize]
    }

    fn reg_mut(&mut self, reg: Reg) -> &mut Block {
        &mut self.task.regs[reg.0 as usize]
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
        Site { program: self.task.program, line: self.task.line }
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

    /// Steps that are no control flow.
    fn step(&mut self, step: &'a Step) -> Result<(), Fault> {
        match &step.code {
            Code::Load { elem, row, mask, other, volatile } => {
                return self.load(step, *elem, *row, (*mask, *other), *volatile);
            }
            Code::Store { elem, row, mask } => return self.store(step, *elem, *row, *mask),
            Code::AtomicRmw(atomic, op) => return self.atomic_rmw(step, *atomic, *op),
            Code::AtomicCas(atomic) => return self.atomic_cas(step, *atomic),
            Code::LoadTile(tile) => return self.load_tile(step, tile),
            Code::StoreTile(tile) => return self.store_tile(step, tile),
            Code::ReduceTile(tile, op) => return self.reduce_tile(step, tile, *op),
            Code::GatherTile(tile) => return self.gather_tile(step, tile),
            Code::ScatterTile(tile) => return self.scatter_tile(step, tile),
            Code::Assert(message) => return self.assert(step, message),
            Code::MakeView { rank, offsets, pad_nan } => self.make_view(step, *rank, *offsets, *pad_nan),
            Code::Advance => self.advance(step),
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
            _ => return self.elementwise(step),
        }?;
        self.flow(step);
        Ok(())
    }

    fn assert(&mut self, step: &Step, message: &str) -> Result<(), Fault> {
        if let Some(&reg) = step.args.first() {
            self.used(reg, Usage::Branch);
        }
        match self.arg(step, 0)? {
            Block::I8(conditions) if conditions.contains(&0) => {
                Err(Fault::Assert { message: message.to_owned(), site: self.site() })
            }
            _ => Ok(()),
        }
    }

    fn apply(&mut self, moves: &Moves) {
        if moves.parallel {
            let values: Vec<_> =
                moves.pairs.iter().map(|pair| (self.reg(pair.from).clone(), self.marks(pair.from).clone())).collect();
            for (pair, (value, marks)) in moves.pairs.iter().zip(values) {
                *self.reg_mut(pair.to) = value;
                self.set_marks(pair.to, marks);
            }
            return;
        }
        for pair in &moves.pairs {
            let (to, from) = (pair.to.0 as usize, pair.from.0 as usize);
            if to == from {
            } else if pair.steal {
                self.task.regs.swap(to, from);
                self.task.marks.swap(to, from);
            } else {
                let mut block = std::mem::take(&mut self.task.regs[to]);
                block.assign(&self.task.regs[from]);
                self.task.regs[to] = block;
                self.task.marks[to] = self.task.marks[from].clone();
            }
        }
    }

    /// Runs a region on its arguments, which the caller has put into its registers.
    fn run_region(&mut self, region: &'a Region) -> Result<(), Fault> {
        let line = self.task.line;
        for &reg in &region.args {
            self.set_marks(reg, Default::default());
        }
        if region.branches {
            self.run_apart(&region.steps)?;
        } else {
            for step in &region.steps {
                self.task.line = step.line;
                self.step(step)?;
            }
        }
        self.task.line = line;
        Ok(())
    }
}
