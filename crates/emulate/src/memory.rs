//! The memory that kernels see: allocations in one virtual address space.
//!
//! Bits 40 and up of an address name the allocation, so that any address a kernel computes tells which buffer it
//! strayed from. An allocation starts in the middle of its range: offsets of up to half a terabyte to either side
//! stay attributable, which is a guard gap that no index arithmetic in practice crosses.

use std::borrow::Cow;
use std::ops::Range;

use crate::defects::Defects;
use crate::fault::{Birth, Defect, Fault};
use crate::findings::Findings;

/// Names an allocation of a [`Memory`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AllocId(pub u32);

/// Who wrote the first contents of an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Init {
    /// The host: every byte counts as written.
    Written,
    /// Nobody: the bytes are poison, and reading one is reported.
    Uninitialised,
}

/// What the shadow says of a byte: where its value comes from. Values in registers carry the same marks, and a store
/// moves them to the shadow.
pub mod shadow {
    /// Nothing ever wrote the byte.
    pub const UNWRITTEN: u8 = 0;
    /// The host wrote it: inputs, weights, literals.
    pub const HOST: u8 = 1;
    /// A launch computed it.
    pub const LAUNCH: u8 = 2;
    /// The host filled it with one number.
    pub const CONSTANT: u8 = 3;
    /// A launch moved it there from bytes that no launch computed.
    pub const COPIED: u8 = 4;
    /// An earlier call of the same module left it there, and the file did not make it so.
    pub const LEFT_OVER: u8 = 5;
    /// From here on: it depends on a [`Defect`](crate::Defect), see [`Memory::defect`](crate::Memory::defect).
    pub const DEFECT: u8 = 64;
}

const SHIFT: u32 = 40;
const MIDDLE: u64 = 1 << (SHIFT - 1);

#[derive(Debug, Clone)]
pub(crate) struct Allocation {
    pub(crate) label: String,
    pub(crate) bytes: Vec<u8>,
    /// The mark of each byte; empty while all are known to be equal.
    pub(crate) shadow: Vec<u8>,
    pub(crate) uniform: Option<u8>,
}

impl Allocation {
    /// Marks a range within the allocation.
    #[inline(always)]
    pub(crate) fn mark(&mut self, range: Range<usize>, mark: u8) {
        if self.uniform == Some(mark) {
        } else if range.len() == self.bytes.len() {
            self.uniform = Some(mark);
            self.shadow = Vec::new();
        } else {
            self.tell_apart();
            self.shadow[range].fill(mark);
        }
    }

    /// Marks bytes from a place on, one by one.
    pub(crate) fn mark_each(&mut self, start: usize, marks: &[u8]) {
        self.tell_apart();
        self.shadow[start..start + marks.len()].copy_from_slice(marks);
    }

    fn tell_apart(&mut self) {
        if let Some(mark) = self.uniform.take() {
            self.shadow = vec![mark; self.bytes.len()];
        }
    }

    /// Finds out whether all marks are equal.
    fn settle(&mut self) {
        if let (None, Some(&first)) = (self.uniform, self.shadow.first())
            && self.shadow.chunks(4096).all(|marks| marks.iter().fold(0, |other, &mark| other | (mark ^ first)) == 0)
        {
            self.uniform = Some(first);
            self.shadow = Vec::new();
        }
    }
}

/// All buffers of a replay.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    allocations: Vec<Allocation>,
    pub(crate) defects: Defects,
    pub(crate) findings: Findings,
}

impl Memory {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an allocation with the given contents (the poison, if `init` says uninitialised).
    ///
    /// # Panics
    /// Never for fewer than 2^23 allocations of at most 256 GiB.
    pub fn alloc(&mut self, label: &str, bytes: Vec<u8>, init: Init) -> AllocId {
        let id = AllocId(self.allocations.len() as u32);
        let state = if init == Init::Written { shadow::HOST } else { shadow::UNWRITTEN };
        self.allocations.push(Allocation { label: label.to_owned(), shadow: Vec::new(), bytes, uniform: Some(state) });
        id
    }

    /// The address of a byte. Bases are multiples of 2^39, so every alignment holds.
    pub fn address(&self, id: AllocId, offset: u64) -> u64 {
        (((u64::from(id.0) + 1) << SHIFT) | MIDDLE).wrapping_add(offset)
    }

