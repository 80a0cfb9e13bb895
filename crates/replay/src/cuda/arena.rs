//! The memory of one program: all its buffers in one allocation, with guard zones between them.

use super::driver::{Context, Memory};
use crate::wire::{Failure, Loan};

type Result<T> = std::result::Result<T, Failure>;

/// Bytes of guard zone on each side of every buffer.
pub(super) const GUARD: u64 = 4096;

/// An allocation that another process may map takes whole grains: of a smaller one it would see the neighbours.
pub(super) const GRAIN: u64 = 2 << 20;

/// The byte that fills the zone before buffer `zone`, which is the one behind the buffer before it. Each zone has its
/// own: a kernel that changes nothing would else carry one zone into another unseen.
pub(super) fn guard_byte(zone: usize) -> u8 {
    0xA5u8.wrapping_add((zone as u8).wrapping_mul(0x3D))
}

/// Where buffers lie.
pub(super) trait Places {
    /// Of a byte of a buffer.
    fn address(&self, buffer: usize, offset: u64) -> u64;
}

pub(super) struct Arena {
    memory: Memory,
    /// Start and length of each buffer.
    spans: Vec<(u64, u64)>,
}

impl Arena {
    /// Buffers of these sizes, full of `poison`.
    pub(super) fn new(context: &Context, sizes: &[u64], poison: u8) -> Result<Self> {
        let mut spans = Vec::new();
        let mut at = GUARD;
        for &size in sizes {
            spans.push((at, size));
            at += size.next_multiple_of(256) + GUARD;
        }
        let arena = Self { memory: context.alloc(at.next_multiple_of(GRAIN))?, spans };
        arena.memory.set(context, 0, u32::from(guard_byte(0)), 1, GUARD)?;
        for (buffer, &(start, size)) in arena.spans.iter().enumerate() {
            arena.poison(context, buffer, poison)?;
            let behind = size.next_multiple_of(256) - size + GUARD;
            arena.memory.set(context, start + size, u32::from(guard_byte(buffer + 1)), 1, behind)?;
        }
        Ok(arena)
    }

    pub(super) fn poison(&self, context: &Context, buffer: usize, poison: u8) -> Result<()> {
        let (start, size) = self.spans[buffer];
        self.memory.set(context, start, u32::from(poison), 1, size)
    }

    pub(super) fn upload(&self, buffer: usize, offset: u64, bytes: &[u8]) -> Result<()> {
        self.memory.upload(self.inside(buffer, offset, bytes.len() as u64)?, bytes)
    }

    /// Bytes of another allocation into a buffer.
    pub(super) fn copy(
        &self,
        context: &Context,
        buffer: usize,
        offset: u64,
        (from, at, bytes): (&Memory, u64, u64),
    ) -> Result<()> {
        self.memory.copy(context, self.inside(buffer, offset, bytes)?, from, at, bytes)
    }

    /// `count` repetitions of a pattern of `width` (1, 2 or 4) bytes.
    pub(super) fn set(
        &self,
        context: &Context,
        (buffer, offset): (usize, u64),
        (pattern, width, count): (u32, u32, u64),
    ) -> Result<()> {
        let start = self.inside(buffer, offset, count.saturating_mul(u64::from(width)))?;
        self.memory.set(context, start, pattern, width, count)
    }

    pub(super) fn download(&self, buffer: usize) -> Result<Vec<u8>> {
        let (start, size) = self.spans[buffer];
        self.memory.download(start, size)
    }

    /// What another process maps all of it by.
    pub(super) fn loan(&self) -> Result<Loan> {
        Ok(Loan { handle: self.memory.handle()?, nbytes: self.memory.size(), spans: self.spans.clone() })
    }

    pub(super) fn size(&self, buffer: usize) -> u64 {
        self.spans[buffer].1
    }

    fn inside(&self, buffer: usize, offset: u64, bytes: u64) -> Result<u64> {
        let (start, size) = self.spans[buffer];
        if offset.checked_add(bytes).is_some_and(|end| end <= size) {
            return Ok(start + offset);
        }
        let what = format!("{bytes} bytes at {offset} of buffer {buffer}, which has {size}");
        Err(Failure { code: "OUT_OF_RANGE".into(), what, line: None })
    }

    /// The first buffer with a changed byte in the zone before or after it.
    pub(super) fn broken_guard(&self) -> Result<Option<usize>> {
        for (buffer, &(start, size)) in self.spans.iter().enumerate() {
            let before = self.memory.download(start - GUARD, GUARD)?;
            let after = self.memory.download(start + size, size.next_multiple_of(256) - size + GUARD)?;
            let intact = |zone: &[u8], byte: u8| zone.iter().all(|&found| found == byte);
            if !intact(&before, guard_byte(buffer)) || !intact(&after, guard_byte(buffer + 1)) {
                return Ok(Some(buffer));
            }
        }
        Ok(None)
    }
}

impl Places for Arena {
    fn address(&self, buffer: usize, offset: u64) -> u64 {
        self.memory.address + self.spans[buffer].0 + offset
    }
}
