//! A program in the course of running. It can be put aside at any round of a `while` loop, so that a program that
//! waits for another one lets that one run.

use std::hash::{DefaultHasher, Hasher};

use super::Machine;
use super::order::Progress;
use crate::block::Block;
use crate::code::{Blocks, Code, End, For, Moves, Program, Reg, Step, While};
use crate::fault::{Fault, Usage};
use crate::marks::Marks;

/// Rounds of a loop that look at shared memory and change nothing until a program counts as waiting.
const PATIENCE: u32 = 32;

pub(super) struct Task<'a> {
    pub(super) regs: Vec<Block>,
    /// Of each register.
    pub(super) marks: Vec<Marks>,
    /// What is left to do, the next thing last.
    frames: Vec<Frame<'a>>,
    pub(super) program: [u32; 3],
    pub(super) line: u32,
    /// Branches by data that the program is in: what happens there is decided by data.
    pub(super) decided: u32,
    pub(super) progress: Progress,
    /// Looks at memory that other programs may write, and changes of it, for [`Task::spins`].
    pub(super) polls: u64,
    pub(super) changes: u64,
    last: (u64, u64),
    idle: u32,
    /// What it was when it was put aside, and the changes of all programs until then.
    pub(super) aside: Option<(u64, u64)>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
    Done,
    Waiting,
}

#[derive(Clone, Copy)]
enum Frame<'a> {
    Steps {
        steps: &'a [Step],
        next: usize,
    },
    For {
        code: &'a For,
        line: u32,
        counter: i64,
        upper: i64,
        by: i64,
        started: bool,
    },
    While {
        code: &'a While,
        line: u32,
        stage: Stage,
    },
    Blocks {
        code: &'a Blocks,
        block: usize,
        ran: bool,
    },
    Arm {
        moves: &'a Moves,
        decided: bool,
    },
    /// The end of what a branch by data between basic blocks decided.
    Decided(u32),
}

#[derive(Clone, Copy)]
enum Stage {
    Round,
    Condition,
    End,
}

impl<'a> Task<'a> {
    /// Registers with what stays the same in all programs.
    pub(super) fn new(program: &Program, params: &[Block]) -> Self {
        let mut regs: Vec<Block> = program.classes.iter().map(|&class| Block::new(class)).collect();
        let params = program.params.iter().copied().zip(params.iter().cloned());
        for (reg, value) in program.constants.iter().cloned().chain(params) {
            regs[reg.0 as usize] = value;
        }
        let marks = vec![Marks::Pure; regs.len()];
        Self {
            regs,
            marks,
            frames: Vec::new(),
            program: [0; 3],
            line: 0,
            decided: 0,
            progress: Progress::default(),
            polls: 0,
            changes: 0,
            last: (0, 0),
            idle: 0,
            aside: None,
        }
    }

    /// Begins the program of a number, x fastest.
    pub(super) fn start(&mut self, program: &'a Program, grid: [u32; 3], number: u64) {
        self.program = coordinates(grid, number);
        self.progress = Progress::new(number);
        self.frames.push(Frame::Steps { steps: &program.steps, next: 0 });
        self.decided = 0;
        self.last = (self.polls, self.changes);
        self.idle = 0;
        self.aside = None;
    }

    /// Puts the program aside. Gives whether it is what it was when that happened before, while no program has changed
    /// any memory: then it will never go on by itself.
    pub(super) fn put_aside(&mut self, changes: u64) -> bool {
        let mut hasher = DefaultHasher::new();
        self.regs.iter().for_each(|block| block.hash(&mut hasher));
        let now = (hasher.finish(), changes);
        self.aside.replace(now) == Some(now)
    }

    /// Called at each round of a loop that might wait: whether it only looks at memory and sees nothing new.
    fn spins(&mut self) -> bool {
        let now = (self.polls, self.changes);
        let idle = now.0 != self.last.0 && now.1 == self.last.1;
        self.last = now;
        self.idle = if idle { self.idle + 1 } else { 0 };
        let spins = self.idle >= PATIENCE;
        if spins {
            self.idle = 0;
        }
        spins
    }
}

impl<'a> Machine<'a> {
    /// Runs the program until it ends or waits.
    pub(super) fn resume(&mut self) -> Result<State, Fault> {
        while let Some(frame) = self.task.frames.pop() {
            match frame {
                Frame::Steps { steps, next } => self.steps(steps, next)?,
                Frame::For { .. } => self.next_for(frame)?,
                Frame::While { code, line, stage } => {
                    if matches!(stage, Stage::Round) && self.round(line)? {
                        self.task.frames.push(frame);
                        return Ok(State::Waiting);
                    }
                    self.next_while(code, line, stage)?;
                }
                Frame::Blocks { code, block, ran } => {
                    if !ran && self.round(self.task.line)? {
                        self.task.frames.push(frame);
                        return Ok(State::Waiting);
                    }
                    self.next_block(code, block, ran)?;
                }
                Frame::Arm { moves, decided } => {
                    self.apply(moves);
                    self.task.decided -= u32::from(decided);
                }
                Frame::Decided(before) => self.task.decided = before,
            }
        }
        Ok(State::Done)
    }

    /// Runs steps to their end; whatever waits in there waits here.
    pub(super) fn run_apart(&mut self, steps: &'a [Step]) -> Result<(), Fault> {
        let outer = std::mem::replace(&mut self.task.frames, vec![Frame::Steps { steps, next: 0 }]);
        while self.resume()? == State::Waiting {}
        self.task.frames = outer;
        Ok(())
    }

