//! The main path: screen, trace, compile, replay, judge; one verdict.

use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tilewright_contract::{Finding, Opinion, OracleCase, Reason, Tier, Trial, Verdict, VerdictKind};
use tilewright_judge::{Judged, OWN_CASE, Place, Tally, check_output};
use tilewright_screen::Cut;
use tilewright_stage::{KernelSite, Permits, Resident, Stage, Trace, TraceRequest};

use crate::build::{Build, BuiltPlan};
use crate::draft::{Draft, Stop, Watch, stop_at};
use crate::execute::{POISON, Replay, TrialOutcome, TrialRun};
use crate::lane::{Lane, Seat, Slot};
use crate::opinion::{self, Reviewer};
use crate::options::{Mode, Options};
use crate::oracle::OracleSet;
use crate::problem::{Problem, identify};
use crate::shared::{Doubt, SharedTrial, at_place};
use crate::target::Device;
use crate::weights::Weights;
use crate::{confirm, coverage, direct, judging, keep, room, shared, timing};

/// Autotune configurations of a candidate that are traced, compiled and, on a CPU, executed.
const MAX_VARIANTS: u32 = 64;

/// How long the emulator may take over the smallest case of a candidate that is verified on a GPU.
const EMULATION: Duration = Duration::from_millis(1500);

/// How often a candidate is verified again because a process of ours ended.
const LOSSES: usize = 10;

/// Verifies candidates. One zygote, one cache and, for each GPU, one executor process serve all of them.
pub struct Verifier {
    pub(crate) stage: Stage,
    pub(crate) options: Options,
    /// The GPUs; none where launches run on a CPU.
    pub(crate) lanes: Vec<Lane>,
    /// Bytes of the host's memory for what candidates leave behind until it is judged.
    host: Permits,
    reviewer: Option<Reviewer>,
    /// The text of a file that is confirmed in the place of each candidate.
    pub(crate) confirmed_file: Option<String>,
    /// Records runs of unmodified files, once one is to be recorded.
    pub(crate) recorder: Mutex<Option<Arc<confirm::Recorder>>>,
    /// Set once the kernels that most problems' results are compared with are compiled.
    pub(crate) figures: OnceLock<()>,
}

/// A candidate on its way through the stages.
pub(crate) struct Candidate<'a> {
    pub(crate) problem: &'a Problem,
    /// The problem's data under random weights: what every candidate starts from.
    pub(crate) oracle: &'a OracleSet,
    pub(crate) source: String,
    pub(crate) cut: Cut,
    /// Its place on a GPU, once it needs one.
    pub(crate) seat: Option<Seat<'a>>,
    deadline: Instant,
    /// Time that it has waited for room in the host's memory, in microseconds.
    pub(crate) waited: AtomicU64,
}

impl<'a> Candidate<'a> {
    /// Until when it may take; waiting for what others have is not its time.
    pub(crate) fn deadline(&self) -> Instant {
        let waited = Duration::from_micros(self.waited.load(Ordering::Relaxed));
        self.deadline + waited + self.seat.as_ref().map_or(Duration::ZERO, Seat::waited)
    }
}

/// One execution: a plan on a trial.
pub(crate) struct TrialOf<'a> {
    pub(crate) built: &'a BuiltPlan,
    pub(crate) case: &'a OracleCase,
    pub(crate) trial: &'a Trial,
}

impl Verifier {
    pub fn new(stage: Stage, options: Options) -> Self {
        let lanes = match options.device {
            Device::Cpu => Vec::new(),
            Device::Cuda(ordinal) => vec![Lane::new(0, ordinal)],
        };
        Self {
            stage,
            options,
            lanes,
            host: room::for_candidates(),
            reviewer: None,
            confirmed_file: None,
            recorder: Mutex::new(None),
            figures: OnceLock::new(),
        }
    }

    /// Uses these GPUs side by side, which are of the kind of the options' device. Oracles run on the first one.
    pub fn with_gpus(mut self, ordinals: &[usize]) -> Self {
        self.lanes = ordinals.iter().enumerate().map(|(index, &ordinal)| Lane::new(index, ordinal)).collect();
        self
    }

    /// Asks `review` about the problem's and the candidate's text whenever a candidate is accepted.
    pub fn with_reviewer(mut self, review: impl Fn(&str, &str) -> Opinion + Send + Sync + 'static) -> Self {
        self.reviewer = Some(Box::new(review));
        self
    }

