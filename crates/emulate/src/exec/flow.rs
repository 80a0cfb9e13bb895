//! Marks on their way through the steps: see [`Marks`]. A step whose operands have none costs next to nothing.

use super::Machine;
use super::shape::{broadcast, interleave, transpose};
use crate::block::{Block, vectorised};
use crate::code::{Cast, Code, Dot, IntOp, Reg, Step};
use crate::defects::Defects;
use crate::fault::{Defect, DefectKind, Site, Usage};
use crate::marks::{Marks, computed, mixed};

impl Machine<'_> {
    pub(super) fn marks(&self, reg: Reg) -> &Marks {
        &self.task.marks[reg.0 as usize]
    }

    pub(super) fn set_marks(&mut self, reg: Reg, marks: Marks) {
        self.task.marks[reg.0 as usize] = marks;
    }

    /// Marks the results of a step that does not access memory.
    pub(super) fn flow(&mut self, step: &Step) {
        if step.args.iter().all(|&reg| self.marks(reg).is_pure()) {
            for &reg in &step.outs {
                self.task.marks[reg.0 as usize] = Marks::Pure;
            }
            return;
        }
        if let (Code::Split { .. }, Some(Marks::Lanes(lanes))) =
            (&step.code, step.args.first().map(|&reg| self.marks(reg)))
        {
            let halves = [0, 1].map(|half| Marks::lanes(lanes.iter().skip(half).step_by(2).copied().collect()));
            for (&reg, half) in step.outs.iter().zip(halves) {
                self.set_marks(reg, half);
            }
            return;
        }
        let marks = self.result_marks(step);
        for &reg in &step.outs {
            self.set_marks(reg, marks.clone());
        }
    }

    fn result_marks(&self, step: &Step) -> Marks {
        let arg = |index: usize| step.args.get(index).map_or(&Marks::Pure, |&reg| self.marks(reg));
        let lanes = step.args.iter().any(|&reg| matches!(self.marks(reg), Marks::Lanes(_)));
        match &step.code {
            // Between integers and floats a cast computes: it truncates, or tests for zero.
            Code::Truth
            | Code::Cast(Cast::Int { .. } | Cast::Float { .. } | Cast::Bits { .. })
            | Code::Split { .. } => arg(0).clone(),
            Code::Broadcast { from, to } => rearranged(arg(0), |lanes, out| broadcast(lanes, from, to, out)),
            Code::Transpose { shape, order } => rearranged(arg(0), |lanes, out| transpose(lanes, shape, order, out)),
            Code::Join { .. } if !lanes => all(mixed(arg(0).at(0), arg(1).at(0))),
            Code::Join { numel } => {
                let mut out = Vec::new();
                interleave(&expanded(arg(0), *numel), &expanded(arg(1), *numel), &mut out);
                Marks::lanes(out)
            }
            Code::Cat { .. } if !lanes => all(mixed(arg(0).at(0), arg(1).at(0))),
            Code::Cat { numel } => Marks::lanes([expanded(arg(0), numel[0]), expanded(arg(1), numel[1])].concat()),
            Code::Select => self.selected(step),
            Code::Reduce { shape, .. } if lanes => reduced(step.args.iter().map(|&reg| self.marks(reg)), *shape),
            Code::Dot(dot) if lanes => product(dot, arg(0), arg(1), arg(2)),
            code if elementwise(code) => {
                let both = |a: Marks, b: &Marks| zip(&a, b, computed);
                step.args.iter().fold(Marks::Pure, |marks, &reg| both(marks, self.marks(reg)))
            }
            _ => {
                let worst = |marks: &Marks| marks.defect().unwrap_or_else(|| marks.at(0));
                all(step.args.iter().fold(0, |mark, &reg| computed(mark, worst(self.marks(reg)))))
            }
        }
    }

    /// A choice by data computes; one by position moves.
    fn selected(&self, step: &Step) -> Marks {
        let [condition, a, b] =
            [0, 1, 2].map(|index| step.args.get(index).map_or(&Marks::Pure, |&reg| self.marks(reg)));
        let chosen = match step.args.first().map(|&reg| self.reg(reg)) {
            Some(Block::I8(chosen)) => chosen.as_slice(),
            _ => &[],
        };
        let arms = match chosen {
            &[one] => (if one != 0 { a } else { b }).clone(),
            _ if matches!((a, b), (Marks::Lanes(_), _) | (_, Marks::Lanes(_))) || a.defect() != b.defect() => {
                let pick = |(lane, &chosen): (usize, &i8)| if chosen != 0 { a.at(lane) } else { b.at(lane) };
                Marks::lanes(chosen.iter().enumerate().map(pick).collect())
            }
            _ => zip(a, b, mixed),
        };
        if condition.is_pure() { arms } else { zip(&arms, condition, computed) }
    }

    /// Marks the lanes of a result in which a defect was born.
    pub(super) fn born(&mut self, step: &Step, kind: DefectKind, lanes: &[bool]) {
        let Some(&reg) = step.outs.first() else { return };
        let defect = Defect { kind, site: self.site(), allocation: String::new(), offset: 0, used: None, stored: None };
        let mark = self.space.defects().note(defect);
        let old = self.marks(reg);
        let n = self.reg(reg).len();
        let broken = |lane: usize| lanes[if lanes.len() == 1 { 0 } else { lane }];
        let mark = |lane| if broken(lane) { mark.max(old.at(lane)) } else { old.at(lane) };
        self.set_marks(reg, Marks::lanes((0..n).map(mark).collect()));
    }

    /// Notes that a value decides something.
    pub(super) fn used(&mut self, reg: Reg, usage: Usage) {
        if let Some(mark) = self.marks(reg).defect() {
            let site = self.site();
            use_of(self.space.defects(), mark, usage, site);
        }
    }
}

