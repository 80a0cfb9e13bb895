use ruff_python_ast::{Expr, ExprAttribute, ExprContext};
use ruff_text_size::Ranged;
use tilewright_contract::Tier;

use super::Rule;
use super::checker::Checker;
use crate::scope::ScopeId;

/// # What it does
/// Refuses reading attributes of a kernel other than the documented ones: `run`, `warmup`, `arg_names`, `params`,
/// `best_config`, `configs`, `fn`, `base_fn`, `cache`, `signature`, `__name__`, `__doc__`.
///
/// # Why is this bad?
/// Caches, modules and hooks of a kernel tell whether it was compiled, launched or only traced before.
///
/// # Example
/// ```python
/// warm = any(softmax_kernel.device_caches.values())
/// ```
///
/// # Use instead
/// Nothing: launch the kernel.
pub(crate) const RULE: Rule =
    Rule { id: "kernel-attribute", tier: Tier::Proof, help: "launch the kernel, and ask nothing of it" };

const DOCUMENTED: [&str; 14] = [
    "run",
    "warmup",
    "arg_names",
    "params",
    "best_config",
    "configs",
    "fn",
    "base_fn",
    "cache",
    "signature",
    "preload",
    "__name__",
    "__doc__",
    "__wrapped__",
];

pub(super) fn attribute(checker: &mut Checker<'_, '_>, attribute: &ExprAttribute, scope: ScopeId) {
    let attr = attribute.attr.as_str();
    let own = |expr: &Expr| matches!(expr, Expr::Name(name) if checker.is_kernel(&name.id, scope));
    let odd = match &*attribute.value {
        value if own(value) => !DOCUMENTED.contains(&attr),
        // `kernel.run.__module__`
        Expr::Attribute(inner) => own(&inner.value) && attr.starts_with("__"),
        _ => false,
    };
    if odd && attribute.ctx == ExprContext::Load {
        let message = format!("`{attr}` of a kernel tells how it was run before");
        checker.report(&RULE, Some(attribute.attr.start()), message);
    }
}
