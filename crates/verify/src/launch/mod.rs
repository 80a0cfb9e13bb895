//! One kernel launched by itself in the emulator, without a problem.

mod bind;
mod summary;

use std::path::Path;
use std::time::{Duration, Instant};

use tilewright_contract::{
    Buffer, BufferSource, CompiledKernel, Dtype, LaunchReport, Plan, Resources, Step, Stopped, Target, TensorRef,
    Value, View,
};
use tilewright_replay::{CpuDevice, Run, RunResult};
use tilewright_screen::Kernel;
use tilewright_stage::Stage;

pub use bind::{BindError, Bound, Fill, Given, GivenTensor, bind, integer};

use crate::draft::Stop;
use crate::execute::POISON;
use crate::problem::identify;
use crate::sanitize::{Found, Surveyor};
use summary::Seen;

/// A launch to run.
pub struct Launching<'a> {
    pub path: &'a Path,
    pub source: &'a [u8],
    /// The kernel-only module that the screen cut out of the source.
    pub module: &'a str,
    pub kernel: &'a Kernel,
    pub bound: Bound,
    pub grid: [u32; 3],
    pub target: Target,
    /// Parameters whose tensors are results; empty: all of them.
    pub outputs: Vec<String>,
    pub seed: u64,
    /// Start the last program first.
    pub reverse: bool,
    /// Find where NaN and infinities in the results are made.
    pub births: bool,
    pub timeout: Duration,
    /// Elements of each tensor to show.
    pub head: usize,
}

/// A report, and the contents of each tensor after the launch, in the report's order; none if it was not run.
pub struct Launched {
    pub report: LaunchReport,
    pub contents: Vec<Vec<u8>>,
}

/// What running left behind.
struct Ran {
    found: Found,
    before: Vec<Option<Vec<u8>>>,
    result: RunResult,
    seconds: f64,
}

/// Compiles the kernel in a cell and runs one launch of it. Never fails: what went wrong is in the report.
pub fn launch(stage: &Stage, launching: &Launching<'_>) -> Launched {
    let mut report = LaunchReport {
        schema: LaunchReport::SCHEMA.into(),
        outcome: tilewright_contract::SanitizeOutcome::Stopped,
        file: identify(launching.path, launching.source),
        line: launching.kernel.line,
        kernel: launching.bound.spec.clone(),
        grid: launching.grid,
        arch: launching.target.clone(),
        tensors: Vec::new(),
        hazards: Vec::new(),
        births: Vec::new(),
        stopped: None,
        cost: None,
        seconds: 0.0,
        notes: Vec::new(),
    };
    let ran = match launching.run(stage) {
        Ok(ran) => ran,
        Err(stop) => {
            report.stopped = Some(Stopped { verdict: stop.kind, reasons: stop.reasons });
            return Launched { report, contents: Vec::new() };
        }
    };
    report.tensors = launching.summaries(&ran);
    report.seconds = ran.seconds;
    let mut found = ran.found;
    found.sort();
    report.outcome = found.outcome();
    report.cost = found.costs.pop();
    report.hazards = found.hazards;
    report.births = found.births;
    report.notes = found.notes;
    report.stopped = found.stop.map(|stop| Stopped { verdict: stop.kind, reasons: stop.reasons });
    Launched { report, contents: ran.result.buffers }
}

