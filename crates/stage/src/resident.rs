//! The oracle on a GPU: a process that stays, holds a problem's data there, compares and times the reference.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;
use tilewright_contract::{BaselineKind, Blob, Dtype, HostCosts, OracleData, Profile, Work};

use crate::runner::{Answer, read_answer};
use crate::{OracleRequest, Stage, StageError};

/// Name of the socket in the job's scratch folder.
const SOCKET: &str = "socket";
/// How long the job may take to listen.
const START: Duration = Duration::from_secs(60);
/// How long it may take to answer: it compiles.
const ANSWER: Duration = Duration::from_secs(900);
/// How long it may take to end.
const END: Duration = Duration::from_secs(2);

/// How often a process is started that ends while it makes its data.
const STARTS: u32 = 3;

/// A process that holds a problem's data on a GPU. It ends when this is dropped. Trusted.
#[derive(Debug)]
pub struct Resident {
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    stream: UnixStream,
    job: JoinHandle<()>,
    /// Baselines that are ready.
    ready: BTreeMap<BaselineKind, Ready>,
    work: Option<Work>,
    /// The allocation of each blob that somebody asked for, and bytes from its start.
    places: BTreeMap<(u64, u64), (Vec<u8>, u64)>,
    /// It no longer answers.
    lost: bool,
    /// Processes that ended before it.
    losses: u64,
}

/// How a baseline is called.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Ready {
    /// As a recorded graph, without gaps between its kernels.
    pub graph: bool,
    /// It took to compile and warm up.
    pub seconds: f64,
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

/// A compiled kernel of our own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Equipment {
    /// What the process knows it by.
    pub name: String,
    /// The binary, in hexadecimal digits.
    pub image: String,
    pub entry: String,
    /// Threads and bytes of shared memory of a program.
    pub threads: u32,
    pub shared: u32,
}

/// Where inputs and weights lie, for another process to map.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Places {
    /// The driver's names of allocations.
    pub handles: Vec<Vec<u8>>,
    /// For each blob: which allocation, and bytes from its start.
    pub places: Vec<(usize, u64)>,
}

/// What calls left behind in another process's memory, and what it should be.
#[derive(Debug, Clone, Serialize)]
pub struct Compare<'a> {
    /// Who asks. A second run is held against the first one of the same asker, which may lie in an earlier question: others
    /// ask in between.
    pub who: u64,
    /// The driver's name of the allocation.
    pub handle: &'a [u8],
    /// Its size in bytes.
    pub nbytes: u64,
    /// What results are compared under, by places.
    pub profiles: Vec<&'a [&'a Profile]>,
    /// Call by call.
    pub looks: Vec<Look<'a>>,
}

/// What one call left behind.
#[derive(Debug, Clone, Serialize)]
pub struct Look<'a> {
    pub tensors: Vec<Found<'a>>,
    /// Contents that should still be there, and at which byte.
    pub unchanged: Vec<(Blob, u64)>,
    /// Which of the lists of profiles.
    pub profiles: usize,
    /// The next look is at a second run of the same call.
    pub remember: bool,
    /// This is that look.
    pub again: bool,
}

/// A tensor to be compared.
#[derive(Debug, Clone, Serialize)]
pub struct Found<'a> {
    pub native: Blob,
    pub float64: Option<Blob>,
    pub dtype: Dtype,
    pub shape: &'a [u64],
    /// In elements.
    pub strides: Vec<i64>,
    /// Bytes from the start of the allocation.
    pub offset: u64,
    /// Under each profile, whether every bit must be equal.
    pub exact: Vec<bool>,
}

#[derive(Deserialize)]
struct Answers<F> {
    looks: Vec<Compared<F>>,
    /// Microseconds by what was done.
    spent: BTreeMap<String, u64>,
}

/// What a comparison of one call gave; `F` is what the judge makes of the figures.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Compared<F> {
    pub unchanged: Vec<bool>,
    /// How the results differ from those of the run before.
    #[serde(default)]
    pub same: Option<Same>,
    pub tensors: Vec<ComparedTensor<F>>,
}

