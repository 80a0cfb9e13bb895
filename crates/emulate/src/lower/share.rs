//! Lets values whose lives do not overlap share a register, so that blocks stay in cache.

use std::collections::{BTreeMap, HashMap};

use super::Register;
use crate::block::Block;
use crate::code::{Code, End, Moves, Program, Reg, Region, Step};
use crate::types::Class;

/// The program, and a bound on the bytes of its blocks.
pub(super) fn share(
    registers: Vec<Register>,
    constants: Vec<(Reg, Block)>,
    params: Vec<Reg>,
    mut steps: Vec<Step>,
) -> (Program, usize) {
    let mut lives = Lives { spans: vec![None; registers.len()], position: 0, open: Vec::new() };
    lives.steps(&steps);
    let (names, classes, bytes) = assign(&registers, &lives.spans);
    let rename = |reg: &mut Reg| *reg = names[reg.0 as usize];
    rename_all(&mut steps, &rename);
    let renamed = |mut reg: Reg| {
        rename(&mut reg);
        reg
    };
    let program = Program {
        classes,
        constants: constants.into_iter().map(|(reg, block)| (renamed(reg), block)).collect(),
        params: params.into_iter().map(renamed).collect(),
        written: Default::default(),
        steps,
    };
    (program, bytes)
}

/// First and last position at which each register is touched, loops taken into account.
struct Lives {
    spans: Vec<Option<(u32, u32)>>,
    position: u32,
    /// Registers touched in each enclosing loop.
    open: Vec<Vec<Reg>>,
}

impl Lives {
    fn touch(&mut self, reg: Reg) {
        let span = &mut self.spans[reg.0 as usize];
        let start = span.map_or(self.position, |(start, _)| start);
        *span = Some((start, self.position));
        if let Some(open) = self.open.last_mut() {
            open.push(reg);
        }
    }

    fn touch_moves(&mut self, moves: &Moves) {
        for pair in &moves.pairs {
            self.touch(pair.from);
            self.touch(pair.to);
        }
    }

    fn next(&mut self) {
        self.position += 1;
    }

    /// What is touched by `body` and was defined before it lives until its end, since it may run again.
    fn looped(&mut self, body: impl FnOnce(&mut Self)) {
        let start = self.position;
        self.open.push(Vec::new());
        body(self);
        self.next();
        self.close(start, false);
    }

    /// Basic blocks run in any order: everything in them lives all the time.
    fn tangled(&mut self, body: impl FnOnce(&mut Self)) {
        let start = self.position;
        self.open.push(Vec::new());
        body(self);
        self.next();
        self.close(start, true);
    }

    fn close(&mut self, loop_start: u32, all: bool) {
        let end = self.position;
        let mut touched = self.open.pop().unwrap_or_default();
        touched.sort_unstable();
        touched.dedup();
        for &reg in &touched {
            if let Some((start, last)) = &mut self.spans[reg.0 as usize] {
                if all {
                    *start = (*start).min(loop_start);
                    *last = end;
                } else if *start <= loop_start {
                    *last = end;
                }
            }
        }
        if let Some(outer) = self.open.last_mut() {
            outer.extend(touched);
        }
    }

    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            self.next();
            self.step(step);
        }
    }

    fn step(&mut self, step: &Step) {
        for &reg in step.args.iter().chain(&step.outs) {
            self.touch(reg);
        }
        match &step.code {
            Code::For(code) => {
                self.touch_moves(&code.init);
                self.next();
                self.looped(|lives| {
                    lives.touch(code.counter);
                    code.next.pairs.iter().for_each(|pair| lives.touch(pair.to));
                    lives.steps(&code.body);
                    lives.next();
                    lives.touch_moves(&code.next);
                });
            }
            Code::While(code) => {
                self.touch_moves(&code.init);
                self.next();
                self.looped(|lives| {
                    code.next.pairs.iter().for_each(|pair| lives.touch(pair.to));
                    lives.steps(&code.before);
                    lives.next();
                    lives.touch(code.condition);
                    lives.touch_moves(&code.forward);
                    lives.steps(&code.after);
                    lives.next();
                    lives.touch_moves(&code.next);
                    // The results, which the last round leaves here.
                    code.forward.pairs.iter().for_each(|pair| lives.touch(pair.to));
                });
            }
            Code::If(code) => {
                for (steps, moves) in &code.arms {
                    self.steps(steps);
                    self.next();
                    self.touch_moves(moves);
                }
            }
            Code::Blocks(code) => self.tangled(|lives| {
                step.outs.iter().for_each(|&reg| lives.touch(reg));
                for (steps, end) in &code.blocks {
                    lives.steps(steps);
                    lives.next();
                    match end {
                        End::Branch(target) => lives.touch_moves(&target.moves),
                        End::Cond { condition, then, otherwise } => {
                            lives.touch(*condition);
                            lives.touch_moves(&then.moves);
                            lives.touch_moves(&otherwise.moves);
                        }
                        End::Return(moves) => lives.touch_moves(moves),
                    }
                }
            }),
            Code::Reduce { region, .. } | Code::Scan { region, .. } | Code::MapElementwise { region, .. } => {
                self.region(region);
                step.outs.iter().for_each(|&reg| self.touch(reg));
            }
            _ => {}
        }
    }

    fn region(&mut self, region: &Region) {
        self.next();
        self.looped(|lives| {
            region.args.iter().for_each(|&reg| lives.touch(reg));
            lives.steps(&region.steps);
            lives.next();
            region.results.iter().for_each(|&reg| lives.touch(reg));
        });
    }
}

