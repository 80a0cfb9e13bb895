//! Compiled plans, and the devices that run them.

use std::time::Instant;

use tilewright_contract::{Choice, CompiledKernel, Constexpr, KernelSpec, LaunchOptions, Plan, Step, VerdictKind};
use tilewright_replay::{
    CpuDevice, Executable, Fault, FaultKind, Run, RunResult, STEP_MODULE, clock_kernels, step_kernels,
};
use tilewright_stage::{Compiled, Trace};

use crate::draft::{Draft, Stop};
use crate::execute::Replay;
use crate::kernel;
use crate::lane::Slot;
use crate::pipeline::{Candidate, Verifier};
use crate::target::{Device, launch_limit};

/// Every plan of a candidate, compiled.
pub(crate) struct Build {
    pub(crate) plans: Vec<BuiltPlan>,
}

pub(crate) struct BuiltPlan {
    /// Index of the case.
    pub(crate) case: usize,
    /// Whether it runs on every trial of its case; each other one has another autotune configuration.
    pub(crate) main: bool,
    pub(crate) plan: Plan,
    /// In the order of the plan's kernels.
    pub(crate) kernels: Vec<Built>,
    /// Our own kernels behind copies and fills, with their specialisations; only for a GPU.
    steps: Vec<(KernelSpec, Built)>,
    cpu: Option<CpuDevice>,
}

/// A compiled kernel with its binary (empty if the device does not run binaries).
#[derive(Clone)]
pub(crate) struct Built {
    pub(crate) kernel: CompiledKernel,
    pub(crate) binary: Vec<u8>,
    /// PTX or AMD assembly.
    pub(crate) assembly: Vec<u8>,
}

impl Build {
    /// Bytes of the buffers of its largest plan.
    pub(crate) fn nbytes(&self) -> u64 {
        self.plans.iter().map(|built| built.plan.nbytes()).max().unwrap_or_default()
    }

    /// Compiles every specialisation once, checks launches against the target's limits, and prepares the device.
    pub(crate) fn new(
        verifier: &Verifier,
        candidate: &Candidate<'_>,
        traces: &[Trace],
        draft: &mut Draft,
    ) -> Result<Self, Stop> {
        let Some((own, others)) = traces.split_first() else { return Ok(Self { plans: Vec::new() }) };
        // Configurations differ in tiles: all are executed on the problem's own case, the other cases take the first
        // that fits the target, as an autotuner that skips the rest.
        let own: Vec<(usize, &Plan)> = own.plans.iter().map(|plan| (0, plan)).collect();
        let mut built = compile_plans(verifier, candidate, &own, draft)?;
        let limits: Vec<Option<Stop>> = built.iter().map(|built| exceeded(verifier, built)).collect();
        let usual = |at: usize| built.get(at).is_some_and(|built| built.plan.is_usual());
        let Some(main) = (0..limits.len()).find(|&at| limits[at].is_none() && usual(at)) else {
            return Err(limits
                .into_iter()
                .flatten()
                .next()
                .unwrap_or_else(|| Stop::infrastructure("no plan to build")));
        };
        for (built, stop) in built.iter().zip(&limits) {
            refuse_misfit(built, stop.as_ref())?;
        }
        for stop in limits.iter().flatten() {
            draft.note(format!("a configuration that does not fit is skipped: {}", stop.reasons[0].message));
        }
        built[main].main = true;
        let mut fits = limits.iter().map(Option::is_none);
        built.retain(|_| fits.next().unwrap_or(false));
        let others: Vec<(usize, &Plan)> = others
            .iter()
            .enumerate()
            .filter_map(|(at, trace)| trace.plans.get(main).or(trace.plans.first()).map(|plan| (at + 1, plan)))
            .collect();
        let mut rest = compile_plans(verifier, candidate, &others, draft)?;
        for built in &mut rest {
            built.main = true;
            exceeded(verifier, built).map_or(Ok(()), Err)?;
        }
        built.append(&mut rest);
        for built in &mut built {
            match verifier.options.device {
                Device::Cpu => built.cpu = Some(CpuDevice::new(built.kernels.iter().map(|built| &built.kernel))?),
                Device::Cuda(_) => built.steps = step_builds(verifier, &built.plan, draft)?,
            }
        }
        Ok(Self { plans: built })
    }
}

