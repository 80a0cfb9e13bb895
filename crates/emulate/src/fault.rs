//! What a launch can end in, and what it reports.

use std::time::Instant;

/// A kernel uses something that the emulator does not execute: our lack, not the kernel's mistake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the emulator does not support {op}{}: {why}", at(.line))]
pub struct Unsupported {
    /// The operation's name in Triton IR, such as `tt.dot_scaled`.
    pub op: String,
    /// Line in the candidate's file, 0 if unknown.
    pub line: u32,
    pub why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Load,
    Store,
    Atomic,
}

impl std::fmt::Display for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Load => "load",
            Self::Store => "store",
            Self::Atomic => "atomic access",
        })
    }
}

/// A program's coordinates in the grid, and the line of the candidate's file it was at (0 if unknown).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site {
    pub program: [u32; 3],
    pub line: u32,
}

impl std::fmt::Display for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [x, y, z] = self.program;
        write!(f, "in program ({x}, {y}, {z}){}", at(&self.line))
    }
}

fn at(line: &u32) -> String {
    if *line == 0 { String::new() } else { format!(" at line {line}") }
}

/// Why a launch ended early. Memory holds whatever the launch had written until then.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Fault {
    #[error("out-of-bounds {access} of {bytes} bytes at byte offset {offset} of {allocation} ({size} bytes) {site}")]
    OutOfBounds {
        access: Access,
        /// Label of the allocation whose address range the pointer lies in.
        allocation: String,
        /// In bytes from the allocation's start; negative before it.
        offset: i64,
        /// Bytes accessed.
        bytes: usize,
        /// Bytes of the allocation.
        size: usize,
        site: Site,
    },
    #[error("{access} through {address:#x}, which is no address of any buffer, {site}")]
    BadAddress { access: Access, address: u64, site: Site },
    #[error("misaligned {access} of {bytes} bytes at byte offset {offset} of {allocation} {site}")]
    Misaligned { access: Access, allocation: String, offset: i64, bytes: usize, site: Site },
    #[error("device assertion failed: {message} {site}")]
    Assert { message: String, site: Site },
    #[error("tl.gather reads position {position} of {extent} {site}")]
    Position { position: i64, extent: usize, site: Site },
    #[error("the deadline passed {site}")]
    Deadline { site: Site },
    #[error("the launch passes {given} arguments, the kernel takes {wanted}")]
    Arguments { given: usize, wanted: usize },
    #[error("argument {index} does not fit the kernel's parameter of type {wanted}")]
    Argument { index: usize, wanted: String },
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The IR contradicts itself in a way that only showed at run time.
    #[error("malformed Triton IR: {what} {site}")]
    Malformed { what: String, site: Site },
}

/// What bounds a launch, and what it sees where the GPU promises nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    pub deadline: Option<Instant>,
    /// Every byte of what a load without `other` gives for a masked-off lane. A GPU gives zeros in practice and
    /// promises nothing: two launches with different values here tell whether results depend on it.
    pub poison: u8,
}

/// A read of bytes that nothing ever wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UninitialisedRead {
    pub allocation: String,
    /// Byte offset in the allocation of the first unwritten byte read.
    pub offset: usize,
    pub site: Site,
}

/// What a launch did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    pub first_uninitialised_read: Option<UninitialisedRead>,
    /// Where an integer was first divided by zero (also in lanes that a mask discards later).
    pub first_division_by_zero: Option<Site>,
    /// Lanes that a load masked off without saying what they read: they hold [`Limits::poison`]. If there are none,
    /// a second run with another poison can show nothing new.
    pub undefined_lanes: u64,
    pub bytes_loaded: u64,
    pub bytes_stored: u64,
    /// Elements touched by atomic operations.
    pub atomics: u64,
    /// Multiplications plus additions of `tt.dot`.
    pub dot_flops: u64,
}
