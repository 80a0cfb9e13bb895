//! What a GPU executor runs: buffers, kernels and a flat list of operations, with nothing left to decide.

use serde::{Deserialize, Serialize};
use tilewright_contract::{
    Arg, CompiledKernel, Constexpr, Dtype, KernelSpec, LaunchOptions, Number, Param, Plan, Step, TensorRef, View,
};

use crate::copies::copy_launches;
use crate::host::{draw_seed, evaluate};
use crate::run::{Fault, FaultKind, Source};
use crate::wire::Content;

/// Our own kernels: the one behind copies, casts and strided fills, and the one that digests results. Compiled by the
/// same compiler as a candidate's.
pub const STEP_MODULE: &str = include_str!("steps.py");
/// Words that one program of the digest kernel reads.
pub(crate) const DIGEST_BLOCK: u64 = 4096;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Program {
    /// Bytes of each buffer: the plan's first, then staging buffers.
    pub(crate) buffers: Vec<u64>,
    pub(crate) kernels: Vec<Loadable>,
    pub(crate) ops: Vec<Op>,
}

impl Program {
    /// Kernel and line of each launch.
    pub(crate) fn launches(&self) -> Vec<(String, u32)> {
        let launch = |op: &Op| match op {
            Op::Launch { kernel, line, .. } => Some((self.kernels[*kernel].entry.clone(), *line)),
            Op::Upload { .. } | Op::Set { .. } => None,
        };
        self.ops.iter().filter_map(launch).collect()
    }
}

/// A cubin with what a launch of it needs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Loadable {
    /// Index into the blobs of the request.
    pub(crate) blob: usize,
    pub(crate) entry: String,
    pub(crate) threads: u32,
    pub(crate) shared: u32,
    pub(crate) options: LaunchOptions,
    pub(crate) global_scratch: (u64, u64),
    pub(crate) profile_scratch: (u64, u64),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Op {
    Launch {
        kernel: usize,
        grid: [u32; 3],
        params: Vec<Slot>,
        line: u32,
    },
    /// Host bytes into a buffer.
    Upload {
        buffer: usize,
        offset: u64,
        blob: usize,
    },
    /// `count` repetitions of a pattern of `width` (1, 2 or 4) bytes.
    Set {
        buffer: usize,
        offset: u64,
        pattern: u32,
        width: u32,
        count: u64,
    },
}

/// One kernel parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Slot {
    Pointer {
        buffer: usize,
        offset: u64,
    },
    /// Little-endian bytes of the parameter's own size.
    Value(Vec<u8>),
    TensorMap(TensorMap),
}

/// A host-side tensor descriptor as the tensor memory accelerator takes it: dimensions outermost first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TensorMap {
    pub buffer: usize,
    pub view: View,
    /// Elements of a block that one access moves, as the compiler laid them out.
    pub block: Vec<u32>,
    /// The compiler's swizzle mode, 0 to 3.
    pub swizzle: u32,
    pub pad_nan: bool,
}

/// Triton's `tensordesc_meta` of one descriptor.
#[derive(Deserialize)]
struct DescriptorMeta {
    swizzle: u32,
    block_size: Vec<u32>,
    fp4_padded: bool,
}

/// The specialisations of our copy kernels that `plan` needs on a GPU.
pub fn step_kernels(plan: &Plan) -> Vec<KernelSpec> {
    let mut specs: Vec<KernelSpec> = Vec::new();
    for (src, dst) in plan.steps.iter().filter_map(copied_views) {
        // A copy that is not supported is told of when the plan is lowered.
        for launch in copy_launches(&src, dst).unwrap_or_default() {
            if !specs.contains(&launch.spec) {
                specs.push(launch.spec);
            }
        }
    }
    specs
}

