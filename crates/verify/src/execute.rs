//! Replays a plan on the oracle's inputs and compares what it left behind.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Instant;

use tilewright_contract::{
    Buffer, BufferSource, CallData, CaseSignature, Dtype, ExpectedTensor, LaunchCost, Plan, Reason, TensorRef, Trial,
    VerdictKind,
};
use tilewright_judge::Figures;
use tilewright_replay::{Contents, Defective, Fault, FaultKind, Run, RunResult, initial_contents, writer};

use crate::draft::{Stop, reason};
use crate::oracle::OracleSet;
use crate::shared::BY_BYTES;

/// Fills memory that nobody wrote: NaN in every float type, and an absurd index.
pub(crate) const POISON: u8 = 0xFF;
/// The other poison: a result that changes with it depends on memory that nobody wrote. Finite in every float type.
pub(crate) const OTHER_POISON: u8 = 0x3C;

/// What memory that nobody wrote holds most often, and so what a kernel that looks at it looks for.
const ZERO_POISON: u8 = 0;

/// What a candidate may allocate in any case, in bytes.
const SMALL_MEMORY: u64 = 1 << 30;
/// What it may allocate for each byte of the problem's inputs, state and outputs.
const MEMORY_FACTOR: u64 = 16;

/// Runs a plan once on some device.
pub(crate) trait Replay {
    fn replay(&self, plan: &Plan, run: &Run) -> Result<RunResult, Fault>;
}

/// One plan on one trial.
pub(crate) struct TrialRun<'a, 'd> {
    pub(crate) device: &'d dyn Replay,
    pub(crate) plan: &'a Plan,
    pub(crate) oracle: &'a OracleSet,
    pub(crate) signature: &'a CaseSignature,
    pub(crate) trial: &'a Trial,
    /// Contents of the constants that the candidate's `__init__` makes.
    pub(crate) constants: &'a BTreeMap<String, Vec<u8>>,
    pub(crate) deadline: Instant,
}

/// A tensor that a call left behind, to be compared with the oracle's.
pub(crate) struct Observation<'a> {
    pub(crate) expected: &'a ExpectedTensor,
    /// Which call of the trial, from 0.
    pub(crate) call: usize,
    pub(crate) got: Got,
}

/// What is known of a tensor.
pub(crate) enum Got {
    /// Its elements in logical order.
    Bytes(Vec<u8>),
    /// How it compares, under each profile.
    Figures(Vec<Figures>),
}

/// What one plan did on one trial.
#[derive(Default)]
pub(crate) struct TrialOutcome<'a> {
    pub(crate) observations: Vec<Observation<'a>>,
    /// Of the first call.
    pub(crate) costs: Vec<LaunchCost>,
    pub(crate) notes: Vec<String>,
}

