use tilewright_contract::Tier;

use super::Rule;

/// # What it does
/// Refuses assignments to attributes of imported things and of kernels: by `=`, `del`, `setattr`, `__dict__`,
/// `vars()`, `globals()`.
///
/// # Why is this bad?
/// Replacing `torch.allclose`, `time.perf_counter`, `json.dumps` or a method of `JITFunction` changes what everybody
/// else computes, times and reports. It is refused also where it would have had no effect.
///
/// # Example
/// ```python
/// torch.Tensor.abs = lambda self: self * 0
/// setattr(time, "perf_counter", slow)
/// torch.__dict__["equal"] = always
/// ```
///
/// # Use instead
/// Functions and attributes of your own.
pub(crate) const RULE: Rule = Rule {
    id: "patched-module",
    tier: Tier::Proof,
    help: "define functions of your own and leave imported modules and kernels as they are",
};
