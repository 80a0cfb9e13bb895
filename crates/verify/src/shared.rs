//! Trials whose data stay on the GPU: the executor maps inputs, the oracle's process maps results and compares.
//!
//! It can only say that all is as it should be, with the figures for the verdict. Whatever else is seen goes to the path
//! by bytes, which finds the reasons; unless the data are too many for it. See `docs/design/data-path.md`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use tilewright_contract::{Blob, Buffer, BufferSource, CallData, ExpectedTensor, Plan, Profile, VerdictKind, View};
use tilewright_judge::{Figures, Place, judge_figures, must_equal};
use tilewright_replay::cuda::CudaDevice;
use tilewright_replay::{Executable, Fault, FaultKind, Loan, SharedRun, Source};
use tilewright_stage::{Compare, Compared, ComparedTensor, Found, Look, Places, Resident, Same, StageError};

use crate::draft::Stop;
use crate::execute::{Got, OTHER_POISON, Observation, POISON, TrialOutcome, TrialRun, expected, modified};
use crate::lane::Waited;

/// One plan on one trial.
pub(crate) struct SharedTrial<'a, 'd, 'r> {
    pub(crate) trial: &'r TrialRun<'a, 'd>,
    pub(crate) resident: &'r Resident,
    /// As they hold at the trial's place.
    pub(crate) profiles: Vec<&'r Profile>,
    /// Whether the first profile decides there.
    pub(crate) decides: bool,
    /// Whether the path by bytes finds the reasons for what is wrong.
    by_bytes: bool,
    /// Where inputs and weights lie.
    places: Places,
}

/// A plan's kernels and our own.
pub(crate) type Executables<'r> = (Vec<Executable<'r>>, Vec<Executable<'r>>);

/// Why there is no outcome.
#[derive(Clone)]
pub(crate) enum Doubt {
    /// Not all is as it should be.
    Look,
    /// Memory cannot be shared here.
    Unshared(String),
    /// The process that compares did not answer.
    Failed(String),
    Stop(Stop),
}

impl Doubt {
    /// Why the data of other trials will not stay on the GPU either.
    pub(crate) fn for_all(&self) -> Option<String> {
        match self {
            Self::Unshared(why) => Some(format!("sharing the GPU's memory failed: {why}")),
            Self::Failed(why) => Some(format!("a comparison on the GPU failed: {why}")),
            Self::Look | Self::Stop(_) => None,
        }
    }

    /// Where there is no path by bytes to look further on.
    pub(crate) fn or_stop(self, message: &str) -> Stop {
        match self {
            Self::Stop(stop) => stop,
            Self::Look | Self::Unshared(_) | Self::Failed(_) => Stop::infrastructure(message),
        }
    }
}

