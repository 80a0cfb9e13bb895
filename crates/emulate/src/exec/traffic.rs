//! What the accesses of a launch cost on a memory that moves sectors of 32 bytes for groups of 32 lanes.

use std::ops::Range;

const SECTOR: usize = 32;
pub(super) const GROUP: usize = 32;

/// Words of a block of bits: one for each 128 KiB.
const WORDS: usize = 64;

/// Traffic of one launch.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    /// By allocation, a bit for each sector that was touched, in blocks of [`WORDS`] words that are empty at first.
    touched: Vec<Vec<Vec<u64>>>,
    pub(super) sectors: u64,
    pub(super) least_sectors: u64,
}

/// Lanes of one access that do not lie side by side, in the course of being counted.
#[derive(Debug, Default)]
pub(super) struct Scattered {
    last: Option<(usize, usize)>,
    sectors: u64,
    bytes: usize,
}

impl Scattered {
    #[inline(always)]
    pub(super) fn add(&mut self, index: usize, bytes: &Range<usize>) {
        let (first, last) = (bytes.start / SECTOR, bytes.end.saturating_sub(1) / SECTOR);
        self.sectors += (last - first) as u64 + u64::from(self.last != Some((index, first)));
        self.last = Some((index, last));
        self.bytes += bytes.len();
    }
}

impl Traffic {
    pub(super) fn unique_bytes(&self) -> u64 {
        let words = self.touched.iter().flatten().flatten();
        words.map(|word| u64::from(word.count_ones())).sum::<u64>() * SECTOR as u64
    }

    /// Marks sectors of an allocation as touched.
    #[inline(always)]
    pub(super) fn touch(&mut self, index: usize, bytes: &Range<usize>) {
        let (first, last) = (bytes.start / SECTOR, bytes.end.saturating_sub(1) / SECTOR);
        if first == last {
            *self.word(index, first / 64) |= 1 << (first % 64);
            return;
        }
        for word in first / 64..last / 64 + 1 {
            let low = if word == first / 64 { u64::MAX << (first % 64) } else { u64::MAX };
            let high = if word == last / 64 { u64::MAX >> (63 - last % 64) } else { u64::MAX };
            *self.word(index, word) |= low & high;
        }
    }

    #[inline(always)]
    fn word(&mut self, index: usize, word: usize) -> &mut u64 {
        let known = self.touched.get(index).and_then(|blocks| blocks.get(word / WORDS));
        if known.is_none_or(Vec::is_empty) {
            self.grow(index, word / WORDS);
        }
        &mut self.touched[index][word / WORDS][word % WORDS]
    }

    #[cold]
    fn grow(&mut self, index: usize, block: usize) {
        if self.touched.len() <= index {
            self.touched.resize_with(index + 1, Vec::new);
        }
        let blocks = &mut self.touched[index];
        if blocks.len() <= block {
            blocks.resize_with((block + 1).next_power_of_two(), Vec::new);
        }
        blocks[block].resize(WORDS, 0);
    }

    /// Adds the traffic of other programs.
    pub(super) fn join(&mut self, other: Self) {
        self.sectors += other.sectors;
        self.least_sectors += other.least_sectors;
        for (index, blocks) in other.touched.into_iter().enumerate() {
            for (block, words) in blocks.into_iter().enumerate().filter(|(_, words)| !words.is_empty()) {
                let ours = self.touched.get(index).and_then(|blocks| blocks.get(block));
                if ours.is_none_or(Vec::is_empty) {
                    self.grow(index, block);
                }
                self.touched[index][block].iter_mut().zip(words).for_each(|(ours, word)| *ours |= word);
            }
        }
    }

    /// Counts lanes of `size` bytes side by side.
    pub(super) fn row(&mut self, bytes: &Range<usize>, size: usize) {
        let group = GROUP * size;
        let spanned = |start: usize, len: usize| ((start % SECTOR + len).div_ceil(SECTOR)) as u64;
        let (groups, rest) = (bytes.len() / group, bytes.len() % group);
        // All groups start at the same place within a sector: 32 elements fill whole sectors.
        self.sectors += groups as u64 * spanned(bytes.start, group);
        self.least_sectors += (groups * group / SECTOR) as u64;
        if rest > 0 {
            self.sectors += spanned(bytes.start, rest);
            self.least_sectors += rest.div_ceil(SECTOR) as u64;
        }
    }

    /// Counts lanes that do not lie side by side along the last dimension; `across`: they do along another, by which
    /// the compiler will group them.
    pub(super) fn scattered(&mut self, lanes: &Scattered, across: bool) {
        let least = lanes.bytes.div_ceil(SECTOR) as u64;
        self.sectors += if across { least } else { lanes.sectors.max(least) };
        self.least_sectors += least;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_are_counted_in_sectors() {
        let mut traffic = Traffic::default();
        // 64 floats from the middle of a sector: two groups of 128 bytes over five sectors each.
        traffic.row(&(16..272), 4);
        assert_eq!((traffic.sectors, traffic.least_sectors), (10, 8));
        let mut column = Scattered::default();
        (0..32).for_each(|lane| column.add(0, &(lane * 256..lane * 256 + 4)));
        traffic.scattered(&column, false);
        assert_eq!((traffic.sectors, traffic.least_sectors), (42, 12));
        traffic.scattered(&column, true);
        assert_eq!((traffic.sectors, traffic.least_sectors), (46, 16));
    }

    #[test]
    fn touched_sectors_are_counted_once() {
        let mut traffic = Traffic::default();
        traffic.touch(1, &(0..4));
        traffic.touch(1, &(4..8));
        traffic.touch(1, &(30..34));
        assert_eq!(traffic.unique_bytes(), 64);
        traffic.touch(0, &(0..32 * 130));
        traffic.touch(0, &(32 * 63..32 * 65));
        assert_eq!(traffic.unique_bytes(), 64 + 32 * 130);
    }
}
