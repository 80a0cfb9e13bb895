//! Loads, stores and atomics through blocks of pointers, and the marks of what they move.

use super::Machine;
use super::atomic::Ordering;
use super::cast::{decode_all, encode_all};
use super::flow::{use_of, zip as join};
use super::port::{Lanes, Port, stretched};
use crate::block::Block;
use crate::code::{Atomic, AtomicOp, Reg, Step};
use crate::codec::with_codec;
use crate::fault::{Access, Fault, Usage};
use crate::marks::{Marks, computed, mixed};
use crate::memory::shadow::{self, COPIED};
use crate::types::Elem;

/// What lanes that a mask switches off read without `other`.
pub(super) fn fill_poison(elem: Elem, poison: u8, out: &mut Block) {
    // Every element type has at most 8 bytes; the codec of an i1 keeps its lowest bit.
    let _ = decode_all(elem, &[poison; 8][..elem.bytes().min(8)], out);
}

impl<'a> Machine<'a> {
    /// Loads lanes into `out`, whose elements stand where the mask is off. Gives the marks of what was read.
    pub(super) fn load_lanes(
        &mut self,
        elem: Elem,
        lanes: &Lanes,
        volatile: bool,
        out: &mut Block,
    ) -> Result<Marks, Fault> {
        let malformed = self.malformed("a load into another type");
        let mut port = self.port();
        let loaded = with_codec!(elem, out, codec, out => {
            if volatile { port.poll(codec, lanes, out) } else { port.load(codec, lanes, out) }
        }, Err(malformed));
        let marks = port.seen.marks(lanes.pointers.len());
        loaded.map(|()| marks)
    }

    pub(super) fn store_lanes(
        &mut self,
        elem: Elem,
        lanes: &Lanes,
        values: &Block,
        marks: &Marks,
    ) -> Result<(), Fault> {
        let malformed = self.malformed("a store of another type");
        let mut port = self.port();
        with_codec!(elem, values, codec, values => port.store(codec, lanes, values, marks), Err(malformed))
    }

    /// The old elements go to `lanes`, which holds the operands; zeros where masked off. Gives their marks.
    pub(super) fn update_lanes(
        &mut self,
        op: (AtomicOp, Ordering),
        elem: Elem,
        pointers: &[i64],
        mask: Option<&[i8]>,
        lanes: &mut Block,
    ) -> Result<Marks, Fault> {
        let malformed = self.malformed("an atomic operation on an unexpected type");
        let mut port = self.port();
        let done =
            with_codec!(elem, lanes, codec, lanes => port.update(codec, op, pointers, mask, lanes), Err(malformed));
        let marks = port.seen.marks(pointers.len());
        done.map(|()| marks)
    }

    fn port(&mut self) -> Port<'_, 'a> {
        let site = self.site();
        Port {
            space: &mut self.space,
            report: &mut self.report,
            races: &mut self.races,
            traffic: &mut self.traffic,
            progress: &mut self.task.progress,
            bare: self.limits.bare,
            go_on: self.limits.go_on,
            poison: self.limits.poison,
            grid: self.grid,
            site,
            seen: Default::default(),
            polls: &mut self.task.polls,
            changes: &mut self.task.changes,
        }
    }

    /// Addresses and masks that depend on defects, in lanes that are on.
    fn check_lanes(&mut self, pointer: Reg, mask: Option<Reg>, on: Option<&[i8]>) {
        if let Some(mask) = mask {
            self.used(mask, Usage::Branch);
        }
        if self.marks(pointer).defect().is_none() {
            return;
        }
        let marks = self.marks(pointer);
        let mark = match on {
            Some(on) => (0..on.len()).filter(|&lane| on[lane] != 0).map(|lane| marks.at(lane)).max().unwrap_or(0),
            None => marks.defect().unwrap_or(0),
        };
        let site = self.site();
        use_of(self.space.defects(), mark, Usage::Address, site);
    }

    /// Whether data decide where or whether an access happens.
    fn by_data(&self, regs: impl IntoIterator<Item = Reg>) -> bool {
        self.task.decided > 0 || regs.into_iter().any(|reg| !self.marks(reg).is_pure())
    }

