//! A trial whose data stay on the GPU: the executor maps inputs, the oracle's process maps results and compares.
//!
//! It can only say that all is as it should be, with the figures for the verdict. Whatever else is seen goes to the path
//! by bytes, which finds the reasons; unless the data are too many for it. See `docs/design/data-path.md`.

use std::collections::BTreeSet;

use tilewright_contract::{Blob, BufferSource, CallData, ExpectedTensor, Profile, VerdictKind, View};
use tilewright_judge::{Figures, Place, judge_figures, must_equal};
use tilewright_replay::cuda::CudaDevice;
use tilewright_replay::{Executable, Fault, FaultKind, Loan, SharedRun, Source};
use tilewright_stage::{Compare, Compared, ComparedTensor, Found, Places, Resident, Same, StageError};

use crate::draft::Stop;
use crate::execute::{Got, OTHER_POISON, Observation, POISON, TrialOutcome, TrialRun, expected, modified};

/// One plan on one trial.
pub(crate) struct SharedTrial<'a, 'd, 'r> {
    pub(crate) trial: &'r TrialRun<'a, 'd>,
    pub(crate) resident: &'r Resident,
    /// The plan's kernels and our own.
    pub(crate) executables: (Vec<Executable<'r>>, Vec<Executable<'r>>),
    /// As they hold at the trial's place.
    pub(crate) profiles: Vec<&'r Profile>,
    /// Whether the first profile decides there.
    pub(crate) decides: bool,
    /// Whether the path by bytes finds the reasons for what is wrong.
    by_bytes: bool,
    /// Where inputs and weights lie.
    places: Places,
}

/// Why there is no outcome.
pub(crate) enum Doubt {
    /// Not all is as it should be.
    Look,
    /// Memory cannot be shared here, or it does not work.
    Unshared(String),
    Stop(Stop),
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
        Self::Unshared(error.to_string())
    }
}

impl<'a, 'd, 'r> SharedTrial<'a, 'd, 'r> {
    pub(crate) fn new(
        trial: &'r TrialRun<'a, 'd>,
        resident: &'r Resident,
        executables: (Vec<Executable<'r>>, Vec<Executable<'r>>),
        (profiles, decides): (Vec<&'r Profile>, bool),
        by_bytes: bool,
    ) -> Result<Self, Doubt> {
        let blobs: Vec<Blob> = blobs(trial).copied().collect();
        let places = resident.places(&blobs)?;
        if places.handles.iter().any(Vec::is_empty) {
            return Err(Doubt::Unshared("the oracle's process cannot share memory (cuIpcGetMemHandle)".into()));
        }
        Ok(Self { trial, resident, executables, profiles, decides, by_bytes, places })
    }

    /// Calls the plan as often as the oracle called the reference. The first call runs over two poisons.
    pub(crate) fn outcome(&self, device: &mut CudaDevice) -> Result<TrialOutcome<'a>, Doubt> {
        self.trial.check_size().map_err(Doubt::Stop)?;
        let mut outcome = TrialOutcome::default();
        let mut written = BTreeSet::new();
        for (number, call) in self.trial.trial.calls.iter().enumerate() {
            let mut run = self.run(number, call, &written)?;
            let mut look = Look { number, call, written: &written, remember: false, again: false };
            if number == 0 {
                let first = SharedRun { poison: OTHER_POISON, ..run.clone() };
                look.remember = true;
                let seen = self.look(device, &first, &look)?;
                (look.remember, look.again) = (false, true);
                let again = self.look(device, &run, &look)?;
                outcome.observations.extend(again);
                outcome.observations.extend(seen);
            } else {
                run.poison = POISON;
                outcome.observations.extend(self.look(device, &run, &look)?);
            }
            written.extend(call.expected.tensors.iter().map(|tensor| tensor.path.clone()));
        }
        Ok(outcome)
    }

