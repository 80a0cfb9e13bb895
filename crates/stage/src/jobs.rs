//! The jobs that load a problem or a candidate: oracle, trace, init, direct. Compiling is in `compile`.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;
use tilewright_cell::Limits;
use tilewright_contract::{
    Blob, CaseSignature, Dtype, Expected, OpenCall, OracleCase, OracleData, Plan, Target, Trial,
};

use crate::{DataFile, Stage, StageError};

/// What applies to every job.
#[derive(Debug, Clone, Default)]
pub struct StageOptions {
    /// Refuse to run hostile code when a sandbox layer is missing.
    pub strict: bool,
    pub limits: StageLimits,
}

/// Limits of each kind of job.
#[derive(Debug, Clone)]
pub struct StageLimits {
    /// Memory and disk come on top of what the request allows for data.
    pub oracle: Limits,
    /// As long as anyone asks it.
    pub resident: Limits,
    pub trace: Limits,
    pub init: Limits,
    pub ttir: Limits,
    pub binary: Limits,
    pub direct: Limits,
    pub confirm: Limits,
    /// Reads a problem only.
    pub teach: Limits,
}

impl Default for StageLimits {
    fn default() -> Self {
        let limits = |seconds, gib: u64, processes| Limits {
            wall: Duration::from_secs(seconds),
            cpu: Duration::from_secs(seconds),
            memory_bytes: gib << 30,
            processes,
            ..Limits::default()
        };
        Self {
            oracle: Limits { cpu: Duration::from_secs(3600), ..limits(300, 2, 16) },
            // Compilers run processes of their own; memory is the user's, as when he runs his module himself.
            resident: limits(24 * 3600, 1 << 10, 512),
            // A file may ask for a kernel's registers, and the assembler is a process of its own.
            trace: limits(30, 2, 8),
            init: limits(60, 4, 1),
            ttir: limits(20, 2, 1),
            // The assembler is a process of its own.
            binary: limits(60, 4, 8),
            direct: Limits { disk_bytes: 16 << 30, ..limits(120, 32, 64) },
            // An autotuner compiles and measures each of its configurations.
            confirm: limits(300, 32, 64),
            teach: limits(300, 4, 8),
        }
    }
}

impl StageLimits {
    /// The same, with no job of a candidate longer than `wall`.
    pub fn within(mut self, wall: Duration) -> Self {
        for limits in
            [&mut self.trace, &mut self.init, &mut self.ttir, &mut self.binary, &mut self.direct, &mut self.confirm]
        {
            limits.wall = limits.wall.min(wall);
        }
        self
    }
}

/// How a trial's weights come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weights {
    /// Fresh in every trial, with constant parameters perturbed: candidates get them by name.
    Random,
    /// As the constructor makes them under this seed, fixed numbers changed: candidates make them by themselves.
    Init { seed: u64, rule: ChangeRule },
}

/// How weights that a constructor writes as fixed numbers are changed, while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeRule {
    /// Noise of its own for every element: for two constructors that write the same fixed weights.
    Each,
    /// Equal numbers become equal numbers: for constructors that write them otherwise.
    Same,
}

/// What to ask the oracle.
#[derive(Debug, Clone)]
pub struct OracleRequest {
    /// The problem's file.
    pub problem: PathBuf,
    /// The secret seed that all others are derived from.
    pub seed: u64,
    /// Trials of the default case.
    pub trials: u32,
    /// Whether to add a trial for each value regime.
    pub regimes: bool,
    /// `cpu` or `cuda:N`.
    pub device: String,
    /// Bytes that inputs, outputs and intermediate results may take.
    pub max_bytes: u64,
    /// torch's threads.
    pub threads: u32,
    /// The file to write inputs, weights and expected outputs to.
    pub data: PathBuf,
    pub weights: Weights,
}

impl OracleRequest {
    /// What every job that makes a problem's data is asked.
    pub(crate) fn document(&self, problem: &Path) -> Value {
        let (rule, init_seed, init_rule) = match self.weights {
            Weights::Random => ("random", 0, None),
            Weights::Init { seed, rule } => ("init", seed, Some(rule)),
        };
        json!({
            "problem": problem,
            "seed": self.seed,
            "trials": self.trials,
            "regimes": self.regimes,
            "device": self.device,
            "max_bytes": self.max_bytes,
            "threads": self.threads,
            "state_rule": rule,
            "init_seed": init_seed,
            "init_rule": init_rule,
        })
    }
}

/// What to trace.
#[derive(Debug, Clone)]
pub struct TraceRequest<'a> {
    /// The candidate's text.
    pub source: &'a str,
    pub signature: &'a CaseSignature,
    /// The jit functions that the screen cut out.
    pub kernels: &'a [KernelSite],
    /// The calls of which the trace is to say whether they ran.
    pub calls: &'a [OpenCall],
    pub target: &'a Target,
    pub further: Further<'a>,
}

