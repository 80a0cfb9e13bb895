use tilewright_contract::Tier;

use super::Rule;

/// # What it does
/// Refuses a file without any function under `triton.jit`.
///
/// # Why is this bad?
/// There is nothing to verify: whatever the file computes, it does not compute with Triton.
///
/// # Example
/// ```python
/// class ModelNew(nn.Module):
///     def forward(self, x):
///         return torch.softmax(x, -1)
/// ```
///
/// # Use instead
/// A `@triton.jit` kernel that `forward` launches.
pub(crate) const RULE: Rule = Rule {
    id: "no-triton-kernel",
    tier: Tier::Proof,
    help: "write a kernel with `@triton.jit` and launch it from `forward`",
};