    fn steps(&mut self, steps: &'a [Step], next: usize) -> Result<(), Fault> {
        for (at, step) in steps.iter().enumerate().skip(next) {
            self.task.line = step.line;
            if let Some(frame) = self.control(step)? {
                self.task.frames.push(Frame::Steps { steps, next: at + 1 });
                self.task.frames.extend(frame);
                return Ok(());
            }
            self.step(step)?;
        }
        Ok(())
    }

    /// What a step of control flow does first; None for other steps.
    fn control(&mut self, step: &'a Step) -> Result<Option<Vec<Frame<'a>>>, Fault> {
        Ok(Some(match &step.code {
            Code::For(code) => {
                step.args.iter().for_each(|&reg| self.used(reg, Usage::Branch));
                let [counter, upper, by] = [0, 1, 2].map(|index| self.bound(step, index, code.unsigned));
                let (counter, upper, by) = (counter?, upper?, by?);
                self.apply(&code.init);
                vec![Frame::For { code, line: step.line, counter, upper, by, started: false }]
            }
            Code::While(code) => {
                self.apply(&code.init);
                vec![Frame::While { code, line: step.line, stage: Stage::Round }]
            }
            Code::If(code) => {
                let condition = self.scalar(step, 0)?;
                let decided = self.decides(step.args[0]);
                self.task.decided += u32::from(decided);
                let (steps, moves) = &code.arms[usize::from(condition & 1 == 0)];
                vec![Frame::Arm { moves, decided }, Frame::Steps { steps, next: 0 }]
            }
            Code::Blocks(code) => {
                let before = Frame::Decided(self.task.decided);
                vec![before, Frame::Blocks { code, block: 0, ran: false }]
            }
            _ => return Ok(None),
        }))
    }

    /// Whether a condition comes from data.
    fn decides(&mut self, condition: Reg) -> bool {
        self.used(condition, Usage::Branch);
        !self.marks(condition).is_pure()
    }

    /// Called once per round of every loop that may wait.
    fn round(&mut self, line: u32) -> Result<bool, Fault> {
        self.task.line = line;
        self.tick()?;
        Ok(self.task.spins())
    }

    fn next_for(&mut self, frame: Frame<'a>) -> Result<(), Fault> {
        let Frame::For { code, line, mut counter, upper, by, started } = frame else { return Ok(()) };
        self.task.line = line;
        if started {
            self.apply(&code.next);
            // A counter that would wrap around has passed every bound.
            let Some(next) = counter.checked_add(by) else { return Ok(()) };
            counter = next;
        }
        let inside = if code.unsigned { (counter as u64) < (upper as u64) } else { counter < upper };
        if !inside {
            return Ok(());
        }
        self.tick()?;
        match self.reg_mut(code.counter) {
            Block::I64(v) => set(v, counter),
            Block::I32(v) => set(v, counter as i32),
            Block::I16(v) => set(v, counter as i16),
            Block::I8(v) => set(v, counter as i8),
            _ => return Err(self.malformed("a loop counter is no integer")),
        }
        self.set_marks(code.counter, Marks::Pure);
        self.task.frames.push(Frame::For { code, line, counter, upper, by, started: true });
        self.task.frames.push(Frame::Steps { steps: &code.body, next: 0 });
        Ok(())
    }

    fn next_while(&mut self, code: &'a While, line: u32, stage: Stage) -> Result<(), Fault> {
        let frames = &mut self.task.frames;
        match stage {
            Stage::Round => {
                frames.push(Frame::While { code, line, stage: Stage::Condition });
                frames.push(Frame::Steps { steps: &code.before, next: 0 });
            }
            Stage::Condition => {
                self.task.line = line;
                let go_on = self.reg(code.condition).scalar();
                let go_on = go_on.ok_or_else(|| self.malformed("a condition is no integer"))?;
                self.decides(code.condition);
                self.apply(&code.forward);
                if go_on & 1 == 1 {
                    self.task.frames.push(Frame::While { code, line, stage: Stage::End });
                    self.task.frames.push(Frame::Steps { steps: &code.after, next: 0 });
                }
            }
            Stage::End => {
                self.task.line = line;
                self.apply(&code.next);
                self.task.frames.push(Frame::While { code, line, stage: Stage::Round });
            }
        }
        Ok(())
    }

    fn next_block(&mut self, code: &'a Blocks, block: usize, ran: bool) -> Result<(), Fault> {
        let Some((steps, end)) = code.blocks.get(block) else {
            return Err(self.malformed("a branch leads nowhere"));
        };
        if !ran {
            self.task.frames.push(Frame::Blocks { code, block, ran: true });
            self.task.frames.push(Frame::Steps { steps, next: 0 });
            return Ok(());
        }
        let target = match end {
            End::Return(moves) => {
                self.apply(moves);
                return Ok(());
            }
            End::Branch(target) => target,
            End::Cond { condition, then, otherwise } => {
                self.task.decided += u32::from(self.decides(*condition));
                match self.reg(*condition).scalar() {
                    Some(value) if value & 1 == 1 => then,
                    Some(_) => otherwise,
                    None => return Err(self.malformed("a condition is no integer")),
                }
            }
        };
        self.apply(&target.moves);
        self.task.frames.push(Frame::Blocks { code, block: target.block, ran: false });
        Ok(())
    }
}

/// The place of a program in the grid, x fastest.
pub(super) fn coordinates([x, y, _]: [u32; 3], number: u64) -> [u32; 3] {
    let (x, y) = (u64::from(x), u64::from(y));
    [number % x, number / x % y, number / x / y].map(|index| index as u32)
}

fn set<T>(v: &mut Vec<T>, value: T) {
    v.clear();
    v.push(value);
}
