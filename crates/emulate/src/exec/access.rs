//! Loads, stores and atomics through blocks of pointers, each element checked against its allocation.

use std::borrow::Cow;

use super::Machine;
use super::elementwise::{decode_all, encode_all};
use crate::block::{Block, vectorised};
use crate::code::{AtomicOp, Step};
use crate::codec::{Codec, with_codec};
use crate::fault::{Access, Fault, Report, Site, UninitialisedRead};
use crate::memory::{Memory, shadow, split};
use crate::numeric::{Float, Int};
use crate::types::Elem;

/// Memory as one step sees it.
pub(super) struct Port<'a> {
    memory: &'a mut Memory,
    report: &'a mut Report,
    site: Site,
}

/// The pointers of an access. A mask of `None` means every lane.
pub(super) struct Lanes<'a> {
    pub(super) pointers: &'a [i64],
    pub(super) mask: Option<&'a [i8]>,
    /// Lanes that are likely to lie side by side in memory: the last dimension's extent.
    pub(super) row: usize,
}

impl Lanes<'_> {
    /// Lanes to look at together. Long rows are split if there is a mask, so that its edge costs little.
    fn width(&self) -> usize {
        self.row.clamp(1, if self.mask.is_some() { 64 } else { 4096 })
    }
}

impl Port<'_> {
    #[cold]
    fn fault(&self, access: Access, address: i64, bytes: usize) -> Fault {
        let (index, offset) = split(address as u64);
        match self.memory.allocation(index) {
            None => Fault::BadAddress { access, address: address as u64, site: self.site },
            Some(allocation) => {
                let inside = offset >= 0 && offset as usize + bytes <= allocation.bytes.len();
                let allocation_label = allocation.label.clone();
                if inside {
                    Fault::Misaligned { access, allocation: allocation_label, offset, bytes, site: self.site }
                } else {
                    let size = allocation.bytes.len();
                    Fault::OutOfBounds { access, allocation: allocation_label, offset, bytes, size, site: self.site }
                }
            }
        }
    }

    /// The bytes of an access by elements of `size` bytes, or None if it is out of bounds or misaligned.
    #[inline(always)]
    fn read(&mut self, address: i64, bytes: usize, size: usize) -> Option<&[u8]> {
        let (index, offset) = split(address as u64);
        let allocation = self.memory.allocation(index)?;
        let start = usize::try_from(offset).ok().filter(|start| start.is_multiple_of(size))?;
        let range = start..start + bytes;
        let found = allocation.bytes.get(range.clone())?;
        if allocation.maybe_unwritten
            && self.report.first_uninitialised_read.is_none()
            && let Some(first) = allocation.shadow[range].iter().position(|&state| state == shadow::UNWRITTEN)
        {
            self.report.first_uninitialised_read = Some(UninitialisedRead {
                allocation: allocation.label.clone(),
                offset: start + first,
                site: self.site,
            });
        }
        self.report.bytes_loaded += bytes as u64;
        Some(found)
    }

    #[inline(always)]
    fn write(&mut self, address: i64, bytes: usize, size: usize) -> Option<&mut [u8]> {
        let (index, offset) = split(address as u64);
        let allocation = self.memory.allocation_mut(index)?;
        let start = usize::try_from(offset).ok().filter(|start| start.is_multiple_of(size))?;
        let range = start..start + bytes;
        let found = allocation.bytes.get_mut(range.clone())?;
        allocation.shadow[range].fill(shadow::LAUNCH);
        self.report.bytes_stored += bytes as u64;
        Some(found)
    }

    /// Overwrites the unmasked lanes of `out`, which has one element a pointer.
    pub(super) fn load<C: Codec>(&mut self, codec: C, lanes: &Lanes, out: &mut [C::Item]) -> Result<(), Fault> {
        let width = lanes.width();
        for (chunk, (pointers, out)) in lanes.pointers.chunks(width).zip(out.chunks_mut(width)).enumerate() {
            let mask = lanes.mask.map(|mask| &mask[chunk * width..][..pointers.len()]);
            if let Some(mask) = mask
                && mask.iter().all(|&lane| lane == 0)
            {
                continue;
            }
            if mask.is_none_or(|mask| !mask.contains(&0))
                && contiguous(pointers, C::SIZE)
                && let Some(bytes) = self.read(pointers[0], pointers.len() * C::SIZE, C::SIZE)
            {
                vectorised(|| {
                    for (out, bytes) in out.iter_mut().zip(bytes.chunks_exact(C::SIZE)) {
                        *out = codec.decode(bytes);
                    }
                });
                continue;
            }
            for (lane, (&pointer, out)) in pointers.iter().zip(out).enumerate() {
                if mask.is_none_or(|mask| mask[lane] != 0) {
                    match self.read(pointer, C::SIZE, C::SIZE) {
                        Some(bytes) => *out = codec.decode(bytes),
                        None => return Err(self.fault(Access::Load, pointer, C::SIZE)),
                    }
                }
            }
        }
        Ok(())
    }

    /// Stores the unmasked lanes; `values` holds one element a pointer, or one for all.
    pub(super) fn store<C: Codec>(&mut self, codec: C, lanes: &Lanes, values: &[C::Item]) -> Result<(), Fault> {
        let width = lanes.width();
        let values = stretched(values, lanes.pointers.len());
        for (chunk, pointers) in lanes.pointers.chunks(width).enumerate() {
            let values = &values[chunk * width..];
            let mask = lanes.mask.map(|mask| &mask[chunk * width..][..pointers.len()]);
            if let Some(mask) = mask
                && mask.iter().all(|&lane| lane == 0)
            {
                continue;
            }
            if mask.is_none_or(|mask| !mask.contains(&0))
                && contiguous(pointers, C::SIZE)
                && let Some(bytes) = self.write(pointers[0], pointers.len() * C::SIZE, C::SIZE)
            {
                vectorised(|| {
                    for (&value, bytes) in values.iter().zip(bytes.chunks_exact_mut(C::SIZE)) {
                        codec.encode(value, bytes);
                    }
                });
                continue;
            }
            for (lane, (&pointer, &value)) in pointers.iter().zip(values).enumerate() {
                if mask.is_none_or(|mask| mask[lane] != 0) {
                    match self.write(pointer, C::SIZE, C::SIZE) {
                        Some(bytes) => codec.encode(value, bytes),
                        None => return Err(self.fault(Access::Store, pointer, C::SIZE)),
                    }
                }
            }
        }
        Ok(())
    }

    /// Updates one element a lane, in order; `lanes` goes in as the operands and comes out as the old elements.
    fn update<C: Codec<Item: Update>>(
        &mut self,
        codec: C,
        op: AtomicOp,
        pointers: &[i64],
        mask: Option<&[i8]>,
        lanes: &mut [C::Item],
    ) -> Result<(), Fault> {
        for (lane, (&pointer, item)) in pointers.iter().zip(lanes).enumerate() {
            let operand = std::mem::take(item);
            if mask.is_some_and(|mask| mask[lane] == 0) {
                continue;
            }
            let Some(bytes) = self.read(pointer, C::SIZE, C::SIZE) else {
                return Err(self.fault(Access::Atomic, pointer, C::SIZE));
            };
            *item = codec.decode(bytes);
            let new = codec.round(item.update(op, operand));
            if let Some(bytes) = self.write(pointer, C::SIZE, C::SIZE) {
                codec.encode(new, bytes);
            }
            self.report.atomics += 1;
        }
        Ok(())
    }

    /// Compares and swaps elements by their bits, as the hardware does. `values` comes out as the old elements.
    fn compare_and_swap(
        &mut self,
        size: usize,
        pointers: &[i64],
        compare: &[u8],
        values: &mut [u8],
    ) -> Result<(), Fault> {
        let lanes = pointers.iter().zip(compare.chunks_exact(size)).zip(values.chunks_exact_mut(size));
        for ((&pointer, compare), value) in lanes {
            let Some(bytes) = self.read(pointer, size, size) else {
                return Err(self.fault(Access::Atomic, pointer, size));
            };
            let mut old = [0; 8];
            old[..size].copy_from_slice(bytes);
            if &old[..size] == compare
                && let Some(bytes) = self.write(pointer, size, size)
            {
                bytes.copy_from_slice(value);
            }
            value.copy_from_slice(&old[..size]);
            self.report.atomics += 1;
        }
        Ok(())
    }
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

