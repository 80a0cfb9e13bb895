use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Dtype, Finding, KernelSpec, Number, TensorRef, Value};

/// What `ModelNew.forward` does, as seen by the tracer: buffers, and steps over them.
///
/// It is a claim by hostile code, so it holds no code, and [`Plan::check`] is called before anything uses it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// `tilewright.plan/1`
    pub schema: String,
    pub buffers: Vec<Buffer>,
    pub kernels: Vec<KernelSpec>,
    pub steps: Vec<Step>,
    /// What `forward` returned.
    pub output: Value,
    /// The autotune winners this trace was forced to, outermost first.
    #[serde(default)]
    pub choices: Vec<Choice>,
    /// In a circumstance of its own: the regime of the trials that the plan is for, where it is for no others.
    #[serde(default)]
    pub regime: Option<String>,
    /// What the tracer saw and cannot let pass: torch compute, unknown storages, forbidden options, host reads.
    #[serde(default)]
    pub findings: Vec<Finding>,
}

/// One storage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Buffer {
    pub nbytes: u64,
    pub source: BufferSource,
}

/// Where a storage's first contents come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum BufferSource {
    /// A buffer of the case signature (an input), by its index there.
    Input { index: usize },
    /// A parameter or buffer of the module, by its `state_dict` name.
    State { name: String },
    /// A tensor that the candidate's `__init__` makes and that is not in the reference's `state_dict`:
    /// its contents come from the init stage, under this attribute path.
    Constant { path: String },
    /// Made in `forward`, uninitialised until a step writes it.
    Scratch,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Step {
    Launch {
        /// Index into `kernels`.
        kernel: usize,
        grid: [u32; 3],
        /// The run-time arguments in order: the kernel's parameters without its constexprs.
        args: Vec<Arg>,
        line: u32,
    },
    /// Elementwise copy with conversion of the dtype as torch converts; shapes are equal (0 strides broadcast).
    Copy {
        src: TensorRef,
        dst: TensorRef,
        line: u32,
    },
    Fill {
        dst: TensorRef,
        value: Number,
        line: u32,
    },
    /// `dst[i] = start + i * step` over a one-dimensional view.
    Iota {
        dst: TensorRef,
        start: Number,
        step: Number,
        line: u32,
    },
    /// A tensor written as numbers in the file, in logical order.
    Literal {
        dst: TensorRef,
        values: Vec<Number>,
        line: u32,
    },
    Random {
        dst: TensorRef,
        distribution: Distribution,
        line: u32,
    },
}

/// A run-time argument of a launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Arg {
    /// The address of a buffer plus `offset` bytes.
    Pointer {
        buffer: usize,
        offset: u64,
    },
    /// A null pointer.
    Null,
    Scalar {
        value: Number,
    },
    /// A host-side `TensorDescriptor`.
    Descriptor {
        tensor: TensorRef,
        block_shape: Vec<u64>,
        padding: String,
    },
    /// A number that the file drew with `torch.randint(…).item()`: the replay draws it anew in `[low, high)`.
    Seed {
        index: usize,
        low: i64,
        high: i64,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Distribution {
    Uniform { low: f64, high: f64 },
    Normal { mean: f64, std: f64 },
    Randint { low: i64, high: i64 },
    Bernoulli { p: f64 },
}

impl Plan {
    /// Whether this is what `forward` does on the target once everything is tuned, in some configuration.
    pub fn is_usual(&self) -> bool {
        !self.choices.iter().any(Choice::is_circumstance)
    }

    /// The regime of the trials that it is for, where it is for no others.
    pub fn own_regime(&self) -> Option<&str> {
        self.regime.as_deref().filter(|_| !self.is_usual())
    }
}

impl Choice {
    /// Name of a choice that is no autotuner's: `config` says in what circumstances `forward` makes this plan, such as
    /// on another device. It must be right there too.
    pub const CIRCUMSTANCE: &str = "(circumstance)";

    pub fn is_circumstance(&self) -> bool {
        self.function == Self::CIRCUMSTANCE
    }
}

/// The configuration that a trace took at one autotuned launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    pub function: String,
    /// Index into the configurations left after pruning.
    pub index: usize,
    pub of: usize,
    /// The configuration as Triton prints it.
    pub config: String,
}

/// A plan that contradicts itself. Its author is the candidate's process, so this is never our crash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("unknown plan schema {0:?}")]
    Schema(String),
    #[error("{place} names buffer {buffer}, but the plan has {count}")]
    Buffer { place: String, buffer: usize, count: usize },
    #[error("{place} reaches outside its buffer of {nbytes} bytes")]
    Outside { place: String, nbytes: u64 },
    #[error("{place} names kernel {kernel}, but the plan has {count}")]
    Kernel { place: String, kernel: usize, count: usize },
    #[error("{place} passes {given} arguments, but the kernel takes {wanted}")]
    Arguments { place: String, given: usize, wanted: usize },
    #[error("{place}: source and destination differ in shape")]
    Shape { place: String },
    #[error("{place}: {what}")]
    Malformed { place: String, what: String },
}

impl Plan {
    pub const SCHEMA: &'static str = "tilewright.plan/1";

    /// Whether the file draws random numbers: in host code, or seeds for its kernels.
    pub fn is_random(&self) -> bool {
        self.steps.iter().any(|step| match step {
            Step::Random { .. } => true,
            Step::Launch { args, .. } => args.iter().any(|arg| matches!(arg, Arg::Seed { .. })),
            Step::Copy { .. } | Step::Fill { .. } | Step::Iota { .. } | Step::Literal { .. } => false,
        })
    }