/// What is known of one tensor.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparedTensor<F> {
    /// Its elements: they are few, and judged together with those of other calls.
    Bytes(Vec<u8>),
    /// Under each profile.
    Figures(Vec<F>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Same {
    /// In every bit.
    Equal,
    /// By no more than the order of float atomics explains.
    Close,
    Other,
}

impl Stage {
    /// Has a problem's data made on a GPU, in a process that keeps them and is ready to compare under some profiles. Errors
    /// are those of [`Stage::oracle`].
    pub fn resident(
        &self,
        request: &OracleRequest,
        profiles: &[Profile],
    ) -> Result<(OracleData, Resident), StageError> {
        let mut starts = 1;
        loop {
            match self.start_resident(request, profiles) {
                Err(StageError::Lost(why)) if starts < STARTS => {
                    tracing::warn!(why, "the process that makes data on the GPU is started again");
                    starts += 1;
                }
                Err(error) => return Err(error),
                Ok((data, held)) => return Ok((data, Resident { held: Mutex::new(held) })),
            }
        }
    }

    fn start_resident(&self, request: &OracleRequest, profiles: &[Profile]) -> Result<(OracleData, Held), StageError> {
        let problem = std::path::absolute(&request.problem).map_err(StageError::io("find the current folder"))?;
        let seconds = self.options.limits.oracle.wall;
        let (mut job, scratch) = self.job("resident", &self.options.limits.resident, |scratch| {
            let mut document = request.document(&problem);
            document["profiles"] = json!(profiles);
            document["socket"] = json!(scratch.join(SOCKET));
            document["seconds"] = json!(seconds.as_secs());
            document
        })?;
        job.trusted = true;
        let socket = scratch.path().join(SOCKET);
        let stage = self.clone();
        let job = std::thread::spawn(move || stage.serve_resident((job, scratch)));
        let mut stream = connect(&socket, &job)?;
        stream.set_read_timeout(Some(seconds)).map_err(StageError::io("set a socket up"))?;
        let answer = receive(&mut stream).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::ConnectionReset => lost(&error),
            _ => StageError::io("hear from the process that makes data on the GPU")(error),
        })?;
        stream.set_read_timeout(Some(ANSWER)).map_err(StageError::io("set a socket up"))?;
        let held =
            Held { stream, job, ready: BTreeMap::new(), work: None, places: BTreeMap::new(), lost: false, losses: 0 };
        Ok((read_answer("resident", answer)?, held))
    }

    fn serve_resident(&self, job: (tilewright_cell::Job, TempDir)) {
        // What went wrong is seen at the other end of the socket, which closes.
        if let Err(error) = self.answer::<Value>("resident", job).map(|Answer { value, .. }| value) {
            tracing::warn!(%error, "the process that holds data on the GPU ended");
        }
    }
}

