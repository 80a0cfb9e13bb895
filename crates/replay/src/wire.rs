//! Messages between the client and the executor process: a JSON header, then blobs.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::program::{Loadable, Program};

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Execute a program once, in fresh memory.
    Run {
        program: Program,
        /// First contents of each buffer of the program, which are blobs; none is poison.
        contents: Vec<Option<Content>>,
        poison: u8,
        /// Buffers to send back.
        read_back: Vec<usize>,
    },
    /// Execute a program several times, each time in fresh memory, and keep the memory for another process to look at.
    RunAll {
        program: Program,
        starts: Vec<Start>,
        /// The driver's names of other processes' allocations.
        handles: Vec<Vec<u8>>,
        /// Buffers to send back, run by run.
        read_back: Vec<usize>,
        /// Whoever asks does not find out by other ways whether a fault is the program's own.
        confirm: bool,
    },
    /// Free the memory that was kept, and what was prepared.
    Forget,
    /// Make a program ready to be timed, in place of the one before.
    Prepare(Box<Prepare>),
    /// Run the prepared program once on a set of inputs, untimed, for another process to look at.
    Play { set: usize },
    /// Time the prepared program.
    Time {
        calls: u32,
        /// Whether the second-level cache is flushed before each call.
        cold: bool,
        /// Whether to time each launch by itself, too.
        launches: bool,
        /// Whether to send back the results of the last call, or where they are.
        read_back: bool,
    },
    /// What events measure around a kernel that does nothing; a program has to be prepared.
    TimeNothing,
    /// Bytes a second that a copy within the device's memory moves, read and written together.
    CopyRate,
    /// Does the GPU compute?
    Probe,
}

impl Request {
    /// For a log.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Run { .. } => "run",
            Self::RunAll { .. } => "run_all",
            Self::Forget => "forget",
            Self::Prepare(_) => "prepare",
            Self::Play { .. } => "play",
            Self::Time { .. } => "time",
            Self::CopyRate => "copy_rate",
            Self::TimeNothing => "time_nothing",
            Self::Probe => "probe",
        }
    }

    /// Whether a fault of it, in a process that did something before, is to be seen again in a fresh one.
    pub(crate) fn confirms_faults(&self) -> bool {
        !matches!(self, Self::RunAll { confirm: false, .. })
    }

    /// Whether the answer depends on what earlier requests left in the process.
    pub(crate) fn needs_more(&self) -> bool {
        match self {
            Self::Time { .. } | Self::TimeNothing | Self::Play { .. } => true,
            Self::RunAll { starts, .. } => starts.first().is_some_and(Start::continues),
            Self::Run { .. } | Self::Forget | Self::Prepare(_) | Self::CopyRate | Self::Probe => false,
        }
    }
}

/// What one of several runs starts from.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    /// First contents of each buffer of the program; none is poison.
    pub(crate) contents: Vec<Option<Content>>,
    pub(crate) poison: u8,
}

impl Start {
    /// Whether it starts from what the run before left behind.
    pub(crate) fn continues(&self) -> bool {
        self.contents.iter().flatten().any(|content| matches!(content, Content::Kept))
    }
}

/// Where the first contents of a buffer come from.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Content {
    /// One of the blobs.
    Blob(usize),
    /// Another process's memory: which of the handles, at which byte.
    Mapped { handle: usize, offset: u64 },
    /// What the run before left in the same buffer: of the same request, or the last one of the request before.
    Kept,
}

/// Memory of the executor for another process to map. It stays as it is until the next request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loan {
    /// The driver's name of the allocation.
    pub handle: Vec<u8>,
    /// Its size in bytes.
    pub nbytes: u64,
    /// Start and length of each buffer.
    pub spans: Vec<(u64, u64)>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Prepare {
    pub(crate) program: Program,
    /// First contents of each buffer as in [`Request::Run`], for each set of inputs. Calls take the sets in turn.
    pub(crate) sets: Vec<Vec<Option<Content>>>,
    pub(crate) handles: Vec<Vec<u8>>,
    pub(crate) poison: u8,
    /// Whether results stay for another process to look at. Then no set is run yet.
    pub(crate) lend: bool,
    /// Buffers that hold results: sent back once for each set, digested after each timed call.
    pub(crate) results: Vec<usize>,
    /// The kernel that digests, with its secret key.
    pub(crate) digest: Loadable,
    pub(crate) key: u64,
    /// The kernel that does nothing.
    pub(crate) nothing: Loadable,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Response {
    /// The buffers follow.
    Ran {
        /// Buffer beside which a guard zone was written.
        guard: Option<usize>,
    },
    /// The buffers follow, run by run.
    RanAll {
        guard: Option<usize>,
        /// The memory, with the buffers of the first run.
        loan: Loan,
        /// Bytes from a buffer of one run to that of the next.
        pitch: u64,
        /// Microseconds by what was done.
        spent: Vec<(String, u64)>,
    },
    Forgotten,
    /// The results follow, set by set.
    Prepared {
        guard: Option<usize>,
        /// Of the results of each set.
        digests: Vec<u64>,
    },
    Played {
        guard: Option<usize>,
        /// Of the results.
        digest: u64,
        loan: Loan,
    },
    Timed {
        guard: Option<usize>,
        calls: Vec<Call>,
        /// Where the results of the last call are, if they were asked for and are not sent.
        loan: Option<Loan>,
    },
    /// And the bytes of the second-level cache.
    Rate(f64, u64),
    /// Microseconds.
    Nothing(f64),
    Healthy,
    /// The process ends after it.
    Failed(Failure),
}

/// One timed call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Which set of inputs it had.
    pub set: usize,
    /// Device time in microseconds.
    pub us: f64,
    /// Of each launch of the program in its order, where that was asked for.
    pub launches_us: Vec<f64>,
    /// Of its results.
    pub digest: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// Name of the driver's result code, such as `CUDA_ERROR_ILLEGAL_ADDRESS`.
    pub(crate) code: String,
    pub(crate) what: String,
    /// Line of the launch, where one was at fault.
    pub(crate) line: Option<u32>,
}

pub(crate) fn send<T: Serialize>(out: &mut impl Write, header: &T, blobs: &[Vec<u8>]) -> io::Result<()> {
    let header = serde_json::to_vec(header)?;
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)?;
    out.write_all(&(blobs.len() as u64).to_le_bytes())?;
    for blob in blobs {
        out.write_all(&(blob.len() as u64).to_le_bytes())?;
        out.write_all(blob)?;
    }
    out.flush()
}

pub(crate) fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<(T, Vec<Vec<u8>>)> {
    let header = bytes(from)?;
    let header = serde_json::from_slice(&header)?;
    let count = word(from)?;
    let blobs = (0..count).map(|_| bytes(from)).collect::<io::Result<_>>()?;
    Ok((header, blobs))
}

fn bytes(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let len = word(from)?;
    let mut bytes = Vec::new();
    // Not `vec![0; len]`: a torn stream must not ask for the moon.
    from.take(len).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == len { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn word(from: &mut impl Read) -> io::Result<u64> {
    let mut word = [0; 8];
    from.read_exact(&mut word)?;
    Ok(u64::from_le_bytes(word))
}
