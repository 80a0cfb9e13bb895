use ruff_python_ast::Expr;
use ruff_text_size::Ranged;
use tilewright_contract::Tier;

use super::Rule;
use super::kernels::{Kernel, Kernels};
use crate::scope::elements;

/// # What it does
/// Advises on a `triton.autotune` whose `key` leaves out a size that a loop of the kernel counts up to, or an element
/// is compared with.
///
/// # Why is this bad?
/// The configuration that won for the first size is used for all others.
///
/// # Example
/// ```python
/// @triton.autotune(configs, key=["M"])
/// @triton.jit
/// def kernel(a, M, K, B: tl.constexpr):
///     for k in range(0, K, B): ...
/// ```
///
/// # Use instead
/// Every size on which the time depends, in `key`.
pub(crate) const RULE: Rule = Rule { id: "autotune-key", tier: Tier::Advice, help: "add the size to `key`" };

pub(super) fn check(kernels: &mut Kernels<'_, '_>, kernel: &Kernel<'_>) {
    let Some(autotune) = kernel.autotune else { return };
    // One configuration is no choice.
    if kernel.configs.len() == 1 {
        return;
    }
    let Some(key) = autotune.arguments.find_argument_value("key", 1) else { return };
    let Some(key) = strings(key) else { return };
    let names = kernel.bounds.iter().filter_map(|bound| bound.as_name_expr());
    let mut missing: Vec<&str> = names.map(|name| name.id.as_str()).collect();
    missing.retain(|name| kernel.runtime.contains(name) && !key.contains(name));
    missing.sort_unstable();
    missing.dedup();
    if !missing.is_empty() {
        let message = format!("the choice of configuration does not depend on `{}`", missing.join("`, `"));
        kernels.report(&RULE, autotune.start(), message);
    }
}

/// The strings of a list display of strings.
fn strings(expr: &Expr) -> Option<Vec<&str>> {
    if !matches!(expr, Expr::List(_) | Expr::Tuple(_)) {
        return None;
    }
    elements(expr).iter().map(|name| name.as_string_literal_expr().map(|text| text.value.to_str())).collect()
}
