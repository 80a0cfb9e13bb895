//! Who accessed which granule of an allocation. Granules that lie side by side mostly have the same history: a line of
//! them has one entry until they differ.

use std::ops::Range;

use super::race::Epoch;
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
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Line {
    /// To all of them, unless they are split.
    pub(super) past: Past,
    /// Number of the [`Split`] plus one.
    split: u32,
}

/// Granules of a line one by one.
#[derive(Debug)]
pub(super) struct Split {
    pub(super) writes: [Epoch; SPAN],
    pub(super) reads: [Epoch; SPAN],
    pub(super) earlier: [Epoch; SPAN],
}

/// Lines that are split.
#[derive(Debug, Default)]
pub(super) struct Splits(Vec<Split>);

impl Line {
    pub(super) const UNTOUCHED: Self =
        Self { past: Past { write: Epoch::NONE, read: Epoch::NONE, earlier: Epoch::NONE }, split: 0 };

    pub(super) fn is_untouched(&self) -> bool {
        self.split == 0 && self.past == Past::default()
    }
}

impl Split {
    pub(super) fn past(&self, at: usize) -> Past {
        Past { write: self.writes[at], read: self.reads[at], earlier: self.earlier[at] }
    }
}

impl Splits {
    pub(super) fn get(&self, line: &Line) -> Option<&Split> {
        self.0.get(line.split.checked_sub(1)? as usize)
    }

    /// The granules of a line, one by one from now on.
    pub(super) fn split(&mut self, line: &mut Line) -> &mut Split {
        if line.split == 0 {
            let Past { write, read, earlier } = line.past;
            self.0.push(Split { writes: [write; SPAN], reads: [read; SPAN], earlier: [earlier; SPAN] });
            line.split = self.0.len() as u32;
        }
        &mut self.0[line.split as usize - 1]
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
pub(super) fn own(accesses: &[Epoch], epoch: Epoch) -> bool {
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
