use ruff_python_ast::Expr;
use ruff_text_size::Ranged;
use tilewright_contract::Tier;

use super::Rule;
use super::kernels::{Call, Kernel, Kernels, cast};

/// # What it does
/// Advises on `tl.dot` of operands that are cast to fp32, without `input_precision`.
///
/// # Why is this bad?
/// The default is TF32, which keeps 10 bits of the mantissa: an error of about 1e-3, which a check in fp32 refuses.
///
/// # Example
/// ```python
/// acc = tl.dot(a.to(tl.float32), b.to(tl.float32), acc)
/// ```
///
/// # Use instead
/// `input_precision="ieee"`, or `"tf32x3"`; `"tf32"` where that is meant.
pub(crate) const RULE: Rule =
    Rule { id: "dot-precision", tier: Tier::Advice, help: "say `input_precision=\"ieee\"` or `\"tf32\"`" };

pub(super) fn check(kernels: &mut Kernels<'_, '_>, kernel: &Kernel<'_>) {
    for Call { name, call, .. } in &kernel.calls {
        let told = ["input_precision", "allow_tf32"].iter().any(|word| call.arguments.find_keyword(word).is_some());
        if name != "dot" || told {
            continue;
        }
        let single = |operand: &Expr| {
            cast(operand).is_some_and(|(_, to)| kernels.names.is(to, kernel.scope, &["triton.language.float32"]))
        };
        let operands: Vec<_> = call.arguments.args.iter().take(2).collect();
        let shown = |operand: &Expr| match operand {
            Expr::Name(name) => {
                let values = kernels.values(&name.id, kernel.scope);
                !values.is_empty() && values.into_iter().all(single)
            }
            _ => single(operand),
        };
        if operands.len() == 2 && operands.into_iter().all(shown) {
            kernels.report(&RULE, call.start(), "the product of fp32 operands is computed in TF32");
        }
    }
}
