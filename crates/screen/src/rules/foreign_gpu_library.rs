use tilewright_contract::Tier;

use super::{PathRule, Rule};

/// # What it does
/// Refuses other GPU and array libraries, and the DLPack bridge to them.
///
/// # Why is this bad?
/// The work would be done by the library and not by the kernels of the candidate.
///
/// # Example
/// ```python
/// torch.from_dlpack(cupy.cumsum(cupy.from_dlpack(x), axis=1))
/// ```
///
/// # Use instead
/// A `@triton.jit` kernel.
pub(crate) const RULE: PathRule = PathRule {
    rule: Rule { id: "foreign-gpu-library", tier: Tier::Proof, help: "write the kernel in Triton" },
    paths: &[
        "cupy",
        "cupyx",
        "numba",
        "pycuda",
        "jax",
        "jaxlib",
        "cuda",
        "pyopencl",
        "tensorflow",
        "tvm",
        "tilelang",
        "cutlass",
        "mxnet",
        "paddle",
        "torch.utils.dlpack",
        "torch.from_dlpack",
        "torch.to_dlpack",
        "triton.experimental.gluon",
    ],
    except: &[],
    what: "reaches a GPU library other than Triton",
};