    /// Holds this file, instead of the candidate itself, against each candidate's plan: a copy that is in use elsewhere,
    /// or an attack that no trace would let through.
    pub fn with_confirmed_file(mut self, source: String) -> Self {
        self.confirmed_file = Some(source);
        self
    }

    /// Verifies one candidate. Never fails: whatever happens is in the verdict.
    pub fn verify(&self, problem: &Problem, path: &Path, source: &[u8]) -> Verdict {
        self.verify_watched(problem, path, source, &|_| {})
    }

    /// The same; `watch` hears of each stage as it begins.
    pub fn verify_watched(&self, problem: &Problem, path: &Path, source: &[u8], watch: Watch<'_>) -> Verdict {
        self.verdict(problem, path, source, confirm::chosen(&self.options, source), watch)
    }

    /// The same for the candidate that ends a search: on a GPU it is confirmed, whatever share of others is.
    pub fn verify_last(&self, problem: &Problem, path: &Path, source: &[u8]) -> Verdict {
        self.verdict(problem, path, source, true, &|_| {})
    }

    fn verdict(&self, problem: &Problem, path: &Path, source: &[u8], confirm: bool, watch: Watch<'_>) -> Verdict {
        let mut verdict = self.outliving(problem, |notes| {
            let mut draft = Draft::new(&self.options, problem.id.clone(), identify(path, source));
            draft.watch = Some(watch);
            notes.iter().for_each(|note| draft.note(note.clone()));
            let outcome = self.decide(problem, source, confirm, &mut draft);
            draft.finish(outcome)
        });
        if let Some(review) = self.reviewer.as_ref().filter(|_| verdict.verdict == VerdictKind::Accepted) {
            let opinion = review(&problem.text, &String::from_utf8_lossy(source));
            opinion::record(&mut verdict, opinion, self.options.profiles.first());
        }
        verdict
    }

    /// Verifies again, with what is to be noted, where this machine failed and can do better: the process that holds the
    /// problem's data ended meanwhile, or the GPU does not compute and there are others.
    pub(crate) fn outliving(&self, problem: &Problem, verify: impl Fn(&[String]) -> Verdict) -> Verdict {
        let mut notes = Vec::new();
        while notes.len() < LOSSES {
            let losses = problem.losses();
            let verdict = verify(&notes);
            let failed = verdict.verdict == VerdictKind::Infrastructure;
            // Others may have had the data made anew already.
            let lost = (failed || self.lacks_baselines(&verdict)) && problem.losses() != losses;
            if failed && let Some(lane) = self.fallen(&verdict.target) {
                notes.push(format!("verified again on another GPU: {lane} does not compute"));
            } else if lost && problem.revive(self).is_ok() {
                notes.push("verified again: the process that held the problem's data ended".to_owned());
            } else {
                // What hinders the data hinders the next candidate too, and is told there.
                return verdict;
            }
        }
        verify(&notes)
    }

    /// Whether an accepted candidate was not timed beside all that was asked for.
    fn lacks_baselines(&self, verdict: &Verdict) -> bool {
        let timed = verdict.timing.as_ref().map_or(0, |timing| timing.baselines.len());
        verdict.verdict == VerdictKind::Accepted
            && self.options.timing.as_ref().is_some_and(|asked| timed < asked.len())
    }

    /// The GPU of a verdict, where it does not compute and others do, or have not been found not to.
    fn fallen(&self, target: &str) -> Option<&Lane> {
        let lane = self.lanes.iter().find(|lane| lane.to_string() == target)?;
        let others = self.lanes.iter().any(|other| other.index != lane.index && !other.rests());
        (others && !lane.works()).then_some(lane)
    }

    /// The stages in order; the first one that decides ends it.
    fn decide(&self, problem: &Problem, source: &[u8], confirm: bool, draft: &mut Draft) -> Result<(), Stop> {
        let mut candidate = self.screened(problem, source, draft)?;
        if self.options.mode == Mode::Direct {
            return direct::decide(self, &candidate, draft);
        }
        let traces = self.traced(&candidate, draft)?;
        stop_at(&coverage::unproven(&candidate.cut.calls, &traces))?;
        let weights = draft.stage("weights", || self.match_weights(&candidate, &traces))?;
        weights.report(draft);
        let oracle = weights.oracle(&candidate);
        for (trace, case) in traces.iter().zip(&oracle.data.cases) {
            check_contract(trace, case)?;
        }
        let build = Build::new(self, &candidate, &traces, draft)?;
        keep::write(self, &candidate, &traces, &build, oracle)?;
        candidate.seat = Seat::find(&self.lanes);
        let Some(seat) = &candidate.seat else {
            let judged = self.replay(&candidate, &build, &weights, draft)?;
            return draft.judged(judged, &weights);
        };
        draft.verdict.target = seat.lane.to_string();
        let judged = self.replay_checked(&candidate, &build, &weights, draft)?;
        draft.judged(judged, &weights)?;
        if confirm {
            confirm::confirm(self, &candidate, &build, weights.oracle(&candidate), draft)?;
        }
        if self.options.timing.is_some() {
            draft.verdict.timing = timing::time(self, &candidate, &build, &weights, draft)?;
        }
        Ok(())
    }

