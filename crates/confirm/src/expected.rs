//! What a plan says that the driver will be handed.

use tilewright_contract::{Arg, BufferSource, KernelSpec, LaunchOptions, Plan, Step};
use tilewright_replay::{Executable, Fault, Slot, TensorMap, launch_slots};

/// A plan in the driver's terms.
#[derive(Debug, Clone)]
pub struct Expected {
    pub buffers: Vec<Buffer>,
    /// Of each kernel: its cubin.
    pub images: Vec<Vec<u8>>,
    pub steps: Vec<ExpectedStep>,
    /// Buffers that hold outputs, in the order in which they are first returned.
    pub outputs: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    pub nbytes: u64,
    pub role: Role,
}

/// Where a buffer lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// Where the input of this index was uploaded to.
    Input(usize),
    /// Where the weight of this name was uploaded to.
    State(String),
    /// Wherever it was first used, from then on the same place.
    Own,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ExpectedStep {
    Launch(ExpectedLaunch),
    /// Something that torch does.
    Host {
        work: Work,
        line: u32,
    },
}

/// What torch does between launches, as far as its calls show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// Moves or converts elements.
    Move,
    /// Writes known numbers.
    Fill,
    /// Draws random numbers.
    Draw,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ExpectedLaunch {
    /// Index into the images.
    pub kernel: usize,
    pub entry: String,
    pub line: u32,
    pub grid: [u32; 3],
    pub threads: u32,
    pub shared: u32,
    pub options: LaunchOptions,
    pub params: Vec<Param>,
}

/// A kernel parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Param {
    /// The address of a buffer plus an offset.
    Pointer {
        buffer: usize,
        offset: u64,
    },
    /// Exactly these bytes.
    Bytes(Vec<u8>),
    /// An integer of the parameter's size in `[low, high)`.
    Drawn {
        low: i64,
        high: i64,
    },
    TensorMap(TensorMap),
    /// Memory that Triton allocates for the launch, or null if it needs none.
    Scratch {
        needed: bool,
    },
}

impl Expected {
    /// Puts a plan and its compiled kernels, in the plan's order, into the driver's terms.
    pub fn new(plan: &Plan, kernels: &[Executable<'_>]) -> Result<Self, Fault> {
        let buffers = plan.buffers.iter().map(|buffer| Buffer {
            nbytes: buffer.nbytes,
            role: match &buffer.source {
                BufferSource::Input { index } => Role::Input(*index),
                BufferSource::State { name } => Role::State(name.clone()),
                BufferSource::Constant { .. } | BufferSource::Scratch => Role::Own,
            },
        });
        let mut steps = Vec::new();
        for step in &plan.steps {
            steps.extend(expected_step(plan, kernels, step)?);
        }
        let mut outputs = Vec::new();
        for (_, tensor) in plan.output.tensors() {
            if !outputs.contains(&tensor.buffer) {
                outputs.push(tensor.buffer);
            }
        }
        let images = kernels.iter().map(|kernel| kernel.binary.to_vec()).collect();
        Ok(Self { buffers: buffers.collect(), images, steps, outputs })
    }
}

/// Plans that are not among those given, but that autotuners may come to together: `variants` are, for each autotuner,
/// the plans that differ from `main` in its choice alone. At most `limit`.
pub fn mixtures(main: &Expected, variants: &[Vec<&Expected>], limit: usize) -> Vec<Expected> {
    let mut mixed = vec![(0, main.clone())];
    for plans in variants {
        let further: Vec<_> = mixed
            .iter()
            .flat_map(|(count, plan)| plans.iter().filter_map(move |other| Some((count + 1, plan.with(main, other)?))))
            .take(limit.saturating_sub(mixed.len()))
            .collect();
        mixed.extend(further);
    }
    // What differs from the main plan in one choice was given.
    mixed.into_iter().filter(|(count, _)| *count > 1).map(|(_, plan)| plan).collect()
}

impl Expected {
    /// This plan with what `other` changes in `main`; none where both change the same step, or buffers differ.
    fn with(&self, main: &Self, other: &Self) -> Option<Self> {
        let same_shape = |plan: &Self| {
            plan.buffers == main.buffers && plan.outputs == main.outputs && plan.steps.len() == main.steps.len()
        };
        if !same_shape(self) || !same_shape(other) {
            return None;
        }
        let mut merged = self.clone();
        merged.images.extend(other.images.iter().cloned());
        for (at, step) in merged.steps.iter_mut().enumerate() {
            if other.same_step(main, at) {
                continue;
            }
            if !self.same_step(main, at) {
                return None;
            }
            *step = other.steps[at].clone();
            if let ExpectedStep::Launch(launch) = step {
                launch.kernel += self.images.len();
            }
        }
        Some(merged)
    }

    fn same_step(&self, other: &Self, at: usize) -> bool {
        match (&self.steps[at], &other.steps[at]) {
            (ExpectedStep::Launch(one), ExpectedStep::Launch(two)) => {
                self.images.get(one.kernel) == other.images.get(two.kernel)
                    && *one == ExpectedLaunch { kernel: one.kernel, ..two.clone() }
            }
            (one, two) => one == two,
        }
    }
}

/// Nothing for a step that does nothing.
fn expected_step(plan: &Plan, kernels: &[Executable<'_>], step: &Step) -> Result<Option<ExpectedStep>, Fault> {
    let host = |work, numel: u64, line: u32| Ok((numel > 0).then_some(ExpectedStep::Host { work, line }));
    match step {
        Step::Launch { grid, .. } if grid.contains(&0) => Ok(None),
        Step::Launch { kernel, grid, args, line } => {
            let (spec, executable) = (&plan.kernels[*kernel], &kernels[*kernel]);
            let options = &spec.options;
            let mut params = parameters(spec, args, &executable.kernel.tensordesc_meta)?;
            for (size, _) in [executable.kernel.global_scratch, executable.kernel.profile_scratch] {
                params.push(Param::Scratch { needed: size > 0 });
            }
            Ok(Some(ExpectedStep::Launch(ExpectedLaunch {
                kernel: *kernel,
                entry: executable.kernel.entry.clone(),
                line: *line,
                grid: [grid[0].saturating_mul(options.num_ctas.max(1)), grid[1], grid[2]],
                threads: executable.kernel.threads,
                shared: executable.kernel.resources.shared_bytes,
                options: options.clone(),
                params,
            })))
        }
        Step::Copy { dst, line, .. } => host(Work::Move, dst.view.numel(), *line),
        Step::Fill { dst, line, .. } | Step::Iota { dst, line, .. } | Step::Literal { dst, line, .. } => {
            host(Work::Fill, dst.view.numel(), *line)
        }
        Step::Random { dst, line, .. } => host(Work::Draw, dst.view.numel(), *line),
    }
}

fn parameters(spec: &KernelSpec, args: &[Arg], meta: &[serde_json::Value]) -> Result<Vec<Param>, Fault> {
    let slots = launch_slots(spec, args, meta, 0)?;
    let param = |arg: &Arg, slot: Slot| match (arg, slot) {
        (Arg::Seed { low, high, .. }, _) => Param::Drawn { low: *low, high: *high },
        (_, Slot::Pointer { buffer, offset }) => Param::Pointer { buffer, offset },
        (_, Slot::Value(bytes)) => Param::Bytes(bytes),
        (_, Slot::TensorMap(map)) => Param::TensorMap(map),
    };
    Ok(args.iter().zip(slots).flat_map(|(arg, slots)| slots.into_iter().map(move |slot| param(arg, slot))).collect())
}