    /// What a call starts from. State that no earlier call should have written is that of the trial; other state is
    /// what the call before left.
    pub(crate) fn run(&self, number: usize, call: &CallData, written: &BTreeSet<String>) -> Result<SharedRun, Doubt> {
        let trial = self.trial;
        let source = |buffer: &tilewright_contract::Buffer| {
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

    /// Runs a call, and has what it left behind looked at.
    fn look(
        &self,
        device: &mut CudaDevice,
        run: &SharedRun,
        look: &Look<'_, 'a>,
    ) -> Result<Vec<Observation<'a>>, Doubt> {
        let plan = self.trial.plan;
        let constants: Vec<usize> = (0..plan.buffers.len())
            .filter(|&at| matches!(plan.buffers[at].source, BufferSource::Constant { .. }))
            .collect();
        let (kernels, steps) = &self.executables;
        let (loan, after) = device.run_shared(plan, (kernels, steps), run, &constants)?;
        // What one call leaves in a tensor of the module is no business of the next: see `check_left_over`.
        let before = constants.iter().map(|&at| run.contents[at].as_ref());
        if before.zip(&after).any(|(before, after)| !matches!(before, Some(Source::Bytes(bytes)) if bytes == after)) {
            return Err(Doubt::Look);
        }
        self.seen(look, &loan)
    }

    /// What a call left behind.
    pub(crate) fn seen(&self, look: &Look<'_, 'a>, loan: &Loan) -> Result<Vec<Observation<'a>>, Doubt> {
        let (paths, request) = self.request(look, loan)?;
        let compared: Compared<Figures> = self.resident.compare(&request)?;
        if compared.unchanged.contains(&false) {
            return Err(self.doubt(|| modified("input-modified", "an input or state")));
        }
        if look.again && !matches!(compared.same, Some(Same::Equal | Same::Close)) {
            return Err(self.doubt(|| {
                let what = "the results change with the contents of memory that nothing wrote, or from run to run";
                Stop::new(VerdictKind::MemoryFault, "uninitialised-read", what)
            }));
        }
        let found = paths.into_iter().zip(compared.tensors);
        found.map(|(expected, tensor)| self.observation(look, expected, tensor)).collect()
    }

    /// What to look at, and what the tensors are.
    fn request<'q>(
        &'q self,
        look: &Look<'_, 'a>,
        loan: &'q Loan,
    ) -> Result<(Vec<&'a ExpectedTensor>, Compare<'q>), Doubt>
    where
        'a: 'q,
    {
        let (mut paths, mut tensors, mut unchanged) = (Vec::new(), Vec::new(), Vec::new());
        let mut add = |wanted: &'a ExpectedTensor, strides: Vec<i64>, offset: u64| {
            let exact = self.profiles.iter().map(|profile| must_equal(profile, wanted)).collect();
            let (native, float64, dtype) = (wanted.native, wanted.float64, wanted.dtype);
            tensors.push(Found { native, float64, dtype, shape: &wanted.shape, strides, offset, exact });
            paths.push(wanted);
        };
        for (path, tensor) in self.trial.plan.output.tensors() {
            if let Some(wanted) = expected(look.call, &format!("output{path}")) {
                add(wanted, tensor.view.strides.clone(), loan.spans[tensor.buffer].0 + tensor.view.offset);
            }
        }
        let inputs = look.call.inputs.iter().enumerate();
        let inputs = inputs.map(|(at, blob)| (format!("input[{at}]"), *blob, BufferSource::Input { index: at }));
        let state = self.trial.signature.state.iter().zip(&self.trial.trial.state);
        let state = state.map(|(entry, blob)| {
            let name = entry.name.clone();
            (format!("state.{name}"), *blob, BufferSource::State { name })
        });
        for (path, blob, source) in inputs.chain(state) {
            let mut buffers =
                (0..self.trial.plan.buffers.len()).filter(|&at| self.trial.plan.buffers[at].source == source);
            let (buffer, another) = (buffers.next(), buffers.next());
            match (buffer, expected(look.call, &path)) {
                _ if another.is_some() => return Err(Doubt::Look),
                (Some(at), Some(wanted)) => {
                    add(wanted, View::contiguous(wanted.dtype, &wanted.shape).strides, loan.spans[at].0);
                }
                // What an earlier call left there is known to nobody but the executor.
                (Some(_), None) if look.written.contains(&path) => return Err(Doubt::Look),
                (Some(at), None) => unchanged.push((blob, loan.spans[at].0)),
                (None, Some(_)) => return Err(Doubt::Look),
                (None, None) => {}
            }
        }
        let Look { remember, again, .. } = *look;
        let (handle, nbytes, profiles) = (&loan.handle[..], loan.nbytes, &self.profiles[..]);
        Ok((paths, Compare { handle, nbytes, tensors, unchanged, profiles, remember, again }))
    }

    fn observation(
        &self,
        look: &Look<'_, 'a>,
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
        Ok(Observation { expected, call: look.number, got })
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

/// What is looked at after a call.
pub(crate) struct Look<'l, 'a> {
    number: usize,
    call: &'a CallData,
    /// What earlier calls should have written.
    written: &'l BTreeSet<String>,
    remember: bool,
    again: bool,
}

impl<'l, 'a> Look<'l, 'a> {
    /// After a first call by itself; `nothing` was written before.
    pub(crate) fn first(call: &'a CallData, nothing: &'l BTreeSet<String>) -> Self {
        Self { number: 0, call, written: nothing, remember: false, again: false }
    }
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
