use ruff_text_size::Ranged;
use tilewright_contract::Tier;

use super::Rule;
use super::kernels::{Call, Kernel, Kernels};

/// # What it does
/// Advises on `tl.arange` over a range whose length the file shows and which is no power of two.
///
/// # Why is this bad?
/// Triton does not compile it.
///
/// # Example
/// ```python
/// tl.arange(0, 96)
/// ```
///
/// # Use instead
/// `tl.arange(0, 128)` and a mask.
pub(crate) const RULE: Rule =
    Rule { id: "arange-power-of-two", tier: Tier::Advice, help: "use a power of two and a mask" };

pub(super) fn check(kernels: &mut Kernels<'_, '_>, kernel: &Kernel<'_>) {
    for Call { name, call, .. } in &kernel.calls {
        let [from, to] = &*call.arguments.args else { continue };
        if name != "arange" {
            continue;
        }
        let (from, to) = (kernels.integer(from, kernel.scope), kernels.integer(to, kernel.scope));
        if let (Some(from), Some(to)) = (from, to)
            && (to <= from || (to - from).count_ones() != 1)
        {
            let message = format!("the range has {} elements, which is no power of two", to - from);
            kernels.report(&RULE, call.start(), message);
        }
    }
}
