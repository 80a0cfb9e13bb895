//! The reference on a GPU, kept at hand to be timed beside candidates.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;
use tilewright_contract::{BaselineKind, CaseSignature, HostCosts, Trial, Work};

use crate::jobs::copy_inputs;
use crate::runner::Answer;
use crate::{DataFile, Stage, StageError};

/// Name of the socket in the job's scratch folder.
const SOCKET: &str = "socket";
/// How long the job may take to listen.
const START: Duration = Duration::from_secs(60);
/// How long it may take to answer: it compiles.
const ANSWER: Duration = Duration::from_secs(900);
/// How long it may take to end.
const END: Duration = Duration::from_secs(2);

/// What to time.
#[derive(Debug, Clone)]
pub struct BaselineRequest<'a> {
    pub problem: &'a Path,
    pub signature: &'a CaseSignature,
    /// `cuda:N`.
    pub device: String,
    /// Weights of the first one, inputs of the first call of each.
    pub trials: &'a [Trial],
    /// Holds the blobs.
    pub data: &'a DataFile,
}

/// A process that holds the reference. It ends when this is dropped. Trusted.
pub struct Baseline {
    stream: UnixStream,
    job: JoinHandle<()>,
    /// What it has made ready.
    ready: BTreeMap<BaselineKind, Ready>,
    work: Option<Work>,
    /// It no longer answers.
    lost: bool,
    /// Weights and inputs.
    _data: tempfile::NamedTempFile,
}

/// How a baseline is called.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Ready {
    /// As a recorded graph, without gaps between its kernels.
    pub graph: bool,
    /// It took to compile and warm up.
    pub seconds: f64,
    /// What events measure around a kernel that does next to nothing, in microseconds.
    pub nothing_us: f64,
    /// One of many calls in a row without a graph, Python's part included.
    pub end_to_end_us: f64,
}

/// What a device and its host can do, as the reference's process measures it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Rates {
    /// Operations a second of a large matrix product, by dtype.
    pub matmul: BTreeMap<String, f64>,
    pub host: HostCosts,
}

impl Stage {
    /// Starts a process that times the reference.
    pub fn baseline(&self, request: &BaselineRequest<'_>) -> Result<Baseline, StageError> {
        let data = tempfile::NamedTempFile::new().map_err(StageError::io("make a file of inputs"))?;
        let (mut state, mut calls) = (Vec::new(), Vec::new());
        for (at, trial) in request.trials.iter().enumerate() {
            let first = Trial { calls: trial.calls.iter().take(1).cloned().collect(), ..trial.clone() };
            let (weights, inputs) =
                copy_inputs(&first, request.data, data.as_file()).map_err(StageError::io("write inputs"))?;
            if at == 0 {
                state = weights;
            }
            calls.extend(inputs);
        }
        let problem = std::path::absolute(request.problem).map_err(StageError::io("find the current folder"))?;
        let (mut job, scratch) = self.job("baseline", &self.options.limits.baseline, |scratch| {
            json!({
                "problem": problem,
                "signature": request.signature,
                "device": request.device,
                "data": data.path(),
                "state": state,
                "calls": calls.iter().map(|inputs| json!({"inputs": inputs})).collect::<Vec<_>>(),
                "socket": scratch.join(SOCKET),
            })
        })?;
        job.trusted = true;
        let socket = scratch.path().join(SOCKET);
        let stage = self.clone();
        let job = std::thread::spawn(move || stage.serve_baseline((job, scratch)));
        let stream = connect(&socket, &job)?;
        stream.set_read_timeout(Some(ANSWER)).map_err(StageError::io("set a socket up"))?;
        Ok(Baseline { stream, job, ready: BTreeMap::new(), work: None, lost: false, _data: data })
    }

    fn serve_baseline(&self, job: (tilewright_cell::Job, TempDir)) {
        // What went wrong is seen at the other end of the socket, which closes.
        if let Err(error) = self.answer::<Value>("baseline", job).map(|Answer { value, .. }| value) {
            tracing::warn!(%error, "the process that times the reference ended");
        }
    }
}

/// Waits until the job listens.
fn connect(socket: &Path, job: &JoinHandle<()>) -> Result<UnixStream, StageError> {
    let start = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return Ok(stream),
            Err(error) if job.is_finished() || start.elapsed() > START => {
                return Err(StageError::io("reach the process that times the reference")(error));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

impl Baseline {
    /// Whether it has stopped to answer.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// Whether all of these are ready.
    pub fn is_ready(&self, kinds: &[BaselineKind]) -> bool {
        !self.lost && self.work.is_some() && kinds.iter().all(|kind| self.ready.contains_key(kind))
    }

    /// Makes a baseline ready, if it is not yet.
    pub fn prepare(&mut self, kind: BaselineKind) -> Result<Ready, StageError> {
        if let Some(ready) = self.ready.get(&kind) {
            return Ok(*ready);
        }
        let ready = self.ask(&json!({"prepare": kind}))?;
        self.ready.insert(kind, ready);
        Ok(ready)
    }

    /// Device time of some calls, in microseconds; the second-level cache is flushed before each.
    pub fn time(&mut self, kind: BaselineKind, calls: u32) -> Result<Vec<f64>, StageError> {
        #[derive(Deserialize)]
        struct Times {
            us: Vec<f64>,
        }
        Ok(self.ask::<Times>(&json!({"time": kind, "calls": calls}))?.us)
    }

    /// Operations and least bytes of one call.
    pub fn work(&mut self) -> Result<Work, StageError> {
        if let Some(work) = self.work {
            return Ok(work);
        }
        let work = self.ask(&json!({"work": null}))?;
        self.work = Some(work);
        Ok(work)
    }

    /// What the device and its host can do.
    pub fn rates(&mut self) -> Result<Rates, StageError> {
        self.ask(&json!({"rates": null}))
    }

    fn ask<T: DeserializeOwned>(&mut self, question: &Value) -> Result<T, StageError> {
        let failed = |why: String| StageError::Malformed { kind: "baseline", why };
        let answer = exchange(&mut self.stream, question);
        self.lost |= answer.is_err();
        let answer = answer.map_err(|error| failed(error.to_string()))?;
        match answer.get("error").and_then(Value::as_str) {
            Some(error) => Err(failed(error.to_owned())),
            None => serde_json::from_value(answer).map_err(|error| failed(error.to_string())),
        }
    }
}

impl Drop for Baseline {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        // Its folder should be gone before this process may end. One that hangs is killed with the zygote.
        let start = Instant::now();
        while !self.job.is_finished() && start.elapsed() < END {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Frames as the Python side has them: the length in four bytes, then JSON.
fn exchange(stream: &mut UnixStream, question: &Value) -> std::io::Result<Value> {
    let text = serde_json::to_vec(question)?;
    stream.write_all(&(text.len() as u32).to_le_bytes())?;
    stream.write_all(&text)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut answer = vec![0; u32::from_le_bytes(length) as usize];
    stream.read_exact(&mut answer)?;
    Ok(serde_json::from_slice(&answer)?)
}
