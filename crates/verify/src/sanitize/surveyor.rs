//! Executes a plan to find what its launches do wrong, again where only a second run can tell.

use tilewright_contract::{Dtype, Hazard, HazardKind, LaunchCost, Plan};
use tilewright_replay::{CpuDevice, FaultKind, Run, RunResult, Survey, writer};

use crate::draft::Stop;
use crate::execute::{OTHER_POISON, alike, matters};

/// Hazards of any number of executions, and what kept others from running.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) hazards: Vec<Hazard>,
    /// Where NaN and infinities that outputs hold are made.
    pub(crate) births: Vec<Hazard>,
    pub(crate) executions: u64,
    /// Of the first call.
    pub(crate) costs: Vec<LaunchCost>,
    pub(crate) notes: Vec<String>,
    pub(crate) stop: Option<Stop>,
}

/// Looks at executions of one plan. The tensors of its output are what counts as a result.
pub(crate) struct Surveyor<'a> {
    device: &'a CpuDevice,
    plan: &'a Plan,
    births: bool,
    pub(crate) found: Found,
}

impl<'a> Surveyor<'a> {
    pub(crate) fn new(device: &'a CpuDevice, plan: &'a Plan, births: bool) -> Self {
        Self { device, plan, births, found: Found { executions: 1, ..Found::default() } }
    }

    /// Executes the plan and enters what is wrong. `again`: also runs over another poison where lanes or memory without a
    /// value were read, and with the programs in reverse.
    pub(crate) fn call(&mut self, run: &Run, again: bool) -> Result<RunResult, Stop> {
        let Survey { result, hazards, births } = self.device.survey(self.plan, run, self.births)?;
        // What comes after a mistake does not say whether results depend on something else, too.
        let whole = hazards.is_empty();
        hazards.into_iter().for_each(|hazard| self.found.add(hazard));
        if self.found.costs.is_empty() {
            self.found.costs.clone_from(&result.costs);
        }
        self.reached(&result, births);
        self.defects(&result);
        if whole {
            self.unwritten(&result);
        }
        if again {
            self.poison(run, &result, whole)?;
            self.order(run, &result, whole)?;
        }
        Ok(result)
    }

    /// Births of what outputs hold.
    fn reached(&mut self, result: &RunResult, births: Vec<Hazard>) {
        if births.is_empty() {
            return;
        }
        let (mut nan, mut infinite) = (false, false);
        for (_, tensor) in self.plan.output.tensors().into_iter().filter(|(_, tensor)| tensor.view.dtype.is_float()) {
            let mut values = Vec::new();
            tilewright_judge::decode(
                tensor.view.dtype,
                &tensor.view.gather(&result.buffers[tensor.buffer]),
                &mut values,
            );
            nan |= values.iter().any(|value| value.is_nan());
            infinite |= values.iter().any(|value| value.is_infinite());
        }
        for birth in births {
            // An infinity becomes a NaN in a difference or a product with zero.
            let there = if birth.kind == HazardKind::Nan { nan } else { nan || infinite };
            if there && !self.found.births.iter().any(|known| known.same(&birth) && known.message == birth.message) {
                self.found.births.push(birth);
            }
        }
    }

    /// Defects other than unwritten memory, where they decided something or reached a result.
    fn defects(&mut self, result: &RunResult) {
        for defect in &result.defects {
            let counts = match defect.fault.kind {
                FaultKind::Overflow => defect.decided,
                FaultKind::UninitialisedRead => false,
                _ => matters(self.plan, defect, result),
            };
            if counts {
                self.found.add(defect.hazard.clone());
            }
        }
    }

    /// Reads of unwritten memory that matter, and lanes that a mask leaves undefined.
    fn poison(&mut self, run: &Run, result: &RunResult, whole: bool) -> Result<(), Stop> {
        let read = result.defects.iter().filter(|defect| defect.fault.kind == FaultKind::UninitialisedRead);
        let used: Vec<_> = read.filter(|defect| matters(self.plan, defect, result)).collect();
        if used.is_empty() && !(result.undefined_lanes && whole) {
            return Ok(());
        }
        let other = Run { poison: OTHER_POISON, lanes: OTHER_POISON, ..run.clone() };
        let again = self.device.survey(self.plan, &other, false)?;
        // A hazard that only one of the runs has is a difference, too.
        let differs = again.hazards.is_empty() != whole || !self.same(result, &again.result, |_, a, b| a == b);
        again.hazards.into_iter().for_each(|hazard| self.found.add(hazard));
        match (&used[..], differs) {
            ([], false) => {}
            ([], true) => {
                let message = "the results depend on lanes that a masked load without `other` leaves undefined";
                self.found.add(Hazard::new(HazardKind::UndefinedLanes, message));
            }
            (used, true) => used.iter().for_each(|defect| self.found.add(defect.hazard.clone())),
            (used, false) => {
                let notes = used.iter().map(|defect| format!("{} (without effect on the results)", defect.fault));
                self.found.notes.extend(notes);
            }
        }
        Ok(())
    }

