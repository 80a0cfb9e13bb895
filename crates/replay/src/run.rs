use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Instant;

use tilewright_contract::{BufferSource, Hazard, LaunchCost, Plan};

/// Contents by where a plan's buffers come from.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    /// Input storages in the order of the signature's `buffers`.
    pub inputs: Vec<Vec<u8>>,
    pub state: BTreeMap<String, Vec<u8>>,
    pub constants: BTreeMap<String, Vec<u8>>,
}

/// One execution of a plan.
#[derive(Debug, Clone)]
pub struct Run {
    /// First contents of each buffer of the plan; `None` is uninitialised memory.
    pub contents: Vec<Option<Vec<u8>>>,
    /// What messages call each buffer; one that is missing here is named by its source.
    pub names: Vec<String>,
    /// Bytes of buffers that earlier calls left behind, as buffer and range, where the device can tell their use.
    pub left_over: Vec<(usize, Range<usize>)>,
    /// Byte that fills uninitialised memory.
    pub poison: u8,
    /// Byte that fills lanes of a masked load without `other`, where the device lets us choose.
    pub lanes: u8,
    /// Programs of a launch start in reverse order, where the device lets us choose.
    pub reverse: bool,
    /// For random steps and seeds drawn by the file.
    pub seed: u64,
    pub deadline: Option<Instant>,
}

/// One execution on a GPU whose data stay there.
#[derive(Debug, Clone)]
pub struct SharedRun {
    /// First contents of each buffer of the plan; `None` is uninitialised memory.
    pub contents: Vec<Option<Source>>,
    /// The driver's names of the allocations that contents lie in.
    pub handles: Vec<Vec<u8>>,
    /// Byte that fills uninitialised memory.
    pub poison: u8,
    /// For random steps and seeds drawn by the file.
    pub seed: u64,
    pub deadline: Option<Instant>,
}

impl SharedRun {
    /// The same run with its handles at the end of these, which other runs use too.
    pub fn after(mut self, handles: &mut Vec<Vec<u8>>) -> Self {
        let mut at = |handle: &Vec<u8>| {
            handles.iter().position(|known| known == handle).unwrap_or_else(|| {
                handles.push(handle.clone());
                handles.len() - 1
            })
        };
        let places: Vec<usize> = self.handles.iter().map(&mut at).collect();
        for source in self.contents.iter_mut().flatten() {
            if let Source::Mapped { handle, .. } = source {
                *handle = places[*handle];
            }
        }
        self.handles.clone_from(handles);
        self
    }
}

/// Where the first contents of a buffer come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Bytes(Vec<u8>),
    /// Memory of another process: which of the handles, at which byte. As many bytes as the buffer has.
    Mapped {
        handle: usize,
        offset: u64,
    },
    /// What the run before left in the same buffer.
    Kept,
}

/// What an execution left behind.
#[derive(Debug, Clone, Default)]
pub struct RunResult {
    /// Final bytes of each buffer of the plan.
    pub buffers: Vec<Vec<u8>>,
    /// Where each byte comes from, where the device knows: see [`writer`].
    pub shadow: Option<Vec<Vec<u8>>>,
    /// Values that no result should depend on, in the order of their marks in the shadow.
    pub defects: Vec<Defective>,
    /// Elements that several programs wrote in no order, but with equal values.
    pub benign_races: u64,
    /// What each launch moved and computed, where the device counts.
    pub costs: Vec<LaunchCost>,
    /// Launches touched memory atomically: in another order of programs, results may differ.
    pub atomics: bool,
    /// A masked load without `other` left lanes undefined.
    pub undefined_lanes: bool,
}

/// A value that no result should depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defective {
    /// How bytes that depend on it are marked.
    pub mark: u8,
    /// An address or a branch depended on it.
    pub decided: bool,
    /// What to say if it matters.
    pub fault: Fault,
    /// The same in parts.
    pub hazard: Hazard,
}

/// What the shadow says of a byte. A copy moves values together with their marks.
pub use tilewright_emulate::shadow as writer;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    OutOfBounds,
    Misaligned,
    UninitialisedRead,
    /// A value that an earlier call left behind was used.
    LeftOver,
    /// The 32-bit arithmetic of an address wrapped around.
    Overflow,
    DivisionByZero,
    /// A conversion by torch, to integers or bools, changes numbers.
    TorchComputes,
    /// Programs of one launch access the same memory in no order, and one of them writes.
    Race,
    /// A guard zone beside a buffer was written.
    Guard,
    /// `tl.device_assert` failed, or the device reported an illegal instruction.
    Trap,
    Launch,
    /// Programs wait for each other, or for nobody.
    Deadlock,
    Timeout,
    OutOfMemory,
    Unsupported,
    /// The executor process ended without an answer, by itself or killed from outside.
    Lost,
    /// Memory cannot be shared between processes here.
    Refused,
    /// The device or its process failed; not the candidate's fault.
    Infrastructure,
}

/// An execution that did not end well.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    pub kind: FaultKind,
    pub message: String,
    /// Line in the candidate.
    pub line: Option<u32>,
}

impl Fault {
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), line: None }
    }
}

/// The contents of each buffer of `plan`. A buffer whose source is unknown, or whose size differs from the plan's
/// claim, is a fault: the plan is hostile input.
pub fn initial_contents(plan: &Plan, contents: &Contents) -> Result<Vec<Option<Vec<u8>>>, Fault> {
    plan.buffers
        .iter()
        .map(|buffer| {
            let (bytes, what) = match &buffer.source {
                BufferSource::Scratch => return Ok(None),
                BufferSource::Input { index } => (contents.inputs.get(*index), format!("input {index}")),
                BufferSource::State { name } => (contents.state.get(name), format!("state {name}")),
                BufferSource::Constant { path } => (contents.constants.get(path), format!("constant {path}")),
            };
            let bytes =
                bytes.ok_or_else(|| Fault::new(FaultKind::Launch, format!("the plan names an unknown {what}")))?;
            if bytes.len() as u64 != buffer.nbytes {
                let message =
                    format!("the plan says that {what} has {} bytes, but it has {}", buffer.nbytes, bytes.len());
                return Err(Fault::new(FaultKind::Launch, message));
            }
            Ok(Some(bytes.clone()))
        })
        .collect()
}