    /// The marks that a store leaves: a copy by position stays one, everything else is the launch's own.
    pub(super) fn stored_marks(&mut self, value: Reg, places: &[Reg]) -> Marks {
        let by_data = self.by_data(places.iter().copied());
        let own = |mark: u8| match mark {
            COPIED if !by_data => COPIED,
            mark if mark >= shadow::DEFECT => mark,
            _ => shadow::LAUNCH,
        };
        let marks = match self.marks(value) {
            Marks::Lanes(marks) => Marks::Lanes(marks.iter().map(|&mark| own(mark)).collect()),
            marks => Marks::All(own(marks.at(0))),
        };
        if let Some(mark) = marks.defect() {
            let site = self.site();
            if let Some(defect) = self.space.defects().get_mut(mark) {
                defect.stored.get_or_insert(site);
            }
        }
        marks
    }

    /// The marks of what a load gives: computed, if data say where it reads.
    pub(super) fn loaded_marks(&self, seen: Marks, places: &[Reg], other: Option<Reg>) -> Marks {
        let pure = Marks::Pure;
        let other = other.map_or(&pure, |reg| self.marks(reg));
        let seen = if self.by_data(places.iter().copied()) {
            join(&seen, &Marks::All(shadow::LAUNCH), computed)
        } else {
            seen
        };
        join(&seen, other, mixed)
    }

    pub(super) fn load(
        &mut self,
        step: &Step,
        elem: Elem,
        row: usize,
        (has_mask, has_other): (bool, bool),
        volatile: bool,
    ) -> Result<(), Fault> {
        let mut out = self.out(step)?;
        let lanes = 0..1 + usize::from(has_mask) + usize::from(has_other);
        let n = lanes.map(|index| step.args.get(index).map_or(1, |&reg| self.reg(reg).len())).max().unwrap_or(1);
        let (pointers, mask) = self.take_lanes(step, if has_mask { Some(1) } else { None })?;
        match &mask {
            None => out.resize(n),
            Some(_) if has_other => {
                out.assign(self.arg(step, 2)?);
                out.expand(n);
            }
            Some(_) => {
                fill_poison(elem, self.limits.poison, &mut out);
                out.expand(n);
            }
        }
        let full_pointers = stretched(&pointers, n);
        let full_mask = mask.as_deref().map(|mask| stretched(mask, n));
        if let (Some(mask), false) = (&full_mask, has_other) {
            self.report.undefined_lanes += mask.iter().filter(|&&lane| lane == 0).count() as u64;
        }
        let mask_reg = step.args.get(1).copied().filter(|_| has_mask);
        self.check_lanes(step.args[0], mask_reg, full_mask.as_deref());
        let lanes = Lanes { pointers: &full_pointers, mask: full_mask.as_deref(), row };
        let seen = self.load_lanes(elem, &lanes, volatile, &mut out)?;
        let places = &step.args[..1 + usize::from(has_mask)];
        let marks = self.loaded_marks(seen, places, step.args.get(2).copied().filter(|_| has_other));
        self.put(step, out);
        step.outs.iter().for_each(|&reg| self.set_marks(reg, marks.clone()));
        self.put_lanes(step, pointers, mask, 1);
        Ok(())
    }

    pub(super) fn store(&mut self, step: &Step, elem: Elem, row: usize, has_mask: bool) -> Result<(), Fault> {
        let (pointers, mask) = self.take_lanes(step, if has_mask { Some(2) } else { None })?;
        let Some(&value_reg) = step.args.get(1) else { return Err(self.malformed("a store of nothing")) };
        // A block of addresses may itself be stored.
        let same = step.args[0] == value_reg;
        let values = if same { Block::I64(pointers.clone()) } else { std::mem::take(self.reg_mut(value_reg)) };
        let n = pointers.len().max(mask.as_ref().map_or(1, Vec::len)).max(values.len());
        let full_pointers = stretched(&pointers, n);
        let full_mask = mask.as_deref().map(|mask| stretched(mask, n));
        let mask_reg = step.args.get(2).copied().filter(|_| has_mask);
        self.check_lanes(step.args[0], mask_reg, full_mask.as_deref());
        let places = [Some(step.args[0]), mask_reg];
        let places: Vec<Reg> = places.into_iter().flatten().collect();
        let marks = self.stored_marks(value_reg, &places);
        let lanes = Lanes { pointers: &full_pointers, mask: full_mask.as_deref(), row };
        self.store_lanes(elem, &lanes, &values, &marks)?;
        if !same {
            *self.reg_mut(value_reg) = values;
        }
        self.put_lanes(step, pointers, mask, 2);
        Ok(())
    }