    /// Which allocation's range an address lies in, and its byte offset there (may be out of bounds).
    pub fn resolve(&self, address: u64) -> Option<(AllocId, i64)> {
        let index = (address >> SHIFT).checked_sub(1)?;
        let id = u32::try_from(index).ok().filter(|&id| (id as usize) < self.allocations.len())?;
        let offset = (address & ((1 << SHIFT) - 1)) as i64 - MIDDLE as i64;
        Some((AllocId(id), offset))
    }

    pub fn label(&self, id: AllocId) -> &str {
        &self.allocations[id.0 as usize].label
    }

    pub fn bytes(&self, id: AllocId) -> &[u8] {
        &self.allocations[id.0 as usize].bytes
    }

    /// Direct access to the contents; the shadow stays as it is (see [`Memory::mark`]).
    pub fn bytes_mut(&mut self, id: AllocId) -> &mut [u8] {
        &mut self.allocations[id.0 as usize].bytes
    }

    /// Takes the contents out, leaving an empty allocation.
    pub fn take(&mut self, id: AllocId) -> Vec<u8> {
        let allocation = &mut self.allocations[id.0 as usize];
        allocation.shadow = Vec::new();
        allocation.uniform = None;
        std::mem::take(&mut allocation.bytes)
    }

    /// One state per byte: see [`shadow`].
    pub fn shadow(&self, id: AllocId) -> Cow<'_, [u8]> {
        let Allocation { bytes, shadow, uniform, .. } = &self.allocations[id.0 as usize];
        uniform.map_or(Cow::Borrowed(shadow), |mark| Cow::Owned(vec![mark; bytes.len()]))
    }

    /// The state of every byte, where it is known to be one.
    pub fn uniform(&self, id: AllocId) -> Option<u8> {
        self.allocations[id.0 as usize].uniform
    }

    /// Writes bytes as the host and marks them so. The range must lie within the allocation.
    pub fn write(&mut self, id: AllocId, offset: usize, bytes: &[u8]) {
        let allocation = &mut self.allocations[id.0 as usize];
        allocation.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
        allocation.mark(offset..offset + bytes.len(), shadow::HOST);
    }

    /// Sets the shadow of a range of bytes within the allocation.
    pub fn mark(&mut self, id: AllocId, range: Range<usize>, state: u8) {
        self.allocations[id.0 as usize].mark(range, state);
    }

    /// The defect behind a mark of at least [`shadow::DEFECT`].
    pub fn defect(&self, mark: u8) -> Option<&Defect> {
        self.defects.get(mark)
    }

    /// The defective values that launches on this memory made, with the marks that bytes depending on them bear.
    pub fn defects(&self) -> impl Iterator<Item = (u8, &Defect)> {
        self.defects.iter()
    }

    /// Faults that launches went on from, and how often each occurred: the first of each kind, lines and allocation. See
    /// [`Limits::go_on`](crate::Limits::go_on).
    pub fn faults(&self) -> impl Iterator<Item = &(Fault, u64)> {
        self.findings.faults.iter()
    }

    /// Where NaN and infinities were made, and in how many lanes: the first of each operation and line. See
    /// [`Limits::births`](crate::Limits::births).
    pub fn births(&self) -> impl Iterator<Item = &(Birth, u64)> {
        self.findings.births.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.allocations.len()
    }

    pub(crate) fn settle(&mut self) {
        self.allocations.iter_mut().for_each(Allocation::settle);
    }

    #[inline(always)]
    pub(crate) fn allocation(&self, index: usize) -> Option<&Allocation> {
        self.allocations.get(index)
    }

    #[inline(always)]
    pub(crate) fn allocation_mut(&mut self, index: usize) -> Option<&mut Allocation> {
        self.allocations.get_mut(index)
    }
}

/// Splits an address into the allocation's index and the byte offset, without checking either.
#[inline(always)]
pub(crate) fn split(address: u64) -> (usize, i64) {
    let index = (address >> SHIFT).wrapping_sub(1) as usize;
    (index, (address & ((1 << SHIFT) - 1)) as i64 - MIDDLE as i64)
}
