//! Runs a lowered kernel over a grid: programs one after the other, unless one waits for another.

mod access;
mod atomic;
mod births;
mod cast;
mod dot;
mod elementwise;
mod epoch;
mod flow;
mod fold;
mod granules;
mod order;
mod parallel;
mod port;
mod promises;
mod race;
mod readers;
mod shape;
mod space;
mod task;
mod tile;
mod traffic;

pub(crate) use atomic::Update;

use std::collections::VecDeque;
use std::time::Instant;

use crate::block::{Block, View};
use crate::code::{Code, Moves, Program, Reg, Region, Step};
use crate::fault::{Fault, Limits, Report, Site, Usage};
use crate::memory::Memory;
use crate::types::Class;
use race::Races;
use space::Space;
use task::{State, Task};
use traffic::Traffic;

/// One thread of a launch.
pub(crate) struct Machine<'a> {
    /// The program that is running.
    task: Task<'a>,
    space: Space<'a>,
    races: Races,
    traffic: Traffic,
    limits: &'a Limits,
    report: Report,
    grid: [u32; 3],
    /// Counts loop rounds, so that the clock is not read at each.
    rounds: u32,
}

/// What is to run.
#[derive(Clone, Copy)]
struct Launch<'a> {
    program: &'a Program,
    params: &'a [Block],
    grid: [u32; 3],
    limits: &'a Limits,
}

impl Launch<'_> {
    fn programs(&self) -> u64 {
        self.grid.iter().map(|&extent| u64::from(extent)).product()
    }

    /// The number of the program that starts at a place in the order of starts.
    fn number(&self, at: u64) -> u64 {
        if self.limits.reverse { self.programs() - 1 - at } else { at }
    }
}

/// Runs every program of a grid.
pub(crate) fn run(
    program: &Program,
    grid: [u32; 3],
    params: &[Block],
    memory: &mut Memory,
    limits: &Limits,
) -> Result<Report, Fault> {
    memory.settle();
    let _busy = parallel::Busy::launch();
    let launch = Launch { program, params, grid, limits };
    let alone = limits.threads == 1 || limits.births || program.written.orders;
    let races = if limits.bare { Races::default() } else { Races::new(program, grid, params, memory) };
    let mut machine = Machine::new(launch, Space::Whole(memory), races);
    let started = if alone { 0 } else { parallel::run(&mut machine, launch)? };
    machine.run_from(launch, started, |_| false)?;
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
    fn new(launch: Launch<'a>, space: Space<'a>, races: Races) -> Self {
        let Launch { program, params, grid, limits } = launch;
        Self {
            task: Task::new(program, params),
            space,
            races,
            traffic: Traffic::default(),
            limits,
            report: Report::default(),
            grid,
            rounds: 0,
        }
    }

    /// Runs programs one after the other, from a place in their order on until `pause` says so, and gives where to go on.
    /// One that waits for memory to change is put aside until all others have ended or wait too: then there is no pause.
    fn run_from(
        &mut self,
        launch: Launch<'a>,
        mut started: u64,
        mut pause: impl FnMut(u64) -> bool,
    ) -> Result<u64, Fault> {
        let count = launch.programs();
        let mut waiting = VecDeque::new();
        // Changes of memory by all programs, and programs in a row that are stuck.
        let (mut changes, mut stuck) = (0, 0);
        loop {
            let full = launch.limits.resident > 0 && waiting.len() >= launch.limits.resident as usize;
            if started < count && !full {
                self.task.start(launch.program, launch.grid, launch.number(started));
                started += 1;
            } else if let Some(task) = waiting.pop_front() {
                self.task = task;
            } else {
                return Ok(started);
            }
            self.check_deadline()?;
            let before = self.task.changes;
            let state = self.resume()?;
            changes += self.task.changes - before;
            if state == State::Waiting {
                stuck = if self.task.put_aside(changes) { stuck + 1 } else { 0 };
                if stuck > waiting.len() && (started == count || full) {
                    return Err(Fault::Deadlock { site: self.site() });
                }
                waiting.push_back(std::mem::replace(&mut self.task, Task::new(launch.program, launch.params)));
            } else if waiting.is_empty() && pause(started) {
                return Ok(started);
            }
        }
    }

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

    /// Goes on from a fault where that is wanted.
    fn pass(&mut self, fault: Fault) -> Result<(), Fault> {
        self.space.pass(self.limits.go_on, fault)
    }

    /// Steps that are no control flow.
    fn step(&mut self, step: &'a Step) -> Result<(), Fault> {
        self.execute(step)?;
        if self.limits.births {
            self.find_births(step);
        }
        Ok(())
    }

    fn execute(&mut self, step: &'a Step) -> Result<(), Fault> {
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
            Code::Assume => return self.assume(step),
            Code::Hint(hint) => return self.hint(step, hint),
            Code::MakeView { rank, offsets, pad_nan, elem } => {
                self.make_view(step, *rank, (!offsets).then_some(*elem), *pad_nan)
            }
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
                let site = self.site();
                self.pass(Fault::Assert { message: message.to_owned(), site })
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