/// Our own kernels that the clock of a GPU needs: the one that digests results, and one that does nothing.
pub fn clock_kernels() -> [KernelSpec; 2] {
    let nothing = KernelSpec {
        function: "nothing".into(),
        params: vec![Param { name: "out".into(), ty: "*i64".into() }],
        constexprs: Default::default(),
        attrs: Default::default(),
        options: LaunchOptions::default(),
    };
    [digest_kernel(), nothing]
}

fn digest_kernel() -> KernelSpec {
    let param = |name: &str, ty: &str| Param { name: name.into(), ty: ty.into() };
    KernelSpec {
        function: "digest".into(),
        params: vec![
            param("src", "*i32"),
            param("n", "i64"),
            param("key", "i64"),
            param("out", "*i64"),
            param("BLOCK", "constexpr"),
        ],
        constexprs: [("4".into(), Constexpr::Number { value: Number::Int(DIGEST_BLOCK as i64) })].into(),
        attrs: Default::default(),
        options: LaunchOptions { num_warps: 8, ..LaunchOptions::default() },
    }
}

/// What a step copies from and to on a GPU, if it needs a copy kernel. What the host writes is staged first.
fn copied_views(step: &Step) -> Option<(View, &View)> {
    match step {
        Step::Copy { src, dst, .. } => Some((src.view.clone(), &dst.view)),
        Step::Fill { dst, .. } => (!is_settable(&dst.view)).then(|| (one_element(&dst.view), &dst.view)),
        Step::Iota { dst, .. } | Step::Literal { dst, .. } | Step::Random { dst, .. } => {
            (!is_contiguous(&dst.view)).then(|| (View::contiguous(dst.view.dtype, &dst.view.shape), &dst.view))
        }
        Step::Launch { .. } => None,
    }
}

/// Whether the driver can fill a view: its patterns have up to 4 bytes.
fn is_settable(view: &View) -> bool {
    is_contiguous(view) && view.dtype.size() <= 4
}

/// One element at the start of a buffer, in every place of a view.
fn one_element(view: &View) -> View {
    View { strides: vec![0; view.shape.len()], offset: 0, ..view.clone() }
}

/// Triton's type of a pointer to elements of a dtype: `*fp32`.
pub fn pointer_type(dtype: Dtype) -> String {
    let name = match dtype {
        Dtype::Bool => "i1",
        Dtype::U8 => "u8",
        Dtype::U16 => "u16",
        Dtype::U32 => "u32",
        Dtype::U64 => "u64",
        Dtype::I8 => "i8",
        Dtype::I16 => "i16",
        Dtype::I32 => "i32",
        Dtype::I64 => "i64",
        Dtype::F8E4M3 => "fp8e4nv",
        Dtype::F8E5M2 => "fp8e5",
        Dtype::F16 => "fp16",
        Dtype::Bf16 => "bf16",
        Dtype::F32 => "fp32",
        Dtype::F64 => "fp64",
    };
    format!("*{name}")
}

pub(crate) fn is_contiguous(view: &View) -> bool {
    view.strides == View::contiguous(view.dtype, &view.shape).strides || view.numel() <= 1
}

/// A compiled kernel with its binary.
pub struct Executable<'a> {
    pub spec: &'a KernelSpec,
    pub kernel: &'a CompiledKernel,
    pub binary: &'a [u8],
}

/// Lowers a plan for one seed: every step becomes launches, uploads and memsets.
pub(crate) struct Lowering<'a> {
    plan: &'a Plan,
    /// Where each step kernel's specialisation lies in `program.kernels`.
    step_specs: Vec<(&'a KernelSpec, usize)>,
    /// What the compiler says of each kernel's descriptors.
    descriptor_meta: Vec<Vec<serde_json::Value>>,
    pub(crate) program: Program,
    pub(crate) blobs: Vec<Vec<u8>>,
    seed: u64,
}

