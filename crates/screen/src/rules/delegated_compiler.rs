use tilewright_contract::Tier;

use super::{PathRule, Rule};

/// # What it does
/// Refuses `torch.compile`, TorchScript, Inductor and exports.
///
/// # Why is this bad?
/// The kernels would be the compiler's and not the candidate's.
///
/// # Example
/// ```python
/// @torch.jit.script
/// def fused(x, w): return torch.tanh(x @ w)
/// ```
///
/// # Use instead
/// A `@triton.jit` kernel.
pub(crate) const RULE: PathRule = PathRule {
    rule: Rule { id: "delegated-compiler", tier: Tier::Proof, help: "write the kernel in Triton" },
    paths: &[
        "torch.compile",
        "torch.jit",
        "torch._inductor",
        "torch._dynamo.optimize",
        "torch._dynamo.export",
        "torch.export",
        "torch._export",
        "torch.onnx",
        "torch.fx",
        "torch._lazy",
        "torch_xla",
        "torch_tensorrt",
        "onnxruntime",
        "functorch",
    ],
    except: &[
        "torch.jit.is_scripting",
        "torch.jit.is_tracing",
        "torch.jit.ignore",
        "torch.jit.unused",
        "torch.fx.wrap",
        "torch.compiler",
    ],
    what: "lets another compiler write the kernels",
};