impl From<Stop> for Doubt {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl From<Fault> for Doubt {
    fn from(fault: Fault) -> Self {
        match fault.kind {
            FaultKind::Refused => Self::Unshared(fault.message),
            // A second try would hang as long.
            FaultKind::Timeout => Self::Stop(fault.into()),
            _ => Self::Look,
        }
    }
}

impl From<StageError> for Doubt {
    fn from(error: StageError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl<'a, 'd, 'r> SharedTrial<'a, 'd, 'r> {
    pub(crate) fn new(
        trial: &'r TrialRun<'a, 'd>,
        resident: &'r Resident,
        (profiles, decides): (Vec<&'r Profile>, bool),
        by_bytes: bool,
    ) -> Result<Self, Doubt> {
        let blobs: Vec<Blob> = blobs(trial).copied().collect();
        let places = resident.places(&blobs)?;
        if places.handles.iter().any(Vec::is_empty) {
            return Err(Doubt::Unshared("the oracle's process cannot share memory (cuIpcGetMemHandle)".into()));
        }
        Ok(Self { trial, resident, profiles, decides, by_bytes, places })
    }

    /// The plan is called as often as the oracle called the reference, the first time over two poisons.
    fn steps(&self) -> Result<Vec<(SharedRun, Seen<'a>)>, Doubt> {
        self.trial.check_size().map_err(Doubt::Stop)?;
        let (mut steps, mut written) = (Vec::new(), BTreeSet::new());
        for (number, call) in self.trial.trial.calls.iter().enumerate() {
            let run = self.run(number, call, &written)?;
            let seen = Seen { number, written: written.clone(), ..Seen::first(call) };
            if number == 0 {
                let first = SharedRun { poison: OTHER_POISON, ..run.clone() };
                steps.push((first, Seen { remember: true, ..seen.clone() }));
                steps.push((run, Seen { again: true, ..seen }));
            } else {
                steps.push((run, seen));
            }
            written.extend(call.expected.tensors.iter().map(|tensor| tensor.path.clone()));
        }
        Ok(steps)
    }

    /// What a call starts from. State that no earlier call should have written is that of the trial; other state is
    /// what the call before left.
    pub(crate) fn run(&self, number: usize, call: &CallData, written: &BTreeSet<String>) -> Result<SharedRun, Doubt> {
        let trial = self.trial;
        let source = |buffer: &Buffer| {
            let (blob, kept) = match &buffer.source {
                BufferSource::Scratch => return Ok(None),
                BufferSource::Constant { path } => {
                    let bytes = trial.constants.get(path).filter(|bytes| bytes.len() as u64 == buffer.nbytes);
                    return Ok(Some(Source::Bytes(bytes.ok_or(Doubt::Look)?.clone())));
                }
                BufferSource::Input { index } => (call.inputs.get(*index), false),
                BufferSource::State { name } => (self.state(name), written.contains(&format!("state.{name}"))),
            };
            let blob = *blob.filter(|blob| blob.nbytes == buffer.nbytes).ok_or(Doubt::Look)?;
            Ok(Some(if kept { Source::Kept } else { self.place(blob)? }))
        };
        Ok(SharedRun {
            contents: trial.plan.buffers.iter().map(source).collect::<Result<_, Doubt>>()?,
            handles: self.places.handles.clone(),
            poison: POISON,
            seed: trial.trial.seed.wrapping_add(number as u64),
            deadline: Some(trial.deadline),
        })
    }

    fn state(&self, name: &str) -> Option<&'a Blob> {
        let at = self.trial.signature.state.iter().position(|entry| entry.name == name)?;
        self.trial.trial.state.get(at)
    }

    fn place(&self, wanted: Blob) -> Result<Source, Doubt> {
        let at = blobs(self.trial).position(|blob| *blob == wanted).ok_or(Doubt::Look)?;
        let (handle, offset) = *self.places.places.get(at).ok_or(Doubt::Look)?;
        Ok(Source::Mapped { handle, offset })
    }

    /// What one call left behind in the executor's memory.
    pub(crate) fn seen(&self, seen: &Seen<'a>, loan: &Loan) -> Result<Vec<Observation<'a>>, Doubt> {
        let (wanted, look) = self.look(seen, &loan.spans, 0)?;
        let (handle, nbytes, profiles) = (&loan.handle[..], loan.nbytes, vec![&self.profiles[..]]);
        let compare = Compare { who: asker(), handle, nbytes, profiles, looks: vec![look] };
        let found = self.resident.compare(&compare)?.pop().ok_or(Doubt::Look)?;
        self.observations(seen, wanted, found)
    }

    fn observations(
        &self,
        seen: &Seen<'a>,
        wanted: Vec<&'a ExpectedTensor>,
        found: Compared<Figures>,
    ) -> Result<Vec<Observation<'a>>, Doubt> {
        if found.unchanged.contains(&false) {
            return Err(self.doubt(|| modified("input-modified", "an input or state")));
        }
        if seen.again && !matches!(found.same, Some(Same::Equal | Same::Close)) {
            return Err(self.doubt(|| {
                let what = "the results change with the contents of memory that nothing wrote, or from run to run";
                Stop::new(VerdictKind::MemoryFault, "uninitialised-read", what)
            }));
        }
        let tensors = wanted.into_iter().zip(found.tensors);
        tensors.map(|(expected, tensor)| self.observation(seen, expected, tensor)).collect()
    }

    /// What to look at, and what the tensors are. `spans` are the places of the plan's buffers, `profiles` names the
    /// trial's among several lists.
    fn look(
        &self,
        seen: &Seen<'a>,
        spans: &[(u64, u64)],
        profiles: usize,
    ) -> Result<(Vec<&'a ExpectedTensor>, Look<'a>), Doubt> {
        let (mut all, mut tensors, mut unchanged) = (Vec::new(), Vec::new(), Vec::new());
        let mut add = |wanted: &'a ExpectedTensor, strides: Vec<i64>, offset: u64| {
            let exact = self.profiles.iter().map(|profile| must_equal(profile, wanted)).collect();
            let (native, float64, dtype) = (wanted.native, wanted.float64, wanted.dtype);
            tensors.push(Found { native, float64, dtype, shape: &wanted.shape, strides, offset, exact });
            all.push(wanted);
        };
        for (name, tensor) in self.trial.plan.output.results() {
            if let Some(wanted) = expected(seen.call, &name) {
                let start = spans.get(tensor.buffer).ok_or(Doubt::Look)?.0;
                if (&tensor.view.shape, tensor.view.dtype) != (&wanted.shape, wanted.dtype) {
                    return Err(Doubt::Look);
                }
                add(wanted, tensor.view.strides.clone(), start + tensor.view.offset);
            }
        }
        let inputs = seen.call.inputs.iter().enumerate();
        let inputs = inputs.map(|(at, blob)| (format!("input[{at}]"), *blob, BufferSource::Input { index: at }));
        let state = self.trial.signature.state.iter().zip(&self.trial.trial.state);
        let state = state.map(|(entry, blob)| {
            let name = entry.name.clone();
            (format!("state.{name}"), *blob, BufferSource::State { name })
        });
        for (path, blob, source) in inputs.chain(state) {
            let buffers = self.trial.plan.buffers.iter().zip(spans).filter(|(buffer, _)| buffer.source == source);
            let mut places = buffers.map(|(_, span)| *span);
            let (place, another) = (places.next(), places.next());
            match (place, expected(seen.call, &path)) {
                _ if another.is_some() => return Err(Doubt::Look),
                (Some((start, size)), Some(wanted)) => {
                    if View::contiguous(wanted.dtype, &wanted.shape).numel() * wanted.dtype.size() != size {
                        return Err(Doubt::Look);
                    }
                    add(wanted, View::contiguous(wanted.dtype, &wanted.shape).strides, start);
                }
                // What an earlier call left there is known to nobody but the executor.
                (Some(_), None) if seen.written.contains(&path) => return Err(Doubt::Look),
                (Some((start, size)), None) if size == blob.nbytes => unchanged.push((blob, start)),
                (Some(_), None) => return Err(Doubt::Look),
                (None, Some(_)) => return Err(Doubt::Look),
                (None, None) => {}
            }
        }
        // Each is looked at once, and none is left out.
        if all.len() != seen.call.expected.tensors.len() {
            return Err(Doubt::Look);
        }
        Ok((all, Look { tensors, unchanged, profiles, remember: seen.remember, again: seen.again }))
    }

    fn observation(
        &self,
        seen: &Seen<'a>,
        expected: &'a ExpectedTensor,
        tensor: ComparedTensor<Figures>,
    ) -> Result<Observation<'a>, Doubt> {
        let got = match tensor {
            ComparedTensor::Bytes(bytes) => Got::Bytes(bytes),
            ComparedTensor::Figures(figures) => {
                let mut both = self.profiles.iter().zip(&figures);
                if figures.len() != self.profiles.len() || !both.clone().all(|(one, found)| found.fit(one, expected)) {
                    return Err(Doubt::Look);
                }
                let right = both.next().is_none_or(|(profile, figures)| judge_figures(profile, expected, figures).pass);
                if self.decides && !right && self.by_bytes {
                    return Err(Doubt::Look);
                }
                Got::Figures(figures)
            }
        };
        Ok(Observation { expected, call: seen.number, got })
    }

