//! Everything that a candidate's launches do wrong with memory, and not whether their results are right.

mod surveyor;

use std::path::Path;
use std::time::Instant;

use tilewright_contract::{SanitizeOutcome, SanitizeReport, Stopped};
use tilewright_replay::Contents;

use crate::build::Build;
use crate::coverage;
use crate::draft::{Draft, Stop};
use crate::execute::TrialRun;
use crate::oracle::OracleSet;
use crate::pipeline::{Verifier, parallel};
use crate::problem::{Problem, identify};
use crate::replay::{TrialOf, trials};
use crate::weights::Weights;
pub(crate) use surveyor::{Found, Surveyor};

impl Verifier {
    /// Runs a candidate's launches in the emulator on every case and value regime of a problem, and lists what they do
    /// wrong; with `births` also where NaN and infinities in the outputs come from. Never fails: what kept it from running
    /// is in the report.
    pub fn sanitize(&self, problem: &Problem, path: &Path, source: &[u8], births: bool) -> SanitizeReport {
        let mut draft = Draft::new(&self.options, problem.id.clone(), identify(path, source));
        let mut found = self.found(problem, source, births, &mut draft).unwrap_or_else(|stop| stop.into());
        found.notes.iter().for_each(|note| draft.note(note.clone()));
        found.sort();
        let verdict = draft.verdict;
        SanitizeReport {
            schema: SanitizeReport::SCHEMA.into(),
            outcome: found.outcome(),
            problem: verdict.problem,
            candidate: verdict.candidate,
            target: verdict.target,
            arch: verdict.arch,
            hazards: found.hazards,
            births: found.births,
            stopped: found.stop.map(|stop| Stopped { verdict: stop.kind, reasons: stop.reasons }),
            executions: found.executions,
            costs: found.costs,
            stages: verdict.stages,
            notes: verdict.notes,
        }
    }

    fn found(&self, problem: &Problem, source: &[u8], births: bool, draft: &mut Draft) -> Result<Found, Stop> {
        let candidate = self.screened(problem, source, draft)?;
        let traces = self.traced(&candidate, draft)?;
        for finding in coverage::unproven(&candidate.cut.calls, &traces) {
            draft.note(format!("line {} is not covered: {}", finding.line, finding.message));
        }
        let weights = draft.stage("weights", || self.match_weights(&candidate, &traces))?;
        let oracle = weights.oracle(&candidate);
        let build = Build::new(self, &candidate, &traces, draft)?;
        let trials = trials(&build, oracle);
        let all = draft.stage("emulate", || {
            parallel(&trials, |trial| self.examine(trial, oracle, &weights, births, candidate.deadline()))
        });
        let mut found = Found::default();
        all.into_iter().for_each(|one| found.merge(one));
        Ok(found)
    }

    fn examine(
        &self,
        trial: &TrialOf<'_>,
        oracle: &OracleSet,
        weights: &Weights,
        births: bool,
        deadline: Instant,
    ) -> Found {
        let Some(device) = trial.built.cpu() else {
            return Stop::infrastructure("the sanitiser runs in the emulator alone: ask for the target cpu").into();
        };
        let run = self.trial_run(trial, device, oracle, weights, deadline);
        let mut surveyor = Surveyor::new(device, &trial.built.plan, births);
        let outcome = every_call(&run, &mut surveyor);
        let mut found = surveyor.found;
        found.name(&trial.name());
        found.stop = outcome.err().map(|stop| trial.place(stop));
        found
    }
}

/// Calls a plan as often as the oracle called the reference, state carried along.
fn every_call(trial: &TrialRun<'_, '_>, surveyor: &mut Surveyor<'_>) -> Result<(), Stop> {
    trial.check_size()?;
    let mut state = trial.state()?;
    let mut constants = trial.constants.clone();
    for (number, call) in trial.trial.calls.iter().enumerate() {
        let contents = Contents { inputs: trial.inputs(call)?, state: state.clone(), constants: constants.clone() };
        // What needs a second run is looked for in the first call alone.
        let result = surveyor.call(&trial.run(number, &contents)?, number == 0)?;
        trial.carry(&result, &mut state, &mut constants);
    }
    Ok(())
}

impl Found {
    /// What it amounts to.
    pub(crate) fn outcome(&self) -> SanitizeOutcome {
        match (&self.hazards[..], &self.stop) {
            ([], None) => SanitizeOutcome::Clean,
            ([], Some(_)) => SanitizeOutcome::Stopped,
            _ => SanitizeOutcome::Hazards,
        }
    }
}