/// Which calls get a plan besides the one in which every autotuner takes its first configuration.
#[derive(Debug, Clone, Copy, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Further<'a> {
    /// One for each further configuration, the others at their first; or none where there are more.
    UpTo(usize),
    /// These, in each of which some of the first plan's choices take another configuration than their first.
    These(&'a [Mix]),
}

/// Places among a plan's choices, and the configuration that each takes.
pub type Mix = Vec<(usize, usize)>;

/// A jit function and the line of its definition.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct KernelSite {
    pub name: String,
    pub line: u32,
}

/// A trace: a claim, of which only the inner consistency of each plan is checked.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Trace {
    /// First every autotuner at its first configuration, then one plan for each further call that was asked for, and
    /// for each configuration of an autotuner that launches only in such a call.
    pub plans: Vec<Plan>,
    /// Names of the reference's state that the candidate's module has not.
    #[serde(default)]
    pub missing: Vec<String>,
    /// Names of the candidate's state that the reference has not.
    #[serde(default)]
    pub extra: Vec<String>,
    /// Indices of the request's `calls` that ran, in `__init__` or in `forward`.
    #[serde(default)]
    pub ran: Vec<usize>,
}

impl Trace {
    /// How many configurations the autotuners have besides the first of each.
    pub fn further(&self) -> usize {
        let choices = self.plans.iter().take(1).flat_map(|plan| &plan.choices);
        choices.fold(0, |all: usize, choice| all.saturating_add(choice.of.max(1) - 1))
    }
}

/// Tensors that a candidate's `__init__` makes, for each asked seed. A claim.
#[derive(Debug)]
pub struct Init {
    pub tensors: Vec<InitTensor>,
    /// How fixed weights were changed for the last blob of each tensor.
    pub rule: ChangeRule,
    /// Holds the blobs.
    pub data: DataFile,
    _scratch: TempDir,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct InitTensor {
    /// Attribute path, such as `proj.weight`.
    pub path: String,
    pub dtype: Dtype,
    pub shape: Vec<u64>,
    /// Contiguous contents under each of the two seeds; then under the first, with fixed weights changed.
    pub blobs: Vec<Blob>,
}

/// What to run unmodified.
#[derive(Debug, Clone)]
pub struct DirectRequest<'a> {
    /// The candidate's text.
    pub source: &'a str,
    pub signature: &'a CaseSignature,
    /// `cuda:N`.
    pub device: String,
    /// Weights and inputs to run on.
    pub trial: &'a Trial,
    /// The oracle's data, which the candidate does not get to see.
    pub data: &'a DataFile,
}

/// What a candidate did on real data: per call, outputs and modified inputs and state. A claim.
#[derive(Debug)]
pub struct Direct {
    pub calls: Vec<Expected>,
    /// Holds the blobs.
    pub data: DataFile,
    _scratch: TempDir,
}

/// Triton builds its launcher with a C compiler when it first launches.
pub(crate) const COMPILER: [&str; 4] = ["/usr/bin", "/usr/lib/gcc", "/usr/libexec/gcc", "/sbin/ldconfig"];

const DATA_NAME: &str = "data";

impl Stage {
    /// Inputs, weights and expected outputs of a problem. Trusted.
    ///
    /// [`StageError::Candidate`] means the problem: `problem` (no usable file), `too-large`, `no-device`, `unsupported`.
    pub fn oracle(&self, request: &OracleRequest) -> Result<OracleData, StageError> {
        self.ask_oracle("oracle", request)
    }

    /// A job that takes an oracle's request.
    pub(crate) fn ask_oracle<T: DeserializeOwned>(
        &self,
        kind: &'static str,
        request: &OracleRequest,
    ) -> Result<T, StageError> {
        let mut limits = self.options.limits.oracle.clone();
        limits.memory_bytes = limits.memory_bytes.saturating_add(request.max_bytes);
        limits.disk_bytes = limits.disk_bytes.saturating_add(request.max_bytes);
        let absolute = |path: &Path| std::path::absolute(path).map_err(StageError::io("find the current folder"));
        let (problem, data) = (absolute(&request.problem)?, absolute(&request.data)?);
        let (mut job, scratch) = self.job(kind, &limits, |_| {
            let mut document = request.document(&problem);
            document["data"] = json!(data);
            document
        })?;
        job.trusted = true;
        Ok(self.answer(kind, (job, scratch))?.value)
    }

    /// Plans of what `ModelNew.forward` does. Hostile: each plan is consistent in itself, and no more is known of it.
    pub fn trace(&self, request: &TraceRequest<'_>) -> Result<Trace, StageError> {
        let job = self.job("trace", &self.options.limits.trace, |_| {
            json!({
                "source": request.source,
                "signature": request.signature,
                "kernels": request.kernels,
                "calls": request.calls,
                "target": request.target,
                "further": request.further,
            })
        })?;
        let trace: Trace = self.answer("trace", job)?.value;
        if trace.plans.is_empty() {
            return Err(StageError::Malformed { kind: "trace", why: "there is no plan in it".into() });
        }
        for plan in &trace.plans {
            plan.check().map_err(|error| StageError::Malformed { kind: "trace", why: error.to_string() })?;
        }
        Ok(trace)
    }