fn contiguous(pointers: &[i64], size: usize) -> bool {
    let Some(&first) = pointers.first() else { return false };
    let mut different = 0;
    vectorised(|| {
        let mut expected = first;
        for &pointer in pointers {
            different |= pointer ^ expected;
            expected = expected.wrapping_add(size as i64);
        }
    });
    different == 0
}

/// A block with one element a lane.
fn stretched<T: Copy>(block: &[T], n: usize) -> Cow<'_, [T]> {
    match block {
        &[one] if n > 1 => Cow::Owned(vec![one; n]),
        _ => Cow::Borrowed(block),
    }
}

/// What lanes that a mask switches off read without `other`.
pub(super) fn fill_poison(elem: Elem, poison: u8, out: &mut Block) {
    // Every element type has at most 8 bytes; the codec of an i1 keeps its lowest bit.
    let _ = decode_all(elem, &[poison; 8][..elem.bytes().min(8)], out);
}

impl Machine<'_> {
    /// Loads lanes into `out`, whose elements stand where the mask is off.
    pub(super) fn load_lanes(&mut self, elem: Elem, lanes: &Lanes, out: &mut Block) -> Result<(), Fault> {
        let malformed = self.malformed("a load into another type");
        let mut port = self.port();
        with_codec!(elem, out, codec, out => port.load(codec, lanes, out), Err(malformed))
    }

    pub(super) fn store_lanes(&mut self, elem: Elem, lanes: &Lanes, values: &Block) -> Result<(), Fault> {
        let malformed = self.malformed("a store of another type");
        let mut port = self.port();
        with_codec!(elem, values, codec, values => port.store(codec, lanes, values), Err(malformed))
    }

    /// The old elements go to `lanes`, which holds the operands; zeros where masked off.
    pub(super) fn update_lanes(
        &mut self,
        op: AtomicOp,
        elem: Elem,
        pointers: &[i64],
        mask: Option<&[i8]>,
        lanes: &mut Block,
    ) -> Result<(), Fault> {
        let malformed = self.malformed("an atomic operation on an unexpected type");
        let mut port = self.port();
        with_codec!(elem, lanes, codec, lanes => port.update(codec, op, pointers, mask, lanes), Err(malformed))
    }

    fn port(&mut self) -> Port<'_> {
        let site = self.site();
        Port { memory: self.memory, report: &mut self.report, site }
    }

    pub(super) fn load(
        &mut self,
        step: &Step,
        elem: Elem,
        row: usize,
        has_mask: bool,
        has_other: bool,
    ) -> Result<(), Fault> {
        let mut out = self.out(step)?;
        let lanes = 0..1 + usize::from(has_mask) + usize::from(has_other);
        let n = lanes.map(|index| step.args.get(index).map_or(1, |&reg| self.reg(reg).len())).max().unwrap_or(1);
        if has_other {
            out.assign(self.arg(step, 2)?);
            out.expand(n);
        } else if has_mask {
            fill_poison(elem, self.limits.poison, &mut out);
            out.expand(n);
        } else {
            out.resize(n);
        }
        let (pointers, mask) = self.take_lanes(step, if has_mask { Some(1) } else { None })?;
        let full_pointers = stretched(&pointers, n);
        let full_mask = mask.as_deref().map(|mask| stretched(mask, n));
        if let (Some(mask), false) = (&full_mask, has_other) {
            self.report.undefined_lanes += mask.iter().filter(|&&lane| lane == 0).count() as u64;
        }
        let lanes = Lanes { pointers: &full_pointers, mask: full_mask.as_deref(), row };
        self.load_lanes(elem, &lanes, &mut out)?;
        self.put(step, out);
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
        let lanes = Lanes { pointers: &full_pointers, mask: full_mask.as_deref(), row };
        self.store_lanes(elem, &lanes, &values)?;
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

    pub(super) fn atomic_rmw(
        &mut self,
        step: &Step,
        op: AtomicOp,
        elem: Elem,
        numel: usize,
        has_mask: bool,
    ) -> Result<(), Fault> {
        let mut out = self.out(step)?;
        out.assign(self.arg(step, 1)?);
        out.expand(numel);
        let (pointers, mask) = self.take_lanes(step, if has_mask { Some(2) } else { None })?;
        let full_mask = mask.as_deref().map(|mask| stretched(mask, numel));
        self.update_lanes(op, elem, &stretched(&pointers, numel), full_mask.as_deref(), &mut out)?;
        self.put(step, out);
        self.put_lanes(step, pointers, mask, 2);
        Ok(())
    }

    pub(super) fn atomic_cas(&mut self, step: &Step, elem: Elem, numel: usize) -> Result<(), Fault> {
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
        let (pointers, mask) = self.take_lanes(step, None)?;
        self.port().compare_and_swap(size, &stretched(&pointers, numel), &compare, &mut values)?;
        let _ = decode_all(elem, &values, &mut out);
        self.put(step, out);
        self.put_lanes(step, pointers, mask, 0);
        Ok(())
    }
}