/// What this device is asked to launch has to fit. An autotuner skips what does not, and another device may have less.
fn refuse_misfit(built: &BuiltPlan, stop: Option<&Stop>) -> Result<(), Stop> {
    let plan = &built.plan;
    let tuned = plan.choices.iter().any(|choice| !choice.is_circumstance() && choice.of > 1);
    let Some(stop) = stop.filter(|_| plan.own_regime().is_some() && !tuned) else { return Ok(()) };
    let mut stop = stop.clone();
    let when = plan.choices.last().map_or("", |choice| &choice.config);
    stop.reasons[0].message = format!("{} ({when})", stop.reasons[0].message);
    Err(stop)
}

/// Compiles each specialisation of some plans once.
fn compile_plans(
    verifier: &Verifier,
    candidate: &Candidate<'_>,
    plans: &[(usize, &Plan)],
    draft: &mut Draft,
) -> Result<Vec<BuiltPlan>, Stop> {
    let specs = unique(plans.iter().flat_map(|(_, plan)| plan.kernels.clone()));
    let built = compile_told(verifier, &candidate.cut.module, &specs, draft)?;
    for built in &built {
        kernel::check(&built.kernel.entry, &built.kernel.ttir)?;
    }
    for (spec, built) in specs.iter().zip(&built) {
        draft.verdict.resources.insert(kernel_name(spec), built.kernel.resources.clone());
    }
    let build = |&(case, plan): &(usize, &Plan)| BuiltPlan {
        case,
        main: false,
        plan: plan.clone(),
        kernels: pick(&plan.kernels, &specs, &built),
        steps: Vec::new(),
        cpu: None,
    };
    Ok(plans.iter().map(build).collect())
}

impl BuiltPlan {
    /// The emulator that runs this plan, where the device is a CPU.
    pub(crate) fn cpu(&self) -> Option<&CpuDevice> {
        self.cpu.as_ref()
    }

    /// The emulator for this plan, whatever the device.
    pub(crate) fn emulator(&self) -> Result<impl Replay + use<>, Stop> {
        Ok(CpuDevice::new(self.kernels.iter().map(|built| &built.kernel))?)
    }

    /// Whether a kernel holds inline assembly.
    pub(crate) fn has_assembly(&self) -> bool {
        self.kernels.iter().any(|built| built.kernel.ttir.contains("tt.elementwise_inline_asm"))
    }

    /// The plan's kernels and our own, for a GPU.
    pub(crate) fn executables(&self) -> (Vec<Executable<'_>>, Vec<Executable<'_>>) {
        let kernels = self.plan.kernels.iter().zip(&self.kernels).map(|(spec, built)| built.executable(spec));
        let steps = self.steps.iter().map(|(spec, built)| built.executable(spec));
        (kernels.collect(), steps.collect())
    }

    /// Each autotuner with the configuration that this plan takes of it.
    pub(crate) fn choices(&self) -> String {
        let named = |choice: &Choice| format!("{} under {}", choice.function, choice.config);
        self.plan.choices.iter().map(named).collect::<Vec<_>>().join("; ")
    }

    /// The device that runs this plan: an executor, or the emulator where there is no GPU.
    pub(crate) fn device<'a>(&'a self, slot: Option<&'a Slot<'a>>) -> impl Replay + 'a {
        PlanDevice { built: self, slot }
    }
}

struct PlanDevice<'a> {
    built: &'a BuiltPlan,
    slot: Option<&'a Slot<'a>>,
}

impl Replay for CpuDevice {
    fn replay(&self, plan: &Plan, run: &Run) -> Result<RunResult, Fault> {
        self.run(plan, run)
    }
}

impl Replay for PlanDevice<'_> {
    fn replay(&self, plan: &Plan, run: &Run) -> Result<RunResult, Fault> {
        if let Some(cpu) = &self.built.cpu {
            return cpu.run(plan, run);
        }
        let (kernels, steps) = self.built.executables();
        let lost = || Fault::new(FaultKind::Infrastructure, "no GPU was asked for");
        self.slot.ok_or_else(lost)?.device().run(plan, &kernels, &steps, run)
    }
}

impl Built {
    fn new(verifier: &Verifier, compiled: Compiled) -> Result<Self, Stop> {
        let read = |digest: &str| {
            let lost = || Stop::infrastructure("a compiled kernel vanished from the cache");
            verifier.stage.cache().get(digest).ok_or_else(lost)
        };
        let binary = compiled.kernel.binary.as_deref().map(read).transpose()?.unwrap_or_default();
        Ok(Self { binary, assembly: read(&compiled.asm)?, kernel: compiled.kernel })
    }

    pub(crate) fn executable<'a>(&'a self, spec: &'a KernelSpec) -> Executable<'a> {
        Executable { spec, kernel: &self.kernel, binary: &self.binary }
    }
}

