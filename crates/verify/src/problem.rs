use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tilewright_contract::{BaselineKind, CandidateId, VerdictKind};
use tilewright_stage::{Controls, DataFile, OracleRequest, Resident, StageError, Weights};

use crate::controls::free_passes;
use crate::draft::Stop;
use crate::figures;
use crate::lane::{Lane, loads};
use crate::options::Options;
use crate::oracle::OracleSet;
use crate::pipeline::Verifier;
use crate::room;
use crate::target::Device;
use crate::weights::Initial;

/// The code of a problem that does not fit into this machine's memory.
const TOO_LARGE: &str = "too-large";

/// A problem with its oracle data, shared by all its candidates. Holds secrets: it stays in this process.
pub struct Problem {
    pub(crate) path: PathBuf,
    pub(crate) id: CandidateId,
    pub(crate) text: String,
    /// Weights drawn anew for each trial; or why there are none.
    pub(crate) oracle: Result<OracleSet, Stop>,
    /// Weights as the reference's `__init__` makes them under `init_seed`; made when a candidate needs it.
    pub(crate) initial: Initial,
    /// Unrelated to every input seed.
    pub(crate) init_seed: u64,
    pub(crate) seconds: f64,
    /// What passes without the answer under the deciding profile, as `zeros (output)`.
    pub(crate) degenerate: Vec<String>,
}

impl Problem {
    pub fn digest(&self) -> &str {
        &self.id.digest
    }

    /// All data that were made for it.
    fn sets<T>(&self, look: impl Fn(&OracleSet) -> T) -> Vec<T> {
        self.oracle.iter().chain(self.initial.made()).map(look).collect()
    }

    /// Whether there was no room for it.
    pub(crate) fn lacks_room(&self) -> bool {
        self.oracle.as_ref().is_err_and(|stop| stop.reasons.iter().any(|reason| reason.code == TOO_LARGE))
    }

    /// Bytes of its data that were fetched from a GPU into our memory.
    pub(crate) fn copied(&self) -> u64 {
        self.sets(OracleSet::copied).into_iter().sum()
    }

    /// Processes that have ended which held its data on a GPU.
    pub(crate) fn losses(&self) -> u64 {
        self.sets(OracleSet::losses).into_iter().sum()
    }

    /// Has its data made anew on each GPU where they were lost.
    pub(crate) fn revive(&self, verifier: &Verifier) -> Result<(), StageError> {
        self.sets(|set| set.revive(verifier)).into_iter().collect()
    }

    /// The process that times the reference on a GPU, if it runs.
    pub(crate) fn reference(&self, lane: &Lane) -> Option<Arc<Resident>> {
        self.oracle.as_ref().ok()?.held(lane)
    }

    /// Makes baselines ready on a GPU, where that is still to do: seconds, for which no candidate should have the GPU to
    /// itself.
    pub(crate) fn warm_baseline(
        &self,
        verifier: &Verifier,
        lane: &Lane,
        kinds: &[BaselineKind],
    ) -> Result<(), StageError> {
        if kinds.is_empty() || self.reference(lane).is_some_and(|reference| reference.is_ready(kinds)) {
            return Ok(());
        }
        let Ok(oracle) = &self.oracle else { return Ok(()) };
        let Some(reference) = oracle.hold(verifier, lane)? else { return Ok(()) };
        lane.beside(|| {
            reference.work()?;
            kinds.iter().try_for_each(|&kind| reference.prepare(kind).map(drop))
        })
    }

    /// The verdict that every candidate gets because of the problem or of this machine, and why.
    pub fn trouble(&self) -> Option<(VerdictKind, String)> {
        let stop = self.oracle.as_ref().err()?;
        Some((stop.kind, stop.reasons.first().map(|reason| reason.message.clone()).unwrap_or_default()))
    }
}

impl Verifier {
    /// Reads a problem and asks the oracle for its data. What goes wrong becomes the verdict of each candidate.
    pub fn load(&self, path: &Path) -> Problem {
        let start = std::time::Instant::now();
        let source = std::fs::read(path).unwrap_or_default();
        let (oracle, degenerate) = std::thread::scope(|threads| {
            // The first candidate will want them.
            for lane in &self.lanes {
                threads.spawn(|| lane.wake());
            }
            catch_unwind(AssertUnwindSafe(|| self.ask_oracle(path)))
                .unwrap_or_else(|panic| (Err(Stop::bug(panic.as_ref())), Vec::new()))
        });
        Problem {
            path: path.to_owned(),
            id: identify(path, &source),
            text: String::from_utf8_lossy(&source).into_owned(),
            oracle,
            degenerate,
            initial: Initial::default(),
            init_seed: derive(self.options.seed, b"init"),
            seconds: start.elapsed().as_secs_f64(),
        }
    }

    /// A problem's data, and what passes on them without the answer.
    fn ask_oracle(&self, path: &Path) -> (Result<OracleSet, Stop>, Vec<String>) {
        let oracle = self.oracle(path, Weights::Random);
        let degenerate = match (&oracle, self.options.profiles.first()) {
            (Ok(oracle), Some(profile)) => free_passes(oracle, profile),
            _ => Vec::new(),
        };
        (oracle, degenerate)
    }