/// Notes the first time that a defect decides something. A wrapped number may well be compared: that is how masks
/// keep it from memory.
pub(super) fn use_of(defects: &mut Defects, mark: u8, usage: Usage, site: Site) {
    if let Some(defect) = defects.get_mut(mark)
        && !(defect.kind == DefectKind::Overflow && usage == Usage::Branch)
    {
        defect.used.get_or_insert((usage, site));
    }
}

fn elementwise(code: &Code) -> bool {
    matches!(
        code,
        Code::Int(_)
            | Code::IntUnary(_)
            | Code::Float(..)
            | Code::FloatUnary(..)
            | Code::Fma(_)
            | Code::Clamp { .. }
            | Code::Math1(..)
            | Code::Math2(..)
            | Code::FloatInt(..)
            | Code::Lanes(..)
            | Code::Flushed { .. }
            | Code::Test(_)
            | Code::RoundToInt { .. }
            | Code::CompareInt(_)
            | Code::CompareFloat { .. }
            | Code::Cast(_)
            | Code::AddPtr(_)
    ) || matches!(code, Code::Assembly(call) if call.pack() == 1)
}

fn all(mark: u8) -> Marks {
    if mark == 0 { Marks::Pure } else { Marks::All(mark) }
}

fn expanded(marks: &Marks, n: usize) -> Vec<u8> {
    match marks {
        Marks::Lanes(lanes) if lanes.len() == n => lanes.clone(),
        marks => vec![marks.at(0); n],
    }
}

/// Lane by lane.
pub(super) fn zip(a: &Marks, b: &Marks, join: impl Fn(u8, u8) -> u8) -> Marks {
    let n = match (a, b) {
        (Marks::Lanes(a), Marks::Lanes(b)) => a.len().max(b.len()),
        (Marks::Lanes(lanes), _) | (_, Marks::Lanes(lanes)) => lanes.len(),
        _ => return all(join(a.at(0), b.at(0))),
    };
    Marks::lanes((0..n).map(|lane| join(a.at(lane), b.at(lane))).collect())
}

fn rearranged(marks: &Marks, how: impl FnOnce(&[u8], &mut Vec<u8>)) -> Marks {
    match marks {
        Marks::Lanes(lanes) => {
            let mut out = Vec::new();
            how(lanes, &mut out);
            Marks::lanes(out)
        }
        marks => marks.clone(),
    }
}

fn reduced<'m>(args: impl Iterator<Item = &'m Marks>, [outer, extent, inner]: [usize; 3]) -> Marks {
    let mut out = vec![0; outer * inner];
    for marks in args {
        for lane in 0..outer * extent * inner {
            let to = &mut out[lane / (extent * inner) * inner + lane % inner];
            *to = computed(*to, marks.at(lane));
        }
    }
    Marks::lanes(out)
}

fn product(dot: &Dot, a: &Marks, b: &Marks, c: &Marks) -> Marks {
    let Dot { batch, m, n, k, .. } = *dot;
    let mut rows = vec![0; batch * m];
    let mut cols = vec![0; batch * n];
    for lane in 0..batch * m * k {
        rows[lane / k] = computed(rows[lane / k], a.at(lane));
    }
    for lane in 0..batch * k * n {
        let col = &mut cols[lane / (k * n) * n + lane % n];
        *col = computed(*col, b.at(lane));
    }
    let mark = |lane: usize| {
        let (batch, col) = (lane / (m * n), lane % n);
        computed(computed(rows[lane / n], cols[batch * n + col]), c.at(lane))
    };
    Marks::lanes((0..batch * m * n).map(mark).collect())
}

/// Lanes in which 32-bit arithmetic leaves its range, if there are any.
pub(super) fn wraps(op: IntOp, a: &[i32], b: &[i32]) -> Option<Vec<bool>> {
    fn find(a: &[i32], b: &[i32], overflows: impl Fn(i32, i32) -> bool) -> Option<Vec<bool>> {
        let found = vectorised(|| match (a, b) {
            (_, &[b]) => a.iter().fold(false, |found, &a| found | overflows(a, b)),
            (&[a], _) => b.iter().fold(false, |found, &b| found | overflows(a, b)),
            _ => a.iter().zip(b).fold(false, |found, (&a, &b)| found | overflows(a, b)),
        });
        let at = |v: &[i32], lane: usize| v[if v.len() == 1 { 0 } else { lane }];
        found.then(|| (0..a.len().max(b.len())).map(|lane| overflows(at(a, lane), at(b, lane))).collect())
    }
    match op {
        IntOp::Add => find(a, b, |a, b| ((a ^ a.wrapping_add(b)) & (b ^ a.wrapping_add(b))) < 0),
        IntOp::Sub => find(a, b, |a, b| ((a ^ b) & (a ^ a.wrapping_sub(b))) < 0),
        IntOp::Mul => find(a, b, |a, b| {
            let exact = i64::from(a) * i64::from(b);
            exact != i64::from(exact as i32)
        }),
        _ => None,
    }
}
