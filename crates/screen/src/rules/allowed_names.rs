use ruff_text_size::TextSize;
use tilewright_contract::Tier;

use super::checker::Checker;
use super::{Rule, any_covers, below_any, torch_compute};

/// # What it does
/// Reports names of torch and Triton that host code has no known use for. Names that give a capability have a rule of
/// their own, which refuses the file; this one is about names that are only unknown.
///
/// # Why is this bad?
/// Host code allocates, looks at shapes and modes, and launches. A short list of names does for that; whatever lies
/// outside of it deserves a look.
///
/// # Example
/// ```python
/// torch.cuda.tunable.enable()
/// ```
///
/// # Use instead
/// `torch.empty` and its kin, views, `torch.nn`, `torch.autograd.Function`, device queries of `torch.cuda`,
/// `triton.jit`, `triton.autotune`, `triton.heuristics`, `triton.cdiv`, `triton.language`.
pub(crate) const RULE: Rule = Rule {
    id: "name-not-allowed",
    tier: Tier::Evidence,
    help: "use the allocating, viewing and asking functions of torch, and triton.jit, autotune, heuristics, cdiv",
};

/// What host code may name, with all that lies below. Names directly in `torch` are looked at by `torch-compute`.
const ALLOWED: [&str; 63] = [
    "torch.Tensor",
    "torch.Generator",
    "torch.Size",
    "torch.Stream",
    "torch.OutOfMemoryError",
    "torch.SymInt",
    "torch.SymFloat",
    "torch.SymBool",
    "torch.nn",
    "torch.autograd.Function",
    "torch.autograd.function",
    "torch.autograd.grad_mode",
    "torch.autograd.set_grad_enabled",
    "torch.autograd.profiler.record_function",
    "torch.profiler.record_function",
    "torch.amp",
    "torch.backends",
    "torch.compiler.disable",
    "torch.compiler.is_compiling",
    "torch.compiler.is_dynamo_compiling",
    "torch.compiler.allow_in_graph",
    "torch.compiler.assume_constant_result",
    "torch.jit",
    "torch.fx.wrap",
    "torch.functional",
    "torch.types",
    "torch.library",
    "torch.ops",
    "torch.testing.assert_close",
    "torch.utils.checkpoint",
    "torch.version",
    "torch.torch_version",
    "torch.cuda.is_available",
    "torch.cuda.is_initialized",
    "torch.cuda.init",
    "torch.cuda.is_bf16_supported",
    "torch.cuda.is_tf32_supported",
    "torch.cuda.is_current_stream_capturing",
    "torch.cuda.amp",
    "torch.cuda.current_device",
    "torch.cuda.current_stream",
    "torch.cuda.default_stream",
    "torch.cuda.device",
    "torch.cuda.device_of",
    "torch.cuda.device_count",
    "torch.cuda.empty_cache",
    "torch.cuda.get_arch_list",
    "torch.cuda.get_device_capability",
    "torch.cuda.get_device_name",
    "torch.cuda.get_device_properties",
    "torch.cuda.nvtx",
    "torch.cuda.set_device",
    "torch.cuda.stream",
    "torch.cuda.synchronize",
    "torch.cuda.OutOfMemoryError",
    "torch.cpu",
    "torch.xpu",
    "torch.mps",
    "torch.accelerator",
    "torch.special",
    "torch.linalg",
    "torch.fft",
    "torch.sparse",
];

const TRITON: [&str; 19] = [
    "triton.jit",
    "triton.autotune",
    "triton.heuristics",
    "triton.Config",
    "triton.cdiv",
    "triton.next_power_of_2",
    "triton.language",
    "triton.constexpr_function",
    "triton.set_allocator",
    "triton.OutOfResources",
    "triton.CompilationError",
    "triton.TritonError",
    "triton.errors",
    "triton.tools",
    "triton.runtime.driver",
    "triton.runtime.errors",
    "triton.compiler",
    "triton.__version__",
    "triton.must_use_result",
];

/// Names of `logging` that write a message.
const LOGGING: &str = " getLogger Logger LoggerAdapter NullHandler debug info warning warn error critical exception log \
    DEBUG INFO WARNING ERROR CRITICAL NOTSET ";

pub(super) fn path(checker: &mut Checker<'_, '_>, path: &str, at: TextSize) {
    let known = match path.split_once('.') {
        Some(("torch", name)) if name.contains('.') => {
            below_any(path, &ALLOWED) || torch_compute::is_compute(path) || torch_compute::is_setting(path)
        }
        // `torch-compute` has its own list of the names directly in torch.
        Some(("torch", name)) => !name.starts_with(|c: char| c.is_ascii_uppercase()) || is_class(path),
        Some(("triton", _)) => below_any(path, &TRITON),
        Some(("logging", name)) => LOGGING.contains(&format!(" {name} ")),
        _ => true,
    };
    let known = known || any_covers(path);
    if !known && !path.ends_with('*') {
        let message = format!("`{path}` is not on the list of names that host code is known to need");
        checker.report(&RULE, Some(at), message);
    }
}

/// The classes directly in torch that a file may name: those above, typed storages and tensors excepted.
fn is_class(path: &str) -> bool {
    below_any(path, &ALLOWED)
}