    /// The path by bytes finds out which launch it was; without that path the fault is told as it is.
    fn fault(&self, fault: Fault) -> Doubt {
        match Doubt::from(fault.clone()) {
            Doubt::Look if !self.by_bytes => Doubt::Stop(fault.into()),
            doubt => doubt,
        }
    }

    /// The path by bytes, or what to say without it.
    fn doubt(&self, stop: impl FnOnce() -> Stop) -> Doubt {
        if self.by_bytes { Doubt::Look } else { Doubt::Stop(stop()) }
    }
}

/// Set in the environment, it keeps data on the path by bytes, to compare the two.
const HOST_DATA: &str = "TILEWRIGHT_HOST_DATA";

pub(crate) fn allowed() -> bool {
    std::env::var_os(HOST_DATA).is_none()
}

/// Bytes of a trial's data that may go through the host's memory.
pub(crate) const BY_BYTES: u64 = 4 << 30;

/// Bytes of the memory of runs that are asked for together, unless one of them takes more.
const TOGETHER: u64 = 2 << 30;

/// A number that nobody else has who asks the process that holds the data.
fn asker() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// What is looked at after a call.
#[derive(Clone)]
pub(crate) struct Seen<'a> {
    number: usize,
    call: &'a CallData,
    /// What earlier calls should have written.
    written: BTreeSet<String>,
    remember: bool,
    again: bool,
}

