//! Replay and judge: every plan of a candidate on its trials, on a GPU or in the emulator.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tilewright_contract::{OracleCase, Trial, VerdictKind};
use tilewright_judge::{Judged, OWN_CASE, Place, Tally};
use tilewright_stage::Resident;

use crate::build::{Build, BuiltPlan};
use crate::draft::{Draft, Stop};
use crate::execute::{POISON, Replay, TrialOutcome, TrialRun};
use crate::lane::Slot;
use crate::oracle::OracleSet;
use crate::pipeline::{Candidate, Verifier, parallel};
use crate::shared::{Doubt, SharedTrial, at_place};
use crate::weights::Weights;
use crate::{judging, shared};

/// How long the emulator may take over the smallest case of a candidate that is verified on a GPU.
const EMULATION: Duration = Duration::from_millis(1500);

/// One execution: a plan on a trial.
pub(crate) struct TrialOf<'a> {
    pub(crate) built: &'a BuiltPlan,
    pub(crate) case: &'a OracleCase,
    pub(crate) trial: &'a Trial,
}

impl Verifier {
    /// Runs every plan on the GPU, and meanwhile the smallest case in the emulator, whose objections come first.
    pub(crate) fn replay_checked(
        &self,
        candidate: &Candidate<'_>,
        build: &Build,
        weights: &Weights,
        draft: &mut Draft,
    ) -> Result<Judged, Stop> {
        let Some(smallest) = smallest(build, weights.oracle(candidate)) else {
            return self.replay(candidate, build, weights, draft);
        };
        // Assembly could read clocks and keep data in variables of its own: none runs that nobody has understood.
        if smallest.built.has_assembly() {
            self.emulate(candidate, &smallest, weights).tell(draft)?;
            return self.replay(candidate, build, weights, draft);
        }
        std::thread::scope(|scope| {
            let emulated = scope.spawn(|| self.emulate(candidate, &smallest, weights));
            let judged = self.replay(candidate, build, weights, draft);
            emulated.join().unwrap_or_else(|panic| Emulated::stopped(Stop::bug(panic.as_ref()))).tell(draft)?;
            judged
        })
    }