impl<'a> Lowering<'a> {
    /// `kernels` are the plan's in its order; `steps` those of [`step_kernels`].
    pub(crate) fn new(
        plan: &'a Plan,
        kernels: &[Executable<'a>],
        steps: &[Executable<'a>],
        seed: u64,
    ) -> Result<Self, Fault> {
        let mut lowering = Self {
            plan,
            step_specs: Vec::new(),
            descriptor_meta: kernels.iter().map(|executable| executable.kernel.tensordesc_meta.clone()).collect(),
            program: Program {
                buffers: plan.buffers.iter().map(|buffer| buffer.nbytes).collect(),
                kernels: Vec::new(),
                ops: Vec::new(),
            },
            blobs: Vec::new(),
            seed,
        };
        for executable in kernels.iter().chain(steps) {
            lowering.load(executable);
        }
        for (i, executable) in steps.iter().enumerate() {
            lowering.step_specs.push((executable.spec, kernels.len() + i));
        }
        for (number, step) in plan.steps.iter().enumerate() {
            lowering.lower(step, number)?;
        }
        Ok(lowering)
    }

    fn load(&mut self, executable: &Executable<'_>) {
        let loadable = self.loadable(executable);
        self.program.kernels.push(loadable);
    }

    /// Puts a kernel's image among the blobs.
    pub(crate) fn loadable(&mut self, executable: &Executable<'_>) -> Loadable {
        let kernel = executable.kernel;
        self.blobs.push(executable.binary.to_vec());
        Loadable {
            blob: self.blobs.len() - 1,
            entry: kernel.entry.clone(),
            threads: kernel.threads,
            shared: kernel.resources.shared_bytes,
            options: executable.spec.options.clone(),
            global_scratch: kernel.global_scratch,
            profile_scratch: kernel.profile_scratch,
        }
    }

    /// Puts the contents of buffers among the blobs.
    pub(crate) fn contents(&mut self, contents: &[Option<Vec<u8>>]) -> Vec<Option<Content>> {
        contents.iter().map(|bytes| bytes.as_ref().map(|bytes| self.content(bytes))).collect()
    }

    /// Equal contents of several runs are sent once.
    fn content(&mut self, bytes: &[u8]) -> Content {
        let known = self.blobs.iter().position(|known| known == bytes);
        Content::Blob(known.unwrap_or_else(|| {
            self.blobs.push(bytes.to_vec());
            self.blobs.len() - 1
        }))
    }

    /// The same where contents may lie on the device. Mapped ones have the size of their buffers.
    pub(crate) fn sources(&mut self, contents: &[Option<Source>]) -> Vec<Option<Content>> {
        let mut content = |source: &Source| match source {
            Source::Bytes(bytes) => self.content(bytes),
            Source::Mapped { handle, offset } => Content::Mapped { handle: *handle, offset: *offset },
            Source::Kept => Content::Kept,
        };
        contents.iter().map(|source| source.as_ref().map(&mut content)).collect()
    }

    fn lower(&mut self, step: &Step, number: usize) -> Result<(), Fault> {
        match step {
            Step::Launch { kernel, grid, args, line } => self.launch(*kernel, *grid, args, *line),
            Step::Copy { src, dst, line } => self.copy(src, dst, *line),
            Step::Fill { dst, line, .. } => self.fill(step, dst, number, *line),
            Step::Iota { dst, line, .. } | Step::Literal { dst, line, .. } | Step::Random { dst, line, .. } => {
                let written = self.evaluated(step, number)?;
                self.write(written, dst, *line)
            }
        }
    }

    fn evaluated(&self, step: &Step, number: usize) -> Result<Vec<u8>, Fault> {
        // None of these steps reads a buffer.
        let written = evaluate(step, number, self.seed, |_| &[])?;
        Ok(written.map(|written| written.bytes).unwrap_or_default())
    }

    fn fill(&mut self, step: &Step, dst: &TensorRef, number: usize, line: u32) -> Result<(), Fault> {
        let one = TensorRef { view: View { shape: vec![1], strides: vec![1], ..dst.view.clone() }, ..dst.clone() };
        let Step::Fill { value, .. } = step else { return Ok(()) };
        let bytes = self.evaluated(&Step::Fill { dst: one, value: *value, line }, number)?;
        let width = bytes.len() as u32;
        if is_settable(&dst.view) {
            let mut word = [0; 4];
            word[..bytes.len()].copy_from_slice(&bytes);
            self.program.ops.push(Op::Set {
                buffer: dst.buffer,
                offset: dst.view.offset,
                pattern: u32::from_le_bytes(word),
                width,
                count: dst.view.numel(),
            });
            return Ok(());
        }
        let staging = self.stage(bytes);
        self.copy(&TensorRef { buffer: staging, view: one_element(&dst.view) }, dst, line)
    }

    /// Bytes in logical order into `dst`.
    fn write(&mut self, bytes: Vec<u8>, dst: &TensorRef, line: u32) -> Result<(), Fault> {
        if is_contiguous(&dst.view) {
            self.blobs.push(bytes);
            let blob = self.blobs.len() - 1;
            self.program.ops.push(Op::Upload { buffer: dst.buffer, offset: dst.view.offset, blob });
            return Ok(());
        }
        let staging = self.stage(bytes);
        let view = View::contiguous(dst.view.dtype, &dst.view.shape);
        self.copy(&TensorRef { buffer: staging, view }, dst, line)
    }

    /// A new buffer that holds `bytes`.
    fn stage(&mut self, bytes: Vec<u8>) -> usize {
        self.program.buffers.push(bytes.len() as u64);
        let buffer = self.program.buffers.len() - 1;
        self.blobs.push(bytes);
        self.program.ops.push(Op::Upload { buffer, offset: 0, blob: self.blobs.len() - 1 });
        buffer
    }

    fn copy(&mut self, src: &TensorRef, dst: &TensorRef, line: u32) -> Result<(), Fault> {
        let launches = copy_launches(&src.view, &dst.view)
            .map_err(|what| Fault { line: Some(line), ..Fault::new(FaultKind::Unsupported, what) })?;
        for launch in launches {
            let Some(&(_, kernel)) = self.step_specs.iter().find(|(spec, _)| **spec == launch.spec) else {
                let message = format!("no copy kernel from {} to {}", src.view.dtype.name(), dst.view.dtype.name());
                return Err(Fault::new(FaultKind::Infrastructure, message));
            };
            let mut params = vec![
                Slot::Pointer { buffer: src.buffer, offset: launch.src },
                Slot::Pointer { buffer: dst.buffer, offset: launch.dst },
            ];
            let types = launch.spec.params.iter().skip(2).map(|param| param.ty.as_str());
            for (&value, ty) in launch.values.iter().zip(types) {
                params.push(scalar(Number::Int(value), ty)?);
            }
            self.program.ops.push(Op::Launch { kernel, grid: [launch.programs, 1, 1], params, line });
        }
        Ok(())
    }

    fn launch(&mut self, kernel: usize, grid: [u32; 3], args: &[Arg], line: u32) -> Result<(), Fault> {
        let slots = launch_slots(&self.plan.kernels[kernel], args, &self.descriptor_meta[kernel], self.seed);
        let params = slots.map_err(|fault| Fault { line: Some(line), ..fault })?.concat();
        self.program.ops.push(Op::Launch { kernel, grid, params, line });
        Ok(())
    }
}

/// The kernel's parameters behind each argument of a launch. Two scratch pointers come after them. `meta` is what the
/// compiler says of the kernel's descriptors.
pub fn launch_slots(
    spec: &KernelSpec,
    args: &[Arg],
    meta: &[serde_json::Value],
    seed: u64,
) -> Result<Vec<Vec<Slot>>, Fault> {
    let types = spec.params.iter().filter(|param| param.ty != "constexpr").map(|param| param.ty.as_str());
    let mut meta = meta.iter();
    let mut slots = |(arg, ty): (&Arg, &str)| match arg {
        Arg::Descriptor { tensor, padding, .. } => descriptor(tensor, padding == "nan", meta.next()),
        Arg::Pointer { buffer, offset } => Ok(vec![Slot::Pointer { buffer: *buffer, offset: *offset }]),
        Arg::Null => Ok(vec![Slot::Value(vec![0; 8])]),
        Arg::Scalar { value } => scalar(*value, ty).map(|slot| vec![slot]),
        Arg::Seed { index, low, high } => {
            scalar(Number::Int(draw_seed(seed, *index, *low, *high)), ty).map(|slot| vec![slot])
        }
    };
    args.iter().zip(types).map(&mut slots).collect()
}

/// A tensor map, then the shape as 32-bit and the strides as 64-bit integers: the kernel's parameters behind a descriptor.
fn descriptor(tensor: &TensorRef, pad_nan: bool, meta: Option<&serde_json::Value>) -> Result<Vec<Slot>, Fault> {
    let unsupported = |what: &str| Fault::new(FaultKind::Unsupported, format!("a host-side tensor descriptor {what}"));
    let meta = meta.ok_or_else(|| unsupported("for an architecture without a tensor memory accelerator"))?;
    let meta: DescriptorMeta = serde_json::from_value(meta.clone())
        .map_err(|error| unsupported(&format!("with unknown metadata: {error}")))?;
    if meta.fp4_padded {
        return Err(unsupported("of padded fp4"));
    }
    let view = &tensor.view;
    if meta.block_size.len() != view.shape.len() || !(1..=5).contains(&view.shape.len()) {
        return Err(unsupported("whose block has another rank"));
    }
    let mut slots = vec![Slot::TensorMap(TensorMap {
        buffer: tensor.buffer,
        view: view.clone(),
        block: meta.block_size,
        swizzle: meta.swizzle,
        pad_nan,
    })];
    slots.extend(view.shape.iter().map(|&extent| Slot::Value((extent as i32).to_le_bytes().to_vec())));
    slots.extend(view.strides.iter().map(|stride| Slot::Value(stride.to_le_bytes().to_vec())));
    Ok(slots)
}

/// A scalar argument in the bytes that the kernel's parameter has.
fn scalar(value: Number, ty: &str) -> Result<Slot, Fault> {
    let int = || {
        value
            .as_i64()
            .ok_or_else(|| Fault::new(FaultKind::Launch, format!("{value} passed for a parameter of type {ty}")))
    };
    let float = value.as_f64();
    Ok(Slot::Value(match ty {
        "i1" | "u1" | "i8" | "u8" => int()?.to_le_bytes()[..1].to_vec(),
        "i16" | "u16" => int()?.to_le_bytes()[..2].to_vec(),
        "i32" | "u32" => int()?.to_le_bytes()[..4].to_vec(),
        "i64" | "u64" => int()?.to_le_bytes().to_vec(),
        "fp16" => half::f16::from_f64(float).to_le_bytes().to_vec(),
        "bf16" => half::bf16::from_f64(float).to_le_bytes().to_vec(),
        "fp32" | "f32" => (float as f32).to_le_bytes().to_vec(),
        "fp64" => float.to_le_bytes().to_vec(),
        // An integer that the file got from data_ptr() and passes for a pointer is resolved by the tracer.
        _ => {
            return Err(Fault::new(FaultKind::Unsupported, format!("a scalar for a parameter of type {ty}")));
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_take_the_bytes_of_their_parameter() {
        assert_eq!(scalar(Number::Int(-1), "i32").unwrap(), Slot::Value(vec![255; 4]));
        assert_eq!(scalar(Number::Float(0.5), "fp32").unwrap(), Slot::Value(0.5f32.to_le_bytes().to_vec()));
        assert!(scalar(Number::Float(0.5), "i32").is_err());
    }
}
