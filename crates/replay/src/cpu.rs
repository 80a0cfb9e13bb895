use std::collections::BTreeMap;
use std::time::Instant;

use tilewright_contract::{Arg, BufferSource, CompiledKernel, LaunchCost, Number, Plan, Step, TensorRef};
use tilewright_emulate as emulate;
use tilewright_emulate::{AllocId, DefectKind, Init, Kernel, Limits, Memory};

use crate::host::{Written, changed, draw_seed, evaluate};
use crate::program::is_contiguous;
use crate::run::{Defective, Fault, FaultKind, Run, RunResult, writer};
use crate::survey::{self, Launch, Survey};

/// A CPU that executes the TTIR of a plan's kernels in the emulator.
pub struct CpuDevice {
    kernels: Vec<Kernel>,
}

impl CpuDevice {
    /// Lowers the TTIR of the plan's kernels, in the plan's order.
    ///
    /// # Errors
    /// `Unsupported` for an operation that the emulator lacks.
    pub fn new<'a>(kernels: impl IntoIterator<Item = &'a CompiledKernel>) -> Result<Self, Fault> {
        let kernels = kernels.into_iter().map(lower).collect::<Result<_, _>>()?;
        Ok(Self { kernels })
    }

    /// Executes the plan once, in fresh memory.
    pub fn run(&self, plan: &Plan, run: &Run) -> Result<RunResult, Fault> {
        let mut session = Session::new(plan, run);
        for (number, step) in plan.steps.iter().enumerate() {
            match Launch::of(plan, step) {
                Some(launch) => session
                    .launch(&launch, &self.kernels[launch.kernel], Limits::default())
                    .map_err(|fault| translate(&fault, launch.line))?,
                None => session.host_step(step, number)?,
            }
        }
        Ok(session.finish())
    }

    /// Executes the plan once, in fresh memory, and goes on after whatever a launch does wrong. `births`: also finds where
    /// NaN and infinities are made, which takes several times as long.
    ///
    /// # Errors
    /// A launch that cannot be executed at all, or not within the deadline.
    pub fn survey(&self, plan: &Plan, run: &Run, births: bool) -> Result<Survey, Fault> {
        let mut session = Session::new(plan, run);
        let mut survey = Survey::default();
        for (number, step) in plan.steps.iter().enumerate() {
            match Launch::of(plan, step) {
                Some(launch) => session.survey(&launch, &self.kernels[launch.kernel], births, &mut survey)?,
                None => session.host_step(step, number)?,
            }
        }
        survey.result = session.finish();
        Ok(survey)
    }
}

fn lower(compiled: &CompiledKernel) -> Result<Kernel, Fault> {
    let unsupported = |error: String| Fault::new(FaultKind::Unsupported, format!("{}: {error}", compiled.entry));
    let module = tilewright_ttir::parse(&compiled.ttir).map_err(|error| unsupported(error.to_string()))?;
    tilewright_ttir::verify(&module).map_err(|error| unsupported(error.to_string()))?;
    Kernel::new(&module, &compiled.entry).map_err(|error| Fault {
        kind: FaultKind::Unsupported,
        line: line(error.line),
        message: error.to_string(),
    })
}

pub(crate) struct Session<'a> {
    plan: &'a Plan,
    run: &'a Run,
    pub(crate) memory: Memory,
    pub(crate) buffers: Vec<AllocId>,
    /// By mark: the launch that made a defect.
    born: BTreeMap<u8, Launch<'a>>,
    result: RunResult,
}

impl<'a> Session<'a> {
    fn new(plan: &'a Plan, run: &'a Run) -> Self {
        let mut memory = Memory::new();
        let buffers = run.contents.iter().zip(&plan.buffers).enumerate().map(|(i, (contents, buffer))| {
            let label = run.names.get(i).cloned().unwrap_or_else(|| describe(&buffer.source, i));
            match contents {
                Some(bytes) => memory.alloc(&label, bytes.clone(), Init::Written),
                None => memory.alloc(&label, vec![run.poison; buffer.nbytes as usize], Init::Uninitialised),
            }
        });
        let buffers: Vec<AllocId> = buffers.collect();
        for (buffer, range) in &run.left_over {
            memory.mark(buffers[*buffer], range.clone(), writer::LEFT_OVER);
        }
        Self { plan, run, memory, buffers, born: BTreeMap::new(), result: RunResult::default() }
    }