    /// Every plan on its trials, judged in order.
    pub(crate) fn replay<'a>(
        &self,
        candidate: &'a Candidate<'_>,
        build: &'a Build,
        weights: &'a Weights,
        draft: &mut Draft,
    ) -> Result<Judged, Stop> {
        let oracle = weights.oracle(candidate);
        let trials = trials(build, oracle);
        let seat = candidate.seat.as_ref();
        // Whoever comes first has the data made here; that is not his time.
        let holder = seat.map(|seat| candidate.waited.during(|| oracle.hold(self, seat.lane))).transpose();
        let holder = holder.map_err(|error| Stop::infrastructure(error.to_string()))?.flatten();
        let turn = seat.map(|seat| draft.stage("wait", || (seat.executor(build.nbytes()), seat.beside())));
        let held = holder.as_deref().filter(|_| shared::allowed() && !oracle.data.stochastic);
        // Until all is judged.
        let held_room = OnceLock::new();
        let room = || {
            held_room.get_or_init(|| candidate.room(&self.host, &trials));
        };
        if turn.is_none() {
            draft.stage("wait", room);
        }
        let mut refused = None;
        let outcomes = draft.stage("replay", || match &turn {
            None => parallel(&trials, |trial| {
                let device = trial.built.device(None);
                self.trial_run(trial, &device, oracle, weights, candidate.deadline()).outcome()
            }),
            Some((slot, _)) => {
                self.replay_on_gpu(candidate, slot, &trials, (oracle, weights), held, (&mut refused, &room))
            }
        });
        drop(turn);
        if let Some(why) = refused {
            draft.note(format!("data went through the host's memory: {why}"));
        }
        let start = Instant::now();
        let judged = self.judge(&trials, outcomes, oracle, draft)?;
        draft.spent("judge", start.elapsed().as_secs_f64(), false);
        Ok(judged)
    }

    fn judge(
        &self,
        trials: &[TrialOf<'_>],
        outcomes: Vec<Result<TrialOutcome<'_>, Stop>>,
        oracle: &OracleSet,
        draft: &mut Draft,
    ) -> Result<Judged, Stop> {
        let new_tally = || Tally::new(self.options.profiles.clone(), Some(POISON));
        // In circumstances of its own a plan must be right too; what is not is told with them.
        let (mut tally, mut apart) = (new_tally(), Vec::new());
        for (trial, outcome) in trials.iter().zip(outcomes) {
            let outcome = outcome.map_err(|stop| trial.place(stop))?;
            outcome.notes.iter().for_each(|note| draft.note(note.clone()));
            if draft.verdict.costs.is_empty() {
                draft.verdict.costs.clone_from(&outcome.costs);
            }
            let mut other = (!trial.built.plan.is_usual()).then(new_tally);
            let to = other.as_mut().unwrap_or(&mut tally);
            judging::add(to, &trial.case.signature.case, trial.trial, &outcome.observations, oracle)?;
            apart.extend(other.map(|other| (trial, other)));
        }
        let judged = tally.finish();
        if !judged.pass {
            return Ok(judged);
        }
        for (trial, other) in apart {
            let mut other = other.finish();
            if !other.pass {
                let stop = Stop { kind: VerdictKind::Incorrect, reasons: std::mem::take(&mut other.reasons) };
                return Ok(Judged { reasons: trial.place(stop).reasons, ..other });
            }
        }
        Ok(judged)
    }

    /// A GPU does not tell who wrote an element, nor that a read went astray inside its own memory: the smallest case
    /// runs in the emulator too.
    fn emulate(&self, candidate: &Candidate<'_>, trial: &TrialOf<'_>, weights: &Weights) -> Emulated {
        let start = Instant::now();
        let run = || -> Result<(), Stop> {
            let device = trial.built.emulator()?;
            let deadline = candidate.deadline().min(start + EMULATION);
            let run = self.trial_run(trial, &device, weights.oracle(candidate), weights, deadline);
            if run.is_large() {
                return Err(Stop::new(VerdictKind::Timeout, "too-large", "its smallest case is too large"));
            }
            run.outcome().map(drop)
        };
        let (outcome, note) = match run() {
            Err(stop) if stop.kind == VerdictKind::Unsupported && trial.built.has_assembly() => (Err(stop), None),
            Err(stop) if matches!(stop.kind, VerdictKind::Unsupported | VerdictKind::Timeout) => {
                (Ok(()), Some(format!("not checked in the emulator: {}", stop.reasons[0].message)))
            }
            other => (other, None),
        };
        Emulated { outcome: outcome.map_err(|stop| trial.place(stop)), note, seconds: start.elapsed().as_secs_f64() }
    }

    /// The same for a candidate that has an executor on a GPU, up to the first trial that decides. Data stay there where they
    /// can; `refused` is why they cannot. `room` waits for room in the host's memory.
    fn replay_on_gpu<'a>(
        &self,
        candidate: &Candidate<'_>,
        slot: &Slot<'_>,
        trials: &[TrialOf<'a>],
        (oracle, weights): (&'a OracleSet, &'a Weights),
        held: Option<&Resident>,
        (refused, room): (&mut Option<String>, &dyn Fn()),
    ) -> Vec<Result<TrialOutcome<'a>, Stop>> {
        let mut outcomes = Vec::new();
        for trials in trials.chunk_by(|a, b| std::ptr::eq(a.built, b.built)) {
            let Some(built) = trials.first().map(|trial| trial.built) else { continue };
            let device = built.device(Some(slot));
            if let Some(held) = held {
                candidate.waited.during(|| held.idle());
            }
            let deadline = candidate.deadline();
            let runs: Vec<_> =
                trials.iter().map(|trial| self.trial_run(trial, &device, oracle, weights, deadline)).collect();
            let shared = held.filter(|_| refused.is_none());
            let shared = shared.map(|held| self.run_shared(candidate, slot, trials, &runs, held));
            let mut shared = shared.unwrap_or_default();
            shared.resize_with(trials.len(), || Err(Doubt::Look));
            for (run, shared) in runs.iter().zip(shared) {
                outcomes.push(match shared {
                    Ok(outcome) => Ok(outcome),
                    Err(Doubt::Stop(stop)) => Err(stop),
                    Err(doubt) => {
                        *refused = refused.take().or(doubt.for_all());
                        room();
                        by_bytes(&TrialRun { deadline: candidate.deadline(), ..*run }, refused.as_deref())
                    }
                });
                if outcomes.last().is_some_and(Result::is_err) {
                    return outcomes;
                }
            }
        }
        outcomes
    }

    /// Trials of one plan whose data stay on the GPU.
    fn run_shared<'a>(
        &self,
        candidate: &Candidate<'_>,
        slot: &Slot<'_>,
        trials: &[TrialOf<'a>],
        runs: &[TrialRun<'a, '_>],
        held: &Resident,
    ) -> Vec<Result<TrialOutcome<'a>, Doubt>> {
        let Some(first) = trials.first() else { return Vec::new() };
        let tally = Tally::new(self.options.profiles.clone(), None);
        let shared = trials.iter().zip(runs).map(|(trial, run)| {
            let place = Place { case: &trial.case.signature.case, regime: &trial.trial.regime, call: 0 };
            SharedTrial::new(run, held, at_place(&tally, place), !run.is_large())
        });
        let shared = match shared.collect::<Result<Vec<_>, Doubt>>() {
            Ok(shared) => shared,
            Err(doubt) => return trials.iter().map(|_| Err(doubt.clone())).collect(),
        };
        let mut device = slot.device();
        let mut outcomes = shared::run_all(&shared, &first.built.executables(), &mut device, &candidate.waited);
        if let Err(fault) = device.forget() {
            outcomes.fill_with(|| Err(Doubt::from(fault.clone())));
        }
        outcomes
    }

    pub(crate) fn trial_run<'a, 'd>(
        &self,
        trial: &TrialOf<'a>,
        device: &'d dyn Replay,
        oracle: &'a OracleSet,
        weights: &'a Weights,
        deadline: Instant,
    ) -> TrialRun<'a, 'd> {
        TrialRun {
            device,
            plan: &trial.built.plan,
            oracle,
            signature: &trial.case.signature,
            trial: trial.trial,
            constants: weights.constants(trial.built.case),
            deadline,
        }
    }
}

