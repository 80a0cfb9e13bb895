//! The memory of one program: all its buffers in one allocation, with guard zones between them.

use rand::{Rng, RngExt};

use super::driver::{Context, Memory};
use crate::wire::{Failure, Loan};

type Result<T> = std::result::Result<T, Failure>;

/// Bytes of guard zone on each side of every buffer.
pub(super) const GUARD: u64 = 4096;

/// Steps in which buffers are moved.
const STEP: u64 = 512;

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
    /// Where what is next to the buffers is gathered, to be looked at.
    copies: Memory,
}

impl Arena {
    /// Buffers of these sizes, full of `poison`, close together; with `room` bytes in which they can be moved.
    pub(super) fn new(context: &Context, sizes: &[u64], poison: u8, room: u64) -> Result<Self> {
        let (spans, end) = close_together(sizes);
        let memory = context.alloc((end + room).next_multiple_of(GRAIN))?;
        let copies = context.alloc((2 * GUARD + 256) * sizes.len() as u64)?;
        let mut arena = Self { memory, spans, copies };
        arena.lay_out(context, arena.spans.clone(), poison)?;
        Ok(arena)
    }

    /// Moves the buffers to other places, in their order, and fills them with `poison`: nothing is left of what they held.
    pub(super) fn scatter(&mut self, context: &Context, poison: u8, rng: &mut impl Rng) -> Result<()> {
        let sizes: Vec<u64> = self.spans.iter().map(|&(_, size)| size).collect();
        let (spans, end) = close_together(&sizes);
        let gaps = gaps(spans.len(), self.memory.size().saturating_sub(end), rng);
        let moved = spans.iter().zip(gaps).map(|(&(start, size), gap)| (start + gap, size)).collect();
        self.lay_out(context, moved, poison)
    }

    /// Poison in the buffers, guard bytes in all that lies between.
    fn lay_out(&mut self, context: &Context, spans: Vec<(u64, u64)>, poison: u8) -> Result<()> {
        self.spans = spans;
        let mut free = 0;
        for (buffer, &(start, size)) in self.spans.iter().enumerate() {
            self.guard(context, buffer, free, start)?;
            self.poison(context, buffer, poison)?;
            free = start + size;
        }
        self.guard(context, self.spans.len(), free, self.memory.size())
    }

    fn guard(&self, context: &Context, zone: usize, from: u64, to: u64) -> Result<()> {
        self.memory.set(context, from, u32::from(guard_byte(zone)), 1, to - from)
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
    pub(super) fn broken_guard(&self, context: &Context) -> Result<Option<usize>> {
        let mut at = 0;
        for (_, _, from, len) in self.edges() {
            self.copies.copy(context, at, &self.memory, from, len)?;
            at += len;
        }
        context.synchronize()?;
        let found = self.copies.download(0, at)?;
        let mut rest = &found[..];
        for (buffer, zone, _, len) in self.edges() {
            let (bytes, behind) = rest.split_at(len as usize);
            if bytes.iter().any(|&byte| byte != guard_byte(zone)) {
                return Ok(Some(buffer));
            }
            rest = behind;
        }
        Ok(None)
    }

    /// What of the zones is next to a buffer: which buffer, which zone, start and length.
    fn edges(&self) -> impl Iterator<Item = (usize, usize, u64, u64)> {
        self.spans.iter().enumerate().flat_map(|(buffer, &(start, size))| {
            let behind = size.next_multiple_of(256) - size + GUARD;
            [(buffer, buffer, start - GUARD, GUARD), (buffer, buffer + 1, start + size, behind)]
        })
    }
}

impl Places for Arena {
    fn address(&self, buffer: usize, offset: u64) -> u64 {
        self.memory.address + self.spans[buffer].0 + offset
    }
}

/// Start and length of each buffer, with no more than a guard zone between them, and where the last zone ends.
fn close_together(sizes: &[u64]) -> (Vec<(u64, u64)>, u64) {
    let mut at = GUARD;
    let place = |&size: &u64| {
        let start = at;
        at += size.next_multiple_of(256) + GUARD;
        (start, size)
    };
    let spans = sizes.iter().map(place).collect();
    (spans, at)
}

/// How far each of some buffers is moved, none further than `room`, and none less than the one before it.
fn gaps(count: usize, room: u64, rng: &mut impl Rng) -> Vec<u64> {
    let mut gaps: Vec<u64> = (0..count).map(|_| rng.random_range(0..=room / STEP) * STEP).collect();
    gaps.sort_unstable();
    gaps
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Moved buffers keep their order and their guard zones, and stay inside.
    #[test]
    fn moved_buffers_stay_apart() {
        let (spans, end) = close_together(&[1, 0, 4096, 1 << 20, 257]);
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        for room in [0, 511, 512, 1 << 24] {
            let gaps = gaps(spans.len(), room, &mut rng);
            let moved: Vec<(u64, u64)> = spans.iter().zip(gaps).map(|(span, gap)| (span.0 + gap, span.1)).collect();
            let mut free = 0;
            for (&(start, size), &(close, _)) in moved.iter().zip(&spans) {
                assert!(start >= free + GUARD && start % 256 == 0 && start - close <= room, "{moved:?}");
                free = start + size;
            }
            assert!(free + GUARD <= end + room, "{moved:?}");
        }
        let all: std::collections::HashSet<_> = (0..20).map(|_| gaps(3, 1 << 24, &mut rng)).collect();
        assert_eq!(all.len(), 20);
    }
}
