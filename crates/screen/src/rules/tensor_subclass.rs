use tilewright_contract::Tier;

use super::Rule;

/// # What it does
/// Refuses subclasses of `torch.Tensor`, and the hooks `__torch_function__` and `__torch_dispatch__`.
///
/// # Why is this bad?
/// Such an object can answer every comparison with "equal", or compute only when it is looked at.
///
/// # Example
/// ```python
/// class Result(torch.Tensor):
///     @classmethod
///     def __torch_function__(cls, func, types, args=(), kwargs=None): return True
/// ```
///
/// # Use instead
/// Plain tensors.
pub(crate) const RULE: Rule = Rule { id: "tensor-subclass", tier: Tier::Proof, help: "return plain tensors" };

pub(crate) const HOOKS: [&str; 2] = ["__torch_function__", "__torch_dispatch__"];

pub(crate) const BASES: [&str; 3] =
    ["torch.Tensor", "torch.utils._python_dispatch.TorchDispatchMode", "torch.overrides.TorchFunctionMode"];
