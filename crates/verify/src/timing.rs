//! How long an accepted candidate takes, on the problem's own shapes and inputs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tilewright_clock::{BLOCKS, enough, estimate, median, speedup};
use tilewright_contract::{
    BaselineKind, BaselineTime, ConfigurationTime, Dtype, LaunchTime, Timing, Value, VerdictKind,
};
use tilewright_judge::{OWN_REGIME, Tally};
use tilewright_replay::cuda::{Block, CudaDevice, Prepared, Results};
use tilewright_replay::{Call, Contents, Executable, Loan, Run, RunResult};
use tilewright_stage::Resident;

use crate::build::{Build, BuiltPlan, clock_builds};
use crate::comparison::{Comparison, MOST, SETS, Series, Trouble, next_pace};
use crate::draft::{Draft, Stop};
use crate::execute::{Observation, POISON, Replay, TrialRun};
use crate::lane::{Seat, Slot};
use crate::pipeline::{Candidate, Verifier};
use crate::shared::{Doubt, Seen, SharedTrial};
use crate::weights::Weights;
use crate::{judging, limits, shared};

/// How long candidate and baseline may be timed against each other, all that is done between the calls counted: others wait
/// for the device.
const COMPARISON: Duration = Duration::from_millis(40);
/// How long a series of the candidate alone may take.
const SERIES: Duration = Duration::from_millis(10);
/// Calls of a plan that are thrown away: the first ones meet a device whose clocks have sunk.
const WARM_UP: u32 = 9;
/// And how long they may take.
const WARM_UP_TIME: Duration = Duration::from_millis(5);
/// Calls that decide between autotune configurations.
const TUNING: u32 = 15;
/// Timed calls at most where every result is judged, because bits vary from call to call.
const JUDGED: usize = 20;
/// Times that timing begins anew after a fault, and after the executor was lost.
const FAULTS: u32 = 2;
const LOSSES: u32 = 10;
/// What a kernel that does nothing takes by torch's profiler, in microseconds (H200: 0.54 to 0.64). The rest of what events
/// measure around it is the cost of measuring, which they measure around every other kernel too.
const NOTHING: f64 = 0.6;

const COLD: Block = Block { calls: MOST, cold: true, launches: false, read_back: false };

/// Times the plan of the problem's own case; of several autotune configurations, the fastest.
///
/// What a timed call computes is what was judged: its results have the digest of an untimed call on the same inputs whose
/// results were judged, or, where bits vary from call to call, are judged themselves.
pub(crate) fn time(
    verifier: &Verifier,
    candidate: &Candidate<'_>,
    build: &Build,
    weights: &Weights,
    draft: &mut Draft,
) -> Result<Option<Timing>, Stop> {
    let Some(seat) = &candidate.seat else { return Ok(None) };
    let kinds = verifier.options.timing.as_deref().unwrap_or_default();
    let warm = || candidate.waited.during(|| candidate.problem.warm_baseline(verifier, seat.lane, kinds));
    if let Err(error) = draft.stage("baseline", warm) {
        draft.note(format!("a baseline could not be timed: {error}"));
    }
    let builds = clock_builds(verifier, draft)?;
    let own = builds.each_ref().map(|(spec, built)| built.executable(spec));
    let slot = draft.stage("wait", || seat.executor(build.nbytes()));
    let bench = |built| Bench::new(verifier, (candidate, &slot), built, weights, &own);
    let plans: Vec<&BuiltPlan> = build.plans.iter().filter(|built| built.case == 0 && built.plan.is_usual()).collect();
    let mut device = slot.device();
    let timing = time_confirmed(&plans, bench, (seat, &mut device), draft);
    device.forget()?;
    timing
}

