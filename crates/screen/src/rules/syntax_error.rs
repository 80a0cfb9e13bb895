use tilewright_contract::Tier;

use super::Rule;

/// # What it does
/// Refuses a file that is not Python.
///
/// # Why is this bad?
/// Nothing can be read from it, let alone run. The verdict of such a file is `compile_error`.
///
/// # Example
/// ```python
/// def forward(self, x:
///     return x
/// ```
///
/// # Use instead
/// One complete Python file. In an answer of a model, the code block only.
pub(crate) const RULE: Rule =
    Rule { id: "syntax-error", tier: Tier::Proof, help: "give one complete Python file, without text around it" };
