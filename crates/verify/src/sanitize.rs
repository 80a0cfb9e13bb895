//! Everything that a candidate's launches do wrong with memory, and not whether their results are right.

use std::path::Path;

use tilewright_contract::{CallData, Hazard, HazardKind, LaunchCost, SanitizeOutcome, SanitizeReport, Stopped};
use tilewright_replay::{Contents, CpuDevice, FaultKind, Run, RunResult, Survey, writer};

use crate::build::Build;
use crate::coverage;
use crate::draft::{Draft, Stop};
use crate::execute::{OTHER_POISON, TrialRun, alike};
use crate::pipeline::{TrialOf, Verifier, parallel, trials};
use crate::problem::{OracleSet, Problem, identify};
use crate::weights::Weights;

/// Hazards of any number of executions, and what kept others from running.
#[derive(Default)]
struct Found {
    hazards: Vec<Hazard>,
    executions: u64,
    costs: Vec<LaunchCost>,
    notes: Vec<String>,
    stop: Option<Stop>,
}

impl Verifier {
    /// Runs a candidate's launches in the emulator on every case and value regime of a problem, and lists what they do
    /// wrong. Never fails: what kept it from running is in the report.
    pub fn sanitize(&self, problem: &Problem, path: &Path, source: &[u8]) -> SanitizeReport {
        let mut draft = Draft::new(&self.options, problem.id.clone(), identify(path, source));
        let mut found = self.found(problem, source, &mut draft).unwrap_or_else(|stop| stop.into());
        found.notes.into_iter().for_each(|note| draft.note(note));
        found.hazards.sort_by_key(|hazard| (hazard.line(), hazard.kind));
        let verdict = draft.verdict;
        SanitizeReport {
            schema: SanitizeReport::SCHEMA.into(),
            outcome: match (&found.hazards[..], &found.stop) {
                ([], None) => SanitizeOutcome::Clean,
                ([], Some(_)) => SanitizeOutcome::Stopped,
                _ => SanitizeOutcome::Hazards,
            },
            problem: verdict.problem,
            candidate: verdict.candidate,
            target: verdict.target,
            arch: verdict.arch,
            hazards: found.hazards,
            stopped: found.stop.map(|stop| Stopped { verdict: stop.kind, reasons: stop.reasons }),
            executions: found.executions,
            costs: found.costs,
            stages: verdict.stages,
            notes: verdict.notes,
        }
    }

    fn found(&self, problem: &Problem, source: &[u8], draft: &mut Draft) -> Result<Found, Stop> {
        let candidate = self.screened(problem, source, draft)?;
        let traces = self.traced(&candidate, draft)?;
        for finding in coverage::unproven(&candidate.cut.calls, &traces) {
            draft.note(format!("line {} is not covered: {}", finding.line, finding.message));
        }
        let weights = draft.stage("weights", || self.match_weights(&candidate, &traces))?;
        let oracle = weights.oracle(&candidate);
        let build = Build::new(self, &candidate, &traces, draft)?;
        let trials = trials(&build, oracle);
        let all = draft
            .stage("emulate", || parallel(&trials, |trial| self.examine(trial, oracle, &weights, candidate.deadline)));
        let mut found = Found::default();
        all.into_iter().for_each(|one| found.merge(one));
        Ok(found)
    }

    fn examine(
        &self,
        trial: &TrialOf<'_>,
        oracle: &OracleSet,
        weights: &Weights,
        deadline: std::time::Instant,
    ) -> Found {
        let Some(device) = trial.built.cpu() else {
            return Stop::infrastructure("the sanitiser runs in the emulator alone: ask for the target cpu").into();
        };
        let run = self.trial_run(trial, device, oracle, weights, deadline);
        let mut examined = Examined { device, run, found: Found { executions: 1, ..Found::default() } };
        let outcome = examined.trial();
        let mut found = examined.found;
        found.hazards.iter_mut().for_each(|hazard| hazard.seen = trial.name());
        found.stop = outcome.err().map(|stop| trial.place(stop));
        found
    }
}

/// One plan on one trial.
struct Examined<'a, 'd> {
    device: &'d CpuDevice,
    run: TrialRun<'a, 'd>,
    found: Found,
}

impl Examined<'_, '_> {
    /// Calls the plan as often as the oracle called the reference.
    fn trial(&mut self) -> Result<(), Stop> {
        self.run.check_size()?;
        let mut state = self.run.state();
        let mut constants = self.run.constants.clone();
        for (number, call) in self.run.trial.calls.iter().enumerate() {
            let inputs = self.run.inputs(call);
            let contents = Contents { inputs, state: state.clone(), constants: constants.clone() };
            let run = self.run.run(number, &contents)?;
            let result = self.call(number, call, &run)?;
            self.run.carry(&result, &mut state, &mut constants);
        }
        Ok(())
    }

    fn call(&mut self, number: usize, call: &CallData, run: &Run) -> Result<RunResult, Stop> {
        let Survey { result, hazards } = self.device.survey(self.run.plan, run)?;
        // What comes after a mistake is of no use to say whether results depend on something else, too.
        let whole = hazards.is_empty();
        hazards.into_iter().for_each(|hazard| self.found.add(hazard));
        if self.found.costs.is_empty() {
            self.found.costs.clone_from(&result.costs);
        }
        self.defects(&result);
        if whole {
            self.unwritten(call, &result);
        }
        if number == 0 {
            self.poison(run, &result, whole)?;
            self.order(run, &result, whole)?;
        }
        Ok(result)
    }

