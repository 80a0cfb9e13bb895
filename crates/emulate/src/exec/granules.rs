//! Who accessed which granule of an allocation. Granules that lie side by side mostly have the same history: a line of
//! them has one entry until they differ.

use std::ops::Range;
use std::slice::from_ref;

use super::epoch::Epoch;
use crate::block::vectorised;

/// Granules in a line.
pub(super) const SPAN: usize = 64;

/// The last write, the last read, and the last read by another program than that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Past {
    pub(super) write: Epoch,
    pub(super) read: Epoch,
    pub(super) earlier: Epoch,
}

/// What happened to the granules of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    /// To all of them, but for what is split.
    pub(super) past: Past,
    /// Number in [`Splits`] plus one.
    writes: u32,
    reads: u32,
}

/// Lines whose granules are looked at one by one.
#[derive(Debug, Default)]
pub(super) struct Splits {
    writes: Vec<[Epoch; SPAN]>,
    /// Last reads, and those before by another program.
    reads: Vec<[[Epoch; SPAN]; 2]>,
}

impl Default for Line {
    fn default() -> Self {
        Self::UNTOUCHED
    }
}

impl Line {
    pub(super) const UNTOUCHED: Self =
        Self { past: Past { write: Epoch::NONE, read: Epoch::NONE, earlier: Epoch::NONE }, writes: 0, reads: 0 };

    #[inline(always)]
    pub(super) fn is_untouched(&self) -> bool {
        self.writes == 0 && self.reads == 0 && self.past == Past::default()
    }

    /// Whether all granules have one past.
    pub(super) fn is_whole(&self) -> bool {
        self.writes == 0 && self.reads == 0
    }

    /// The last write of all granules, if it is one.
    #[inline(always)]
    pub(super) fn write_mut(&mut self) -> Option<&mut Epoch> {
        (self.writes == 0).then_some(&mut self.past.write)
    }

    /// The last read of all granules and the one before, if they are the same.
    #[inline(always)]
    pub(super) fn read_mut(&mut self) -> Option<(&mut Epoch, &mut Epoch)> {
        (self.reads == 0).then_some((&mut self.past.read, &mut self.past.earlier))
    }
}

impl Splits {
    /// The last writes of granules of a line; one if they are the same.
    #[inline(always)]
    pub(super) fn writes<'a>(&'a self, line: &'a Line, part: Range<usize>) -> &'a [Epoch] {
        match line.writes {
            0 => from_ref(&line.past.write),
            number => &self.writes[number as usize - 1][part],
        }
    }

    /// The last reads of granules of a line and those before; one if they are the same.
    #[inline(always)]
    pub(super) fn reads<'a>(&'a self, line: &'a Line, part: Range<usize>) -> [&'a [Epoch]; 2] {
        match line.reads {
            0 => [from_ref(&line.past.read), from_ref(&line.past.earlier)],
            number => {
                let [reads, earlier] = &self.reads[number as usize - 1];
                [&reads[part.clone()], &earlier[part]]
            }
        }
    }

    pub(super) fn past(&self, line: &Line, granule: usize) -> Past {
        let one = |epochs: &[Epoch]| epochs.first().copied().unwrap_or_default();
        let [read, earlier] = self.reads(line, granule..granule + 1).map(one);
        Past { write: one(self.writes(line, granule..granule + 1)), read, earlier }
    }

    /// A line of other splits as one of these.
    pub(super) fn adopt(&mut self, mut line: Line, from: &Self) -> Line {
        if let Some(writes) = line.writes.checked_sub(1) {
            self.writes.push(from.writes[writes as usize]);
            line.writes = self.writes.len() as u32;
        }
        if let Some(reads) = line.reads.checked_sub(1) {
            self.reads.push(from.reads[reads as usize]);
            line.reads = self.reads.len() as u32;
        }
        line
    }

    /// The writes of a line, one by one from now on.
    pub(super) fn split_writes(&mut self, line: &mut Line) -> &mut [Epoch; SPAN] {
        if line.writes == 0 {
            self.writes.push([line.past.write; SPAN]);
            line.writes = self.writes.len() as u32;
        }
        &mut self.writes[line.writes as usize - 1]
    }

    /// The reads of a line, one by one from now on.
    pub(super) fn split_reads(&mut self, line: &mut Line) -> &mut [[Epoch; SPAN]; 2] {
        if line.reads == 0 {
            self.reads.push([[line.past.read; SPAN], [line.past.earlier; SPAN]]);
            line.reads = self.reads.len() as u32;
        }
        &mut self.reads[line.reads as usize - 1]
    }
}

/// A range of granules as ranges in lines: number of the line, granules within it.
#[inline(always)]
pub(super) fn lines(granules: &Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> + use<> {
    let Range { start, end } = *granules;
    (start / SPAN..end.div_ceil(SPAN).max(start / SPAN)).map(move |line| {
        let first = line * SPAN;
        (line, start.max(first) - first..end.min(first + SPAN) - first)
    })
}

/// Whether all accesses are none or by the program of this one.
#[inline(always)]
pub(super) fn own(accesses: &[Epoch], epoch: Epoch) -> bool {
    if let [one] = accesses {
        return !one.is_foreign(epoch);
    }
    vectorised(|| accesses.iter().fold(0, |other, access| other | u64::from(access.is_foreign(epoch)))) == 0
}

/// Enters a read, and gives what it made room for: a read that is not kept any more.
#[inline(always)]
pub(super) fn enter_read(read: &mut Epoch, earlier: &mut Epoch, epoch: Epoch) -> Epoch {
    let mut lost = Epoch::default();
    if read.is_foreign(epoch) {
        if earlier.is_foreign(epoch) {
            lost = *earlier;
        }
        *earlier = *read;
    }
    *read = epoch;
    lost
}
