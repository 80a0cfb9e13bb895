use ruff_python_ast::ExprCall;
use ruff_text_size::Ranged;
use tilewright_contract::Tier;

use super::Rule;
use super::kernels::{Kernel, Kernels};
use crate::scope::elements;

/// # What it does
/// For Ascend: advises on `num_warps`, `num_stages` and `num_ctas` in launches and configurations, on grids with a
/// dimension above 65,535, and on blocks of 65,536 elements or more.
///
/// # Why is this bad?
/// An NPU has cores instead of warps: Triton-Ascend refuses the options in `triton.autotune`, and the limits are those of
/// its launches.
///
/// # Example
/// ```python
/// triton.Config({"BLOCK": 1024}, num_warps=8)
/// ```
///
/// # Use instead
/// Block sizes only; a fixed grid of as many programs as there are cores, each of which runs over its blocks.
pub(crate) const RULE: Rule = Rule {
    id: "ascend-config",
    tier: Tier::Advice,
    help: "tune block sizes only, and keep grid dimensions at 65,535 or below",
};

const OPTIONS: [&str; 3] = ["num_warps", "num_stages", "num_ctas"];
const LARGEST_GRID: i64 = 65_535;
const LARGEST_BLOCK: i64 = 65_536;

pub(super) fn check(kernels: &mut Kernels<'_, '_>, kernel: &Kernel<'_>) {
    for config in &kernel.configs {
        options(kernels, config);
    }
    for launch in &kernel.launches {
        options(kernels, launch.call);
        for dimension in elements(launch.grid) {
            if kernels.integer(dimension, launch.scope).is_some_and(|size| size > LARGEST_GRID) {
                kernels.report(&RULE, dimension.start(), "the grid has more than 65,535 programs in one dimension");
            }
        }
    }
    for call in kernel.calls.iter().filter(|call| call.name == "arange") {
        let Some(end) = call.call.arguments.args.get(1) else { continue };
        if kernels.integer(end, kernel.scope).is_some_and(|size| size >= LARGEST_BLOCK) {
            kernels.report(&RULE, call.call.start(), "the block has 65,536 elements or more");
        }
    }
}

fn options(kernels: &mut Kernels<'_, '_>, call: &ExprCall) {
    for option in OPTIONS {
        if let Some(word) = call.arguments.find_keyword(option) {
            kernels.report(&RULE, word.start(), format!("`{option}` has no meaning on an NPU"));
        }
    }
}