    /// Runs the candidate's `__init__` for real on a CPU, under two seeds and once more under the first with fixed weights
    /// changed: by `rule`, or as suits what it writes beside the reference's (`fixed`). Hostile.
    pub fn init(
        &self,
        source: &str,
        case: &OracleCase,
        seeds: [u64; 2],
        rule: Option<ChangeRule>,
    ) -> Result<Init, StageError> {
        #[derive(Deserialize)]
        struct Response {
            rule: ChangeRule,
            tensors: Vec<InitTensor>,
        }
        let job = self.job("init", &self.options.limits.init, |scratch| {
            json!({
                "source": source,
                "signature": case.signature,
                "seeds": seeds,
                "fixed": case.fixed,
                "rule": rule,
                "data": scratch.join(DATA_NAME),
            })
        })?;
        let answer = self.answer::<Response>("init", job)?;
        let Response { rule, tensors } = answer.value;
        if tensors.iter().any(|tensor| tensor.blobs.len() != seeds.len() + 1) {
            return Err(StageError::Malformed { kind: "init", why: "not one blob for each run".into() });
        }
        let data = open_left("init", &answer.scratch, DATA_NAME)?;
        Ok(Init { tensors, rule, data, _scratch: answer.scratch })
    }

    /// Runs a candidate's file unmodified on the weights and inputs of a trial, on a real device. Hostile.
    ///
    /// [`StageError::Candidate`] of kind `no-device` where torch sees no such device, `weights` where names differ.
    pub fn direct(&self, request: &DirectRequest<'_>) -> Result<Direct, StageError> {
        #[derive(Deserialize)]
        struct Response {
            calls: Vec<Expected>,
        }
        // The job is another user, where there can be one.
        let inputs = tempfile::Builder::new()
            .permissions(std::fs::Permissions::from_mode(0o644))
            .tempfile()
            .map_err(StageError::io("make a file of inputs"))?;
        let (state, calls) =
            copy_inputs(request.trial, request.data, inputs.as_file()).map_err(StageError::io("write inputs"))?;
        let (mut job, scratch) = self.job("direct", &self.options.limits.direct, |scratch| {
            json!({
                "source": request.source,
                "signature": request.signature,
                "device": request.device,
                "data": inputs.path(),
                "state": state,
                "calls": calls.iter().map(|inputs| json!({"inputs": inputs})).collect::<Vec<_>>(),
                "out": scratch.join(DATA_NAME),
            })
        })?;
        job.read_paths.push(inputs.path().to_owned());
        job.devices = nvidia_devices();
        job.execute_paths = COMPILER.iter().map(PathBuf::from).collect();
        let answer = self.answer::<Response>("direct", (job, scratch))?;
        if answer.value.calls.len() != request.trial.calls.len() {
            return Err(StageError::Malformed { kind: "direct", why: "not one result for each call".into() });
        }
        let data = open_left("direct", &answer.scratch, DATA_NAME)?;
        Ok(Direct { calls: answer.value.calls, data, _scratch: answer.scratch })
    }
}

/// A file that a job should have left in its scratch folder. Not a link: that could lead anywhere.
pub(crate) fn open_left(kind: &'static str, scratch: &TempDir, name: &str) -> Result<DataFile, StageError> {
    let path = scratch.path().join(name);
    let why = match std::fs::symlink_metadata(&path) {
        Ok(found) if !found.is_file() => format!("what it left as {name} is no file"),
        Ok(_) => match DataFile::open(&path) {
            Ok(file) => return Ok(file),
            Err(error) => format!("failed to open {name}: {error}"),
        },
        Err(error) => format!("it left no file {name}: {error}"),
    };
    Err(StageError::Malformed { kind, why })
}

/// Copies weights and inputs alone: the file that they come from holds expected outputs too.
pub(crate) fn copy_inputs(
    trial: &Trial,
    data: &DataFile,
    mut to: &File,
) -> std::io::Result<(Vec<Blob>, Vec<Vec<Blob>>)> {
    let mut copied = HashMap::new();
    let mut end = 0;
    let mut copy = |blob: &Blob| -> std::io::Result<Blob> {
        if let Some(found) = copied.get(&(blob.offset, blob.nbytes)) {
            return Ok(*found);
        }
        to.write_all(&data.read(*blob)?)?;
        let placed = Blob { offset: end, nbytes: blob.nbytes };
        end += blob.nbytes;
        copied.insert((blob.offset, blob.nbytes), placed);
        Ok(placed)
    };
    let state = trial.state.iter().map(&mut copy).collect::<Result<_, _>>()?;
    let calls = trial
        .calls
        .iter()
        .map(|call| call.inputs.iter().map(&mut copy).collect::<Result<_, _>>())
        .collect::<Result<_, _>>()?;
    Ok((state, calls))
}

/// The device files of the NVIDIA driver.
pub(crate) fn nvidia_devices() -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir("/dev") else { return Vec::new() };
    entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().starts_with("/dev/nvidia"))
        .collect()
}
