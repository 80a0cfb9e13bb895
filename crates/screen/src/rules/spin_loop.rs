use ruff_python_ast::Expr;
use ruff_text_size::Ranged;
use tilewright_contract::Tier;

use super::Rule;
use super::kernels::{Kernel, Kernels};

/// # What it does
/// Advises on a `while` loop that waits for a value in memory.
///
/// # Why is this bad?
/// Programs of one launch need not run at the same time: the one that is waited for may never start. Nor is it
/// promised that the change is ever seen.
///
/// # Example
/// ```python
/// while tl.atomic_cas(lock, 0, 1) == 1:
///     pass
/// ```
///
/// # Use instead
/// Two launches: a kernel starts after the one before it has ended. An atomic addition where that is enough.
pub(crate) const RULE: Rule = Rule { id: "spin-loop", tier: Tier::Advice, help: "split the work into two launches" };

pub(super) fn check(kernels: &mut Kernels<'_, '_>, kernel: &Kernel<'_>) {
    for spin in &kernel.whiles {
        let waits = |part: &Expr| {
            let atomic = ["load", "atomic_cas", "atomic_xchg", "atomic_add", "atomic_or", "atomic_max"];
            atomic.iter().any(|name| kernels.is_call(part, name, kernel.scope))
        };
        if kernels.any(&spin.test, kernel.scope, &waits) {
            kernels.report(&RULE, spin.start(), "the loop waits for another program of the same launch");
        }
    }
}