/// Times again, in a fresh executor, where one was lost or a kernel faulted: what was judged before may have met what
/// others left behind.
fn time_confirmed<'a>(
    plans: &[&'a BuiltPlan],
    bench: impl Fn(&'a BuiltPlan) -> Bench<'a>,
    (seat, device): (&Seat<'_>, &mut CudaDevice),
    draft: &mut Draft,
) -> Result<Option<Timing>, Stop> {
    let (mut faults, mut losses) = (0, 0);
    loop {
        let stop = match time_fastest(plans, &bench, (seat, device), draft) {
            Err(stop) => stop,
            timing => return timing,
        };
        let (count, most) = match stop.kind {
            VerdictKind::Incorrect | VerdictKind::Timeout | VerdictKind::Rejected => return Err(stop),
            VerdictKind::Infrastructure => (&mut losses, LOSSES),
            _ => (&mut faults, FAULTS),
        };
        if *count == most {
            return Err(stop);
        }
        *count += 1;
        draft.note(format!("timed again in a fresh executor: {}", stop.reasons[0].message));
        device.restart();
    }
}

fn time_fastest<'a>(
    plans: &[&'a BuiltPlan],
    bench: &impl Fn(&'a BuiltPlan) -> Bench<'a>,
    (seat, device): (&Seat<'_>, &mut CudaDevice),
    draft: &mut Draft,
) -> Result<Option<Timing>, Stop> {
    let mut configurations = Vec::new();
    if plans.len() > 1 {
        let _turn = draft.stage("wait", || seat.turn());
        let tune = |built: &&'a BuiltPlan| Ok((bench(built).tune(device)?, *built));
        configurations = draft.stage("time", || plans.iter().map(tune).collect::<Result<Vec<_>, Stop>>())?;
    }
    configurations.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some(fastest) = configurations.first().map(|(_, built)| *built).or(plans.first().copied()) else {
        return Ok(None);
    };
    // What can be done beside others is done before the turn.
    let mut bench = bench(fastest);
    let beside = draft.stage("wait", || seat.beside());
    draft.stage("prepare", || bench.prepare(device))?;
    drop(beside);
    let _turn = draft.stage("wait", || seat.turn());
    let start = Instant::now();
    let timing = bench.time(device, draft);
    draft.spent("time", start.elapsed().as_secs_f64(), false);
    let timing = timing?;
    let configurations = configurations
        .into_iter()
        .map(|(us, built)| ConfigurationTime { choices: built.choices(), us: (us - timing.overhead_us).max(0.0) });
    Ok(Some(Timing { configurations: configurations.collect(), ..timing }))
}

/// One plan on the inputs of the problem's own trials.
struct Bench<'a> {
    verifier: &'a Verifier,
    candidate: &'a Candidate<'a>,
    built: &'a BuiltPlan,
    weights: &'a Weights,
    /// Our own kernels.
    own: &'a [Executable<'a>; 2],
    device: Box<dyn Replay + 'a>,
    /// Who holds the data on the GPU; none where they go through the host's memory.
    shared: Option<Arc<Resident>>,
    /// Kernel and line of each launch.
    launches: Vec<(String, u32)>,
    /// Of the results on each set.
    digests: Vec<u64>,
    /// Bits vary from call to call.
    varies: bool,
    /// Calls in a block.
    pace: u32,
}

impl<'a> Bench<'a> {
    fn new(
        verifier: &'a Verifier,
        (candidate, slot): (&'a Candidate<'a>, &'a Slot<'a>),
        built: &'a BuiltPlan,
        weights: &'a Weights,
        own: &'a [Executable<'a>; 2],
    ) -> Self {
        let device = Box::new(built.device(Some(slot)));
        let (launches, digests) = (Vec::new(), Vec::new());
        let lane = candidate.seat.as_ref().map(|seat| seat.lane).filter(|_| shared::allowed());
        let shared = lane.and_then(|lane| weights.oracle(candidate).held(lane));
        Self { verifier, candidate, built, weights, own, device, shared, launches, digests, varies: false, pace: MOST }
    }

    /// Median of a few cold calls.
    fn tune(&mut self, device: &mut CudaDevice) -> Result<f64, Stop> {
        self.prepare(device)?;
        self.block(device, Block { calls: 3, ..COLD })?;
        let calls = self.block(device, Block { calls: TUNING, ..COLD })?;
        Ok(median(&times(&calls)).unwrap_or(f64::INFINITY))
    }

    /// Of a plan that is ready.
    fn time(&mut self, device: &mut CudaDevice, draft: &mut Draft) -> Result<Timing, Stop> {
        self.warm_up(device)?;
        let before = device.state();
        let mut found = Comparison::default();
        match self.compare_all(device, &mut found) {
            Ok(()) => {}
            Err(Trouble::Candidate(stop)) => return Err(stop),
            Err(Trouble::Baseline(error)) => draft.note(format!("a baseline could not be timed: {error}")),
        }
        if found.ours.blocks.is_empty() {
            found.ours = self.series(device, COLD)?;
        }
        let warm = self.series(device, Block { cold: false, ..COLD })?;
        let launches = self.block(device, Block { calls: self.pace, launches: true, ..COLD })?;
        let none = || Stop::infrastructure("no call was timed");
        let overhead = found.limits.as_ref().map_or_else(|| device.nothing(), |limits| Ok(limits.nothing_us));
        let overhead = overhead.map(overhead_of)?;
        let device_us = estimate(&found.ours.net(overhead)).ok_or_else(none)?;
        let dtype = self.float_input().unwrap_or(Dtype::F32);
        let known = found.limits.as_ref().zip(found.work);
        let limit = known.and_then(|(limits, work)| limits::limit(limits, work, dtype, device_us.value));
        limit.as_ref().map_or(Ok(()), |limit| limits::check(limit, device_us.high))?;
        Ok(Timing {
            device_us,
            warm_us: estimate(&warm.net(overhead)).ok_or_else(none)?,
            calls: found.ours.calls,
            overhead_us: overhead,
            launches: self.launch_times(&launches),
            baselines: found.baselines,
            device: [before, device.state()].into_iter().flatten().collect(),
            host: found.limits.map(|limits| limits::host_time(&limits, &self.built.plan, device_us.value)),
            limit,
            work: found.work,
            configurations: Vec::new(),
        })
    }

    /// Times candidate and reference in turns, for each kind of baseline.
    fn compare_all(&mut self, device: &mut CudaDevice, found: &mut Comparison) -> Result<(), Trouble> {
        let kinds = self.verifier.options.timing.as_deref().unwrap_or_default();
        if kinds.is_empty() {
            return Ok(());
        }
        let Some(lane) = self.candidate.seat.as_ref().map(|seat| seat.lane) else { return Ok(()) };
        let Some(reference) = self.candidate.problem.reference(lane) else { return Ok(()) };
        let reference = reference.as_ref();
        found.work = Some(reference.work()?);
        let limits = found.limits.insert(self.verifier.limits(lane, device, reference)?);
        let overhead = overhead_of(limits.nothing_us);
        for &kind in kinds {
            let (ours, baseline) = self.compare(device, reference, kind, overhead)?;
            found.baselines.extend(baseline);
            if found.ours.blocks.is_empty() {
                found.ours = ours;
            }
        }
        Ok(())
    }

    /// The candidate's cold times, and how it compares: in turns of A, B, B, A, so that what drifts hits both alike. Each side's
    /// blocks have their memory elsewhere.
    fn compare(
        &mut self,
        device: &mut CudaDevice,
        reference: &Resident,
        kind: BaselineKind,
        overhead: f64,
    ) -> Result<(Series, Option<BaselineTime>), Trouble> {
        let ready = reference.prepare(kind)?;
        let (mut ours, mut theirs) = (Series::default(), Series::default());
        let (start, mut pace) = (Instant::now(), SETS);
        while !(self.is_enough(&ours, start, COMPARISON) && (self.varies || is_enough(&theirs, start, COMPARISON))) {
            for candidate in [true, false, false, true] {
                if candidate {
                    self.add(&mut ours, device, COLD)?;
                } else {
                    let asked = Instant::now();
                    let times = reference.time(kind, pace)?;
                    pace = next_pace(pace, asked.elapsed());
                    theirs.add(&times);
                }
            }
        }
        // Without a graph, the gaps between kernels are part of the time anyway.
        let (theirs, calls) = (theirs.net(if ready.graph { overhead } else { 0.0 }), theirs.calls);
        let baseline = || {
            Some(BaselineTime {
                baseline: kind,
                device_us: estimate(&theirs)?,
                calls,
                graph: ready.graph,
                end_to_end_us: Some(ready.end_to_end_us),
                speedup: speedup(&theirs, &ours.net(overhead))?,
            })
        };
        let baseline = baseline();
        Ok((ours, baseline))
    }

    /// Blocks of calls until their time is known well enough, or the budget is spent.
    fn series(&mut self, device: &mut CudaDevice, block: Block) -> Result<Series, Stop> {
        let (mut found, start) = (Series::default(), Instant::now());
        while !self.is_enough(&found, start, SERIES) {
            self.add(&mut found, device, block)?;
        }
        Ok(found)
    }

    /// Where every result is judged, a block is one call, and judging takes long.
    fn is_enough(&self, found: &Series, start: Instant, budget: Duration) -> bool {
        is_enough(found, start, budget) || self.varies && found.blocks.len() >= JUDGED
    }

    /// Calls that are thrown away; they tell how many make a block.
    fn warm_up(&mut self, device: &mut CudaDevice) -> Result<(), Stop> {
        let (mut thrown, start) = (Series::default(), Instant::now());
        self.pace = SETS;
        while thrown.calls < WARM_UP && start.elapsed() < WARM_UP_TIME {
            self.add(&mut thrown, device, COLD)?;
        }
        Ok(())
    }

    /// The dtype of the problem's first float input.
    fn float_input(&self) -> Option<Dtype> {
        let case = &self.weights.oracle(self.candidate).data.cases[self.built.case];
        let tensors = case.signature.args.iter().flat_map(Value::tensors);
        tensors.map(|(_, tensor)| tensor.view.dtype).find(|dtype| dtype.is_float())
    }

    /// Times a block: as many calls as there is time for, whatever `block` says.
    fn add(&mut self, found: &mut Series, device: &mut CudaDevice, block: Block) -> Result<(), Stop> {
        let start = Instant::now();
        let calls = self.block(device, Block { calls: self.pace, ..block })?;
        self.pace = next_pace(calls.len() as u32, start.elapsed());
        found.add(&times(&calls));
        Ok(())
    }

    /// Times some calls, and makes sure that they computed what was judged.
    fn block(&mut self, device: &mut CudaDevice, block: Block) -> Result<Vec<Call>, Stop> {
        // Where every result is judged, a block is one call.
        let block = if self.varies { Block { calls: 1, read_back: true, ..block } } else { block };
        let (calls, results) = device.time(block, Some(self.candidate.deadline()))?;
        let same = |call: &Call| self.digests.get(call.set) == Some(&call.digest);
        if !self.varies && !calls.iter().all(same) {
            self.varies = true;
            // The calls of this block are used all the same, but its last results have to be right.
            let again = Block { calls: 1, read_back: true, ..block };
            let (last, results) = device.time(again, Some(self.candidate.deadline()))?;
            self.judge_last(&last, results)?;
        } else if block.read_back {
            self.judge_last(&calls, results)?;
        }
        Ok(calls)
    }

    fn judge_last(&self, calls: &[Call], results: Results) -> Result<(), Stop> {
        let mut trials = self.trials();
        let Some(set) = calls.last().map(|call| call.set).filter(|set| *set < trials.len()) else { return Ok(()) };
        let trial = trials.swap_remove(set);
        match (results, &self.shared) {
            (Results::Lent(loan), Some(held)) => self.judge_lent(&self.shared_trial(&trial, held)?, &loan),
            (Results::Bytes(results), _) => self.judge(&trial, &trial.first()?.1, results),
            (Results::Lent(_), None) => Err(Stop::infrastructure("results were lent that nobody looks at")),
        }
    }

    /// Makes the plan ready; its untimed results on each set are judged. Data stay on the GPU where they can.
    fn prepare(&mut self, device: &mut CudaDevice) -> Result<(), Stop> {
        if let Some(held) = self.shared.clone() {
            match self.prepare_shared(device, &held) {
                Err(Doubt::Stop(stop)) => return Err(stop),
                Err(Doubt::Look | Doubt::Unshared(_) | Doubt::Failed(_)) => self.shared = None,
                Ok(prepared) => {
                    self.take(prepared);
                    return Ok(());
                }
            }
        }
        let trials = self.trials();
        if trials.iter().any(TrialRun::is_large) {
            return Err(Stop::infrastructure("the data are too large to be timed through the host's memory"));
        }
        let firsts = trials.iter().map(TrialRun::first).collect::<Result<Vec<_>, _>>()?;
        let results = trials.first().map_or_else(Vec::new, TrialRun::observed_buffers);
        let (kernels, steps) = self.built.executables();
        let runs: Vec<Run> = firsts.iter().map(|(run, _)| run.clone()).collect();
        let mut prepared = device.prepare(&self.built.plan, (&kernels, &steps, self.own), &runs, &results)?;
        for ((trial, (_, contents)), results) in trials.iter().zip(&firsts).zip(prepared.results.drain(..)) {
            self.judge(trial, contents, results)?;
        }
        drop(trials);
        self.take(prepared);
        Ok(())
    }

    fn take(&mut self, prepared: Prepared) {
        (self.launches, self.digests) = (prepared.launches, prepared.digests);
    }

    fn prepare_shared(&self, device: &mut CudaDevice, held: &Resident) -> Result<Prepared, Doubt> {
        let (trials, nothing) = (self.trials(), BTreeSet::new());
        let shared = trials.iter().map(|trial| self.shared_trial(trial, held)).collect::<Result<Vec<_>, _>>()?;
        let mut runs = Vec::new();
        let mut handles = Vec::new();
        for (trial, shared) in trials.iter().zip(&shared) {
            let Some(call) = trial.trial.calls.first() else { return Err(Doubt::Look) };
            runs.push(shared.run(0, call, &nothing)?.after(&mut handles));
        }
        runs.iter_mut().for_each(|run| run.handles.clone_from(&handles));
        let results = trials.first().map_or_else(Vec::new, TrialRun::observed_buffers);
        let (kernels, steps) = self.built.executables();
        let mut prepared = device.prepare_shared(&self.built.plan, (&kernels, &steps, self.own), &runs, &results)?;
        for (set, shared) in shared.iter().enumerate() {
            let (digest, loan) = device.play(set, Some(self.candidate.deadline()))?;
            self.judge_lent(shared, &loan).map_err(Doubt::Stop)?;
            prepared.digests.push(digest);
        }
        Ok(prepared)
    }

    fn shared_trial<'t>(
        &'t self,
        trial: &'t TrialRun<'t, 't>,
        held: &'t Resident,
    ) -> Result<SharedTrial<'t, 't, 't>, Stop> {
        let profiles = (self.verifier.options.profiles.iter().collect(), true);
        SharedTrial::new(trial, held, profiles, false)
            .map_err(|doubt| doubt.or_stop("the oracle's process does not give its data"))
    }

    /// The first trials on the problem's own inputs. A plan that draws random numbers has drawn them when it is recorded,
    /// so that it gets one.
    fn trials(&self) -> Vec<TrialRun<'_, '_>> {
        let oracle = self.weights.oracle(self.candidate);
        let case = &oracle.data.cases[self.built.case];
        let sets = if self.built.plan.is_random() { 1 } else { SETS as usize };
        let trials = case.trials.iter().filter(|trial| trial.regime == OWN_REGIME).take(sets);
        let run = |trial| TrialRun {
            device: self.device.as_ref(),
            plan: &self.built.plan,
            oracle,
            signature: &case.signature,
            trial,
            constants: self.weights.constants(self.built.case),
            deadline: self.candidate.deadline(),
        };
        trials.map(run).collect()
    }

    /// Has the results of one call judged where they are.
    fn judge_lent(&self, shared: &SharedTrial<'_, '_, '_>, loan: &Loan) -> Result<(), Stop> {
        let oracle = self.weights.oracle(self.candidate);
        let Some(call) = shared.trial.trial.calls.first().filter(|_| !oracle.data.stochastic) else { return Ok(()) };
        self.candidate.waited.during(|| shared.resident.idle());
        let seen = shared
            .seen(&Seen::first(call), loan)
            .map_err(|doubt| doubt.or_stop("the results of a timed call could not be compared"))?;
        self.judge_seen(shared.trial, &seen)
    }

    /// Judges the results of one call; a reference that draws random numbers was judged over many, not here.
    fn judge(&self, trial: &TrialRun<'_, '_>, contents: &Contents, results: Vec<Vec<u8>>) -> Result<(), Stop> {
        let oracle = self.weights.oracle(self.candidate);
        if oracle.data.stochastic {
            return Ok(());
        }
        let mut buffers = vec![Vec::new(); trial.plan.buffers.len()];
        for (buffer, bytes) in trial.observed_buffers().into_iter().zip(results) {
            buffers[buffer] = bytes;
        }
        let outcome = trial.observed_first(contents, &RunResult { buffers, ..RunResult::default() })?;
        self.judge_seen(trial, &outcome.observations)
    }

    fn judge_seen(&self, trial: &TrialRun<'_, '_>, seen: &[Observation<'_>]) -> Result<(), Stop> {
        let oracle = self.weights.oracle(self.candidate);
        let mut tally = Tally::new(self.verifier.options.profiles.clone(), Some(POISON));
        let case = &trial.signature.case;
        judging::add(&mut tally, case, trial.trial, seen, oracle)?;
        let judged = tally.finish();
        if judged.pass { Ok(()) } else { Err(Stop { kind: VerdictKind::Incorrect, reasons: judged.reasons }) }
    }

    fn launch_times(&self, calls: &[Call]) -> Vec<LaunchTime> {
        let named = self.launches.iter().enumerate();
        named
            .filter_map(|(at, (kernel, line))| {
                let times: Vec<f64> = calls.iter().filter_map(|call| call.launches_us.get(at).copied()).collect();
                Some(LaunchTime { kernel: kernel.clone(), line: *line, us: median(&times)? })
            })
            .collect()
    }
}

fn is_enough(found: &Series, start: Instant, budget: Duration) -> bool {
    enough(&found.blocks) || start.elapsed() > budget && found.blocks.len() >= BLOCKS.start
}

/// The cost of measuring, in microseconds, by what events measure around a kernel that does nothing.
fn overhead_of(nothing_us: f64) -> f64 {
    (nothing_us - NOTHING).max(0.0)
}

fn times(calls: &[Call]) -> Vec<f64> {
    calls.iter().map(|call| call.us).collect()
}
