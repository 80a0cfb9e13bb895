//! What a kernel's memory accesses depend on, found once when it is lowered: which parameters point to memory that
//! it may write, and which 32-bit arithmetic makes addresses.

use std::collections::HashSet;

use super::Register;
use crate::code::{Cast, Code, End, IntOp, Moves, Reg, Step, Written};
use crate::types::{Class, Elem};

/// Marks the steps whose results become offsets of addresses, and gives what may be written.
pub(super) fn analyse(registers: &[Register], params: &[Reg], steps: &mut [Step]) -> Written {
    let mut flow = Flow {
        registers,
        sources: vec![Vec::new(); registers.len()],
        parents: (0..registers.len() as u32).collect(),
        offsets: Vec::new(),
        loaded: Vec::new(),
        accesses: Vec::new(),
        orders: false,
    };
    flow.steps(steps);
    let offsets = flow.reached();
    mark(steps, &offsets);
    flow.written(params)
}

/// An access through a pointer.
struct Access {
    pointer: Reg,
    bytes: usize,
    writes: bool,
}

struct Flow<'r> {
    registers: &'r [Register],
    /// Registers whose values go into each register without leaving the arithmetic of offsets.
    sources: Vec<Vec<Reg>>,
    /// A forest of registers that may hold addresses of the same memory.
    parents: Vec<u32>,
    offsets: Vec<Reg>,
    /// Registers that hold addresses or 64-bit numbers from memory.
    loaded: Vec<Reg>,
    accesses: Vec<Access>,
    orders: bool,
}