    /// Runs every plan on the GPU, and meanwhile the smallest case in the emulator, whose objections come first.
    fn replay_checked(
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

    /// A candidate that the screen does not refuse.
    pub(crate) fn screened<'a>(
        &self,
        problem: &'a Problem,
        source: &[u8],
        draft: &mut Draft,
    ) -> Result<Candidate<'a>, Stop> {
        let deadline = Instant::now() + self.options.timeout;
        draft.spent("oracle", problem.seconds, false);
        let oracle = problem.oracle.as_ref().map_err(Clone::clone)?;
        oracle.data.notes.iter().for_each(|note| draft.note(note.clone()));
        let profile = self.options.profiles.first().map_or("", |profile| &profile.name);
        problem.degenerate.iter().for_each(|free| draft.note(format!("degenerate: {free} passes under {profile}")));
        let calls = oracle.calls();
        let cut = draft.stage("screen", || tilewright_screen::cut_for(source, calls))?;
        draft.see(&cut.findings);
        stop_at(&proofs(&cut.findings))?;
        let source = tilewright_screen::decode(source)?;
        Ok(Candidate { problem, oracle, source, cut, seat: None, deadline, waited: AtomicU64::new(0) })
    }

    /// Its plans, none of which the tracer refuses.
    pub(crate) fn traced(&self, candidate: &Candidate<'_>, draft: &mut Draft) -> Result<Vec<Trace>, Stop> {
        let traces = draft.stage("trace", || self.trace(candidate))?;
        for trace in &traces {
            stop_at_trace(trace, &candidate.cut, draft)?;
        }
        Ok(traces)
    }

    /// One trace for each case, side by side: cases differ in shapes, so their plans differ in grids and constants.
    fn trace(&self, candidate: &Candidate<'_>) -> Result<Vec<Trace>, Stop> {
        parallel(&candidate.oracle.data.cases, |case| self.trace_case(candidate, case)).into_iter().collect()
    }

    fn trace_case(&self, candidate: &Candidate<'_>, case: &OracleCase) -> Result<Trace, Stop> {
        let kernels = &candidate.cut.kernels;
        let kernels: Vec<_> =
            kernels.iter().map(|kernel| KernelSite { name: kernel.name.clone(), line: kernel.line }).collect();
        Ok(self.stage.trace(&TraceRequest {
            source: &candidate.source,
            signature: &case.signature,
            kernels: &kernels,
            calls: &candidate.cut.calls,
            target: &self.options.target,
            max_variants: MAX_VARIANTS,
        })?)
    }

    /// Every plan on its trials, judged in order.
    fn replay<'a>(
        &self,
        candidate: &'a Candidate<'_>,
        build: &'a Build,
        weights: &'a Weights,
        draft: &mut Draft,
    ) -> Result<Judged, Stop> {
        let oracle = weights.oracle(candidate);
        let new_tally = || Tally::new(self.options.profiles.clone(), Some(POISON));
        // In circumstances of its own a plan must be right too; what is not is told with them.
        let (mut tally, mut apart) = (new_tally(), Vec::new());
        let trials = trials(build, oracle);
        let holder = candidate.seat.as_ref().map(|seat| oracle.hold(self, seat.lane)).transpose();
        let holder = holder.map_err(|error| Stop::infrastructure(error.to_string()))?.flatten();
        let seat = candidate.seat.as_ref();
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
        for (trial, outcome) in trials.iter().zip(outcomes) {
            let outcome = outcome.map_err(|stop| trial.place(stop))?;
            outcome.notes.iter().for_each(|note| draft.note(note.clone()));
            if draft.verdict.costs.is_empty() {
                draft.verdict.costs.clone_from(&outcome.costs);
            }
            if trial.built.plan.is_usual() {
                judging::add(&mut tally, &trial.case.signature.case, trial.trial, &outcome.observations, oracle)?;
            } else {
                let mut other = new_tally();
                judging::add(&mut other, &trial.case.signature.case, trial.trial, &outcome.observations, oracle)?;
                apart.push((trial, other));
            }
        }
        let mut judged = tally.finish();
        let apart = if judged.pass { apart } else { Vec::new() };
        for (trial, other) in apart {
            let mut other = other.finish();
            if !other.pass {
                let stop = Stop { kind: VerdictKind::Incorrect, reasons: std::mem::take(&mut other.reasons) };
                judged = Judged { reasons: trial.place(stop).reasons, ..other };
                break;
            }
        }
        draft.spent("judge", start.elapsed().as_secs_f64(), false);
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
            let deadline = candidate.deadline();
            let runs: Vec<_> =
                trials.iter().map(|trial| self.trial_run(trial, &device, oracle, weights, deadline)).collect();
            let shared = held.filter(|_| refused.is_none());
            let mut shared = shared.map(|held| self.run_shared(slot, trials, &runs, held)).unwrap_or_default();
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
        let mut outcomes = shared::run_all(&shared, &first.built.executables(), &mut device);
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

/// Maps over all cores, in order. Threads of its own: in a shared pool one candidate's endless kernel would hold up
/// the others until their deadlines.
pub(crate) fn parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Vec<_> = items.iter().map(|_| Mutex::new(None)).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let (Some(item), Some(slot)) = (items.get(at), results.get(at)) else { return };
                    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(work(item));
                }
            });
        }
    });
    results.into_iter().filter_map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
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
        }
        stop
    }

    /// The autotune configuration, where it is not the first.
    fn configuration(&self) -> Option<String> {
        let choice = self.built.plan.choices.iter().rev().find(|choice| choice.index > 0)?;
        Some(match choice.is_circumstance() {
            true => choice.config.clone(),
            false => format!("{} under {}", choice.function, choice.config),
        })
    }

    /// Where it happened, in full.
    pub(crate) fn name(&self) -> String {
        let mut words = vec![format!("case {}", self.case.signature.case), self.trial.regime.clone()];
        words.extend(self.configuration());
        words.join(", ")
    }
}

