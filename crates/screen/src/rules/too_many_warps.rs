use ruff_python_ast::{DictItem, Expr, ExprCall};
use ruff_text_size::Ranged;
use tilewright_contract::Tier;

use super::Rule;
use super::kernels::{Kernel, Kernels};
use crate::scope::{MODULE, ScopeId};

/// # What it does
/// Advises on a launch or configuration with more threads than its blocks have elements: `num_warps` times 32 against
/// the product of all constexpr parameters, where the file shows them all as numbers.
///
/// # Why is this bad?
/// The threads beyond the block do the same work once more, and wait at every barrier.
///
/// # Example
/// ```python
/// kernel[grid](x, BLOCK=64, num_warps=16)
/// ```
///
/// # Use instead
/// As many warps as there is work for: 4 for a block of 128 elements.
pub(crate) const RULE: Rule =
    Rule { id: "too-many-warps", tier: Tier::Advice, help: "lower `num_warps`, or enlarge the block" };

pub(super) fn check(kernels: &mut Kernels<'_, '_>, kernel: &Kernel<'_>) {
    for launch in &kernel.launches {
        let words = launch.call.arguments.keywords.iter();
        let blocks: Vec<_> = words.filter_map(|word| Some((word.arg.as_ref()?.as_str(), &word.value))).collect();
        compare(kernels, kernel, launch.call, launch.scope, &blocks);
    }
    for config in &kernel.configs {
        let Some(Expr::Dict(values)) = config.arguments.args.first() else { continue };
        let items = values.items.iter();
        let named =
            |item: &DictItem| item.key.as_ref()?.as_string_literal_expr().map(|key| key.value.to_str().to_owned());
        let blocks: Vec<_> = items.filter_map(|item| Some((named(item)?, &item.value))).collect();
        let blocks: Vec<_> = blocks.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        compare(kernels, kernel, config, MODULE, &blocks);
    }
}

fn compare(
    kernels: &mut Kernels<'_, '_>,
    kernel: &Kernel<'_>,
    call: &ExprCall,
    scope: ScopeId,
    blocks: &[(&str, &Expr)],
) {
    let warps = call.arguments.find_keyword("num_warps").and_then(|word| kernels.integer(&word.value, scope));
    let size = |name: &&str| {
        let (_, value) = blocks.iter().find(|(found, _)| found == name)?;
        kernels.integer(value, scope).filter(|size| *size > 0)
    };
    let sizes: Option<Vec<i64>> = kernel.constexprs.iter().map(size).collect();
    let (Some(warps), Some(sizes)) = (warps, sizes) else { return };
    let elements = sizes.iter().fold(1i64, |product, size| product.saturating_mul(*size));
    if !sizes.is_empty() && elements < warps.saturating_mul(32) {
        let message = format!("{warps} warps are {} threads, for blocks of {elements} elements", warps * 32);
        kernels.report(&RULE, call.start(), message);
    }
}
