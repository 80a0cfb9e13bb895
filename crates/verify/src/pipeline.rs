//! The main path: screen, trace, compile, replay, judge; one verdict.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tilewright_contract::{Finding, Opinion, OracleCase, Reason, Tier, Trial, Verdict, VerdictKind};
use tilewright_judge::{Judged, OWN_CASE, Tally, check_output};
use tilewright_replay::cuda::CudaDevice;
use tilewright_screen::Cut;
use tilewright_stage::{KernelSite, Stage, Trace, TraceRequest};

use crate::build::{Build, BuiltPlan};
use crate::draft::{Draft, Stop, stop_at};
use crate::execute::{POISON, Replay, TrialOutcome, TrialRun};
use crate::opinion::{self, Reviewer};
use crate::options::{Mode, Options};
use crate::problem::{OracleSet, Problem, identify};
use crate::target::Device;
use crate::weights::Weights;
use crate::{coverage, direct, judging, keep, timing};

/// Autotune configurations of a candidate that are traced, compiled and, on a CPU, executed.
const MAX_VARIANTS: u32 = 64;

/// How long the emulator may take over the smallest case of a candidate that is verified on a GPU.
const EMULATION: Duration = Duration::from_secs(20);

/// Verifies candidates. One zygote, one cache and, for a GPU, one executor process serve all of them.
pub struct Verifier {
    pub(crate) stage: Stage,
    pub(crate) options: Options,
    pub(crate) cuda: Option<Mutex<CudaDevice>>,
    /// Of the GPU, once they are known.
    pub(crate) rates: Mutex<Option<timing::Rates>>,
    reviewer: Option<Reviewer>,
}

/// A candidate on its way through the stages.
pub(crate) struct Candidate<'a> {
    pub(crate) problem: &'a Problem,
    /// The problem's data under random weights: what every candidate starts from.
    pub(crate) oracle: &'a OracleSet,
    pub(crate) source: String,
    pub(crate) cut: Cut,
    pub(crate) deadline: Instant,
}

/// One execution: a plan on a trial.
pub(crate) struct TrialOf<'a> {
    pub(crate) built: &'a BuiltPlan,
    pub(crate) case: &'a OracleCase,
    pub(crate) trial: &'a Trial,
}

impl Verifier {
    pub fn new(stage: Stage, options: Options) -> Self {
        let cuda = match options.device {
            Device::Cpu => None,
            Device::Cuda(ordinal) => Some(Mutex::new(CudaDevice::new(ordinal))),
        };
        Self { stage, options, cuda, rates: Mutex::new(None), reviewer: None }
    }

    /// Asks `review` about the problem's and the candidate's text whenever a candidate is accepted.
    pub fn with_reviewer(mut self, review: impl Fn(&str, &str) -> Opinion + Send + Sync + 'static) -> Self {
        self.reviewer = Some(Box::new(review));
        self
    }

    /// Verifies one candidate. Never fails: whatever happens is in the verdict.
    pub fn verify(&self, problem: &Problem, path: &Path, source: &[u8]) -> Verdict {
        let mut draft = Draft::new(&self.options, problem.id.clone(), identify(path, source));
        let outcome = self.decide(problem, source, &mut draft);
        let mut verdict = draft.finish(outcome);
        if let Some(review) = self.reviewer.as_ref().filter(|_| verdict.verdict == VerdictKind::Accepted) {
            let opinion = review(&problem.text, &String::from_utf8_lossy(source));
            opinion::record(&mut verdict, opinion, self.options.profiles.first());
        }
        verdict
    }

    /// The stages in order; the first one that decides ends it.
    fn decide(&self, problem: &Problem, source: &[u8], draft: &mut Draft) -> Result<(), Stop> {
        let candidate = self.screened(problem, source, draft)?;
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
        if self.cuda.is_some() {
            self.emulate_smallest(&candidate, &build, &weights, draft)?;
        }
        let judged = self.replay(&candidate, &build, &weights, draft)?;
        draft.judged(judged, &weights)?;
        if self.cuda.is_some() && self.options.timing.is_some() {
            let start = Instant::now();
            draft.verdict.timing = timing::time(self, &candidate, &build, &weights, draft)?;
            draft.spent("time", start.elapsed().as_secs_f64(), false);
        }
        Ok(())
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
        let cut = draft.stage("screen", || tilewright_screen::cut(source))?;
        draft.see(&cut.findings);
        stop_at(&proofs(&cut.findings))?;
        let source = tilewright_screen::decode(source)?;
        Ok(Candidate { problem, oracle, source, cut, deadline })
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
    fn replay(
        &self,
        candidate: &Candidate<'_>,
        build: &Build,
        weights: &Weights,
        draft: &mut Draft,
    ) -> Result<Judged, Stop> {
        let oracle = weights.oracle(candidate);
        let new_tally = || Tally::new(self.options.profiles.clone(), Some(POISON));
        // In circumstances of its own a plan must be right too; what is not is told with them.
        let (mut tally, mut apart) = (new_tally(), Vec::new());
        let trials = trials(build, oracle);
        let outcomes: Vec<_> = draft.stage("replay", || match self.options.device {
            Device::Cpu => parallel(&trials, |trial| self.run_trial(trial, oracle, weights, candidate.deadline)),
            Device::Cuda(_) => {
                trials.iter().map(|trial| self.run_trial(trial, oracle, weights, candidate.deadline)).collect()
            }
        });
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
    fn emulate_smallest(
        &self,
        candidate: &Candidate<'_>,
        build: &Build,
        weights: &Weights,
        draft: &mut Draft,
    ) -> Result<(), Stop> {
        let oracle = weights.oracle(candidate);
        let first = build.plans.iter().filter(|built| built.main);
        let Some(built) = first.min_by_key(|built| built.plan.nbytes()) else { return Ok(()) };
        let case = &oracle.data.cases[built.case];
        let Some(trial) = case.trials.first() else { return Ok(()) };
        let trial = TrialOf { built, case, trial };
        let outcome = draft.stage("emulate", || -> Result<(), Stop> {
            let device = built.emulator()?;
            let deadline = candidate.deadline.min(Instant::now() + EMULATION);
            let run = self.trial_run(&trial, &device, oracle, weights, deadline);
            run.outcome().map(drop)
        });
        match outcome {
            // Assembly could read clocks and keep data in variables of its own: none runs that nobody has understood.
            Err(stop) if stop.kind == VerdictKind::Unsupported && built.has_assembly() => Err(trial.place(stop)),
            Err(stop) if matches!(stop.kind, VerdictKind::Unsupported | VerdictKind::Timeout) => {
                draft.note(format!("not checked in the emulator: {}", stop.reasons[0].message));
                Ok(())
            }
            other => other.map_err(|stop| trial.place(stop)),
        }
    }

    fn run_trial<'a>(
        &self,
        trial: &TrialOf<'a>,
        oracle: &'a OracleSet,
        weights: &'a Weights,
        deadline: Instant,
    ) -> Result<TrialOutcome<'a>, Stop> {
        self.trial_run(trial, &trial.built.device(self), oracle, weights, deadline).outcome()
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

    /// Has the GPU to itself while `work` runs.
    pub(crate) fn cuda<T>(&self, work: impl FnOnce(&mut CudaDevice) -> T) -> Option<T> {
        self.cuda.as_ref().map(|device| work(&mut device.lock().unwrap_or_else(PoisonError::into_inner)))
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