/// The first plan of each case on every trial; each further configuration on the case's first trial.
pub(crate) fn trials<'a>(build: &'a Build, oracle: &'a OracleSet) -> Vec<TrialOf<'a>> {
    let mut trials = Vec::new();
    for built in &build.plans {
        let case = &oracle.data.cases[built.case];
        let taken = if built.main { case.trials.len() } else { 1 };
        trials.extend(case.trials.iter().take(taken).map(|trial| TrialOf { built, case, trial }));
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

fn proofs(findings: &[Finding]) -> Vec<Finding> {
    findings.iter().filter(|finding| finding.tier == Tier::Proof).cloned().collect()
}

/// Stops at what the tracer saw. A kernel that the screen could not cut out is explained by the screen.
fn stop_at_trace(trace: &Trace, cut: &Cut, draft: &mut Draft) -> Result<(), Stop> {
    for plan in &trace.plans {
        draft.see(&plan.findings);
        stop_at(&plan.findings).map_err(|mut stop| {
            if stop.reasons.iter().any(|reason| reason.code == "kernel-not-in-file") {
                let explained = cut.findings.iter().filter(|finding| finding.tier == Tier::Untraceable);
                stop.reasons.extend(explained.map(Reason::from));
            }
            stop
        })?;
        let empty = plan.output.tensors().iter().all(|(_, tensor)| tensor.view.numel() == 0);
        if !empty && plan.launches().next().is_none() {
            let message = "forward launches no Triton kernel";
            return Err(Stop::new(VerdictKind::Rejected, "no-launch", message)
                .help("compute the outputs in kernels that forward launches"));
        }
    }
    Ok(())
}

/// Structure, shape, dtype and aliasing of the outputs, before anything runs.
fn check_contract(trace: &Trace, case: &OracleCase) -> Result<(), Stop> {
    let Some(call) = case.trials.first().and_then(|trial| trial.calls.first()) else { return Ok(()) };
    for plan in &trace.plans {
        let reasons = check_output(&call.expected, &plan.output, &plan.buffers);
        if !reasons.is_empty() {
            return Err(Stop { kind: VerdictKind::Incorrect, reasons });
        }
    }
    Ok(())
}
