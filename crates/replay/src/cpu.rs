use std::time::Instant;

use tilewright_contract::{Arg, BufferSource, CompiledKernel, LaunchCost, Number, Plan, Step, TensorRef};
use tilewright_emulate as emulate;
use tilewright_emulate::{AllocId, DefectKind, Init, Kernel, Limits, Memory};

use crate::host::{Written, draw_seed, evaluate};
use crate::program::is_contiguous;
use crate::run::{Defective, Fault, FaultKind, Run, RunResult, writer};

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
            match step {
                Step::Launch { kernel, grid, args, line } => {
                    session.launch((*kernel, &self.kernels[*kernel]), *grid, args, *line)?;
                }
                _ => session.host_step(step, number)?,
            }
        }
        Ok(session.finish())
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

struct Session<'a> {
    plan: &'a Plan,
    run: &'a Run,
    memory: Memory,
    buffers: Vec<AllocId>,
    result: RunResult,
}

impl<'a> Session<'a> {
    fn new(plan: &'a Plan, run: &'a Run) -> Self {
        let mut memory = Memory::new();
        let buffers = run.contents.iter().zip(&plan.buffers).enumerate().map(|(i, (contents, buffer))| {
            let label = describe(&buffer.source, i);
            match contents {
                Some(bytes) => memory.alloc(&label, bytes.clone(), Init::Written),
                None => memory.alloc(&label, vec![run.poison; buffer.nbytes as usize], Init::Uninitialised),
            }
        });
        let buffers: Vec<AllocId> = buffers.collect();
        for (buffer, range) in &run.left_over {
            memory.mark(buffers[*buffer], range.clone(), writer::LEFT_OVER);
        }
        Self { plan, run, memory, buffers, result: RunResult::default() }
    }

    fn launch(
        &mut self,
        (index, kernel): (usize, &Kernel),
        grid: [u32; 3],
        args: &[Arg],
        line: u32,
    ) -> Result<(), Fault> {
        let types = self.plan.kernels[index].params.iter().filter(|param| param.ty != "constexpr");
        let args: Vec<_> = args.iter().zip(types).flat_map(|(arg, param)| self.argument(arg, &param.ty)).collect();
        let limits = Limits {
            deadline: self.run.deadline,
            poison: self.run.lanes,
            reverse: self.run.reverse,
            ..Limits::default()
        };
        let report =
            emulate::launch(kernel, grid, &args, &mut self.memory, &limits).map_err(|fault| translate(&fault, line))?;
        self.result.undefined_lanes |= report.undefined_lanes > 0;
        self.result.costs.push(cost(&self.plan.kernels[index].function, line, grid, &report));
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
        let defective = |(mark, defect)| Defective { mark, ..defective(defect) };
        let defects = self.memory.defects().map(defective).collect();
        let shadow = self.buffers.iter().map(|&id| self.memory.shadow(id).to_vec()).collect();
        let buffers = self.buffers.iter().map(|&id| self.memory.take(id)).collect();
        debug_assert_eq!(self.plan.buffers.len(), self.buffers.len());
        RunResult { buffers, shadow: Some(shadow), defects, ..self.result }
    }
}

fn cost(kernel: &str, line: u32, grid: [u32; 3], report: &emulate::Report) -> LaunchCost {
    LaunchCost {
        kernel: kernel.to_owned(),
        line,
        grid,
        bytes_loaded: report.bytes_loaded,
        bytes_stored: report.bytes_stored,
        unique_bytes: report.unique_bytes,
        sectors: report.sectors,
        least_sectors: report.least_sectors,
        atomics: report.atomics,
        flops: report.flops,
        dot_flops: report.dot_flops,
    }
}

/// A defect, at the line where it was used or else born.
fn defective(defect: &emulate::Defect) -> Defective {
    let kind = match defect.kind {
        DefectKind::DivisionByZero => FaultKind::DivisionByZero,
        DefectKind::Overflow => FaultKind::Overflow,
        DefectKind::LeftOver => FaultKind::LeftOver,
        DefectKind::Uninitialised => FaultKind::UninitialisedRead,
    };
    let fault = Fault { kind, message: defect.to_string(), line: line(defect.site.line) };
    Defective { mark: 0, decided: defect.used.is_some(), fault }
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

fn translate(fault: &emulate::Fault, launch: u32) -> Fault {
    let (kind, site) = match fault {
        emulate::Fault::OutOfBounds { site, .. }
        | emulate::Fault::BadAddress { site, .. }
        | emulate::Fault::Position { site, .. } => (FaultKind::OutOfBounds, Some(site)),
        emulate::Fault::Misaligned { site, .. } => (FaultKind::Misaligned, Some(site)),
        emulate::Fault::Race { second: (_, site), .. } | emulate::Fault::Lanes { site, .. } => {
            (FaultKind::Race, Some(site))
        }
        emulate::Fault::Assert { site, .. } => (FaultKind::Trap, Some(site)),
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
