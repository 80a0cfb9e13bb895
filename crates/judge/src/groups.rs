//! Groups of neighbouring elements: the unit in which errors are scaled, and in which large outputs are read.

/// Shortest group, unless the whole output is shorter. A tensor of fewer elements takes its scale from all calls of a case
/// and regime.
pub const SHORT: usize = 256;
/// Longest group.
const LONG: usize = 1 << 16;

/// An output cut into groups of neighbouring elements: rows of the last axis, or of as many trailing axes as make
/// 256 elements; a row beyond 65,536 elements is cut evenly.
///
/// One row of a batch may be a million times smaller than another, and a wrong small row must not hide behind a
/// large one. Elements of one row mostly share their scale.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Groups {
    total: usize,
    row: usize,
    /// Groups per row.
    parts: usize,
}

impl Groups {
    pub(crate) fn new(shape: &[u64]) -> Self {
        let total = shape.iter().product::<u64>() as usize;
        let mut row = 1;
        for &extent in shape.iter().rev() {
            if row >= SHORT {
                break;
            }
            row *= extent as usize;
        }
        let row = row.max(1);
        Self { total, row, parts: row.div_ceil(LONG) }
    }

    pub(crate) fn total(&self) -> usize {
        self.total
    }

    pub(crate) fn len(&self) -> usize {
        self.total / self.row * self.parts
    }

    /// First element and the one past the last.
    pub(crate) fn range(&self, group: usize) -> std::ops::Range<usize> {
        let (row, part) = (group / self.parts, group % self.parts);
        let start = row * self.row;
        start + part * self.row / self.parts..start + (part + 1) * self.row / self.parts
    }

    /// Runs of groups of about 2^18 elements: the work of one thread at a time.
    pub(crate) fn batches(&self) -> Vec<std::ops::Range<usize>> {
        let groups = self.len();
        let step = ((1 << 18) / (self.row / self.parts).max(1)).max(1);
        (0..groups).step_by(step).map(|first| first..(first + step).min(groups)).collect()
    }
}

/// The multi-index of element `at` in row-major order.
pub(crate) fn unravel(mut at: usize, shape: &[u64]) -> Vec<u64> {
    let mut index = vec![0; shape.len()];
    for axis in (0..shape.len()).rev() {
        let extent = shape[axis].max(1) as usize;
        index[axis] = (at % extent) as u64;
        at /= extent;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rows_are_groups_and_short_rows_are_joined() {
        assert_eq!(Groups::new(&[8, 300]).range(3), 900..1200);
        assert_eq!(Groups::new(&[3, 8, 100]).range(2), 1600..2400);
        assert_eq!(Groups::new(&[2, 32, 32]).range(1), 1024..2048);
        assert_eq!(Groups::new(&[5, 3]).range(0), 0..15);
        assert_eq!(Groups::new(&[]).range(0), 0..1);
    }

    proptest! {
        #[test]
        fn groups_cover_every_element_once(shape in prop::collection::vec(0u64..300, 0..4)) {
            let groups = Groups::new(&shape);
            let mut next = 0;
            for batch in groups.batches() {
                for group in batch {
                    let range = groups.range(group);
                    prop_assert_eq!(range.start, next);
                    prop_assert!(range.len() <= LONG && !range.is_empty());
                    prop_assert!(range.len() >= SHORT || range.len() == groups.total());
                    next = range.end;
                }
            }
            prop_assert_eq!(next, groups.total());
        }

        #[test]
        fn unravel_inverts_row_major_order(shape in prop::collection::vec(1u64..9, 0..5), pick: prop::sample::Index) {
            let total = shape.iter().product::<u64>() as usize;
            let at = pick.index(total);
            let back = unravel(at, &shape).iter().zip(&shape).fold(0, |sum, (i, extent)| sum * extent + i);
            prop_assert_eq!(back as usize, at);
        }
    }
}