    /// Oracle data of a problem under one rule for its weights: in a process on the first GPU that works, where there is one.
    pub(crate) fn oracle(&self, path: &Path, weights: Weights) -> Result<OracleSet, Stop> {
        let mut lanes: Vec<&Lane> = self.lanes.iter().collect();
        lanes.sort_by_key(|lane| lane.rests());
        let Some(last) = lanes.pop() else {
            let (data, file) = self.ask(path, weights, |request| self.stage.oracle(request))?;
            return OracleSet::in_file(data, file);
        };
        for lane in lanes {
            match self.oracle_on(lane, path, weights) {
                Err(stop) if stop.kind == VerdictKind::Infrastructure && !lane.works() => {}
                found => return found,
            }
        }
        self.oracle_on(last, path, weights)
    }

    fn oracle_on(&self, lane: &Lane, path: &Path, weights: Weights) -> Result<OracleSet, Stop> {
        let request = OracleRequest { device: lane.to_string(), ..self.oracle_request(path, weights, PathBuf::new()) };
        let made = std::thread::scope(|threads| {
            threads.spawn(|| self.compile_figures());
            lane.beside(|| self.stage.resident(&request, &self.options.profiles))
        });
        let (data, resident) = made.map_err(problem_stop)?;
        let kernels = self.figures(&data);
        lane.beside(|| figures::equip(&resident, &kernels));
        OracleSet::resident(data, resident, request, (&self.lanes, lane))
    }

    /// Oracle data under fresh weights, and the problem's controls, whose blobs lie in the same bytes.
    pub(crate) fn control_data(&self, path: &Path) -> Result<(OracleSet, Controls), Stop> {
        let ((data, controls), file) = self.ask(path, Weights::Random, |request| self.stage.controls(request))?;
        let set = OracleSet::in_file(data, file)?;
        set.check(controls.blobs())?;
        Ok((set, controls))
    }

    fn oracle_request(&self, path: &Path, weights: Weights, data: PathBuf) -> OracleRequest {
        OracleRequest {
            problem: path.to_owned(),
            seed: derive(self.options.seed, b"inputs"),
            trials: self.options.trials,
            regimes: true,
            device: self.lanes.first().map_or_else(|| oracle_device(&self.options), ToString::to_string),
            max_bytes: room::for_problem(),
            threads: threads(&self.lanes),
            data,
            weights,
        }
    }

    /// Has a job write a data file; gives its answer, and what it wrote.
    fn ask<T>(
        &self,
        path: &Path,
        weights: Weights,
        job: impl FnOnce(&OracleRequest) -> Result<T, StageError>,
    ) -> Result<(T, DataFile), Stop> {
        let io = |error: std::io::Error| Stop::infrastructure(format!("failed to keep oracle data: {error}"));
        let private = std::fs::Permissions::from_mode(0o700);
        let folder =
            tempfile::Builder::new().prefix("tilewright-oracle-").permissions(private).tempdir().map_err(io)?;
        let request = self.oracle_request(path, weights, folder.path().join("data"));
        // It computes on the first GPU, where there is one.
        let answer = match self.lanes.first() {
            Some(lane) => lane.beside(|| job(&request)),
            None => job(&request),
        }
        .map_err(problem_stop)?;
        let file = DataFile::open(&request.data).map_err(io)?;
        // From here on the data lies in this process alone, whatever becomes of it.
        drop(folder);
        Ok((answer, file))
    }
}

/// A problem whose file does not work is the problem's fault; one that does not fit is this machine's.
fn problem_stop(error: StageError) -> Stop {
    match error {
        StageError::Candidate(failure) if failure.kind == "too-large" => {
            Stop::new(VerdictKind::Infrastructure, TOO_LARGE, failure.message.clone())
                .help("add smaller shapes to the problem as CASES")
        }
        StageError::Candidate(failure) if failure.kind == "no-device" => Stop::infrastructure(failure.message.clone()),
        StageError::Candidate(failure) if failure.kind == "unsupported" => {
            Stop::new(VerdictKind::Unsupported, "problem", failure.to_string())
        }
        StageError::Candidate(failure) => Stop::new(VerdictKind::ProblemDefect, "problem", failure.to_string()),
        StageError::Death { ref output, .. } => {
            let last = output.trim().lines().last().unwrap_or_default();
            Stop::new(VerdictKind::ProblemDefect, "problem", format!("{error} {last}").trim())
        }
        other => Stop::infrastructure(other.to_string()),
    }
}

/// Threads of an oracle: all cores, or an equal part of them where several oracles load side by side on a GPU. torch's
/// threads spin while they wait, so that more of them than cores get nowhere.
fn threads(lanes: &[Lane]) -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    if lanes.is_empty() { cores } else { (cores / loads()).max(1) }
}

/// The reference runs where the candidate runs.
fn oracle_device(options: &Options) -> String {
    match options.device {
        Device::Cpu => "cpu".into(),
        Device::Cuda(ordinal) => format!("cuda:{ordinal}"),
    }
}

/// A seed for one purpose that tells nothing about those for others.
pub(crate) fn derive(seed: u64, purpose: &[u8]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes()).update(purpose);
    let mut word = [0; 8];
    word.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    // torch takes seeds of 63 bits.
    u64::from_le_bytes(word) >> 1
}

/// Path and digest of a file.
pub(crate) fn identify(path: &Path, bytes: &[u8]) -> CandidateId {
    CandidateId { path: path.display().to_string(), digest: digest(bytes) }
}

/// Digest of a file as verdicts give it.
pub fn digest(bytes: &[u8]) -> String {
    format!("blake3:{}", blake3::hash(bytes).to_hex())
}
