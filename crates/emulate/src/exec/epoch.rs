//! One access of one program, as the race shadow keeps it.

use super::order::Progress;

/// An access in 64 bits: program plus one, whether it was atomic, releases of the program before it, number of the
/// store among the program's stores, line. 0 is none. Numbers that do not fit saturate, which can hide a race but
/// never makes one up: a number of a store is checked again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Epoch(u64);

/// Programs that can be told apart.
pub(super) const PROGRAM: u64 = (1 << 26) - 1;
const ATOMIC: u64 = 1 << 26;
const CLOCK: (u32, u64) = (27, (1 << 13) - 1);
const STORE: (u32, u64) = (40, (1 << 12) - 1);
const LINE: (u32, u64) = (52, (1 << 12) - 1);

impl Epoch {
    pub(super) const NONE: Self = Self(0);

    pub(super) fn new(progress: &Progress, atomic: bool, store: u64, line: u32) -> Self {
        let field = |(shift, max): (u32, u64), value: u64| value.min(max) << shift;
        Self(
            u64::from(progress.program) & PROGRAM
                | if atomic { ATOMIC } else { 0 }
                | field(CLOCK, u64::from(progress.clock))
                | (store & STORE.1) << STORE.0
                | field(LINE, u64::from(line)),
        )
    }

    #[inline(always)]
    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether it is an access by another program.
    #[inline(always)]
    pub(super) fn is_foreign(self, other: Self) -> bool {
        self.0 != 0 && (self.0 ^ other.0) & PROGRAM != 0
    }

    pub(super) fn is_atomic(self) -> bool {
        self.0 & ATOMIC != 0
    }

    pub(super) fn same_store(self, other: Self) -> bool {
        !self.is_atomic() && (self.0 ^ other.0) & (PROGRAM | STORE.1 << STORE.0) == 0
    }

    pub(super) fn clock(self) -> u32 {
        (self.0 >> CLOCK.0 & CLOCK.1) as u32
    }

    pub(super) fn program(self) -> u32 {
        (self.0 & PROGRAM) as u32
    }

    /// Counted from 0.
    pub(super) fn number(self) -> u64 {
        (self.0 & PROGRAM).saturating_sub(1)
    }

    /// 0 if it is unknown.
    pub(super) fn line(self) -> u32 {
        let line = self.0 >> LINE.0 & LINE.1;
        if line == LINE.1 { 0 } else { line as u32 }
    }
}
