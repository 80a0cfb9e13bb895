use rustc_hash::FxHashSet;

use ruff_python_ast::{Expr, Operator};
use ruff_text_size::Ranged;
use tilewright_contract::Tier;

use super::Rule;
use super::kernels::{Call, Kernel, Kernels, is_half};

/// # What it does
/// Advises on sums that are kept in fp16 or bf16: an accumulator made by `tl.zeros` or `tl.full` of such a type, and
/// `tl.dot` with such an `out_dtype`.
///
/// # Why is this bad?
/// Each addition rounds to 11 or 8 bits; a sum of a few hundred terms is off by more than the type's own precision.
///
/// # Example
/// ```python
/// acc = tl.zeros((M, N), dtype=tl.float16)
/// for k in range(n): acc += tl.dot(a, b)
/// ```
///
/// # Use instead
/// `dtype=tl.float32`, and `acc.to(tl.float16)` where it is stored.
pub(crate) const RULE: Rule =
    Rule { id: "half-accumulator", tier: Tier::Advice, help: "accumulate in `tl.float32`, and cast when storing" };

pub(super) fn check(kernels: &mut Kernels<'_, '_>, kernel: &Kernel<'_>) {
    for Call { name, call, .. } in &kernel.calls {
        let kept = call.arguments.find_keyword("out_dtype").map(|word| &word.value);
        if name == "dot" && kept.is_some_and(|kind| is_half(kernels.names, kind, kernel.scope)) {
            kernels.report(&RULE, call.start(), "the product is accumulated in a 16-bit type");
        }
    }
    let again = kernel.assigns.iter().filter(|(name, value)| adds_to(value, name));
    let summed: FxHashSet<&str> = kernel.sums.iter().chain(again).map(|(name, _)| *name).collect();
    for (name, value) in &kernel.assigns {
        let Expr::Call(call) = value else { continue };
        let kind = match () {
            () if !summed.contains(name) => None,
            () if kernels.is_call(value, "zeros", kernel.scope) => call.arguments.find_argument_value("dtype", 1),
            () if kernels.is_call(value, "full", kernel.scope) => call.arguments.find_argument_value("dtype", 2),
            () => None,
        };
        if kind.is_some_and(|kind| is_half(kernels.names, kind, kernel.scope)) {
            kernels.report(&RULE, value.start(), format!("`{name}` sums up in a 16-bit type"));
        }
    }
}

/// `name + …`, `tl.dot(…, name)`
fn adds_to(value: &Expr, name: &str) -> bool {
    let is_name = |expr: &Expr| expr.as_name_expr().is_some_and(|found| &*found.id == name);
    match value {
        Expr::BinOp(sum) => sum.op == Operator::Add && (is_name(&sum.left) || is_name(&sum.right)),
        Expr::Call(call) => call.arguments.find_argument_value("acc", 2).is_some_and(is_name),
        _ => false,
    }
}
