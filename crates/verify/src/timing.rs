//! How long an accepted candidate takes, on the problem's own shapes and inputs.

use std::time::Duration;

use tilewright_clock::{estimate, median, spread};
use tilewright_contract::{ConfigurationTime, LaunchTime, Timing, VerdictKind};
use tilewright_judge::{OWN_REGIME, Tally};
use tilewright_replay::cuda::{Block, CudaDevice};
use tilewright_replay::{Call, Contents, Executable, Run, RunResult};

use crate::build::{Build, BuiltPlan, digest_build};
use crate::draft::{Draft, Stop};
use crate::execute::{POISON, Replay, TrialRun};
use crate::judging;
use crate::pipeline::{Candidate, Verifier};
use crate::weights::Weights;

/// Sets of inputs that calls take in turn.
const SETS: usize = 3;
/// Calls in a block: between blocks it is decided whether there are enough.
const BLOCK: u32 = 20;
/// Timed calls at most, and at least.
const CALLS: std::ops::Range<usize> = 60..1000;
/// Half an interval's width, as a share, that is narrow enough.
const SPREAD: f64 = 0.002;
/// Device time that the timed calls of one candidate may take together, flushes not counted.
const BUDGET: Duration = Duration::from_millis(300);
/// Calls of a plan that are thrown away: the first ones meet a device whose clocks have sunk.
const WARM_UP: u32 = 10;
/// Calls that decide between autotune configurations.
const TUNING: u32 = 15;
/// Timed calls where every result is judged, because bits vary from call to call.
const JUDGED: u32 = 20;

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
    let (spec, built) = digest_build(verifier, draft)?;
    let digest = built.executable(&spec);
    let plans: Vec<&BuiltPlan> = build.plans.iter().filter(|built| built.case == 0).collect();
    let mut configurations = Vec::new();
    for built in plans.iter().filter(|_| plans.len() > 1) {
        let mut bench = Bench::new(verifier, candidate, built, weights, &digest);
        let us = verifier.cuda(|device| bench.tune(device)).transpose()?.unwrap_or(f64::INFINITY);
        configurations.push((us, *built));
    }
    configurations.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some(fastest) = configurations.first().map(|(_, built)| *built).or(plans.first().copied()) else {
        return Ok(None);
    };
    let mut bench = Bench::new(verifier, candidate, fastest, weights, &digest);
    let Some(timing) = verifier.cuda(|device| bench.time(device)) else { return Ok(None) };
    let configurations =
        configurations.into_iter().map(|(us, built)| ConfigurationTime { choices: built.choices(), us });
    Ok(Some(Timing { configurations: configurations.collect(), ..timing? }))
}

/// One plan on the inputs of the problem's own trials.
struct Bench<'a> {
    verifier: &'a Verifier,
    candidate: &'a Candidate<'a>,
    built: &'a BuiltPlan,
    weights: &'a Weights,
    digest: &'a Executable<'a>,
    device: Box<dyn Replay + 'a>,
    /// Kernel and line of each launch.
    launches: Vec<(String, u32)>,
    /// Of the results on each set.
    digests: Vec<u64>,
    /// Bits vary from call to call.
    varies: bool,
}

impl<'a> Bench<'a> {
    fn new(
        verifier: &'a Verifier,
        candidate: &'a Candidate<'a>,
        built: &'a BuiltPlan,
        weights: &'a Weights,
        digest: &'a Executable<'a>,
    ) -> Self {
        let device = Box::new(built.device(verifier));
        let (launches, digests) = (Vec::new(), Vec::new());
        Self { verifier, candidate, built, weights, digest, device, launches, digests, varies: false }
    }

    /// Median of a few cold calls.
    fn tune(&mut self, device: &mut CudaDevice) -> Result<f64, Stop> {
        self.prepare(device)?;
        self.block(device, Block { calls: 3, cold: true, launches: false, read_back: false })?;
        let calls = self.block(device, Block { calls: TUNING, cold: true, launches: false, read_back: false })?;
        Ok(median(&times(&calls)).unwrap_or(f64::INFINITY))
    }

    fn time(&mut self, device: &mut CudaDevice) -> Result<Timing, Stop> {
        self.prepare(device)?;
        self.block(device, Block { calls: WARM_UP, cold: true, launches: false, read_back: false })?;
        let cold = self.blocks(device, true)?;
        let warm = self.blocks(device, false)?;
        let launches = self.block(device, Block { calls: BLOCK, cold: true, launches: true, read_back: false })?;
        let none = || Stop::infrastructure("no call was timed");
        Ok(Timing {
            device_us: estimate(&cold).ok_or_else(none)?,
            warm_us: estimate(&warm).ok_or_else(none)?,
            calls: cold.len() as u32,
            launches: self.launch_times(&launches),
            configurations: Vec::new(),
        })
    }