/// Gives each register a shared one of the same class and size. Pinned and unused registers keep their own.
fn assign(registers: &[Register], spans: &[Option<(u32, u32)>]) -> (Vec<Reg>, Vec<Class>, usize) {
    let mut names = vec![Reg(0); registers.len()];
    let mut classes = Vec::new();
    let mut bytes = 0usize;
    let mut order: Vec<(u32, u32, usize)> = Vec::new();
    for (index, register) in registers.iter().enumerate() {
        match spans[index] {
            Some((start, end)) if !register.pinned => order.push((start, end, index)),
            _ => {
                names[index] = Reg(classes.len() as u32);
                classes.push(register.ty.class());
            }
        }
    }
    order.sort_unstable();
    let mut free: HashMap<(Class, usize), Vec<Reg>> = HashMap::new();
    let mut active: BTreeMap<(u32, usize), (Class, usize)> = BTreeMap::new();
    for (start, end, index) in order {
        while let Some(entry) = active.first_entry().filter(|entry| entry.key().0 < start) {
            let ((_, other), key) = entry.remove_entry();
            free.entry(key).or_default().push(names[other]);
        }
        let key = (registers[index].ty.class(), registers[index].ty.numel());
        names[index] = free.get_mut(&key).and_then(Vec::pop).unwrap_or_else(|| {
            classes.push(key.0);
            bytes = bytes.saturating_add(key.1.saturating_mul(8));
            Reg(classes.len() as u32 - 1)
        });
        active.insert((end, index), key);
    }
    (names, classes, bytes)
}

fn rename_moves(moves: &mut Moves, rename: &impl Fn(&mut Reg)) {
    for pair in &mut moves.pairs {
        rename(&mut pair.to);
        rename(&mut pair.from);
    }
}

fn rename_all(steps: &mut [Step], rename: &impl Fn(&mut Reg)) {
    for step in steps {
        step.args.iter_mut().chain(&mut step.outs).for_each(rename);
        match &mut step.code {
            Code::For(code) => {
                rename(&mut code.counter);
                rename_moves(&mut code.init, rename);
                rename_all(&mut code.body, rename);
                rename_moves(&mut code.next, rename);
            }
            Code::While(code) => {
                rename(&mut code.condition);
                for moves in [&mut code.init, &mut code.forward, &mut code.next] {
                    rename_moves(moves, rename);
                }
                rename_all(&mut code.before, rename);
                rename_all(&mut code.after, rename);
            }
            Code::If(code) => {
                for (steps, moves) in &mut code.arms {
                    rename_all(steps, rename);
                    rename_moves(moves, rename);
                }
            }
            Code::Blocks(code) => {
                for (steps, end) in &mut code.blocks {
                    rename_all(steps, rename);
                    match end {
                        End::Branch(target) => rename_moves(&mut target.moves, rename),
                        End::Cond { condition, then, otherwise } => {
                            rename(condition);
                            rename_moves(&mut then.moves, rename);
                            rename_moves(&mut otherwise.moves, rename);
                        }
                        End::Return(moves) => rename_moves(moves, rename),
                    }
                }
            }
            Code::Reduce { region, .. } | Code::Scan { region, .. } | Code::MapElementwise { region, .. } => {
                region.args.iter_mut().chain(&mut region.results).for_each(rename);
                rename_all(&mut region.steps, rename);
            }
            _ => {}
        }
    }
}