/// Waits until the job listens.
fn connect(socket: &Path, job: &JoinHandle<()>) -> Result<UnixStream, StageError> {
    let start = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return Ok(stream),
            Err(error) if job.is_finished() => return Err(lost(&error)),
            Err(error) if start.elapsed() > START => {
                return Err(StageError::io("reach the process that holds data on the GPU")(error));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

impl Resident {
    /// Whether the process has ended, or no longer answers.
    pub fn is_lost(&self) -> bool {
        self.held().is_lost()
    }

    /// Processes that have ended.
    pub fn losses(&self) -> u64 {
        let held = self.held();
        held.losses + u64::from(held.is_lost())
    }

    /// Waits until nobody else asks it: it may be compiling a baseline, or making its data anew.
    pub fn idle(&self) {
        drop(self.held());
    }

    /// Its number among all processes; none where the system does not tell.
    pub fn pid(&self) -> Option<u32> {
        let peer = getsockopt(&self.held().stream, PeerCredentials).ok()?;
        u32::try_from(peer.pid()).ok().filter(|&pid| pid > 0)
    }

    /// Has another process make the same data, where this one's has ended: whoever asks from now on asks that. The answer
    /// of the oracle, to be held against the first one's; none where nothing had to be done.
    ///
    /// # Errors
    /// Those of [`Stage::resident`].
    pub fn revive(
        &self,
        stage: &Stage,
        request: &OracleRequest,
        profiles: &[Profile],
    ) -> Result<Option<OracleData>, StageError> {
        let mut held = self.held();
        if !held.is_lost() {
            return Ok(None);
        }
        tracing::warn!(problem = %request.problem.display(), "the process that held a problem's data is replaced");
        let (data, fresh) = stage.resident(request, profiles)?;
        let losses = held.losses + 1;
        *held = fresh.held.into_inner().unwrap_or_else(PoisonError::into_inner);
        held.losses = losses;
        Ok(Some(data))
    }

    /// Ends the process: its data are not what was wanted.
    pub fn close(&self) {
        let mut held = self.held();
        held.lost = true;
        let _ = held.stream.shutdown(std::net::Shutdown::Both);
    }

    /// Whether all of these baselines are ready.
    pub fn is_ready(&self, kinds: &[BaselineKind]) -> bool {
        let held = self.held();
        !held.is_lost() && held.work.is_some() && kinds.iter().all(|kind| held.ready.contains_key(kind))
    }

    /// Makes a baseline ready, if it is not yet.
    pub fn prepare(&self, kind: BaselineKind) -> Result<Ready, StageError> {
        let mut held = self.held();
        if let Some(ready) = held.ready.get(&kind) {
            return Ok(*ready);
        }
        let ready = held.ask(&json!({"prepare": kind}))?;
        held.ready.insert(kind, ready);
        Ok(ready)
    }

    /// Device time of some calls in microseconds, with a cold second-level cache.
    pub fn time(&self, kind: BaselineKind, calls: u32) -> Result<Vec<f64>, StageError> {
        #[derive(Deserialize)]
        struct Times {
            us: Vec<f64>,
        }
        Ok(self.held().ask::<Times>(&json!({"time": kind, "calls": calls}))?.us)
    }

    /// Operations and least bytes of one call.
    pub fn work(&self) -> Result<Work, StageError> {
        let mut held = self.held();
        if let Some(work) = held.work {
            return Ok(work);
        }
        let work = held.ask(&json!({"work": null}))?;
        held.work = Some(work);
        Ok(work)
    }

    /// Gives it kernels to compare with. Without them it does so by torch.
    pub fn equip(&self, kernels: &[Equipment]) -> Result<(), StageError> {
        self.held().ask::<Value>(&json!({"equip": kernels})).map(drop)
    }

    /// What the device and its host can do.
    pub fn rates(&self) -> Result<Rates, StageError> {
        self.held().ask(&json!({"rates": null}))
    }

    /// Where inputs and weights lie. What was asked before is known.
    pub fn places(&self, blobs: &[Blob]) -> Result<Places, StageError> {
        let mut held = self.held();
        let unknown: Vec<Blob> = blobs.iter().copied().filter(|blob| !held.places.contains_key(&key(*blob))).collect();
        if !unknown.is_empty() {
            let found: Places = held.ask(&json!({"places": unknown}))?;
            let known = |&(handle, _): &(usize, u64)| handle < found.handles.len();
            if found.places.len() != unknown.len() || !found.places.iter().all(known) {
                return Err(malformed("not a place for each blob"));
            }
            for (blob, (handle, offset)) in unknown.into_iter().zip(found.places) {
                held.places.insert(key(blob), (found.handles[handle].clone(), offset));
            }
        }
        let mut all = Places { handles: Vec::new(), places: Vec::new() };
        for (handle, offset) in blobs.iter().filter_map(|blob| held.places.get(&key(*blob))) {
            let at = all.handles.iter().position(|known| known == handle).unwrap_or_else(|| {
                all.handles.push(handle.clone());
                all.handles.len() - 1
            });
            all.places.push((at, *offset));
        }
        Ok(all)
    }

    /// Compares what calls left behind.
    pub fn compare<F: DeserializeOwned>(&self, compare: &Compare<'_>) -> Result<Vec<Compared<F>>, StageError> {
        let found: Answers<F> = self.held().ask(&json!({"compare": compare}))?;
        tracing::debug!(spent = ?found.spent, "results of {} calls were compared", compare.looks.len());
        let fits = |(found, look): (&Compared<F>, &Look<'_>)| {
            found.unchanged.len() == look.unchanged.len() && found.tensors.len() == look.tensors.len()
        };
        if found.looks.len() == compare.looks.len() && found.looks.iter().zip(&compare.looks).all(fits) {
            return Ok(found.looks);
        }
        Err(malformed("not an answer for each tensor"))
    }

    /// The bytes of a blob.
    pub fn read(&self, blob: Blob) -> std::io::Result<Vec<u8>> {
        let mut held = self.held();
        let read = held.read(blob);
        held.lost |= read.is_err();
        read
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn is_lost(&self) -> bool {
        self.lost || self.job.is_finished()
    }

    fn read(&mut self, blob: Blob) -> std::io::Result<Vec<u8>> {
        let answer = exchange(&mut self.stream, &json!({"read": blob}))?;
        if answer.get("nbytes").and_then(Value::as_u64) != Some(blob.nbytes) {
            return Err(std::io::Error::other(format!("the oracle's process answered {answer}")));
        }
        let mut bytes = vec![0; blob.nbytes as usize];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn ask<T: DeserializeOwned>(&mut self, question: &Value) -> Result<T, StageError> {
        let start = Instant::now();
        let answer = exchange(&mut self.stream, question);
        let what = question.as_object().and_then(|question| question.keys().next()).map_or("", String::as_str);
        tracing::debug!(micros = start.elapsed().as_micros(), what, "asked the process that holds data");
        self.lost |= answer.is_err();
        let answer = answer.map_err(|error| lost(&error))?;
        match answer.get("error").and_then(Value::as_str) {
            Some(error) => Err(malformed(error)),
            None => serde_json::from_value(answer).map_err(|error| malformed(&error.to_string())),
        }
    }
}

fn key(blob: Blob) -> (u64, u64) {
    (blob.offset, blob.nbytes)
}

fn lost(error: &std::io::Error) -> StageError {
    StageError::Lost(error.to_string())
}

fn malformed(why: &str) -> StageError {
    StageError::Malformed { kind: "resident", why: why.to_owned() }
}

impl Drop for Held {
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
    receive(stream)
}

fn receive(stream: &mut UnixStream) -> std::io::Result<Value> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut answer = vec![0; u32::from_le_bytes(length) as usize];
    stream.read_exact(&mut answer)?;
    Ok(serde_json::from_slice(&answer)?)
}