/// What the emulator said beside a GPU.
struct Emulated {
    outcome: Result<(), Stop>,
    note: Option<String>,
    seconds: f64,
}

impl Emulated {
    fn stopped(stop: Stop) -> Self {
        Self { outcome: Err(stop), note: None, seconds: 0.0 }
    }

    fn tell(self, draft: &mut Draft) -> Result<(), Stop> {
        draft.spent("emulate", self.seconds, false);
        self.note.into_iter().for_each(|note| draft.note(note));
        self.outcome
    }
}

impl TrialOf<'_> {
    /// Says in which configuration and on which inputs it happened, where those are not the problem's own.
    pub(crate) fn place(&self, mut stop: Stop) -> Stop {
        let mut words: Vec<String> = self.configuration().into_iter().collect();
        if self.case.signature.case != OWN_CASE {
            words.push(format!("case {}", self.case.signature.case));
        }
        if !words.is_empty()
            && let Some(reason) = stop.reasons.first_mut()
        {
            reason.message = format!("{} ({})", reason.message, words.join(", "));
            // What to do about a layout is told with it; nothing else is wrong.
            reason.help = reason.help.take().filter(|_| self.built.plan.own_regime().is_none());
        }
        stop
    }

    /// The autotune configurations, where they are not the first ones.
    fn configuration(&self) -> Option<String> {
        let changed = self.built.plan.choices.iter().filter(|choice| choice.index > 0);
        let named = changed.map(|choice| match choice.is_circumstance() {
            true => choice.config.clone(),
            false => format!("{} under {}", choice.function, choice.config),
        });
        named.reduce(|all, next| format!("{all}; {next}"))
    }

    /// Where it happened, in full.
    pub(crate) fn name(&self) -> String {
        let mut words = vec![format!("case {}", self.case.signature.case), self.trial.regime.clone()];
        words.extend(self.configuration());
        words.join(", ")
    }
}

/// The first plan of each case on every trial; each further configuration on the case's first trial, or on the one that it
/// is for.
pub(crate) fn trials<'a>(build: &'a Build, oracle: &'a OracleSet) -> Vec<TrialOf<'a>> {
    let mut trials = Vec::new();
    for built in &build.plans {
        let case = &oracle.data.cases[built.case];
        let taken = if built.main { case.trials.len() } else { 1 };
        let own = built.plan.own_regime();
        let suits = |trial: &&Trial| own.is_none_or(|regime| trial.regime == regime);
        trials.extend(case.trials.iter().filter(suits).take(taken).map(|trial| TrialOf { built, case, trial }));
    }
    trials
}

/// The first trial of the case with the least memory.
fn smallest<'a>(build: &'a Build, oracle: &'a OracleSet) -> Option<TrialOf<'a>> {
    let built = build.plans.iter().filter(|built| built.main).min_by_key(|built| built.plan.nbytes())?;
    let case = &oracle.data.cases[built.case];
    Some(TrialOf { built, case, trial: case.trials.first()? })
}

/// A trial whose data go through the host's memory.
fn by_bytes<'a>(run: &TrialRun<'a, '_>, refused: Option<&str>) -> Result<TrialOutcome<'a>, Stop> {
    if run.is_large() {
        let why = refused.unwrap_or("a comparison on the GPU failed");
        return Err(Stop::infrastructure(format!("the data are too large for the host's memory, and {why}")));
    }
    run.outcome()
}