    /// Defects other than unwritten memory, where they decided something or reached a result.
    fn defects(&mut self, result: &RunResult) {
        for defect in &result.defects {
            let counts = match defect.fault.kind {
                FaultKind::Overflow => defect.decided,
                FaultKind::UninitialisedRead => false,
                _ => self.run.matters(defect, result),
            };
            if counts {
                self.found.add(defect.hazard.clone());
            }
        }
    }

    /// Runs again over other poison: reads of unwritten memory that matter, and lanes that a mask leaves undefined.
    fn poison(&mut self, run: &Run, result: &RunResult, whole: bool) -> Result<(), Stop> {
        let read = result.defects.iter().filter(|defect| defect.fault.kind == FaultKind::UninitialisedRead);
        let used: Vec<_> = read.filter(|defect| self.run.matters(defect, result)).collect();
        if used.is_empty() && !result.undefined_lanes {
            return Ok(());
        }
        let other = Run { poison: OTHER_POISON, lanes: OTHER_POISON, ..run.clone() };
        let again = self.device.survey(self.run.plan, &other)?;
        let differs = again.hazards.is_empty() == whole && !self.same(result, &again.result, |_, a, b| a == b);
        again.hazards.into_iter().for_each(|hazard| self.found.add(hazard));
        let undefined = || {
            let message = "the results depend on lanes that a masked load without `other` leaves undefined";
            Hazard::new(HazardKind::UndefinedLanes, message)
        };
        match (&used[..], differs) {
            ([], true) if whole => self.found.add(undefined()),
            ([], _) => {}
            (used, true) => used.iter().for_each(|defect| self.found.add(defect.hazard.clone())),
            (used, false) => {
                let notes = used.iter().map(|defect| format!("{} (without effect on the results)", defect.fault));
                self.found.notes.extend(notes);
            }
        }
        Ok(())
    }

    /// Runs again with the programs in reverse: races that atomic operations put in order by chance, and results that
    /// depend on the order.
    fn order(&mut self, run: &Run, result: &RunResult, whole: bool) -> Result<(), Stop> {
        let again = self.device.survey(self.run.plan, &Run { reverse: true, ..run.clone() })?;
        let same = !whole || !again.hazards.is_empty() || self.same(result, &again.result, alike_or_equal);
        again.hazards.into_iter().for_each(|hazard| self.found.add_other(hazard));
        if !same {
            let message = "the results depend on the order in which the programs of a launch run";
            self.found.add(Hazard::new(HazardKind::Nondeterministic, message));
        }
        Ok(())
    }

    /// Whether the results of two runs are the same.
    fn same(
        &self,
        first: &RunResult,
        second: &RunResult,
        equal: impl Fn(tilewright_contract::Dtype, &[u8], &[u8]) -> bool,
    ) -> bool {
        self.run.observed().into_iter().all(|(_, tensor)| {
            let bytes = |result: &RunResult| tensor.view.gather(&result.buffers[tensor.buffer]);
            equal(tensor.view.dtype, &bytes(first), &bytes(second))
        })
    }

    /// Elements of outputs that nothing wrote.
    fn unwritten(&mut self, call: &CallData, result: &RunResult) {
        let Some(shadow) = &result.shadow else { return };
        for (path, tensor) in self.run.observed() {
            let marks = tensor.view.offsets().map(|at| shadow[tensor.buffer][at]);
            let count = marks.filter(|&mark| mark == writer::UNWRITTEN).count() as u64;
            if count > 0 && !call.expected.tensors.is_empty() {
                let numel = tensor.view.numel();
                let message = format!("output{path}: {count} of {numel} elements were never written");
                let tensor = Some(format!("output{path}"));
                self.found.add(Hazard { count, tensor, ..Hazard::new(HazardKind::UnwrittenOutput, message) });
            }
        }
    }
}

fn alike_or_equal(dtype: tilewright_contract::Dtype, first: &[u8], second: &[u8]) -> bool {
    first == second || alike(dtype, first, second)
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
    fn add_other(&mut self, hazard: Hazard) {
        let turned = Hazard { at: hazard.other, other: hazard.at, ..hazard.clone() };
        if hazard.kind != HazardKind::Race || self.known(&turned).is_none() {
            self.add(hazard);
        }
    }

    /// Adds what another execution showed.
    fn merge(&mut self, other: Self) {
        for hazard in other.hazards {
            match self.known(&hazard) {
                Some(known) => known.executions += hazard.executions,
                None => self.hazards.push(hazard),
            }
        }
        self.executions += other.executions;
        if self.costs.is_empty() {
            self.costs = other.costs;
        }
        self.notes.extend(other.notes);
        self.stop = self.stop.take().or(other.stop);
    }
}

impl From<Stop> for Found {
    fn from(stop: Stop) -> Self {
        Self { stop: Some(stop), ..Self::default() }
    }
}