    /// Blocks of calls until their median is known well enough, or the budget is spent.
    fn blocks(&mut self, device: &mut CudaDevice, cold: bool) -> Result<Vec<f64>, Stop> {
        let mut found = Vec::new();
        let mut budget = BUDGET.as_secs_f64() * 1e6;
        loop {
            // Where every result is judged, a block is one call.
            let calls = if self.varies { 1 } else { BLOCK };
            let block = Block { calls, cold, launches: false, read_back: self.varies };
            let block = times(&self.block(device, block)?);
            budget -= block.iter().sum::<f64>();
            found.extend(block);
            let narrow = || estimate(&found).is_some_and(|estimate| spread(&estimate) < SPREAD);
            let most = if self.varies { JUDGED as usize } else { CALLS.end };
            if found.len() >= most || budget < 0.0 || (found.len() >= CALLS.start && narrow()) {
                return Ok(found);
            }
        }
    }

    /// Times some calls, and makes sure that they computed what was judged.
    fn block(&mut self, device: &mut CudaDevice, block: Block) -> Result<Vec<Call>, Stop> {
        let (calls, results) = device.time(block, Some(self.candidate.deadline))?;
        let same = |call: &Call| self.digests.get(call.set) == Some(&call.digest);
        if !self.varies && !calls.iter().all(same) {
            self.varies = true;
            // The calls of this block are used all the same, but its last results have to be right.
            let again = Block { calls: 1, read_back: true, ..block };
            let (last, results) = device.time(again, Some(self.candidate.deadline))?;
            self.judge_last(&last, results)?;
        } else if block.read_back {
            self.judge_last(&calls, results)?;
        }
        Ok(calls)
    }

    fn judge_last(&self, calls: &[Call], results: Vec<Vec<u8>>) -> Result<(), Stop> {
        let sets = self.runs()?;
        let Some((_, contents, trial)) = calls.last().and_then(|call| sets.get(call.set)) else { return Ok(()) };
        self.judge(trial, contents, results)
    }

    /// Makes the plan ready; its untimed results on each set are judged.
    fn prepare(&mut self, device: &mut CudaDevice) -> Result<(), Stop> {
        let sets = self.runs()?;
        let results = sets.first().map_or_else(Vec::new, |(_, _, trial)| trial.observed_buffers());
        let (kernels, steps) = self.built.executables();
        let runs: Vec<Run> = sets.iter().map(|(run, ..)| run.clone()).collect();
        let prepared = device.prepare(&self.built.plan, (&kernels, &steps, self.digest), &runs, &results)?;
        for ((_, contents, trial), results) in sets.iter().zip(prepared.results) {
            self.judge(trial, contents, results)?;
        }
        (self.launches, self.digests) = (prepared.launches, prepared.digests);
        Ok(())
    }

    /// The first calls of the problem's own trials. A plan that draws random numbers has drawn them when it is recorded,
    /// so that it gets one set.
    fn runs(&self) -> Result<Vec<Set<'_>>, Stop> {
        let oracle = self.weights.oracle(self.candidate);
        let case = &oracle.data.cases[self.built.case];
        let sets = if self.built.plan.is_random() { 1 } else { SETS };
        let trials = case.trials.iter().filter(|trial| trial.regime == OWN_REGIME).take(sets);
        let run = |trial| {
            let trial = TrialRun {
                device: self.device.as_ref(),
                plan: &self.built.plan,
                oracle,
                signature: &case.signature,
                trial,
                constants: self.weights.constants(self.built.case),
                deadline: self.candidate.deadline,
            };
            trial.first().map(|(run, contents)| (run, contents, trial))
        };
        trials.map(run).collect()
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
        let mut tally = Tally::new(self.verifier.options.profiles.clone(), Some(POISON));
        let case = &trial.signature.case;
        judging::add(&mut tally, case, trial.trial, &outcome.observations, oracle)?;
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

/// One set of inputs: how the plan is run on it, what it starts from, and the trial that it belongs to.
type Set<'a> = (Run, Contents, TrialRun<'a, 'a>);

fn times(calls: &[Call]) -> Vec<f64> {
    calls.iter().map(|call| call.us).collect()
}
