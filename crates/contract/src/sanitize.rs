use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CandidateId, LaunchCost, Reason, StageTime, Target, VerdictKind};

/// What the sanitiser saw in a candidate's launches. It does not judge values: a clean candidate may compute nonsense.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SanitizeReport {
    /// `tilewright.sanitize/1`
    pub schema: String,
    pub outcome: SanitizeOutcome,
    pub problem: CandidateId,
    pub candidate: CandidateId,
    /// `cpu`.
    pub target: String,
    /// What the kernels were compiled for.
    pub arch: Option<Target>,
    /// Each once, by the line of the access.
    pub hazards: Vec<Hazard>,
    /// Where NaN and infinities are made that outputs hold, if that was asked for. They are no hazards by themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub births: Vec<Hazard>,
    /// Why launches were not run, or not to their end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
    /// Plans that were executed, each on one set of inputs.
    pub executions: u64,
    /// What each launch of one call moved and computed, on the problem's own shapes.
    pub costs: Vec<LaunchCost>,
    pub stages: Vec<StageTime>,
    /// Remarks: a read of unwritten memory without effect, and the like.
    pub notes: Vec<String>,
}

impl SanitizeReport {
    pub const SCHEMA: &'static str = "tilewright.sanitize/1";

    /// Process exit code: 0 clean, 1 hazards or a fault of the candidate, 3 not checked through no fault of its own.
    pub fn exit_code(&self) -> u8 {
        self.outcome.exit_code(self.stopped.as_ref())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SanitizeOutcome {
    /// Every launch ran to its end, and nothing was seen.
    Clean,
    Hazards,
    /// Nothing was seen, but not everything was run.
    Stopped,
}

impl SanitizeOutcome {
    pub(crate) fn exit_code(self, stopped: Option<&Stopped>) -> u8 {
        match (self, stopped) {
            (Self::Clean, _) => 0,
            (Self::Stopped, Some(stopped)) => stopped.exit_code(),
            (Self::Hazards | Self::Stopped, _) => 1,
        }
    }
}

/// Why a candidate could not be run, as a verdict would say it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stopped {
    pub verdict: VerdictKind,
    pub reasons: Vec<Reason>,
}

impl Stopped {
    /// As a verdict's, but what could not be traced was not checked either.
    pub fn exit_code(&self) -> u8 {
        if self.verdict == VerdictKind::Untraceable { 3 } else { self.verdict.exit_code() }
    }
}

/// Something that a launch must not do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hazard {
    pub kind: HazardKind,
    /// The kernel's function; empty where it is not one launch's doing.
    pub kernel: String,
    pub message: String,
    /// Where it happens, or a bad value is born.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Party>,
    /// The earlier access of a race; what a bad value first decided or reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<Party>,
    /// The memory that is accessed: `x_ptr (input 0)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensor: Option<String>,
    /// In bytes from the start of the tensor's storage; negative before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<i64>,
    /// Line of the launch in the candidate; 0 if unknown.
    pub launch: u32,
    /// How often in the first execution that shows it: lanes, or pairs of accesses of a race.
    pub count: u64,
    /// Executions that show it.
    pub executions: u64,
    /// The first of them: `case default, seed`.
    pub seen: String,
    /// The next thing to try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl Hazard {
    /// Seen once, at no place yet.
    pub fn new(kind: HazardKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            kernel: String::new(),
            message: message.into(),
            at: None,
            other: None,
            tensor: None,
            offset: None,
            launch: 0,
            count: 1,
            executions: 1,
            seen: String::new(),
            help: kind.help().map(str::to_owned),
        }
    }

    /// Line in the candidate, if there is one.
    pub fn line(&self) -> Option<u32> {
        self.at.map(|party| party.line).filter(|&line| line > 0).or((self.launch > 0).then_some(self.launch))
    }

    /// Whether two hazards are one: the same thing on the same lines of the same kernel, or, without a line, in the same
    /// tensor.
    pub fn same(&self, other: &Self) -> bool {
        let lines = |hazard: &Self| (hazard.line(), hazard.other.map(|party| (party.does, party.line)));
        let placed = self.line().is_some() || self.tensor == other.tensor;
        self.kind == other.kind && self.kernel == other.kernel && lines(self) == lines(other) && placed
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HazardKind {
    /// An access outside of every buffer.
    OutOfBounds,
    /// An access whose address is no multiple of its size.
    Misaligned,
    /// Memory that nothing wrote decided an address or a branch, or reached an output.
    Uninitialised,
    /// An output element that nothing wrote.
    UnwrittenOutput,
    /// A value that an earlier call left behind was used.
    LeftOver,
    /// Two programs access the same memory in no order, and one of them writes.
    Race,
    /// Two lanes of one store write different values to one place.
    StoreConflict,
    /// An integer division by zero whose result was used.
    DivisionByZero,
    /// The 32-bit arithmetic of an address wrapped around.
    OffsetOverflow,
    /// Programs wait for each other, or for nobody.
    Deadlock,
    /// Results depend on what a masked load without `other` gives for the lanes that are off.
    UndefinedLanes,
    /// Results depend on the order in which programs run.
    Nondeterministic,
    /// `tl.device_assert` failed.
    Assertion,
    /// An operation made a NaN of none; looked for on request.
    Nan,
    /// An operation made an infinity of finite numbers; looked for on request.
    Infinity,
}

impl HazardKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::OutOfBounds => "out-of-bounds",
            Self::Misaligned => "misaligned",
            Self::Uninitialised => "uninitialised",
            Self::UnwrittenOutput => "unwritten-output",
            Self::LeftOver => "left-over",
            Self::Race => "race",
            Self::StoreConflict => "store-conflict",
            Self::DivisionByZero => "division-by-zero",
            Self::OffsetOverflow => "offset-overflow",
            Self::Deadlock => "deadlock",
            Self::UndefinedLanes => "undefined-lanes",
            Self::Nondeterministic => "nondeterministic",
            Self::Assertion => "assertion",
            Self::Nan => "nan",
            Self::Infinity => "infinity",
        }
    }

    /// What usually helps.
    pub fn help(self) -> Option<&'static str> {
        Some(match self {
            Self::OutOfBounds => "mask the access (mask=offsets < n), and check strides and the grid",
            Self::Misaligned => "let the element type of the pointer be the tensor's own, at a multiple of its size",
            Self::Uninitialised => {
                "initialise the buffer (torch.zeros, or a store that covers it) before a kernel reads or adds to it"
            }
            Self::UnwrittenOutput => "cover the whole output: check the grid (triton.cdiv) and the masks",
            Self::LeftOver => "keep nothing between calls: write a workspace before reading it, and reset counters",
            Self::Race => "let programs write to places of their own, use atomics, or split it into two launches",
            Self::StoreConflict => "give each lane a place of its own, or mask all but one",
            Self::DivisionByZero => "mask the lanes whose divisor is zero, or replace it by one",
            Self::OffsetOverflow => "compute large offsets in 64 bits: tl.program_id(0).to(tl.int64) * …",
            Self::Deadlock => "let no program wait for one that waits for it; release every lock",
            Self::UndefinedLanes => "give tl.load an `other`, or mask the lanes again before a reduction",
            Self::Nondeterministic => "let programs write to places of their own, or wait for each other",
            Self::Assertion | Self::Nan | Self::Infinity => return None,
        })
    }
}

/// One side of a hazard: a program that does something on a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Party {
    pub does: Deed,
    /// Coordinates in the grid.
    pub program: [u32; 3],
    /// Line in the candidate; 0 if unknown.
    pub line: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    Load,
    Store,
    Atomic,
    /// Computes a value.
    Compute,
    /// Uses a value in an address.
    Address,
    /// Uses a value in a branch, a mask or the bound of a loop.
    Branch,
}

impl Deed {
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Store => "store",
            Self::Atomic => "atomic access",
            Self::Compute => "arithmetic",
            Self::Address => "address",
            Self::Branch => "branch or mask",
        }
    }
}
