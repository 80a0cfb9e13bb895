use ruff_python_ast::ExprCall;
use ruff_text_size::Ranged;
use tilewright_contract::Tier;

use super::checker::Checker;
use super::{Rule, torch_compute};
use crate::scope::ScopeId;

/// # What it does
/// Refuses computing with torch in a loop, and work on a device, while the file is imported.
///
/// # Why is this bad?
/// It heats the device, fills its memory or prepares answers before anything is measured.
///
/// # Example
/// ```python
/// heater = torch.randn(8192, 8192, device="cuda")
/// for _ in range(50):
///     heater = heater @ heater
/// ```
///
/// # Use instead
/// Constants in `__init__`, small ones on the CPU.
pub(crate) const RULE: Rule =
    Rule { id: "work-at-import", tier: Tier::Proof, help: "move constants to __init__, and do no work at import" };

pub(super) fn call(checker: &mut Checker<'_, '_>, call: &ExprCall, scope: ScopeId) {
    if checker.in_function(scope) {
        return;
    }
    let paths = checker.names.paths(&call.func, scope);
    let torch = paths.iter().any(|path| path.starts_with("torch.") && path.matches('.').count() == 1);
    let device = call.arguments.find_keyword("device").and_then(|word| checker.names.string(&word.value, scope));
    let on_device = device.is_some_and(|device| device.starts_with("cuda") || device.starts_with("npu"));
    let in_loop = checker.in_loop(call.start()) && paths.iter().any(|path| torch_compute::is_compute(path));
    if torch && (on_device || in_loop) && !paths.iter().any(|path| path == "torch.device") {
        checker.report(&RULE, Some(call.start()), "the file works while it is imported".to_owned());
    }
}