impl<'a> Seen<'a> {
    /// After a first call by itself.
    pub(crate) fn first(call: &'a CallData) -> Self {
        Self { number: 0, call, written: BTreeSet::new(), remember: false, again: false }
    }
}

/// One run of a trial.
#[derive(Clone)]
struct Step<'a> {
    /// Which of the trials.
    trial: usize,
    run: SharedRun,
    seen: Seen<'a>,
}

/// A plan on several of its trials: as many runs at a time as fit together, so that processes wait for each other and
/// memory is mapped a few times in all.
pub(crate) fn run_all<'a>(
    trials: &[SharedTrial<'a, '_, '_>],
    executables: &Executables<'_>,
    device: &mut CudaDevice,
    waited: &Waited,
) -> Vec<Result<TrialOutcome<'a>, Doubt>> {
    let mut outcomes: Vec<Result<TrialOutcome<'a>, Doubt>> =
        trials.iter().map(|_| Ok(TrialOutcome::default())).collect();
    let (mut steps, before) = (Vec::new(), waited.time());
    for (at, trial) in trials.iter().enumerate() {
        match trial.steps() {
            Ok(all) => steps.extend(all.into_iter().map(|(run, seen)| Step { trial: at, run, seen })),
            Err(doubt) => outcomes[at] = Err(doubt),
        }
    }
    let Some(plan) = trials.first().map(|trial| trial.trial.plan) else { return outcomes };
    let who = asker();
    for steps in together(plan, &steps) {
        // A run may go on from the one before it: after a trial's first doubt, the rest of it is left out.
        let mut steps: Vec<Step<'a>> = steps.iter().filter(|step| outcomes[step.trial].is_ok()).cloned().collect();
        let late = waited.time().saturating_sub(before);
        steps.iter_mut().for_each(|step| step.run.deadline = step.run.deadline.map(|at| at + late));
        let Err(doubt) = run_together(who, trials, &steps, executables, (&mut *device, waited), &mut outcomes) else {
            continue;
        };
        let first = steps.first().map_or(0, |step| step.trial);
        for outcome in outcomes.iter_mut().skip(first).filter(|outcome| outcome.is_ok()) {
            *outcome = Err(doubt.clone());
        }
    }
    outcomes
}