    /// Takes the pointers of an access and its mask (none if it is on everywhere) out of their registers, so that
    /// the memory can be borrowed beside them; [`Machine::put_lanes`] puts them back.
    fn take_lanes(&mut self, step: &Step, mask: Option<usize>) -> Result<(Vec<i64>, Option<Vec<i8>>), Fault> {
        let Some(Block::I64(pointers)) = step.args.first().map(|&reg| std::mem::take(self.reg_mut(reg))) else {
            return Err(self.malformed("an access through something that is no pointer"));
        };
        let Some(index) = mask else { return Ok((pointers, None)) };
        match step.args.get(index).map(|&reg| self.reg_mut(reg)) {
            Some(Block::I8(mask)) if !mask.contains(&0) => Ok((pointers, None)),
            Some(Block::I8(mask)) => Ok((pointers, Some(std::mem::take(mask)))),
            _ => Err(self.malformed("a mask that is not i1")),
        }
    }

    fn put_lanes(&mut self, step: &Step, pointers: Vec<i64>, mask: Option<Vec<i8>>, mask_index: usize) {
        *self.reg_mut(step.args[0]) = Block::I64(pointers);
        if let Some(mask) = mask {
            *self.reg_mut(step.args[mask_index]) = Block::I8(mask);
        }
    }

    /// How an atomic access is ordered, and marked: only an exchange by position moves its value.
    fn ordering(&mut self, step: &Step, atomic: Atomic, value: Reg, moves: bool) -> Ordering {
        let mask = step.args.get(2).copied().filter(|_| atomic.mask);
        let places: Vec<Reg> = [step.args.first().copied(), mask].into_iter().flatten().collect();
        let value = self.stored_marks(value, &places);
        let mark = value.defect().unwrap_or(if moves { value.at(0) } else { shadow::LAUNCH });
        Ordering { access: Access::Atomic, acquire: atomic.acquire, release: atomic.release, mark }
    }

    pub(super) fn atomic_rmw(&mut self, step: &Step, atomic: Atomic, op: AtomicOp) -> Result<(), Fault> {
        let Atomic { elem, numel, mask: has_mask, .. } = atomic;
        let mut out = self.out(step)?;
        out.assign(self.arg(step, 1)?);
        out.expand(numel);
        let order = self.ordering(step, atomic, step.args[1], op == AtomicOp::Exchange);
        let (pointers, mask) = self.take_lanes(step, if has_mask { Some(2) } else { None })?;
        let full_mask = mask.as_deref().map(|mask| stretched(mask, numel));
        self.check_lanes(step.args[0], step.args.get(2).copied().filter(|_| has_mask), full_mask.as_deref());
        let full_pointers = stretched(&pointers, numel);
        let seen = self.update_lanes((op, order), elem, &full_pointers, full_mask.as_deref(), &mut out)?;
        self.put(step, out);
        self.set_atomic_marks(step, seen);
        self.put_lanes(step, pointers, mask, 2);
        Ok(())
    }

    /// Which program comes first decides what an atomic access reads: that is data.
    fn set_atomic_marks(&mut self, step: &Step, seen: Marks) {
        let marks = join(&seen, &Marks::All(shadow::LAUNCH), computed);
        step.outs.iter().for_each(|&reg| self.set_marks(reg, marks.clone()));
    }

    pub(super) fn atomic_cas(&mut self, step: &Step, atomic: Atomic) -> Result<(), Fault> {
        let Atomic { elem, numel, .. } = atomic;
        let mut out = self.out(step)?;
        let size = elem.bytes();
        let bytes = |machine: &Self, index: usize| {
            let mut bytes = vec![0; numel * size];
            let block = machine.arg(step, index)?.expanded(numel);
            encode_all(elem, &block, &mut bytes)
                .map(|()| bytes)
                .ok_or_else(|| machine.malformed("a compare-and-swap of an unexpected type"))
        };
        let (compare, mut values) = (bytes(self, 1)?, bytes(self, 2)?);
        let order = self.ordering(step, atomic, step.args[2], true);
        let (pointers, mask) = self.take_lanes(step, None)?;
        self.check_lanes(step.args[0], None, None);
        let mut port = self.port();
        let done = port.compare_and_swap(order, size, &stretched(&pointers, numel), &compare, &mut values);
        let seen = port.seen.marks(numel);
        done?;
        let _ = decode_all(elem, &values, &mut out);
        self.put(step, out);
        self.set_atomic_marks(step, seen);
        self.put_lanes(step, pointers, mask, 0);
        Ok(())
    }
}