impl Flow<'_> {
    fn find(&mut self, reg: Reg) -> u32 {
        let mut at = reg.0;
        while self.parents[at as usize] != at {
            let next = self.parents[at as usize];
            self.parents[at as usize] = self.parents[next as usize];
            at = next;
        }
        at
    }

    fn unite(&mut self, a: Reg, b: Reg) {
        let wide = |reg: Reg| matches!(self.registers[reg.0 as usize].ty.class(), Class::I64 | Class::View);
        if wide(a) && wide(b) {
            let (a, b) = (self.find(a), self.find(b));
            self.parents[a as usize] = b;
        }
    }

    fn moves(&mut self, moves: &Moves) {
        for pair in &moves.pairs {
            self.sources[pair.to.0 as usize].push(pair.from);
            self.unite(pair.to, pair.from);
        }
    }

    fn access(&mut self, step: &Step, elem: Elem, writes: bool) {
        if let Some(&pointer) = step.args.first() {
            self.accesses.push(Access { pointer, bytes: elem.bytes(), writes });
        }
        self.loaded.extend(&step.outs);
    }

    fn steps(&mut self, steps: &[Step]) {
        steps.iter().for_each(|step| self.step(step));
    }

    fn step(&mut self, step: &Step) {
        let first = step.args.first().copied();
        match &step.code {
            Code::Load { elem, volatile, .. } => {
                self.orders |= volatile;
                self.access(step, *elem, false);
            }
            Code::LoadTile(tile) | Code::GatherTile(tile) => self.access(step, tile.elem, false),
            Code::Store { elem, .. } => self.access(step, *elem, true),
            Code::AtomicRmw(atomic, _) | Code::AtomicCas(atomic) => {
                self.orders = true;
                self.access(step, atomic.elem, true);
            }
            Code::StoreTile(tile) | Code::ReduceTile(tile, _) | Code::ScatterTile(tile) => {
                self.orders |= matches!(step.code, Code::ReduceTile(..));
                self.access(step, tile.elem, true);
            }
            Code::AddPtr(_) => {
                self.offsets.extend(step.args.get(1));
                self.joined(step, first);
            }
            Code::MakeView { .. } | Code::Advance => self.joined(step, first),
            Code::Int(op) => {
                if matches!(op, IntOp::Add | IntOp::Sub | IntOp::Mul | IntOp::DivS | IntOp::FloorDivS | IntOp::CeilDivS)
                {
                    self.computed(step);
                }
                self.joined(step, step.args.iter().copied());
            }
            Code::Broadcast { .. }
            | Code::Transpose { .. }
            | Code::Join { .. }
            | Code::Cat { .. }
            | Code::Split { .. } => {
                self.computed(step);
                self.joined(step, step.args.iter().copied());
            }
            Code::Select => {
                self.computed(step);
                self.joined(step, step.args.iter().copied().skip(1));
            }
            Code::Cast(Cast::Int { from: Elem::I32, to: Elem::I64, signed: true }) => self.computed(step),
            Code::For(code) => {
                self.moves(&code.init);
                self.steps(&code.body);
                self.moves(&code.next);
            }
            Code::While(code) => {
                [&code.init, &code.forward, &code.next].into_iter().for_each(|moves| self.moves(moves));
                self.steps(&code.before);
                self.steps(&code.after);
            }
            Code::If(code) => {
                for (steps, moves) in &code.arms {
                    self.steps(steps);
                    self.moves(moves);
                }
            }
            Code::Blocks(code) => {
                for (steps, end) in &code.blocks {
                    self.steps(steps);
                    match end {
                        End::Return(moves) => self.moves(moves),
                        End::Branch(target) => self.moves(&target.moves),
                        End::Cond { then, otherwise, .. } => {
                            self.moves(&then.moves);
                            self.moves(&otherwise.moves);
                        }
                    }
                }
            }
            Code::Reduce { region, .. } | Code::Scan { region, .. } | Code::MapElementwise { region, .. } => {
                for &result in &region.results {
                    self.joined(step, [result]);
                }
                for &arg in &region.args {
                    step.args.iter().for_each(|&given| self.unite(arg, given));
                }
                self.steps(&region.steps);
            }
            _ => self.joined(step, step.args.iter().copied()),
        }
    }

    fn computed(&mut self, step: &Step) {
        for out in &step.outs {
            self.sources[out.0 as usize].extend(&step.args);
        }
    }

    fn joined(&mut self, step: &Step, with: impl IntoIterator<Item = Reg>) {
        for from in with {
            step.outs.iter().for_each(|&out| self.unite(out, from));
        }
    }

    /// All registers that go into an offset.
    fn reached(&self) -> HashSet<Reg> {
        let mut reached = HashSet::new();
        let mut open = self.offsets.clone();
        while let Some(reg) = open.pop() {
            if reached.insert(reg) {
                open.extend(&self.sources[reg.0 as usize]);
            }
        }
        reached
    }

    fn written(&mut self, params: &[Reg]) -> Written {
        let accesses = std::mem::take(&mut self.accesses);
        let stores: HashSet<u32> =
            accesses.iter().filter(|access| access.writes).map(|access| self.find(access.pointer)).collect();
        let loaded = std::mem::take(&mut self.loaded);
        let unknown = loaded.into_iter().any(|reg| stores.contains(&self.find(reg)));
        let params: Vec<usize> = (0..params.len()).filter(|&at| stores.contains(&self.find(params[at]))).collect();
        let finest = accesses.iter().map(|access| access.bytes.max(1)).min().unwrap_or(1);
        if unknown || params.is_empty() {
            return Written { params: None, granule: finest, finest, orders: self.orders };
        }
        let mut granule = usize::MAX;
        for access in &accesses {
            if stores.contains(&self.find(access.pointer)) {
                granule = granule.min(access.bytes.max(1));
            }
        }
        Written { params: Some(params), granule, finest, orders: self.orders }
    }
}

fn mark(steps: &mut [Step], offsets: &HashSet<Reg>) {
    for step in steps {
        step.offset = matches!(step.code, Code::Int(_)) && step.outs.iter().any(|out| offsets.contains(out));
        match &mut step.code {
            Code::For(code) => mark(&mut code.body, offsets),
            Code::While(code) => {
                mark(&mut code.before, offsets);
                mark(&mut code.after, offsets);
            }
            Code::If(code) => code.arms.iter_mut().for_each(|(steps, _)| mark(steps, offsets)),
            Code::Blocks(code) => code.blocks.iter_mut().for_each(|(steps, _)| mark(steps, offsets)),
            _ => {}
        }
    }
}