    pub(crate) fn launch(
        &mut self,
        launch: &Launch<'a>,
        kernel: &Kernel,
        limits: Limits,
    ) -> Result<(), emulate::Fault> {
        let args: Vec<_> = launch.arguments().flat_map(|(param, arg)| self.argument(arg, &param.ty)).collect();
        let limits = Limits {
            deadline: self.run.deadline,
            poison: self.run.lanes,
            reverse: self.run.reverse,
            resident: resident(launch.spec.options.num_warps),
            ..limits
        };
        let report = emulate::launch(kernel, launch.grid, &args, &mut self.memory, &limits);
        for (mark, _) in self.memory.defects() {
            self.born.entry(mark).or_insert(*launch);
        }
        let report = report?;
        self.result.undefined_lanes |= report.undefined_lanes > 0;
        self.result.costs.push(cost(launch, &report));
        self.result.atomics |= report.atomics > 0;
        self.result.benign_races += report.benign_races;
        Ok(())
    }

    /// The values of the IR's parameters behind one argument: a descriptor is followed by its shape and strides.
    fn argument(&self, arg: &Arg, ty: &str) -> Vec<emulate::Arg> {
        match arg {
            Arg::Pointer { buffer, offset } => {
                let address = self.memory.address(self.buffers[*buffer], *offset);
                // An address that the file passes as an integer and casts in the kernel.
                let pointer = ty.starts_with('*');
                vec![if pointer { emulate::Arg::Pointer(address) } else { emulate::Arg::Int(address as i64) }]
            }
            Arg::Null => vec![emulate::Arg::Pointer(0)],
            Arg::Scalar { value: Number::Float(float) } => vec![emulate::Arg::Float(*float)],
            Arg::Scalar { value } => vec![emulate::Arg::Int(value.as_i64().unwrap_or_default())],
            Arg::Seed { index, low, high } => {
                vec![emulate::Arg::Int(draw_seed(self.run.seed, *index, *low, *high))]
            }
            Arg::Descriptor { tensor, padding, .. } => self.descriptor(tensor, padding == "nan"),
        }
    }

    fn descriptor(&self, tensor: &TensorRef, pad_nan: bool) -> Vec<emulate::Arg> {
        let base = self.memory.address(self.buffers[tensor.buffer], tensor.view.offset);
        let shape: Vec<i64> = tensor.view.shape.iter().map(|&extent| extent as i64).collect();
        let strides = tensor.view.strides.clone();
        let numbers = shape.iter().chain(&strides).map(|&number| emulate::Arg::Int(number)).collect::<Vec<_>>();
        let mut args = vec![emulate::Arg::Descriptor { base, shape, strides, pad_nan }];
        args.extend(numbers);
        args
    }

    /// A step that is no launch. Reading what nothing wrote is no fault yet: a copy may carry poison that is never used.
    fn host_step(&mut self, step: &Step, number: usize) -> Result<(), Fault> {
        if self.run.deadline.is_some_and(|deadline| Instant::now() > deadline) {
            return Err(Fault::new(FaultKind::Timeout, "the deadline passed between launches"));
        }
        let source = |buffer: usize| self.memory.bytes(self.buffers[buffer]);
        let writers = match step {
            Step::Copy { src, .. } => self.writers(src),
            Step::Fill { dst, .. } => vec![writer::CONSTANT; dst.view.numel() as usize],
            _ => Vec::new(),
        };
        if let Step::Copy { src, dst, line } = step
            && *line > 0
        {
            let shadow = self.memory.shadow(self.buffers[src.buffer]);
            let written = |at: usize| shadow[at] != writer::UNWRITTEN;
            if let Some((before, after)) = changed(&src.view, source(src.buffer), &dst.view, written) {
                let (from, to) = (src.view.dtype.name(), dst.view.dtype.name());
                let message = format!("torch's conversion from {from} to {to} computes: it makes {after} of {before}");
                return Err(Fault { line: Some(*line), ..Fault::new(FaultKind::TorchComputes, message) });
            }
        }
        if let Some(Written { dst, bytes }) = evaluate(step, number, self.run.seed, source)? {
            self.store(dst, &bytes, &writers);
        }
        Ok(())
    }

    /// Who wrote each element of a view: a copy moves values, and their origin with them.
    fn writers(&self, tensor: &TensorRef) -> Vec<u8> {
        let shadow = self.memory.shadow(self.buffers[tensor.buffer]);
        tensor.view.offsets().map(|at| shadow[at]).collect()
    }

    /// Stores elements in logical order, written by `writers` (none: by the host).
    fn store(&mut self, dst: &TensorRef, bytes: &[u8], writers: &[u8]) {
        let id = self.buffers[dst.buffer];
        let size = dst.view.dtype.size() as usize;
        if is_contiguous(&dst.view) {
            let start = dst.view.offset as usize;
            self.memory.write(id, start, bytes);
            for (at, run) in runs(writers) {
                self.memory.mark(id, start + at * size..start + (at + run.len()) * size, run[0]);
            }
            return;
        }
        for (i, (at, element)) in dst.view.offsets().zip(bytes.chunks_exact(size)).enumerate() {
            self.memory.write(id, at, element);
            if let Some(&writer) = writers.get(i) {
                self.memory.mark(id, at..at + size, writer);
            }
        }
    }

