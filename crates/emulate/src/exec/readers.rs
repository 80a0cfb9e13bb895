//! Readers of memory that others may write, behind the last two.

use std::collections::HashMap;
use std::ops::Range;

use super::epoch::Epoch;
use super::order::{Order, Progress};

/// Readers kept beside the last two of each granule, at most.
const READERS: usize = 1 << 20;

/// Readers in no order for whom a line has no room, by allocation and line: which granules they read.
#[derive(Debug, Default)]
pub(super) struct Readers {
    of: HashMap<(usize, usize), Vec<Reader>>,
    count: usize,
}

type Reader = (Range<usize>, Epoch);

impl Readers {
    /// Keeps a reader, unless it comes before the present anyway: who comes after the present comes after it, too.
    pub(super) fn keep(
        &mut self,
        line: (usize, usize),
        granules: Range<usize>,
        reader: Epoch,
        progress: &Progress,
        order: &mut Order,
    ) {
        if reader.is_none() || self.count >= READERS || order.before(progress, reader.program(), reader.clock()) {
            return;
        }
        let kept = self.of.entry(line).or_default();
        match kept.last_mut() {
            Some((last, same)) if *same == reader && last.end == granules.start => last.end = granules.end,
            _ => {
                kept.push((granules, reader));
                self.count += 1;
            }
        }
    }

    pub(super) fn of(&self, line: (usize, usize), granules: &Range<usize>) -> impl Iterator<Item = &Epoch> {
        let kept = if self.count == 0 { None } else { self.of.get(&line) };
        let meets = |kept: &Range<usize>| kept.start < granules.end && granules.start < kept.end;
        kept.into_iter().flatten().filter(move |(kept, _)| meets(kept)).map(|(_, reader)| reader)
    }
}