    /// Races that atomic operations put in order by chance, and results that depend on the order of programs.
    fn order(&mut self, run: &Run, result: &RunResult, whole: bool) -> Result<(), Stop> {
        let again = self.device.survey(self.plan, &Run { reverse: true, ..run.clone() }, false)?;
        let alike = |dtype, a: &[u8], b: &[u8]| a == b || alike(dtype, a, b);
        let same = !whole || !again.hazards.is_empty() || self.same(result, &again.result, alike);
        again.hazards.into_iter().for_each(|hazard| self.found.add_turned(hazard));
        if !same {
            let message = "the results depend on the order in which the programs of a launch run";
            self.found.add(Hazard::new(HazardKind::Nondeterministic, message));
        }
        Ok(())
    }

    /// Whether the results of two runs are the same.
    fn same(&self, first: &RunResult, second: &RunResult, equal: impl Fn(Dtype, &[u8], &[u8]) -> bool) -> bool {
        self.plan.output.tensors().into_iter().all(|(_, tensor)| {
            let bytes = |result: &RunResult| tensor.view.gather(&result.buffers[tensor.buffer]);
            equal(tensor.view.dtype, &bytes(first), &bytes(second))
        })
    }

    /// Elements of outputs that nothing wrote.
    fn unwritten(&mut self, result: &RunResult) {
        let Some(shadow) = &result.shadow else { return };
        for (name, tensor) in self.plan.output.results() {
            let marks = tensor.view.offsets().map(|at| shadow[tensor.buffer][at]);
            let count = marks.filter(|&mark| mark == writer::UNWRITTEN).count() as u64;
            if count > 0 {
                let numel = tensor.view.numel();
                let message = format!("{name}: {count} of {numel} elements were never written");
                let tensor = Some(name);
                self.found.add(Hazard { count, tensor, ..Hazard::new(HazardKind::UnwrittenOutput, message) });
            }
        }
    }
}

impl Found {
    fn known(&mut self, hazard: &Hazard) -> Option<&mut Hazard> {
        self.hazards.iter_mut().find(|known| known.same(hazard))
    }

    /// Adds a hazard of this execution.
    fn add(&mut self, hazard: Hazard) {
        if self.known(&hazard).is_none() {
            self.hazards.push(hazard);
        }
    }

    /// Adds a hazard of the same launches in another order: a race has its sides exchanged there.
    fn add_turned(&mut self, hazard: Hazard) {
        let turned = Hazard { at: hazard.other, other: hazard.at, ..hazard.clone() };
        if hazard.kind != HazardKind::Race || self.known(&turned).is_none() {
            self.add(hazard);
        }
    }

    /// Adds what another execution showed.
    pub(crate) fn merge(&mut self, other: Self) {
        for hazard in other.hazards {
            match self.known(&hazard) {
                Some(known) => known.executions += hazard.executions,
                None => self.hazards.push(hazard),
            }
        }
        for birth in other.births {
            match self.births.iter_mut().find(|known| known.same(&birth) && known.kind == birth.kind) {
                Some(known) => known.executions += birth.executions,
                None => self.births.push(birth),
            }
        }
        self.executions += other.executions;
        if self.costs.is_empty() {
            self.costs = other.costs;
        }
        self.notes.extend(other.notes);
        self.stop = self.stop.take().or(other.stop);
    }

    /// Says in which execution its hazards were seen.
    pub(crate) fn name(&mut self, execution: &str) {
        let all = self.hazards.iter_mut().chain(&mut self.births);
        all.for_each(|hazard| execution.clone_into(&mut hazard.seen));
    }

    /// By line.
    pub(crate) fn sort(&mut self) {
        for hazards in [&mut self.hazards, &mut self.births] {
            hazards.sort_by_key(|hazard| (hazard.line(), hazard.kind));
        }
    }
}

impl From<Stop> for Found {
    fn from(stop: Stop) -> Self {
        Self { stop: Some(stop), ..Self::default() }
    }
}