    fn finish(mut self) -> RunResult {
        let defective = |(mark, defect)| Defective { mark, ..defective(defect, self.born.get(&mark), &self) };
        let defects = self.memory.defects().map(defective).collect();
        let shadow = self.buffers.iter().map(|&id| self.memory.shadow(id).to_vec()).collect();
        let buffers = self.buffers.iter().map(|&id| self.memory.take(id)).collect();
        debug_assert_eq!(self.plan.buffers.len(), self.buffers.len());
        RunResult { buffers, shadow: Some(shadow), defects, ..self.result }
    }
}

fn cost(launch: &Launch<'_>, report: &emulate::Report) -> LaunchCost {
    let cost = LaunchCost {
        kernel: launch.spec.function.clone(),
        line: launch.line,
        grid: launch.grid,
        bytes_loaded: report.bytes_loaded,
        bytes_stored: report.bytes_stored,
        unique_bytes: report.unique_bytes,
        sectors: report.sectors,
        least_sectors: report.least_sectors,
        atomics: report.atomics,
        flops: report.flops,
        dot_flops: report.dot_flops,
        ..LaunchCost::default()
    };
    cost.with_ratios()
}

/// Programs of so many warps that the largest GPU holds at once, whatever registers and shared memory they take.
fn resident(num_warps: u32) -> u32 {
    const MULTIPROCESSORS: u32 = 160;
    const WARPS: u32 = 64;
    const PROGRAMS: u32 = 32;
    MULTIPROCESSORS * (WARPS / num_warps.max(1)).clamp(1, PROGRAMS)
}

/// A defect, at the line where it was used or else born.
fn defective(defect: &emulate::Defect, launch: Option<&Launch<'_>>, session: &Session<'_>) -> Defective {
    let kind = match defect.kind {
        DefectKind::DivisionByZero => FaultKind::DivisionByZero,
        DefectKind::Overflow => FaultKind::Overflow,
        DefectKind::LeftOver => FaultKind::LeftOver,
        DefectKind::Uninitialised => FaultKind::UninitialisedRead,
    };
    let fault = Fault { kind, message: defect.to_string(), line: line(defect.site.line) };
    let hazard = survey::of_defect(defect, launch, session);
    Defective { mark: 0, decided: defect.used.is_some(), fault, hazard }
}

/// Stretches of equal values with their starts.
fn runs(values: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut start = 0;
    values.chunk_by(|a, b| a == b).map(move |run| {
        let at = start;
        start += run.len();
        (at, run)
    })
}

/// How messages name a buffer.
fn describe(source: &BufferSource, number: usize) -> String {
    match source {
        BufferSource::Input { index } => format!("input {index}"),
        BufferSource::State { name } => format!("the parameter {name}"),
        BufferSource::Constant { path } => format!("the constant {path}"),
        BufferSource::Scratch => format!("buffer {number} (made in forward)"),
    }
}

pub(crate) fn translate(fault: &emulate::Fault, launch: u32) -> Fault {
    let (kind, site) = match fault {
        emulate::Fault::OutOfBounds { site, .. }
        | emulate::Fault::BadAddress { site, .. }
        | emulate::Fault::Position { site, .. } => (FaultKind::OutOfBounds, Some(site)),
        emulate::Fault::Misaligned { site, .. } => (FaultKind::Misaligned, Some(site)),
        emulate::Fault::Race { second: (_, site), .. } | emulate::Fault::Lanes { site, .. } => {
            (FaultKind::Race, Some(site))
        }
        emulate::Fault::Assert { site, .. } => (FaultKind::Trap, Some(site)),
        emulate::Fault::Promise { site, .. } => (FaultKind::Misaligned, Some(site)),
        emulate::Fault::Deadlock { site } => (FaultKind::Deadlock, Some(site)),
        emulate::Fault::Deadline { site } => (FaultKind::Timeout, Some(site)),
        emulate::Fault::Malformed { site, .. } => (FaultKind::Unsupported, Some(site)),
        emulate::Fault::Unsupported(_) => (FaultKind::Unsupported, None),
        emulate::Fault::Arguments { .. } | emulate::Fault::Argument { .. } => (FaultKind::Launch, None),
    };
    Fault { kind, message: fault.to_string(), line: line_or(site.map_or(0, |site| site.line), launch) }
}

fn line_or(line: u32, launch: u32) -> Option<u32> {
    self::line(if line == 0 { launch } else { line })
}

fn line(line: u32) -> Option<u32> {
    (line != 0).then_some(line)
}
