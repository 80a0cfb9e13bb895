//! The warm Python process, and jobs that run in children of it.

mod collect;
mod frame;
mod job;
mod process;

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::confine::ControlGroup;
use crate::{Layers, Limits};
use process::Process;
pub use process::Versions;

/// How to start a zygote.
#[derive(Clone, Debug)]
pub struct ZygoteOptions {
    /// The Python interpreter, with torch, Triton and the `tilewright` package.
    pub python: PathBuf,
    /// How long the imports may take.
    pub start_timeout: Duration,
    /// Further job kinds for tests: (kind, handler file).
    pub test_kinds: Vec<(String, PathBuf)>,
    /// A library that is loaded before all others; every job has it.
    pub preload: Option<PathBuf>,
}

impl ZygoteOptions {
    /// Defaults for an interpreter.
    pub fn new(python: impl Into<PathBuf>) -> Self {
        Self { python: python.into(), start_timeout: Duration::from_secs(120), test_kinds: Vec::new(), preload: None }
    }
}

/// One job: a handler of `python/tilewright/cell/` called with one request.
#[derive(Clone, Debug)]
pub struct Job {
    /// Names the handler.
    pub kind: String,
    /// What the handler gets; only the job's own process sees it.
    pub request: Value,
    /// What the job may use.
    pub limits: Limits,
    /// The folder that the job may write: it must exist and be empty. What the job left there is in it afterwards.
    pub scratch: PathBuf,
    /// Trusted code gets limits but no sandbox, and the user's environment.
    pub trusted: bool,
    /// Refuse to run a job that is not trusted when a sandbox layer is missing.
    pub strict: bool,
    /// What the job may read besides Python, its packages and the system's libraries.
    pub read_paths: Vec<PathBuf>,
    /// Programs that the job may start besides the assemblers, where its limits allow another process. A folder stands
    /// for all that is in it.
    pub execute_paths: Vec<PathBuf>,
    /// Device files that the job may use.
    pub devices: Vec<PathBuf>,
    /// Given to the job's process as descriptor 4.
    pub descriptor: Option<Arc<OwnedFd>>,
}

impl Job {
    /// A job of hostile code with default limits.
    pub fn new(kind: impl Into<String>, request: Value, scratch: impl Into<PathBuf>) -> Self {
        Self {
            kind: kind.into(),
            request,
            limits: Limits::default(),
            scratch: scratch.into(),
            trusted: false,
            strict: false,
            read_paths: Vec::new(),
            execute_paths: Vec::new(),
            devices: Vec::new(),
            descriptor: None,
        }
    }
}

/// What became of a job.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The handler's answer, or how the job ended without one.
    pub response: Result<Value, Death>,
    /// The head of what the job printed to stdout and stderr.
    pub output: String,
    /// Bytes that it printed in all.
    pub output_bytes: u64,
    /// Wall-clock seconds from the fork to the end.
    pub seconds: f64,
    /// Peak resident memory in KiB, shared pages of the zygote included; 0 where unknown.
    pub max_rss_kb: u64,
    /// Processor time of the job and its descendants, in seconds.
    pub cpu_seconds: f64,
    /// The sandbox layers that were in force.
    pub layers: Layers,
}

/// How a job ended without a proper answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Death {
    /// Went over its wall-clock or processor time.
    #[error("ran out of time")]
    Timeout,
    /// Went over its memory.
    #[error("ran out of memory")]
    OutOfMemory,
    /// Wrote more than its scratch may hold.
    #[error("ran out of disk space")]
    DiskFull,
    /// Was ended by a signal.
    #[error("was ended by signal {0}")]
    Signal(i32),
    /// Left by itself before it answered.
    #[error("exited with status {0} before it answered")]
    Exit(i32),
    /// Answered something that is no response.
    #[error("gave a garbled answer: {0}")]
    Garbled(String),
    /// Answered more than the limit.
    #[error("gave an answer that is too large")]
    TooLarge,
}

/// A fault on our side: it says nothing about the job.
#[derive(Debug, thiserror::Error)]
pub enum CellError {
    /// The zygote did not come up.
    #[error("failed to start the Python side ({}): {why}", python.display())]
    Start {
        /// The interpreter.
        python: PathBuf,
        /// What went wrong, with the end of what Python printed.
        why: String,
    },
    /// The zygote died, and so did the one started in its place.
    #[error("the Python side died: {0}")]
    ZygoteDied(String),
    /// The job was not run: a missing handler or sandbox layer.
    #[error("failed to run a {kind} job: {why}")]
    Refused {
        /// The job's kind.
        kind: String,
        /// Why not.
        why: String,
    },
    /// A system call failed on our side.
    #[error("failed to {what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        error: std::io::Error,
    },
}

impl CellError {
    fn system(what: &'static str) -> impl Fn(nix::Error) -> Self {
        move |error| Self::System { what, error: error.into() }
    }
}

/// A running zygote. Dropping it ends it and everything that it runs. Jobs may run from several threads at a time.
#[derive(Debug)]
pub struct Zygote {
    options: ZygoteOptions,
    process: Mutex<Arc<Process>>,
    numbers: AtomicU32,
}

impl Zygote {
    /// Starts Python and waits until torch and Triton are imported, seconds later.
    pub fn start(options: ZygoteOptions) -> Result<Self, CellError> {
        ControlGroup::sweep();
        let process = Process::start(&options)?;
        Ok(Self { options, process: Mutex::new(Arc::new(process)), numbers: AtomicU32::new(first_number()) })
    }

    /// Starts another zygote beside this one, which loads a library before all others.
    pub fn preloading(&self, library: PathBuf) -> Result<Self, CellError> {
        Self::start(ZygoteOptions { preload: Some(library), ..self.options.clone() })
    }

    /// Versions and job kinds of the Python side.
    pub fn versions(&self) -> Versions {
        self.current().versions().clone()
    }

    /// The process id of the zygote.
    pub fn pid(&self) -> u32 {
        self.current().pid()
    }

    /// Runs one job to its end. If the zygote dies meanwhile, another is started and the job is run once more.
    pub fn run(&self, job: &Job) -> Result<Outcome, CellError> {
        let process = self.current().clone();
        match job::run(&process, job, self.number()) {
            Err(CellError::ZygoteDied(why)) => {
                tracing::warn!(why, "the Python side died; starting it again");
                let process = self.replace(&process)?;
                job::run(&process, job, self.number())
            }
            outcome => outcome,
        }
    }

    fn number(&self) -> u32 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    fn current(&self) -> MutexGuard<'_, Arc<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts another zygote in place of `dead`, unless another thread has done so already.
    fn replace(&self, dead: &Arc<Process>) -> Result<Arc<Process>, CellError> {
        let mut current = self.current();
        if Arc::ptr_eq(&current, dead) {
            *current = Arc::new(Process::start(&self.options)?);
        }
        Ok(current.clone())
    }
}

/// Jobs of several Tilewright processes on one machine should not share identities.
fn first_number() -> u32 {
    std::process::id().wrapping_mul(1009)
}
