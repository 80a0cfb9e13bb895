use tilewright_contract::Tier;

use super::{PathRule, Rule};

/// # What it does
/// Refuses foreign function interfaces, run-time C++ or CUDA compilation, and loading of shared libraries.
///
/// # Why is this bad?
/// Native code can do anything: patch timers and comparisons, call vendor libraries, keep state that Python cannot see.
/// A candidate contributes Triton kernels and launches, nothing else.
///
/// # Example
/// ```python
/// from torch.utils.cpp_extension import load_inline
/// ```
///
/// # Use instead
/// A `@triton.jit` kernel.
pub(crate) const RULE: PathRule = PathRule {
    rule: Rule { id: "native-code", tier: Tier::Proof, help: "write the kernel in Triton" },
    paths: &[
        "ctypes",
        "cffi",
        "_ctypes",
        "torch.utils.cpp_extension",
        "torch.utils._cpp_extension_versioner",
        "torch.cuda._compile_kernel",
        "torch.cuda.jiterator",
        "torch.ops.load_library",
        "torch.classes.load_library",
        "torch._ops.load_library",
        "torch.cuda.cudart",
        "pybind11",
        "cython",
        "pyximport",
    ],
    except: &[],
    what: "runs native code that is not a Triton kernel",
};