/// Runs in their order, in parts that are asked for together. Random numbers are part of a program, so that each run has
/// its own.
fn together<'s, 'a>(plan: &Plan, steps: &'s [Step<'a>]) -> std::slice::Chunks<'s, Step<'a>> {
    let fit = TOGETHER / plan.nbytes().max(1);
    steps.chunks(if plan.is_random() { 1 } else { fit.max(1) as usize })
}

/// Has some runs made and looked at. Whose results are in doubt gets that for an outcome; an error is everybody's.
fn run_together<'a>(
    who: u64,
    trials: &[SharedTrial<'a, '_, '_>],
    steps: &[Step<'a>],
    (kernels, own): &Executables<'_>,
    (device, waited): (&mut CudaDevice, &Waited),
    outcomes: &mut [Result<TrialOutcome<'a>, Doubt>],
) -> Result<(), Doubt> {
    let Some(first) = steps.first().map(|step| &trials[step.trial]) else { return Ok(()) };
    let plan = first.trial.plan;
    let constants: Vec<usize> = (0..plan.buffers.len())
        .filter(|&at| matches!(plan.buffers[at].source, BufferSource::Constant { .. }))
        .collect();
    let runs: Vec<SharedRun> = steps.iter().map(|step| step.run.clone()).collect();
    // Where there is a path by bytes, that attributes faults.
    let confirm = !first.by_bytes;
    let loans = device.run_all(plan, (kernels, own), &runs, &constants, confirm).map_err(|fault| first.fault(fault))?;
    let mut profiles: Vec<&[&Profile]> = Vec::new();
    let (mut looks, mut looked) = (Vec::new(), Vec::new());
    for ((step, spans), after) in steps.iter().zip(&loans.runs).zip(&loans.read) {
        let trial = &trials[step.trial];
        let before = constants.iter().map(|&at| step.run.contents[at].as_ref());
        // What one call leaves in a tensor of the module is no business of the next: see `check_left_over`.
        if before.zip(after).any(|(before, after)| !matches!(before, Some(Source::Bytes(bytes)) if bytes == after)) {
            outcomes[step.trial] = Err(trial.doubt(|| {
                let what =
                    "forward changes a tensor of the module, and the data are too large to see what comes of that";
                Stop::new(VerdictKind::Unsupported, "too-large", what)
            }));
            continue;
        }
        let list = profiles.iter().position(|known| *known == &trial.profiles[..]).unwrap_or_else(|| {
            profiles.push(&trial.profiles);
            profiles.len() - 1
        });
        match trial.look(&step.seen, spans, list) {
            Ok((wanted, look)) => {
                looks.push(look);
                looked.push((step, wanted));
            }
            Err(doubt) => outcomes[step.trial] = Err(doubt),
        }
    }
    let compare = Compare { who, handle: &loans.handle, nbytes: loans.nbytes, profiles, looks };
    waited.during(|| first.resident.idle());
    let found = first.resident.compare(&compare)?;
    for ((step, wanted), found) in looked.into_iter().zip(found) {
        let Ok(outcome) = &mut outcomes[step.trial] else { continue };
        match trials[step.trial].observations(&step.seen, wanted, found) {
            // The run over the usual poison is the first one that is told of.
            Ok(seen) if step.seen.again => drop(outcome.observations.splice(0..0, seen)),
            Ok(seen) => outcome.observations.extend(seen),
            Err(doubt) => outcomes[step.trial] = Err(doubt),
        }
    }
    Ok(())
}

/// Weights, then the inputs of each call.
fn blobs<'a>(trial: &TrialRun<'a, '_>) -> impl Iterator<Item = &'a Blob> {
    let trial = trial.trial;
    trial.state.iter().chain(trial.calls.iter().flat_map(|call| &call.inputs))
}

/// The profiles at a trial's place, and whether the first one decides there.
pub(crate) fn at_place<'p>(tally: &'p tilewright_judge::Tally, place: Place<'_>) -> (Vec<&'p Profile>, bool) {
    let profiles = tally.profiles_at(place);
    let decides = place.own() || profiles.first().is_some_and(|profile| profile.decides_robustness);
    (profiles, decides)
}
