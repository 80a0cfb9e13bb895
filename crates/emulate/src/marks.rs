//! What is known of a register's values besides the values: where they come from. See [`shadow`].

use crate::memory::shadow::{COPIED, DEFECT, LAUNCH};

/// The marks of a block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Marks {
    /// No data went into it: constants, and arithmetic on constants, arguments and program numbers.
    #[default]
    Pure,
    /// [`COPIED`], [`LAUNCH`] or a defect, for every lane.
    All(u8),
    /// Some lanes have a defect. One mark a lane.
    Lanes(Vec<u8>),
}

impl Marks {
    /// From one mark a lane.
    pub(crate) fn lanes(marks: Vec<u8>) -> Self {
        match marks.first() {
            Some(&0) if marks.iter().all(|&mark| mark == 0) => Self::Pure,
            None => Self::Pure,
            Some(&first) if marks.iter().all(|&mark| mark == first) => Self::All(first),
            Some(_) => Self::Lanes(marks),
        }
    }

    pub(crate) fn is_pure(&self) -> bool {
        *self == Self::Pure
    }

    /// The mark of a lane, 0 if it is pure.
    #[inline(always)]
    pub(crate) fn at(&self, lane: usize) -> u8 {
        match self {
            Self::Pure => 0,
            Self::All(mark) => *mark,
            Self::Lanes(marks) => marks.get(lane).copied().unwrap_or(0),
        }
    }

    /// The gravest defect of any lane.
    pub(crate) fn defect(&self) -> Option<u8> {
        let worst = match self {
            Self::Pure => 0,
            Self::All(mark) => *mark,
            Self::Lanes(marks) => marks.iter().copied().max().unwrap_or(0),
        };
        (worst >= DEFECT).then_some(worst)
    }
}

/// The mark of a value computed from two values.
#[inline(always)]
pub(crate) fn computed(a: u8, b: u8) -> u8 {
    match a.max(b) {
        0 => 0,
        worst if worst >= DEFECT => worst,
        _ => LAUNCH,
    }
}

/// The mark of a block that holds values of two blocks side by side: a copy stays one beside constants and copies.
#[inline(always)]
pub(crate) fn mixed(a: u8, b: u8) -> u8 {
    match (a, b) {
        (0 | COPIED, 0 | COPIED) => a.max(b),
        _ => computed(a, b),
    }
}
