use ruff_python_ast::Expr;
use ruff_text_size::Ranged;
use tilewright_contract::Tier;

use super::Rule;
use super::kernels::{Call, Kernel, Kernels, cast, is_half};

/// # What it does
/// Advises on `tl.sum` and `tl.cumsum` of a value that the kernel itself cast to fp16 or bf16.
///
/// # Why is this bad?
/// The partial sums are rounded to the type of the operand.
///
/// # Example
/// ```python
/// total = tl.sum(x.to(tl.float16), axis=0)
/// ```
///
/// # Use instead
/// `tl.sum(x.to(tl.float32), axis=0)`, and a cast of the result.
pub(crate) const RULE: Rule =
    Rule { id: "half-reduction", tier: Tier::Advice, help: "cast to `tl.float32` before the reduction" };

pub(super) fn check(kernels: &mut Kernels<'_, '_>, kernel: &Kernel<'_>) {
    for Call { name, call, .. } in &kernel.calls {
        let Some(value) = call.arguments.args.first() else { continue };
        let other = call.arguments.find_keyword("dtype").is_some();
        if !matches!(name.as_str(), "sum" | "cumsum") || other {
            continue;
        }
        let half = |value: &Expr| cast(value).is_some_and(|(_, to)| is_half(kernels.names, to, kernel.scope));
        let cast_before = match value {
            Expr::Name(name) => {
                let values = kernels.values(&name.id, kernel.scope);
                !values.is_empty() && values.into_iter().all(half)
            }
            _ => half(value),
        };
        if cast_before {
            kernels.report(&RULE, call.start(), format!("`tl.{name}` adds in a 16-bit type"));
        }
    }
}