fn compile_told(
    verifier: &Verifier,
    module: &str,
    specs: &[KernelSpec],
    draft: &mut Draft,
) -> Result<Vec<Built>, Stop> {
    let start = Instant::now();
    let compiled = compile_all(verifier, module, specs)?;
    draft.spent("compile", start.elapsed().as_secs_f64(), compiled.iter().all(|compiled| compiled.cached));
    compiled.into_iter().map(|compiled| Built::new(verifier, compiled)).collect()
}

/// Kernels of our own, which are no candidate's business.
pub(crate) fn compile(verifier: &Verifier, module: &str, specs: &[KernelSpec]) -> Result<Vec<Built>, Stop> {
    let compiled = compile_all(verifier, module, specs)?;
    compiled.into_iter().map(|compiled| Built::new(verifier, compiled)).collect()
}

fn compile_all(verifier: &Verifier, module: &str, specs: &[KernelSpec]) -> Result<Vec<Compiled>, Stop> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let compiled = verifier.stage.compile_all(module, specs, &verifier.options.target, threads);
    Ok(compiled.into_iter().collect::<Result<Vec<_>, _>>()?)
}

/// The kernels that the clock of a GPU needs, compiled.
pub(crate) fn clock_builds(verifier: &Verifier, draft: &mut Draft) -> Result<[(KernelSpec, Built); 2], Stop> {
    let specs = clock_kernels();
    let built = compile_told(verifier, STEP_MODULE, &specs, draft)?;
    let built: [Built; 2] = built.try_into().map_err(|_| Stop::infrastructure("the clock's kernels are missing"))?;
    let mut built = built.into_iter();
    let mut next = || built.next().ok_or_else(|| Stop::infrastructure("the clock's kernels are missing"));
    let [digest, nothing] = specs;
    Ok([(digest, next()?), (nothing, next()?)])
}

fn step_builds(verifier: &Verifier, plan: &Plan, draft: &mut Draft) -> Result<Vec<(KernelSpec, Built)>, Stop> {
    let specs = step_kernels(plan);
    let built = compile_told(verifier, STEP_MODULE, &specs, draft)?;
    Ok(specs.into_iter().zip(built).collect())
}

/// Specialisations in their first order. Few enough for a linear search.
fn unique(specs: impl Iterator<Item = KernelSpec>) -> Vec<KernelSpec> {
    let mut unique: Vec<KernelSpec> = Vec::new();
    for spec in specs {
        if !unique.contains(&spec) {
            unique.push(spec);
        }
    }
    unique
}

fn pick(wanted: &[KernelSpec], specs: &[KernelSpec], built: &[Built]) -> Vec<Built> {
    let find = |spec: &KernelSpec| specs.iter().position(|known| known == spec).map(|at| built[at].clone());
    wanted.iter().filter_map(find).collect()
}

/// What a device refuses, refused on a CPU too.
fn exceeded(verifier: &Verifier, built: &BuiltPlan) -> Option<Stop> {
    built.plan.launches().find_map(|step| {
        let Step::Launch { kernel, grid, line, .. } = step else { return None };
        let message = launch_limit(&verifier.options.target, &built.kernels[*kernel].kernel, *grid)?;
        let name = kernel_name(&built.plan.kernels[*kernel]);
        let stop = Stop::new(VerdictKind::LaunchError, "target-limit", format!("{name}: {message}"));
        Some(stop.at(Some(*line)).help("use smaller blocks, fewer stages or fewer warps"))
    })
}

/// `softmax(BLOCK=1024)`, with the warps and stages where they are not the default.
pub fn kernel_name(spec: &KernelSpec) -> String {
    let path_name = |path: &str| -> String {
        path.parse::<usize>().ok().and_then(|at| spec.params.get(at)).map_or(path.into(), |param| param.name.clone())
    };
    let mut parts: Vec<String> = spec
        .constexprs
        .iter()
        .filter_map(|(path, value)| match value {
            Constexpr::Number { value } => Some(format!("{}={value}", path_name(path))),
            Constexpr::Integer { value } => Some(format!("{}={value}", path_name(path))),
            Constexpr::Str { value } => Some(format!("{}={value:?}", path_name(path))),
            _ => None,
        })
        .collect();
    let LaunchOptions { num_warps, num_stages, .. } = LaunchOptions::default();
    if spec.options.num_warps != num_warps {
        parts.push(format!("num_warps={}", spec.options.num_warps));
    }
    if spec.options.num_stages != num_stages {
        parts.push(format!("num_stages={}", spec.options.num_stages));
    }
    format!("{}({})", spec.function, parts.join(", "))
}
