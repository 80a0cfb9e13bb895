//! The defective values of a launch, and the marks that stand for them.

use crate::fault::Defect;
use crate::memory::shadow;

/// Defects of one kind that are told apart.
const PER_KIND: usize = 48;

/// By kind: see [`DefectKind`](crate::DefectKind).
#[derive(Debug, Clone, Default)]
pub(crate) struct Defects([Vec<Defect>; 4]);

/// The mark of a defect. Graver kinds have greater marks, and earlier defects of a kind: of two that meet in one
/// value, the greater mark is kept.
fn mark_of(kind: usize, index: usize) -> u8 {
    shadow::DEFECT + (kind * PER_KIND + PER_KIND - 1 - index) as u8
}

/// Kind and number behind a mark.
fn index_of(mark: u8) -> Option<(usize, usize)> {
    let index = usize::from(mark.checked_sub(shadow::DEFECT)?);
    Some((index / PER_KIND, PER_KIND - 1 - index % PER_KIND))
}

/// Whether two defects have one entry.
fn same(a: &Defect, b: &Defect) -> bool {
    a.site.line == b.site.line && a.allocation == b.allocation
}

impl Defects {
    pub(crate) fn get(&self, mark: u8) -> Option<&Defect> {
        let (kind, index) = index_of(mark)?;
        self.0[kind].get(index)
    }

    pub(crate) fn get_mut(&mut self, mark: u8) -> Option<&mut Defect> {
        let (kind, index) = index_of(mark)?;
        self.0[kind].get_mut(index)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u8, &Defect)> {
        let tables = self.0.iter().enumerate();
        tables.flat_map(|(kind, table)| table.iter().enumerate().map(move |(at, it)| (mark_of(kind, at), it)))
    }

    /// The mark of values that come from a defect. One entry for each line and allocation; when the table is full,
    /// later defects share the last entry.
    pub(crate) fn note(&mut self, defect: Defect) -> u8 {
        let kind = defect.kind as usize;
        let table = &mut self.0[kind];
        let index = table.iter().position(|old| same(old, &defect)).unwrap_or_else(|| {
            if table.len() < PER_KIND {
                table.push(defect);
            }
            table.len() - 1
        });
        mark_of(kind, index)
    }

    /// Whether the marks of `other`, which was filled beside this table from an equal start, mean the same here once
    /// both are joined.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        let known = |(ours, theirs): (&Vec<Defect>, &Vec<Defect>)| {
            theirs.len() < PER_KIND && ours.iter().zip(theirs).all(|(ours, theirs)| same(ours, theirs))
        };
        self.0.iter().zip(&other.0).all(known)
    }

    /// Takes over what `other` found after this table.
    pub(crate) fn join(&mut self, other: Self) {
        for (ours, theirs) in self.0.iter_mut().zip(other.0) {
            for (index, defect) in theirs.into_iter().enumerate() {
                match ours.get_mut(index) {
                    Some(known) => {
                        known.used = known.used.or(defect.used);
                        known.stored = known.stored.or(defect.stored);
                    }
                    None => ours.push(defect),
                }
            }
        }
    }
}
