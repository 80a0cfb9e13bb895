use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tempfile::TempDir;
use tilewright_cell::{CellError, Death, Job, Limits, Outcome, Zygote};
use tilewright_contract::Finding;

use crate::jobs::StageOptions;
use crate::{Cache, Failure, Permits, StageError};

/// What runs jobs: the zygote, or in tests something in its place.
pub trait Runner: Send + Sync {
    /// Runs one job to its end.
    fn run(&self, job: &Job) -> Result<Outcome, CellError>;

    /// Versions of torch and Triton on the other side. Compiled kernels are kept under them.
    fn versions(&self) -> (String, String);

    /// Another runner of the same kind, whose jobs have a library loaded before all others.
    fn preloading(&self, library: &Path) -> Result<Arc<dyn Runner>, CellError> {
        let why = format!("it cannot load {} before others", library.display());
        Err(CellError::Refused { kind: "recorded".into(), why })
    }
}

impl Runner for Zygote {
    fn run(&self, job: &Job) -> Result<Outcome, CellError> {
        Zygote::run(self, job)
    }

    fn versions(&self) -> (String, String) {
        let versions = Zygote::versions(self);
        (versions.torch, versions.triton)
    }

    fn preloading(&self, library: &Path) -> Result<Arc<dyn Runner>, CellError> {
        Ok(Arc::new(Zygote::preloading(self, library.to_owned())?))
    }
}

/// The stages. Cheap to clone; jobs may run from several threads at a time.
#[derive(Clone)]
pub struct Stage {
    pub(crate) runner: Arc<dyn Runner>,
    pub(crate) cache: Cache,
    pub(crate) options: StageOptions,
    /// One for each job of a candidate that may run at a time.
    cores: Arc<Permits>,
}

/// A job's answer with its scratch folder, which goes when this goes.
pub(crate) struct Answer<T> {
    pub(crate) value: T,
    pub(crate) scratch: TempDir,
}

#[derive(Deserialize)]
struct ErrorDocument {
    error: Failure,
    #[serde(default)]
    findings: Vec<Finding>,
}

impl Stage {
    pub fn new(runner: Arc<dyn Runner>, cache: Cache, options: StageOptions) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        Self { runner, cache, options, cores: Arc::new(Permits::new(cores)) }
    }

    /// The same stages over another runner, whose jobs have a library loaded before all others. Takes seconds.
    pub fn preloading(&self, library: &Path) -> Result<Self, StageError> {
        Ok(Self { runner: self.runner.preloading(library)?, ..self.clone() })
    }

    /// The software that jobs run on: `torch 2.11.0, triton 3.6.0`.
    pub fn software(&self) -> String {
        let (torch, triton) = self.runner.versions();
        format!("torch {torch}, triton {triton}")
    }

    /// Where compiled kernels are kept.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// A job with an empty scratch folder of its own. `request` gets the path of that folder.
    pub(crate) fn job(
        &self,
        kind: &'static str,
        limits: &Limits,
        request: impl FnOnce(&Path) -> Value,
    ) -> Result<(Job, TempDir), StageError> {
        let scratch = tempfile::Builder::new()
            .prefix("tilewright-")
            .tempdir()
            .map_err(StageError::io("make a scratch folder"))?;
        let mut job = Job::new(kind, request(scratch.path()), scratch.path());
        job.limits = limits.clone();
        job.strict = self.options.strict;
        Ok((job, scratch))
    }

    /// Runs a job and reads its answer.
    pub(crate) fn answer<T: DeserializeOwned>(
        &self,
        kind: &'static str,
        (job, scratch): (Job, TempDir),
    ) -> Result<Answer<T>, StageError> {
        // Jobs of many candidates side by side would only slow each other down, and take memory together. Those that
        // are trusted are few, and one of them lasts as long as its problem.
        let permit = (!job.trusted).then(|| self.cores.take(1));
        let outcome = self.runner.run(&job)?;
        drop(permit);
        let (seconds, cpu_seconds) = (outcome.seconds, outcome.cpu_seconds);
        tracing::debug!(kind, seconds, cpu_seconds, max_rss_kb = outcome.max_rss_kb, "job ended");
        let response = outcome.response.map_err(|death| StageError::Death { kind, death, output: outcome.output })?;
        Ok(Answer { value: read_answer(kind, response)?, scratch })
    }
}

pub(crate) fn read_answer<T: DeserializeOwned>(kind: &'static str, response: Value) -> Result<T, StageError> {
    let malformed = |error: serde_json::Error| StageError::Malformed { kind, why: error.to_string() };
    if response.get("error").is_none_or(Value::is_null) {
        return serde_json::from_value(response).map_err(malformed);
    }
    let document: ErrorDocument = serde_json::from_value(response).map_err(malformed)?;
    let failure = Box::new(Failure { findings: document.findings, ..document.error });
    Err(if failure.kind == "internal" { StageError::Internal(failure) } else { StageError::Candidate(failure) })
}

/// A compiler that crashes does so over its input, which is the candidate's.
pub(crate) fn crash_is_compile_error(error: StageError) -> StageError {
    match error {
        StageError::Death { kind, death: death @ (Death::Signal(_) | Death::Exit(_)), output } => {
            let last = output.trim().lines().last().unwrap_or_default();
            StageError::Candidate(Box::new(Failure {
                kind: "compile_error".into(),
                exception: "Crash".into(),
                message: format!("the compiler crashed: the {kind} job {death} {last}").trim().into(),
                line: None,
                traceback: String::new(),
                findings: Vec::new(),
            }))
        }
        other => other,
    }
}
