use tilewright_contract::Tier;

use super::{Rule, below_any};

/// # What it does
/// Reports calls of torch functions that compute, by their spelling.
///
/// # Why is this bad?
/// The work of the candidate belongs into its kernels. Spelling proves nothing, so this is evidence only: the trace
/// sees every operation that really runs, and decides.
///
/// # Example
/// ```python
/// return torch.softmax(x, dim=-1)
/// ```
///
/// # Use instead
/// Compute it in a Triton kernel; torch may allocate, view, copy and cast.
pub(crate) const RULE: Rule = Rule {
    id: "torch-compute",
    tier: Tier::Evidence,
    help: "compute it in a Triton kernel; torch may allocate, view, copy and cast",
};

/// Namespaces that only compute.
const SPACES: [&str; 8] = [
    "torch.nn.functional",
    "torch.special",
    "torch.linalg",
    "torch.fft",
    "torch.sparse",
    "torch.ops.aten",
    "torch.ops.prims",
    "torch.nested",
];

/// Functions of `torch` itself that allocate, view, copy, cast, fill, ask or draw random numbers.
const HARMLESS: &str = " _assert _check adjoint are_deterministic_algorithms_enabled arange argwhere as_strided as_tensor asarray \
    atleast_1d atleast_2d atleast_3d autocast broadcast_shapes broadcast_tensors broadcast_to can_cast cat chunk clone \
    column_stack concat concatenate contiguous_format detach device diagonal dsplit dstack dtype empty empty_like \
    empty_permuted empty_quantized empty_strided enable_grad expand_copy eye finfo flatten from_numpy frombuffer full \
    full_like get_autocast_dtype get_autocast_gpu_dtype get_default_device get_default_dtype get_device \
    get_device_module get_float32_matmul_precision get_num_threads hsplit hstack iinfo inference_mode initial_seed \
    is_autocast_enabled is_complex is_conj is_deterministic_algorithms_warn_only_enabled is_distributed \
    is_floating_point is_grad_enabled is_inference is_inference_mode_enabled is_neg is_nonzero is_same_size is_signed \
    is_storage is_tensor layout linspace manual_seed memory_format moveaxis movedim narrow no_grad normal numel ones \
    ones_like permute preserve_format promote_types rand rand_like randint randint_like randn randn_like randperm ravel \
    repeat_interleave reshape resolve_conj resolve_neg result_type rot90 row_stack seed select set_default_device \
    set_float32_matmul_precision set_grad_enabled split squeeze stack strided swapaxes swapdims t tensor tensor_split \
    tile to transpose typename unbind unflatten unsqueeze view_as_complex view_as_real view_copy vsplit vstack zeros \
    zeros_like ";

/// Whether a call of `path` computes, as far as its name tells.
pub(crate) fn is_compute(path: &str) -> bool {
    if below_any(path, &SPACES) {
        return path != "torch.nn.functional.pad";
    }
    let Some(name) = path.strip_prefix("torch.") else { return false };
    let plain = !name.contains('.') && name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    plain && !HARMLESS.contains(&format!(" {name} "))
}

/// Lower-case names of `torch` that are no functions: dtypes, layouts, numbers and modules.
const NO_FUNCTIONS: &str = " accelerator amp ao autograd backends bfloat16 bool cdouble cfloat chalf channels_last \
    channels_last_3d classes compiler complex128 complex32 complex64 contiguous_format cpp cpu cuda default_generator \
    distributed distributions double e export fft float float16 float32 float64 float4_e2m1fn_x2 float8_e4m3fn \
    float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu func futures fx half hub inf int int16 int32 int64 int8 \
    jagged jit legacy_contiguous_format library linalg long masked monitor mps mtia multiprocessing nan nested newaxis nn \
    ops optim overrides package per_channel_affine per_tensor_affine pi preserve_format profiler qint32 qint8 \
    quantization quint8 random return_types serialization short signal sparse sparse_bsc sparse_bsr sparse_coo sparse_csc \
    sparse_csr special storage strided testing torch_version types uint16 uint32 uint64 uint8 utils version xpu ";

/// Whether `path`, named without being called, is a function that computes.
pub(crate) fn is_compute_value(path: &str) -> bool {
    if SPACES.contains(&path) {
        return false;
    }
    // A packet of overloads such as `torch.ops.aten` itself is a namespace; what lies below computes.
    let name = path.strip_prefix("torch.").unwrap_or_default();
    is_compute(path) && !NO_FUNCTIONS.contains(&format!(" {name} ")) && !name.starts_with("__")
}

/// Whether `path` is one of the settings that other rules look at.
pub(crate) fn is_setting(path: &str) -> bool {
    super::precision_flag::is_call(path)
}
