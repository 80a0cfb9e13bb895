//! Atomic accesses.

use super::port::{Lanes, Port};
use super::space::Place;
use crate::code::AtomicOp;
use crate::codec::Codec;
use crate::fault::{Access, Fault};
use crate::memory::shadow;
use crate::numeric::{Float, Int};

impl Port<'_, '_> {
    /// One atomic access: `new` makes the new bytes from the old ones, or none if nothing is written. None if it goes
    /// nowhere.
    fn swap(
        &mut self,
        order: Ordering,
        address: i64,
        size: usize,
        lane: usize,
        new: impl FnOnce(&[u8]) -> Option<[u8; 8]>,
    ) -> Result<Option<Place>, Fault> {
        let Some(place) = self.place(address, size, size) else {
            return self.pass(self.fault(order.access, address, size)).map(|()| None);
        };
        *self.polls += 1;
        self.report.atomics += 1;
        let entered = self.races.atomic(place.index, &place.bytes, self.progress, order.acquire);
        if let Err(conflict) = entered {
            self.pass(self.race(Access::Atomic, &place, conflict))?;
        }
        self.see(&place, lane, size);
        let Some(new) = new(self.space.element(&place)) else { return Ok(Some(place)) };
        let changed = self.space.element(&place) != &new[..size];
        if changed {
            let entered = self.races.atomic_write(place.index, &place.bytes, self.progress, self.site.line);
            if let Err(conflict) = entered {
                self.pass(self.race(Access::Atomic, &place, conflict))?;
            }
        }
        let mark = self.seen.defects.last().filter(|(at, _)| *at == lane).map_or(order.mark, |&(_, mark)| mark);
        if let Some(defect) = self.space.defects().get_mut(mark) {
            defect.stored.get_or_insert(self.site);
        }
        let before = *self.changes;
        self.put(&place, mark, |bytes| bytes.copy_from_slice(&new[..size]));
        *self.changes = before + u64::from(changed);
        Ok(Some(place))
    }

    fn released(&mut self, order: Ordering, places: &[(usize, usize)]) {
        if order.release {
            self.races.release(places, self.progress, order.acquire);
        }
    }

    /// Updates one element a lane, in order; `lanes` goes in as the operands and comes out as the old elements.
    pub(super) fn update<C: Codec<Item: Update>>(
        &mut self,
        codec: C,
        (op, order): (AtomicOp, Ordering),
        pointers: &[i64],
        mask: Option<&[i8]>,
        lanes: &mut [C::Item],
    ) -> Result<(), Fault> {
        let mut places = Vec::new();
        for (lane, (&pointer, item)) in pointers.iter().zip(lanes).enumerate() {
            let operand = std::mem::take(item);
            if mask.is_some_and(|mask| mask[lane] == 0) {
                continue;
            }
            let place = self.swap(order, pointer, C::SIZE, lane, |bytes| {
                *item = codec.decode(bytes);
                let mut new = [0; 8];
                codec.encode(codec.round(item.update(op, operand)), &mut new[..C::SIZE]);
                Some(new)
            })?;
            if order.release {
                places.extend(place.map(|place| (place.index, place.bytes.start)));
            }
        }
        self.released(order, &places);
        Ok(())
    }

    /// Compares and swaps elements by their bits, as the hardware does. `values` comes out as the old elements.
    pub(super) fn compare_and_swap(
        &mut self,
        order: Ordering,
        size: usize,
        pointers: &[i64],
        compare: &[u8],
        values: &mut [u8],
    ) -> Result<(), Fault> {
        let mut places = Vec::new();
        let lanes = pointers.iter().zip(compare.chunks_exact(size)).zip(values.chunks_exact_mut(size));
        for (lane, ((&pointer, compare), value)) in lanes.enumerate() {
            let mut old = [0; 8];
            let place = self.swap(order, pointer, size, lane, |bytes| {
                old[..size].copy_from_slice(bytes);
                let mut new = [0; 8];
                new[..size].copy_from_slice(value);
                (bytes == compare).then_some(new)
            })?;
            value.copy_from_slice(&old[..size]);
            places.extend(place.map(|place| (place.index, place.bytes.start)));
        }
        self.released(order, &places);
        Ok(())
    }

    /// Reads elements that other programs may change at any time.
    pub(super) fn poll<C: Codec>(&mut self, codec: C, lanes: &Lanes, out: &mut [C::Item]) -> Result<(), Fault> {
        let order = Ordering { access: Access::Load, acquire: true, release: false, mark: shadow::LAUNCH };
        for (lane, (&pointer, out)) in lanes.pointers.iter().zip(out).enumerate() {
            if lanes.mask.is_none_or(|mask| mask[lane] != 0) {
                *out = match self.swap(order, pointer, C::SIZE, lane, |_| None)? {
                    Some(place) => {
                        self.report.atomics -= 1;
                        codec.decode(self.space.element(&place))
                    }
                    None => codec.decode(&[self.poison; 8]),
                };
            }
        }
        Ok(())
    }
}

/// What an atomic access orders, and how what it writes is marked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ordering {
    /// What it is called where it goes astray.
    pub(super) access: Access,
    pub(super) acquire: bool,
    pub(super) release: bool,
    pub(super) mark: u8,
}

impl Ordering {
    pub(super) const RELAXED: Self =
        Self { access: Access::Atomic, acquire: false, release: false, mark: shadow::LAUNCH };
}

/// The arithmetic of atomic operations.
pub(crate) trait Update: Copy + Default {
    fn update(self, op: AtomicOp, operand: Self) -> Self;
}

macro_rules! impl_update_int {
    ($($t:ty),*) => {$(
        impl Update for $t {
            fn update(self, op: AtomicOp, operand: Self) -> Self {
                match op {
                    AtomicOp::Add | AtomicOp::AddF => self.wrapping_add(operand),
                    AtomicOp::MaxS => self.max(operand),
                    AtomicOp::MinS => self.min(operand),
                    AtomicOp::MaxU => self.max_u(operand),
                    AtomicOp::MinU => self.min_u(operand),
                    AtomicOp::And => self & operand,
                    AtomicOp::Or => self | operand,
                    AtomicOp::Xor => self ^ operand,
                    AtomicOp::Exchange => operand,
                }
            }
        }
    )*};
}
impl_update_int!(i8, i16, i32, i64);

macro_rules! impl_update_float {
    ($t:ty, $bits:ty) => {
        impl Update for $t {
            fn update(self, op: AtomicOp, operand: Self) -> Self {
                let bits = |f: fn($bits, $bits) -> $bits| <$t>::from_bits(f(self.to_bits(), operand.to_bits()));
                match op {
                    AtomicOp::Add | AtomicOp::AddF => self + operand,
                    AtomicOp::MaxS | AtomicOp::MaxU => self.max_num(operand),
                    AtomicOp::MinS | AtomicOp::MinU => self.min_num(operand),
                    AtomicOp::And => bits(|a, b| a & b),
                    AtomicOp::Or => bits(|a, b| a | b),
                    AtomicOp::Xor => bits(|a, b| a ^ b),
                    AtomicOp::Exchange => operand,
                }
            }
        }
    };
}
impl_update_float!(f32, u32);
impl_update_float!(f64, u64);
