//! The main path: screen, trace, compile, replay, judge; one verdict.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tilewright_contract::{Finding, Opinion, OracleCase, Reason, Tier, Verdict, VerdictKind};
use tilewright_judge::check_output;
use tilewright_screen::Cut;
use tilewright_stage::{Permits, Stage, Trace};

use crate::build::Build;
use crate::configurations::left_out;
use crate::draft::{Draft, Stop, Watch, stop_at};
use crate::lane::{Lane, Seat, Waited};
use crate::opinion::{self, Reviewer};
use crate::options::{Mode, Options};
use crate::oracle::OracleSet;
use crate::problem::{Problem, identify};
use crate::target::Device;
use crate::{confirm, coverage, direct, keep, room, timing};

/// How often a candidate is verified again because a process of ours ended.
const LOSSES: usize = 10;

/// Verifies candidates. One zygote, one cache and, for each GPU, one executor process serve all of them.
pub struct Verifier {
    pub(crate) stage: Stage,
    pub(crate) options: Options,
    /// The GPUs; none where launches run on a CPU.
    pub(crate) lanes: Vec<Lane>,
    /// Bytes of the host's memory for what candidates leave behind until it is judged.
    pub(crate) host: Permits,
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
    /// For room in the host's memory, and for data of the problem.
    pub(crate) waited: Waited,
}

impl<'a> Candidate<'a> {
    /// Until when it may take; waiting for what others have is not its time.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline + self.waited.time() + self.seat.as_ref().map_or(Duration::ZERO, |seat| seat.waited.time())
    }
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

    /// What verdicts are made under.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Uses these GPUs side by side, which are of the kind of the options' device; without any, that device alone. Oracles
    /// run on the first that works.
    pub fn with_gpus(mut self, ordinals: &[usize]) -> Self {
        if ordinals.is_empty() {
            return self;
        }
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

    /// Verifies one candidate. Never fails: whatever happens is in the verdict, also a bug of ours.
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
        let verdict = || self.reviewed(problem, path, source, confirm, watch);
        catch_unwind(AssertUnwindSafe(verdict))
            .unwrap_or_else(|panic| self.stopped(problem, path, source, Stop::bug(panic.as_ref())))
    }

    /// The verdict on a candidate that no stage has seen.
    pub(crate) fn stopped(&self, problem: &Problem, path: &Path, source: &[u8], stop: Stop) -> Verdict {
        Draft::new(&self.options, problem.id.clone(), identify(path, source)).finish(Err(stop))
    }

    fn reviewed(&self, problem: &Problem, path: &Path, source: &[u8], confirm: bool, watch: Watch<'_>) -> Verdict {
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
        Ok(Candidate { problem, oracle, source, cut, seat: None, deadline, waited: Waited::default() })
    }

    /// Its plans, none of which the tracer refuses.
    pub(crate) fn traced(&self, candidate: &Candidate<'_>, draft: &mut Draft) -> Result<Vec<Trace>, Stop> {
        let traces = draft.stage("trace", || self.trace(candidate))?;
        for trace in &traces {
            stop_at_trace(trace, &candidate.cut, draft)?;
        }
        if let Some(note) = traces.first().and_then(left_out) {
            draft.note(note);
        }
        Ok(traces)
    }

    /// One trace for each case, side by side: cases differ in shapes, so their plans differ in grids and constants.
    fn trace(&self, candidate: &Candidate<'_>) -> Result<Vec<Trace>, Stop> {
        let cases: Vec<_> = candidate.oracle.data.cases.iter().enumerate().collect();
        try_parallel(&cases, |(at, case)| self.trace_case(candidate, case, *at == 0))
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

/// The same for what may fail. The first failure in order is the one that is told, so that nothing behind one is begun.
fn try_parallel<T: Sync, R: Send, E: Send>(items: &[T], work: impl Fn(&T) -> Result<R, E> + Sync) -> Result<Vec<R>, E> {
    let failed = AtomicUsize::new(usize::MAX);
    let items: Vec<_> = items.iter().enumerate().collect();
    let results = parallel(&items, |&(at, item)| {
        let needed = at < failed.load(Ordering::Relaxed);
        let result = needed.then(|| work(item))?;
        if result.is_err() {
            failed.fetch_min(at, Ordering::Relaxed);
        }
        Some(result)
    });
    results.into_iter().flatten().collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_in_order_is_told_and_nothing_behind_it_is_begun() {
        // Each case fails or not, and the later ones are done first.
        for failing in 0..64_u64 {
            let work = |&at: &u64| {
                std::thread::sleep(Duration::from_micros(50 * (6 - at)));
                if failing & (1 << at) != 0 { Err(at) } else { Ok(at) }
            };
            let told = (0..6).find(|at| failing & (1 << at) != 0);
            assert_eq!(try_parallel(&[0, 1, 2, 3, 4, 5], work), told.map_or(Ok(vec![0, 1, 2, 3, 4, 5]), Err));
        }
        let (many, begun): (Vec<usize>, _) = ((0..10_000).collect(), AtomicUsize::new(0));
        let work = |&at: &usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(1));
            if at == 0 { Err(at) } else { Ok(at) }
        };
        assert_eq!(try_parallel(&many, work), Err(0));
        assert!(begun.into_inner() < many.len());
    }
}