    pub fn launches(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| matches!(step, Step::Launch { .. }))
    }

    /// Bytes of all buffers.
    pub fn nbytes(&self) -> u64 {
        self.buffers.iter().fold(0u64, |sum, buffer| sum.saturating_add(buffer.nbytes))
    }

    /// Bytes of the largest tensor of a step or of the output. A view with zero strides has more than its buffer.
    pub fn largest_view(&self) -> u64 {
        let outputs = self.output.tensors().into_iter().map(|(_, tensor)| tensor.view.clone());
        let steps = self.steps.iter().filter_map(|step| match step {
            Step::Launch { .. } => None,
            Step::Copy { dst, .. }
            | Step::Fill { dst, .. }
            | Step::Iota { dst, .. }
            | Step::Literal { dst, .. }
            | Step::Random { dst, .. } => Some(dst.view.clone()),
        });
        steps.chain(outputs).map(|view| view.numel().saturating_mul(view.dtype.size())).max().unwrap_or_default()
    }

    /// Checks every reference and extent in the plan.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.schema != Self::SCHEMA {
            return Err(PlanError::Schema(self.schema.clone()));
        }
        for (number, step) in self.steps.iter().enumerate() {
            self.check_step(step, &format!("step {number}"))?;
        }
        for (name, tensor) in self.output.results() {
            self.check_tensor(tensor, &name)?;
        }
        Ok(())
    }

    fn check_step(&self, step: &Step, place: &str) -> Result<(), PlanError> {
        match step {
            Step::Launch { kernel, args, .. } => self.check_launch(*kernel, args, place),
            Step::Copy { src, dst, .. } => {
                self.check_tensor(src, place)?;
                self.check_tensor(dst, place)?;
                if src.view.shape != dst.view.shape {
                    return Err(PlanError::Shape { place: place.into() });
                }
                Ok(())
            }
            Step::Literal { dst, values, .. } => {
                self.check_tensor(dst, place)?;
                if dst.view.numel() != values.len() as u64 {
                    return Err(PlanError::Shape { place: place.into() });
                }
                Ok(())
            }
            Step::Iota { dst, .. } => {
                self.check_tensor(dst, place)?;
                if dst.view.shape.len() != 1 {
                    return Err(PlanError::Shape { place: place.into() });
                }
                Ok(())
            }
            Step::Random { dst, distribution, .. } => {
                self.check_tensor(dst, place)?;
                if matches!(distribution, Distribution::Randint { low, high } if low >= high) {
                    return Err(PlanError::Malformed { place: place.into(), what: "an empty range".into() });
                }
                Ok(())
            }
            Step::Fill { dst, .. } => self.check_tensor(dst, place),
        }
    }

    fn check_launch(&self, kernel: usize, args: &[Arg], place: &str) -> Result<(), PlanError> {
        let Some(spec) = self.kernels.get(kernel) else {
            return Err(PlanError::Kernel { place: place.into(), kernel, count: self.kernels.len() });
        };
        let wanted = spec.params.iter().filter(|param| param.ty != "constexpr").count();
        if wanted != args.len() {
            return Err(PlanError::Arguments { place: place.into(), given: args.len(), wanted });
        }
        for arg in args {
            match arg {
                Arg::Pointer { buffer, offset } => {
                    let nbytes = self.buffer(*buffer, place)?.nbytes;
                    // One past the end is a legal address, as in C.
                    if *offset > nbytes {
                        return Err(PlanError::Outside { place: place.into(), nbytes });
                    }
                }
                Arg::Descriptor { tensor, .. } => self.check_tensor(tensor, place)?,
                Arg::Seed { low, high, .. } if low >= high => {
                    return Err(PlanError::Malformed { place: place.into(), what: "an empty seed range".into() });
                }
                Arg::Seed { .. } | Arg::Scalar { .. } | Arg::Null => {}
            }
        }
        Ok(())
    }

    fn check_tensor(&self, tensor: &TensorRef, place: &str) -> Result<(), PlanError> {
        let nbytes = self.buffer(tensor.buffer, place)?.nbytes;
        if tensor.view.fits(nbytes) { Ok(()) } else { Err(PlanError::Outside { place: place.into(), nbytes }) }
    }

    fn buffer(&self, buffer: usize, place: &str) -> Result<&Buffer, PlanError> {
        self.buffers.get(buffer).ok_or_else(|| PlanError::Buffer {
            place: place.into(),
            buffer,
            count: self.buffers.len(),
        })
    }
}

/// The element type that a pointer parameter of this Triton type points to: `*fp32` -> float32.
impl Dtype {
    pub fn from_triton(name: &str) -> Option<Self> {
        Some(match name {
            "i1" | "int1" => Self::Bool,
            "u8" | "uint8" => Self::U8,
            "u16" | "uint16" => Self::U16,
            "u32" | "uint32" => Self::U32,
            "u64" | "uint64" => Self::U64,
            "i8" | "int8" => Self::I8,
            "i16" | "int16" => Self::I16,
            "i32" | "int32" => Self::I32,
            "i64" | "int64" => Self::I64,
            "fp8e4nv" => Self::F8E4M3,
            "fp8e5" => Self::F8E5M2,
            "fp16" | "f16" => Self::F16,
            "bf16" => Self::Bf16,
            "fp32" | "f32" => Self::F32,
            "fp64" | "f64" => Self::F64,
            _ => return None,
        })
    }
}
