use ruff_python_ast::ExprCall;
use ruff_text_size::Ranged;
use tilewright_contract::Tier;

use super::Rule;
use super::checker::Checker;
use crate::scope::ScopeId;

/// # What it does
/// Refuses implementations for operators that are torch's own: `torch.library.impl("aten::…")`, a `Library` of the
/// namespaces `aten`, `prims`, `prim` and the like.
///
/// # Why is this bad?
/// It changes what torch computes for everybody in the process.
///
/// # Example
/// ```python
/// torch.library.Library("aten", "IMPL").impl("softmax.int", mine, "CUDA")
/// ```
///
/// # Use instead
/// `torch.library.custom_op("mine::softmax", mutates_args=())`.
pub(crate) const RULE: Rule =
    Rule { id: "overrides-operator", tier: Tier::Proof, help: "register operators in a namespace of your own" };

const REGISTERING: [&str; 11] = [
    "torch.library.Library",
    "torch.library.custom_op",
    "torch.library.define",
    "torch.library.impl",
    "torch.library.impl_abstract",
    "torch.library.register_autocast",
    "torch.library.register_autograd",
    "torch.library.register_fake",
    "torch.library.register_kernel",
    "torch.library.register_torch_dispatch",
    "torch.library.triton_op",
];

/// Namespaces that belong to torch.
const TAKEN: [&str; 8] = ["aten", "prims", "prim", "c10d", "inductor", "quantized", "profiler", "higher_order"];

pub(super) fn call(checker: &mut Checker<'_, '_>, call: &ExprCall, scope: ScopeId) {
    let Some(callee) =
        checker.names.paths(&call.func, scope).iter().find(|path| REGISTERING.contains(&path.as_str())).cloned()
    else {
        return;
    };
    let Some(name) = call.arguments.args.first().or_else(|| call.arguments.keywords.first().map(|word| &word.value))
    else {
        return;
    };
    // By string, or as the operator itself; one that a decorator of the file gave is its own.
    let operator = |path: String| path.strip_prefix("torch.ops.").map(|name| name.replace('.', "::"));
    let Some(name) = (checker.names.string(name, scope))
        .or_else(|| checker.names.paths(name, scope).iter().cloned().find_map(operator))
    else {
        return;
    };
    let space = name.split("::").next().unwrap_or_default();
    if TAKEN.contains(&space) || space.starts_with('_') {
        checker.report(&RULE, Some(call.start()), format!("`{callee}` registers an implementation of `{name}`"));
    }
}
