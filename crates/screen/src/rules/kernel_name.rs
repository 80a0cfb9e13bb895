use ruff_text_size::TextSize;
use tilewright_contract::Tier;

use super::checker::Checker;
use super::{Rule, below_any};

/// # What it does
/// Refuses names in kernels that lie outside of Triton's language: modules that Triton's own modules import
/// (`tl.core.inspect`, `tl.core.knobs`), its compiler's objects (`tl.core.ir`), private names, the system.
///
/// # Why is this bad?
/// Triton evaluates such names as Python while it compiles. A kernel has no use for them.
///
/// # Example
/// ```python
/// @triton.jit
/// def kernel(x):
///     tl.static_print(tl.core.inspect.os.environ)
/// ```
///
/// # Use instead
/// The documented names of `triton.language` and `libdevice`.
pub(crate) const RULE: Rule = Rule {
    id: "kernel-name",
    tier: Tier::Proof,
    help: "use the documented names of triton.language and libdevice in kernels",
};

/// The public names of `triton.language`, and those of its modules that kernels use.
const LANGUAGE: &str = " abs add advance arange argmax argmin associative_scan assume async_task atomic_add atomic_and \
    atomic_cas atomic_max atomic_min atomic_or atomic_xchg atomic_xor bfloat16 bitonic_merge block_type broadcast \
    broadcast_to cast cat cdiv ceil clamp condition const constexpr constexpr_function constexpr_type core cos cumprod \
    cumsum debug_barrier device_assert device_print div_rn dot dot_scaled dtype erf exp exp2 expand_dims extra fdiv flip \
    float16 float32 float64 float8e4b15 float8e4b8 float8e4nv float8e5 float8e5b16 floor fma full gather histogram \
    inline_asm_elementwise int1 int16 int32 int64 int8 interleave join load load_tensor_descriptor log log2 \
    make_block_ptr make_tensor_descriptor map_elementwise math max max_constancy max_contiguous maximum min minimum mul \
    multiple_of num_programs pair_uniform_to_normal permute philox philox_impl pi32_t pointer_type program_id \
    PropagateNan rand rand4x randint randint4x randn randn4x random range ravel reduce reduce_or reshape rsqrt \
    sigmoid sin slice softmax sort split sqrt sqrt_rn squeeze standard static_assert static_print static_range store \
    store_tensor_descriptor sub sum swizzle2d tensor tensor_descriptor tensor_descriptor_type topk trans tuple \
    tuple_type uint16 uint32 uint64 uint8 uint_to_uniform_float umulhi unsqueeze view void where xor_sum zeros \
    zeros_like ";

/// Modules of the language that hold names of it once more.
const AGAIN: [&str; 4] = ["core", "math", "random", "standard"];

/// Where the names in a kernel may lead apart from the language.
const BESIDE: [&str; 7] = [
    "math",
    "builtins",
    "triton.cdiv",
    "triton.next_power_of_2",
    "triton.jit",
    "triton.constexpr_function",
    "triton.language",
];

pub(super) fn path(checker: &mut Checker<'_, '_>, path: &str, guessed: bool, at: TextSize) {
    // What else is imported keeps the kernel from being cut out, with a finding of its own.
    let system = ["os", "sys", "inspect", "builtins.__import__", "importlib", "io", "pathlib", "shutil"];
    let refused = match path.strip_prefix("triton.language.") {
        // A name that a star import may have brought may be anything.
        _ if guessed => below_any(path, &system),
        Some(name) => !is_language(name),
        None => below_any(path, &system) || (path.starts_with("triton.") && !below_any(path, &BESIDE)),
    };
    if refused {
        checker.report(&RULE, Some(at), format!("`{path}` in a kernel is not part of Triton's language"));
    }
}

fn is_language(name: &str) -> bool {
    let mut parts = name.split('.').peekable();
    if parts.peek() == Some(&"extra") {
        return name.split('.').all(|part| !part.starts_with('_') && !AGAIN.contains(&part) && part != "triton");
    }
    // Which functions there are depends on the version of Triton.
    if parts.peek() == Some(&"math") {
        let plain =
            |part: &str| part.starts_with(|c: char| c.is_ascii_lowercase()) && part != "wraps" && part != "core";
        return parts.all(plain);
    }
    while parts.next_if(|part| AGAIN.contains(part)).is_some() {}
    let known = parts.next().is_none_or(|part| LANGUAGE.contains(&format!(" {part} ")));
    known && parts.all(|part| !part.starts_with('_'))
}
