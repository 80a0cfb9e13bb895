use ruff_python_ast::{Expr, Operator};
use ruff_text_size::Ranged;
use tilewright_contract::Tier;

use super::Rule;
use super::kernels::{Call, Kernel, Kernels, Launch};

/// # What it does
/// Advises on `tl.load` and `tl.store` at block offsets without a mask, in a kernel that compares nothing with a size
/// and whose grid is rounded up with `triton.cdiv`.
///
/// # Why is this bad?
/// The last block reaches past the end of the tensor wherever the size is no multiple of the block.
///
/// # Example
/// ```python
/// offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
/// x = tl.load(x_ptr + offsets)
/// ```
///
/// # Use instead
/// `tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)`.
pub(crate) const RULE: Rule = Rule { id: "unmasked-tail", tier: Tier::Advice, help: "add `mask=offsets < n`" };

const PADS: [&str; 2] = ["torch.nn.functional.pad", "torch.constant_pad_nd"];

pub(super) fn check<'a>(kernels: &mut Kernels<'_, 'a>, kernel: &Kernel<'a>) {
    let rounded_up = kernel
        .launches
        .iter()
        .any(|launch| kernels.any(launch.grid, launch.scope, &|part| kernels.is_call(part, "cdiv", launch.scope)));
    // The host pads what it gives to the kernel to whole blocks.
    let is_padded = |launch: &Launch<'a>| {
        let is_pad =
            |part: &Expr| part.as_call_expr().is_some_and(|call| kernels.names.is(&call.func, launch.scope, &PADS));
        launch.call.arguments.args.iter().any(|argument| kernels.any(argument, launch.scope, &is_pad))
    };
    if !rounded_up || kernel.launches.iter().any(is_padded) {
        return;
    }
    for Call { name, call, conditional } in &kernel.calls {
        let place = match name.as_str() {
            "load" => 1,
            "store" => 2,
            _ => continue,
        };
        let masked = call.arguments.find_argument("mask", place).is_some()
            || call.arguments.find_keyword("boundary_check").is_some();
        let Some(pointer) = call.arguments.args.first() else { continue };
        if masked || *conditional {
            continue;
        }
        let scope = kernel.scope;
        let block = kernels.any(pointer, scope, &|part| kernels.is_call(part, "arange", scope));
        let program = kernels.any(pointer, scope, &|part| kernels.is_call(part, "program_id", scope));
        // `offsets % n`, `tl.minimum(offsets, n - 1)`, block pointers and offsets tried for their size stay inside.
        let kept_inside = kernels.any(pointer, scope, &|part| match part {
            Expr::BinOp(operation) => matches!(operation.op, Operator::Mod | Operator::BitAnd),
            Expr::Call(_) => {
                ["minimum", "where", "make_block_ptr", "load"].iter().any(|name| kernels.is_call(part, name, scope))
            }
            _ => false,
        });
        // Only the blocks of a rounded-up grid reach past the end: `pid * BLOCK + arange(0, BLOCK)`.
        let strides_by_block = kernels.any(pointer, scope, &|part| match part {
            Expr::BinOp(product) if product.op == Operator::Mult => {
                let constexpr =
                    |side: &Expr| side.as_name_expr().is_some_and(|name| kernel.constexprs.contains(&*name.id));
                constexpr(&product.left) || constexpr(&product.right)
            }
            _ => false,
        });
        if block && program && strides_by_block && !kept_inside {
            let message = format!("`tl.{name}` reaches past the end where the size is no multiple of the block");
            kernels.report(&RULE, call.start(), message);
        }
    }
}