impl<'a> TrialRun<'a, '_> {
    /// Calls the plan as often as the oracle called the reference, state carried along, and checks each call.
    pub(crate) fn outcome(&self) -> Result<TrialOutcome<'a>, Stop> {
        let mut outcome = TrialOutcome::default();
        let mut state = self.state()?;
        let mut constants = self.constants.clone();
        self.check_size()?;
        for (number, call) in self.trial.calls.iter().enumerate() {
            self.call(number, call, &mut state, &mut constants, &mut outcome)?;
        }
        Ok(outcome)
    }

    /// The state that every trial starts from.
    pub(crate) fn state(&self) -> Result<BTreeMap<String, Vec<u8>>, Stop> {
        let named = self.signature.state.iter().zip(&self.trial.state);
        named.map(|(named, blob)| Ok((named.name.clone(), self.oracle.bytes(*blob)?.to_vec()))).collect()
    }

    /// The first call by itself, and what it starts from.
    pub(crate) fn first(&self) -> Result<(Run, Contents), Stop> {
        let inputs = self.trial.calls.first().map_or_else(|| Ok(Vec::new()), |call| self.inputs(call))?;
        let contents = Contents { inputs, state: self.state()?, constants: self.constants.clone() };
        Ok((self.run(0, &contents)?, contents))
    }

    /// What a first call left behind, to be judged; the result's buffers need only hold what is observed.
    pub(crate) fn observed_first(&self, contents: &Contents, result: &RunResult) -> Result<TrialOutcome<'a>, Stop> {
        let mut outcome = TrialOutcome::default();
        if let Some(call) = self.trial.calls.first() {
            self.observe(0, call, contents, result, &mut outcome)?;
        }
        Ok(outcome)
    }

    /// The buffers in which a call leaves what is compared.
    pub(crate) fn observed_buffers(&self) -> Vec<usize> {
        let outputs: Vec<usize> = self.observed().into_iter().map(|(_, tensor)| tensor.buffer).collect();
        let kept = |(at, buffer): (usize, &Buffer)| {
            let carried = matches!(buffer.source, BufferSource::Input { .. } | BufferSource::State { .. });
            (carried || outputs.contains(&at)).then_some(at)
        };
        self.plan.buffers.iter().enumerate().filter_map(kept).collect()
    }

    pub(crate) fn inputs(&self, call: &CallData) -> Result<Vec<Vec<u8>>, Stop> {
        call.inputs.iter().map(|blob| Ok(self.oracle.bytes(*blob)?.to_vec())).collect()
    }

    /// Whether its data are too many to go through the host's memory.
    pub(crate) fn is_large(&self) -> bool {
        self.nbytes() > BY_BYTES
    }

    /// Bytes of the trial's inputs, weights and expected results.
    fn nbytes(&self) -> u64 {
        let call = |call: &CallData| {
            let tensors = call.expected.tensors.iter().flat_map(|tensor| [Some(tensor.native), tensor.float64]);
            call.inputs.iter().copied().chain(tensors.flatten()).map(|blob| blob.nbytes).sum::<u64>()
        };
        self.trial.state.iter().map(|blob| blob.nbytes).chain(self.trial.calls.iter().map(call)).sum()
    }

    /// What a call starts from.
    pub(crate) fn run(&self, number: usize, contents: &Contents) -> Result<Run, Stop> {
        Ok(Run {
            contents: initial_contents(self.plan, contents)?,
            names: Vec::new(),
            left_over: self.left_over(&contents.constants),
            poison: POISON,
            lanes: 0,
            reverse: false,
            seed: self.trial.seed.wrapping_add(number as u64),
            deadline: Some(self.deadline),
        })
    }

    /// Takes what the next call finds over from a call's buffers.
    pub(crate) fn carry(
        &self,
        result: &RunResult,
        state: &mut BTreeMap<String, Vec<u8>>,
        constants: &mut BTreeMap<String, Vec<u8>>,
    ) {
        for (buffer, bytes) in self.plan.buffers.iter().zip(&result.buffers) {
            match &buffer.source {
                BufferSource::State { name } => drop(state.insert(name.clone(), bytes.clone())),
                BufferSource::Constant { path } => drop(constants.insert(path.clone(), bytes.clone())),
                BufferSource::Input { .. } | BufferSource::Scratch => {}
            }
        }
    }

    fn call(
        &self,
        number: usize,
        call: &'a CallData,
        state: &mut BTreeMap<String, Vec<u8>>,
        constants: &mut BTreeMap<String, Vec<u8>>,
        outcome: &mut TrialOutcome<'a>,
    ) -> Result<(), Stop> {
        let contents = Contents { inputs: self.inputs(call)?, state: state.clone(), constants: constants.clone() };
        let run = self.run(number, &contents)?;
        let result = self.device.replay(self.plan, &run)?;
        if number == 0 {
            outcome.costs.clone_from(&result.costs);
        }
        self.check_writers(call, &result)?;
        self.check_defects(&result, outcome)?;
        self.check_left_over(&contents, &run, &result)?;
        self.observe(number, call, &contents, &result, outcome)?;
        if number == 0
            && let Some(again) = self.check_poison(&run, &result, outcome)?
        {
            self.observe(number, call, &contents, &again, outcome)?;
        }
        if number == 0
            && result.atomics
            && let Some(again) = self.check_order(&run, &result)?
        {
            self.observe(number, call, &contents, &again, outcome)?;
        }
        self.carry(&result, state, constants);
        Ok(())
    }

    /// Where earlier calls changed the constants that `__init__` made.
    fn left_over(&self, constants: &BTreeMap<String, Vec<u8>>) -> Vec<(usize, Range<usize>)> {
        let mut ranges = Vec::new();
        for (number, buffer) in self.plan.buffers.iter().enumerate() {
            let BufferSource::Constant { path } = &buffer.source else { continue };
            let (Some(now), Some(before)) = (constants.get(path), self.constants.get(path)) else { continue };
            let mut start = 0;
            let changed: Vec<bool> = now.iter().zip(before).map(|(now, before)| now != before).collect();
            for run in changed.chunk_by(|a, b| a == b) {
                if run[0] {
                    ranges.push((number, start..start + run.len()));
                }
                start += run.len();
            }
        }
        ranges
    }

    /// What an earlier call left in a tensor of the module that the reference does not know may be overwritten, but
    /// must not be used: with something else in its place, the results are the same.
    fn check_left_over(&self, contents: &Contents, run: &Run, result: &RunResult) -> Result<(), Stop> {
        let changed: Vec<&String> =
            contents.constants.keys().filter(|path| contents.constants[*path] != self.constants[*path]).collect();
        let Some(first) = changed.first() else { return Ok(()) };
        let stop = || {
            let message = format!("the results depend on what an earlier call of forward left in {first}");
            Stop::new(VerdictKind::Rejected, "hidden-state", message)
                .help("keep nothing between calls: write a workspace before reading it, and reset counters")
        };
        for poison in [POISON, OTHER_POISON] {
            let mut constants = contents.constants.clone();
            for (path, bytes) in &mut constants {
                for (byte, original) in bytes.iter_mut().zip(&self.constants[path]) {
                    *byte = if byte == original { *byte } else { poison };
                }
            }
            let contents = initial_contents(self.plan, &Contents { constants, ..contents.clone() })?;
            // Left-overs may lead astray, into a fault or an endless loop: they are used then, too.
            let again = self.device.replay(self.plan, &Run { contents, ..run.clone() }).map_err(|_| stop())?;
            let same = self.observed().into_iter().all(|(_, tensor)| {
                let bytes = |result: &RunResult| tensor.view.gather(&result.buffers[tensor.buffer]);
                let (first, second) = (bytes(result), bytes(&again));
                first == second || alike(tensor.view.dtype, &first, &second)
            });
            if !same {
                return Err(stop());
            }
        }
        Ok(())
    }

    /// A plan is a claim: nothing is allocated for it before its size is known to be sensible.
    pub(crate) fn check_size(&self) -> Result<(), Stop> {
        let wanted = self.plan.nbytes().saturating_add(self.plan.largest_view());
        let allowed = self.allowed_bytes();
        if wanted <= allowed {
            return Ok(());
        }
        let message = format!(
            "the tensors of forward take {} MiB, more than the {} MiB that this problem allows",
            wanted >> 20,
            allowed >> 20
        );
        Err(Stop::new(VerdictKind::OutOfMemory, "too-much-memory", message)
            .help("allocate workspaces in proportion to the inputs and outputs"))
    }

    fn allowed_bytes(&self) -> u64 {
        let call = |call: &CallData| {
            let outputs = call.expected.tensors.iter().map(|tensor| tensor.native.nbytes);
            call.inputs.iter().map(|blob| blob.nbytes).chain(outputs).sum::<u64>()
        };
        let state: u64 = self.trial.state.iter().map(|blob| blob.nbytes).sum();
        let calls = self.trial.calls.iter().map(call).max().unwrap_or_default();
        calls.saturating_add(state).saturating_mul(MEMORY_FACTOR).max(SMALL_MEMORY)
    }

    /// What went wrong in the arithmetic of addresses decides; a division by zero that reaches a result is told.
    fn check_defects(&self, result: &RunResult, outcome: &mut TrialOutcome<'a>) -> Result<(), Stop> {
        for defect in &result.defects {
            match defect.fault.kind {
                FaultKind::Overflow if defect.decided => {
                    return Err(Stop::from(defect.fault.clone())
                        .help("compute large offsets in 64 bits: tl.program_id(0).to(tl.int64) * …"));
                }
                FaultKind::LeftOver if self.matters(defect, result) => {
                    return Err(Stop::from(defect.fault.clone())
                        .help("keep nothing between calls: write a workspace before reading it, and reset counters"));
                }
                FaultKind::DivisionByZero if self.matters(defect, result) => {
                    outcome.notes.push(defect.fault.message.clone());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether a defect decided something or reached what is compared.
    fn matters(&self, defect: &Defective, result: &RunResult) -> bool {
        matters(self.plan, defect, result)
    }

    /// Runs again over other poison, unless the device knows that none was used: what changes depends on memory
    /// that nobody wrote. Gives the second result where it has to be judged too: float atomics make bits vary.
    fn check_poison(
        &self,
        run: &Run,
        result: &RunResult,
        outcome: &mut TrialOutcome<'a>,
    ) -> Result<Option<RunResult>, Stop> {
        let read = |defect: &&Defective| defect.fault.kind == FaultKind::UninitialisedRead;
        let used = result.defects.iter().filter(read).find(|defect| self.matters(defect, result));
        if result.shadow.is_some() && used.is_none() && !result.undefined_lanes {
            return Ok(None);
        }
        let over = |poison| self.device.replay(self.plan, &Run { poison, lanes: poison, ..run.clone() });
        let is_other = |again: &RunResult| {
            self.observed().into_iter().any(|(_, tensor)| {
                let bytes = |result: &RunResult| tensor.view.gather(&result.buffers[tensor.buffer]);
                let (first, second) = (bytes(result), bytes(again));
                first != second && (result.shadow.is_some() || !alike(tensor.view.dtype, &first, &second))
            })
        };
        let again = over(OTHER_POISON)?;
        let differs = is_other(&again) || (result.shadow.is_some() && is_other(&over(ZERO_POISON)?));
        match (used, differs) {
            (Some(defect), true) => Err(Stop::from(defect.fault.clone()).help(
                "initialise the buffer (torch.zeros, or a store that covers it) before a kernel reads or adds to it",
            )),
            (Some(defect), false) => {
                outcome.notes.push(format!("{} (without effect on the results)", defect.fault.message));
                Ok(None)
            }
            (None, true) if result.undefined_lanes => Err(Stop::new(
                VerdictKind::MemoryFault,
                "undefined-lanes",
                "the results depend on lanes that a masked load without `other` leaves undefined",
            )
            .help("give tl.load an `other`, or mask the lanes again before a reduction")),
            (None, false) if result.shadow.is_some() => Ok(None),
            (None, true) => Err(Stop::new(
                VerdictKind::MemoryFault,
                "uninitialised-read",
                "the results change with the contents of memory that nothing wrote, or from run to run",
            )),
            (None, false) => Ok(Some(again)),
        }
    }

    /// Runs again with the programs in reverse, which shows races that atomic operations put in order by chance.
    /// Gives the second result where it has to be judged too: sums of float atomics depend on the order.
    fn check_order(&self, run: &Run, result: &RunResult) -> Result<Option<RunResult>, Stop> {
        let again = self.device.replay(self.plan, &Run { reverse: true, ..run.clone() })?;
        let mut same = true;
        for (name, tensor) in self.observed() {
            let bytes = |result: &RunResult| tensor.view.gather(&result.buffers[tensor.buffer]);
            let (first, second) = (bytes(result), bytes(&again));
            same &= first == second;
            if first != second && !alike(tensor.view.dtype, &first, &second) {
                let message = format!("{name} depends on the order in which the programs of a launch run");
                return Err(Stop::new(VerdictKind::Nondeterministic, "program-order", message)
                    .help("let programs write to places of their own, or wait for each other"));
            }
        }
        Ok((!same).then_some(again))
    }

    /// Every output element must be written, last by a launch, and an output must not only be copied by launches;
    /// unless the reference only moves data there.
    fn check_writers(&self, call: &CallData, result: &RunResult) -> Result<(), Stop> {
        let Some(shadow) = &result.shadow else { return Ok(()) };
        for (name, tensor) in self.observed() {
            let numel = tensor.view.numel();
            let mut count = [0u64; 6];
            for at in tensor.view.offsets() {
                // What depends on a defect is written all the same.
                let mark = shadow[tensor.buffer][at];
                count[usize::from(if mark >= writer::DEFECT { writer::LAUNCH } else { mark })] += 1;
            }
            let of = |mark: u8| count[usize::from(mark)];
            if of(writer::UNWRITTEN) > 0 {
                let message = format!("{name}: {} of {numel} elements were never written", of(writer::UNWRITTEN));
                return Err(Stop::new(VerdictKind::MemoryFault, "unwritten-output", message)
                    .help("cover the whole output: check the grid (triton.cdiv) and the masks"));
            }
            if expected(call, &name).is_some_and(|expected| expected.copy_only) {
                continue;
            }
            // A fill may stand where a launch writes the rest: zeros under sparse atomics. So may a copy: half of a
            // concatenation.
            let computed = of(writer::LAUNCH) > 0;
            let unlaunched = of(writer::HOST) + of(writer::LEFT_OVER) + if computed { 0 } else { of(writer::CONSTANT) };
            if unlaunched > 0 {
                let message = format!("{name}: {unlaunched} of {numel} elements were not written by a kernel");
                return Err(Stop::new(VerdictKind::Rejected, "not-written-by-kernel", message)
                    .help("store every output element in a Triton kernel"));
            }
            if !computed && of(writer::COPIED) > 0 {
                let message = format!(
                    "{name}: the kernels only copy its {numel} elements from inputs, weights or fills, but the reference \
                     computes them"
                );
                return Err(
                    Stop::new(VerdictKind::Rejected, "copy-only", message).help("compute the output in a kernel")
                );
            }
        }
        Ok(())
    }

    /// Takes what is to be compared; what the reference does not modify must be as it was.
    fn observe(
        &self,
        number: usize,
        call: &'a CallData,
        before: &Contents,
        result: &RunResult,
        outcome: &mut TrialOutcome<'a>,
    ) -> Result<(), Stop> {
        let after = self.after(before, result);
        let mut observe =
            |expected, got| outcome.observations.push(Observation { expected, call: number, got: Got::Bytes(got) });
        for (name, tensor) in self.observed() {
            if let Some(expected) = expected(call, &name) {
                observe(expected, tensor.view.gather(&result.buffers[tensor.buffer]));
            }
        }
        for (index, (bytes, input)) in after.inputs.into_iter().zip(&before.inputs).enumerate() {
            match expected(call, &format!("input[{index}]")) {
                Some(expected) => observe(expected, bytes),
                None if bytes != *input => return Err(modified("input-modified", &format!("input {index}"))),
                None => {}
            }
        }
        for (name, bytes) in after.state {
            match expected(call, &format!("state.{name}")) {
                Some(expected) => observe(expected, bytes),
                None if before.state.get(&name) != Some(&bytes) => return Err(modified("state-modified", &name)),
                None => {}
            }
        }
        Ok(())
    }

    /// Inputs and state as the plan left them; what it does not touch stays as it was.
    fn after(&self, before: &Contents, result: &RunResult) -> Contents {
        let mut after = before.clone();
        for (buffer, bytes) in self.plan.buffers.iter().zip(&result.buffers) {
            match &buffer.source {
                BufferSource::Input { index } => after.inputs[*index] = bytes.clone(),
                BufferSource::State { name } => drop(after.state.insert(name.clone(), bytes.clone())),
                BufferSource::Constant { .. } | BufferSource::Scratch => {}
            }
        }
        after
    }

    fn observed(&self) -> Vec<(String, &TensorRef)> {
        self.plan.output.results()
    }
}

/// Whether a defect decided something or reached an output of the plan.
pub(crate) fn matters(plan: &Plan, defect: &Defective, result: &RunResult) -> bool {
    let reached = |tensor: &TensorRef| {
        let shadow = result.shadow.as_ref().map(|shadow| &shadow[tensor.buffer]);
        shadow.is_some_and(|shadow| {
            let size = tensor.view.dtype.size() as usize;
            shadow.contains(&defect.mark)
                && tensor.view.offsets().any(|at| shadow[at..at + size].contains(&defect.mark))
        })
    };
    defect.decided || plan.output.tensors().into_iter().any(|(_, tensor)| reached(tensor))
}

/// Whether two runs of the same launches differ by no more than the order of float atomics explains: the judge then
/// decides on each. Poison that reaches a result is NaN in one run and an absurd number in the other.
pub(crate) fn alike(dtype: Dtype, first: &[u8], second: &[u8]) -> bool {
    if !dtype.is_float() {
        return false;
    }
    let (mut a, mut b) = (Vec::new(), Vec::new());
    tilewright_judge::decode(dtype, first, &mut a);
    tilewright_judge::decode(dtype, second, &mut b);
    let (mut difference, mut size) = (0.0, 0.0);
    for (a, b) in a.into_iter().zip(b) {
        match (a.is_finite(), b.is_finite()) {
            (true, true) => {
                difference += (a - b) * (a - b);
                size += a * a;
            }
            // Infinities and NaN must agree; NaN payloads need not.
            _ if a == b || (a.is_nan() && b.is_nan()) => {}
            _ => return false,
        }
    }
    difference <= 1e-4 * size
}

pub(crate) fn expected<'a>(call: &'a CallData, path: &str) -> Option<&'a ExpectedTensor> {
    call.expected.tensors.iter().find(|tensor| tensor.path == path)
}

pub(crate) fn modified(code: &str, what: &str) -> Stop {
    let message = format!("{what} is modified, but the reference leaves it as it was");
    let reason = Reason { help: Some("write the result into a tensor of its own".into()), ..reason(code, message) };
    Stop { kind: VerdictKind::Incorrect, reasons: vec![reason] }
}