impl Launching<'_> {
    fn run(&self, stage: &Stage) -> Result<Ran, Stop> {
        let plan = self.plan();
        let device = CpuDevice::new([&self.compiled(stage)?])?;
        let deadline = Instant::now() + self.timeout;
        let before = self.before(&device, &plan, deadline)?;
        let run = Run { contents: before.clone(), ..self.blank(deadline) };
        let start = Instant::now();
        // For the time alone: a survey takes longer, and tells what goes wrong.
        let _ = device.run(&plan, &run);
        let seconds = start.elapsed().as_secs_f64();
        let mut surveyor = Surveyor::new(&device, &plan, self.births);
        let result = surveyor.call(&run, true)?;
        Ok(Ran { found: surveyor.found, before, result, seconds })
    }

    fn compiled(&self, stage: &Stage) -> Result<CompiledKernel, Stop> {
        let ttir = stage.ttir(self.module, &self.bound.spec, &self.target)?;
        Ok(CompiledKernel {
            ttir: ttir.text,
            entry: ttir.entry,
            binary: None,
            threads: self.bound.spec.options.num_warps * self.target.warp_size,
            resources: Resources::default(),
            global_scratch: (0, 1),
            profile_scratch: (0, 1),
            tensordesc_meta: Vec::new(),
        })
    }

    /// One launch on one buffer for each tensor.
    fn plan(&self) -> Plan {
        let tensors = &self.bound.tensors;
        let buffer = |tensor: &GivenTensor| Buffer { nbytes: nbytes(tensor), source: BufferSource::Scratch };
        let is_output = |name: &String| self.outputs.is_empty() || self.outputs.contains(name);
        let outputs = tensors.iter().enumerate().filter(|(_, (name, _))| is_output(name));
        let named = outputs.map(|(at, (name, tensor))| (name.clone(), Value::Tensor(whole(at, tensor, tensor.dtype))));
        Plan {
            schema: Plan::SCHEMA.into(),
            buffers: tensors.iter().map(|(_, tensor)| buffer(tensor)).collect(),
            kernels: vec![self.bound.spec.clone()],
            steps: vec![Step::Launch {
                kernel: 0,
                grid: self.grid,
                args: self.bound.args.clone(),
                line: self.kernel.line,
            }],
            output: Value::Dict { items: named.collect() },
            choices: Vec::new(),
            regime: None,
            findings: Vec::new(),
        }
    }

    fn blank(&self, deadline: Instant) -> Run {
        Run {
            contents: Vec::new(),
            names: self.bound.tensors.iter().map(|(name, _)| name.clone()).collect(),
            left_over: Vec::new(),
            poison: POISON,
            lanes: 0,
            reverse: self.reverse,
            seed: self.seed,
            deadline: Some(deadline),
        }
    }

    /// Contents of the tensors before the launch: a plan that only fills them.
    fn before(&self, device: &CpuDevice, plan: &Plan, deadline: Instant) -> Result<Vec<Option<Vec<u8>>>, Stop> {
        let tensors = &self.bound.tensors;
        let mut fills = Plan { steps: Vec::new(), ..plan.clone() };
        let mut contents: Vec<Option<Vec<u8>>> = vec![None; tensors.len()];
        for (at, (_, tensor)) in tensors.iter().enumerate() {
            let dst = whole(at, tensor, tensor.dtype);
            let line = 0;
            fills.steps.extend(match &tensor.fill {
                Fill::Unwritten => None,
                Fill::Value(value) => Some(Step::Fill { dst, value: *value, line }),
                Fill::Count { start, step } => {
                    let count = tensor.shape.iter().product();
                    let dst = TensorRef { buffer: at, view: View::contiguous(tensor.dtype, &[count]) };
                    Some(Step::Iota { dst, start: *start, step: *step, line })
                }
                Fill::Random(distribution) => Some(Step::Random { dst, distribution: distribution.clone(), line }),
                Fill::Bytes { dtype, bytes } => {
                    let src = whole(fills.buffers.len(), tensor, *dtype);
                    fills.buffers.push(Buffer { nbytes: bytes.len() as u64, source: BufferSource::Scratch });
                    contents.push(Some(bytes.clone()));
                    Some(Step::Copy { src, dst, line })
                }
            });
        }
        let result = device.run(&fills, &Run { contents, ..self.blank(deadline) })?;
        let filled = result.buffers.into_iter().zip(tensors);
        Ok(filled.map(|(bytes, (_, tensor))| (tensor.fill != Fill::Unwritten).then_some(bytes)).collect())
    }

    fn summaries(&self, ran: &Ran) -> Vec<tilewright_contract::TensorSummary> {
        let Some(shadow) = &ran.result.shadow else { return Vec::new() };
        let tensors = self.bound.tensors.iter().enumerate();
        tensors
            .map(|(at, (name, tensor))| {
                let (before, after) = (ran.before[at].as_deref(), &ran.result.buffers[at][..]);
                Seen { name, tensor, before, after, shadow: &shadow[at] }.summary(self.head)
            })
            .collect()
    }
}

fn nbytes(tensor: &GivenTensor) -> u64 {
    tensor.shape.iter().product::<u64>() * tensor.dtype.size()
}

fn whole(buffer: usize, tensor: &GivenTensor, dtype: Dtype) -> TensorRef {
    TensorRef { buffer, view: View::contiguous(dtype, &tensor.shape) }
}
