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
    /// Two programs access the same memory, one of them writes, and nothing puts one before the other.
    #[error(
        "race: {} at byte offset {offset} of {allocation} {}, and {} {}, which no atomic operation puts in order",
        .first.0, .first.1, .second.0, .second.1
    )]
    Race { allocation: String, offset: i64, first: (Access, Site), second: (Access, Site) },
    #[error("race: two lanes of a store write different values at byte offset {offset} of {allocation} {site}")]
    Lanes { allocation: String, offset: i64, site: Site },
    #[error("device assertion failed: {message} {site}")]
    Assert { message: String, site: Site },
    /// The kernel told the compiler something that is not so.
    #[error("broken promise: {what} {site}")]
    Promise { what: String, site: Site },
    #[error("tl.gather reads position {position} of {extent} {site}")]
    Position { position: i64, extent: usize, site: Site },
    #[error("all programs that are left wait for memory that none of them changes; one is {site}")]
    Deadlock { site: Site },
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
    /// Starts the last program first: what depends on the order of programs shows in the difference.
    pub reverse: bool,
    /// Programs that the GPU holds at once, at most; 0 for all. The others start when some have ended: programs that wait
    /// for them are in a deadlock.
    pub resident: u32,
    /// Threads that run programs beside each other, at most. 0 is as many as there are cores, fewer while other launches
    /// of this process use them. Whatever it is, the outcome is the same.
    pub threads: u32,
    /// Programs that a thread takes at a time; 0 is some tenths of a millisecond's worth.
    pub chunk: u32,
    /// Notes faults of single lanes and programs in [`Memory::faults`](crate::Memory::faults) and goes on: lanes out of bounds are left
    /// out (a load gives them the poison), accesses that race are done, assertions are passed over. The launch then runs in one
    /// thread from the first fault on, and still ends at a deadlock, the deadline, or IR that makes no sense.
    pub go_on: bool,
    /// Notes in [`Memory::births`](crate::Memory::births) where NaN and infinities are made. In one thread, and several times slower.
    pub births: bool,
    /// Leaves out races, the marks of memory and the counts of traffic. Bounds and alignment are checked all the same.
    pub bare: bool,
}

/// A NaN made of numbers that are none, or an infinity made of finite ones. It may be masked away later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Birth {
    /// An infinity, not a NaN.
    pub infinite: bool,
    /// In words, with an article where it has one: "a division", "exp".
    pub operation: &'static str,
    /// Of the operation's result, in row-major order.
    pub lane: usize,
    pub site: Site,
}

impl std::fmt::Display for Birth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (what, from) = if self.infinite { ("an infinity", "finite numbers") } else { ("a NaN", "no NaN") };
        write!(f, "{} makes {what} of {from}, in lane {} {}", self.operation, self.lane, self.site)
    }
}

/// What is wrong with a value that no result should depend on, in order of gravity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DefectKind {
    /// An integer was divided by zero.
    DivisionByZero,
    /// The 32-bit arithmetic of an address wrapped around.
    Overflow,
    /// Bytes were read that an earlier call left behind.
    LeftOver,
    /// Bytes were read that nothing had written.
    Uninitialised,
}

/// What a defective value decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    Address,
    /// Also a mask, or the bound of a loop.
    Branch,
}

/// A defective value: where it was born, and what became of it. It is harmless as long as it is only masked away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defect {
    pub kind: DefectKind,
    /// Where the value was first made or read.
    pub site: Site,
    /// What was read, for [`DefectKind::Uninitialised`]; otherwise empty.
    pub allocation: String,
    /// Byte offset there.
    pub offset: usize,
    /// Where it first decided something.
    pub used: Option<(Usage, Site)>,
    /// Where it was first stored. Whether the bytes matter, their mark in the shadow tells.
    pub stored: Option<Site>,
}

impl std::fmt::Display for Defect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.kind {
            DefectKind::DivisionByZero => write!(f, "an integer is divided by zero {}", self.site)?,
            DefectKind::Overflow => write!(f, "the 32-bit arithmetic of an address wraps around {}", self.site)?,
            DefectKind::LeftOver => {
                write!(
                    f,
                    "{}, byte {}, is read as an earlier call left it, {}",
                    self.allocation, self.offset, self.site
                )?;
            }
            DefectKind::Uninitialised => {
                let (allocation, offset) = (&self.allocation, self.offset);
                write!(f, "{allocation}, byte {offset}, is read before anything wrote it, {}", self.site)?;
            }
        }
        match (self.used, self.stored) {
            (Some((Usage::Address, site)), _) => write!(f, "; an address depends on it {site}"),
            (Some((Usage::Branch, site)), _) => write!(f, "; a branch or mask depends on it {site}"),
            (None, Some(site)) => write!(f, "; it is stored {site}"),
            (None, None) => Ok(()),
        }
    }
}

/// What a launch did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Lanes that a load masked off without saying what they read: they hold [`Limits::poison`]. If there are none,
    /// a second run with another poison can show nothing new.
    pub undefined_lanes: u64,
    pub bytes_loaded: u64,
    pub bytes_stored: u64,
    /// Bytes of memory touched at least once, in sectors of 32.
    pub unique_bytes: u64,
    /// Sectors of 32 bytes that loads and stores touch, by groups of 32 lanes as a warp has; an estimate, since the
    /// compiler chooses which lanes go together.
    pub sectors: u64,
    /// The fewest sectors that could hold what they access.
    pub least_sectors: u64,
    /// Elements touched by atomic operations.
    pub atomics: u64,
    /// Floating operations on single elements: one each, two for a multiply-add.
    pub flops: u64,
    /// Multiplications plus additions of `tt.dot`.
    pub dot_flops: u64,
    /// Elements written by several programs in no order, but with equal values.
    pub benign_races: u64,
}

impl Report {
    /// Adds what other programs of the launch did, but for what the whole launch is asked for.
    pub(crate) fn add(&mut self, other: &Self) {
        self.undefined_lanes += other.undefined_lanes;
        self.bytes_loaded += other.bytes_loaded;
        self.bytes_stored += other.bytes_stored;
        self.atomics += other.atomics;
        self.flops += other.flops;
        self.dot_flops += other.dot_flops;
    }
}
