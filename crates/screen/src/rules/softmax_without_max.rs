use ruff_python_ast::{Expr, Operator, UnaryOp};
use ruff_text_size::Ranged;
use tilewright_contract::Tier;

use super::Rule;
use super::kernels::{Call, Kernel, Kernels};

/// # What it does
/// Advises on exponentials that are divided by their sum, in a kernel that never takes a maximum.
///
/// # Why is this bad?
/// fp32 overflows from `exp(89)` on, so an input of ordinary size gives NaN.
///
/// # Example
/// ```python
/// e = tl.exp(x)
/// y = e / tl.sum(e, axis=0)
/// ```
///
/// # Use instead
/// `e = tl.exp(x - tl.max(x, axis=0))`.
pub(crate) const RULE: Rule =
    Rule { id: "softmax-without-max", tier: Tier::Advice, help: "subtract the maximum before `tl.exp`" };

pub(super) fn check(kernels: &mut Kernels<'_, '_>, kernel: &Kernel<'_>) {
    let maximum = |call: &Call<'_>| {
        ["max", "maximum", "reduce", "associative_scan", "clamp"].iter().any(|name| call.name.ends_with(name))
    };
    if kernel.calls.iter().any(maximum) {
        return;
    }
    let is_exp = |expr: &Expr| {
        let exp = ["exp", "exp2"].iter().any(|name| kernels.is_call(expr, name, kernel.scope));
        let argument = expr.as_call_expr().and_then(|call| call.arguments.args.first());
        // `exp(x - shift)`, `exp(-x)`: whatever is subtracted may be a bound.
        exp && argument.is_some_and(|argument| {
            !kernels.any(argument, kernel.scope, &|part| match part {
                Expr::BinOp(difference) => difference.op == Operator::Sub,
                Expr::UnaryOp(minus) => minus.op == UnaryOp::USub,
                _ => false,
            })
        })
    };
    let is_sum = |expr: &Expr| {
        let summed = expr.as_call_expr().and_then(|call| call.arguments.args.first());
        kernels.is_call(expr, "sum", kernel.scope)
            && summed.is_some_and(|summed| match summed {
                Expr::Name(name) => kernels.values(&name.id, kernel.scope).into_iter().any(is_exp),
                _ => is_exp(summed),
            })
    };
    let quotient = kernel.quotients.iter().find(|quotient| match &*quotient.right {
        Expr::Name(name) => kernels.values(&name.id, kernel.scope).into_iter().any(is_sum),
        right => is_sum(right),
    });
    if let Some(quotient) = quotient {
        kernels.report(&RULE, quotient.start(), "the exponentials overflow where the maximum is not subtracted");
    }
}
