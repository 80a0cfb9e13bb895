use ruff_python_ast::Expr;
use ruff_text_size::Ranged;
use tilewright_contract::Tier;

use super::Rule;
use super::kernels::{Kernel, Kernels};

/// # What it does
/// Advises on a kernel that multiplies `tl.program_id` by a stride given at run time, and has no 64-bit integer.
///
/// # Why is this bad?
/// The product is computed in 32 bits, so the kernel reads and writes at wrong addresses once a tensor has 2^31
/// elements.
///
/// # Example
/// ```python
/// row = tl.program_id(0)
/// x = tl.load(x_ptr + row * stride + offsets)
/// ```
///
/// # Use instead
/// `row = tl.program_id(0).to(tl.int64)`.
pub(crate) const RULE: Rule =
    Rule { id: "int32-offset", tier: Tier::Advice, help: "write `tl.program_id(0).to(tl.int64)`" };

pub(super) fn check(kernels: &mut Kernels<'_, '_>, kernel: &Kernel<'_>) {
    if kernels.source.slice(kernel.def.range()).contains("int64") {
        return;
    }
    let is_program = |expr: &Expr| kernels.is_call(expr, "program_id", kernel.scope);
    let is_stride = |expr: &Expr| {
        expr.as_name_expr().is_some_and(|name| kernel.runtime.contains(&*name.id) && name.id.contains("stride"))
    };
    let product = kernel.products.iter().find(|product| {
        let sides = [(&product.left, &product.right), (&product.right, &product.left)];
        sides.iter().any(|(left, right)| {
            is_stride(right)
                && match &***left {
                    Expr::Name(name) => kernels.values(&name.id, kernel.scope).into_iter().any(is_program),
                    left => is_program(left),
                }
        })
    });
    if let Some(product) = product {
        let message = "the offset is computed in 32 bits: wrong for tensors of 2^31 elements or more";
        kernels.report(&RULE, product.start(), message);
    }
}
