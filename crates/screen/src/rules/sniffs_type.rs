use ruff_python_ast::{Expr, ExprAttribute, ExprCall, ExprCompare, ExprContext, Operator};
use ruff_text_size::{Ranged, TextSize};
use tilewright_contract::Tier;

use super::checker::Checker;
use super::tensors::may_be_tensor;
use super::{Rule, below_any};
use crate::scope::{BindingKind, ScopeId, elements};

/// # What it does
/// Reports looks at the type of what may be a tensor: `type(x)`, `x.__class__`, `functools.singledispatch`, and `isinstance`
/// against anything but `torch.Tensor`, `torch.nn.Parameter`, plain types and classes of the file. In `raise` and
/// `assert` it is fine. Refuses comparisons with text that names the types of a tracer, such as `"FakeTensor"`.
///
/// # Why is this bad?
/// The type tells a trace from a run, so a file could behave well only while it is watched.
///
/// # Example
/// ```python
/// if type(x).__name__ == "FakeTensor": return self.kernel_path(x)
/// ```
///
/// # Use instead
/// `isinstance(x, torch.Tensor)`, `x.is_cuda`, `x.dtype`.
pub(crate) const RULE: Rule =
    Rule { id: "sniffs-type", tier: Tier::Evidence, help: "use isinstance(x, torch.Tensor), x.is_cuda or x.dtype" };

const DISPATCH: [&str; 2] = ["functools.singledispatch", "functools.singledispatchmethod"];

/// Types that tell nothing about how a file is run.
const PLAIN: [&str; 17] = [
    "torch.Tensor",
    "torch.nn",
    "torch.Size",
    "torch.dtype",
    "torch.device",
    "torch.Generator",
    "torch.SymInt",
    "torch.SymFloat",
    "torch.SymBool",
    "torch.is_tensor",
    "triton",
    "numbers",
    "collections",
    "typing",
    "enum",
    "types.NoneType",
    "types.SimpleNamespace",
];

pub(super) fn call(checker: &mut Checker<'_, '_>, call: &ExprCall, scope: ScopeId) {
    if checker.is_quiet(call.start()) {
        return;
    }
    let at = Some(call.start());
    let arguments = &call.arguments.args;
    match &**arguments {
        [value] if checker.names.is_builtin(&call.func, "type", scope) && may_be_tensor(checker, value, scope) => {
            checker.report(&RULE, at, "the type of what may be a tensor is looked at".to_owned());
        }
        [value, kinds]
            if checker.names.is_builtin(&call.func, "isinstance", scope)
                && may_be_tensor(checker, value, scope)
                && !is_plain(checker, kinds, scope, 8) =>
        {
            let message = "`isinstance` asks for a type that only tells how the file is run".to_owned();
            checker.report(&RULE, at, message);
        }
        [_, _] if checker.names.is_builtin(&call.func, "issubclass", scope) => {
            checker.report(&RULE, at, "`issubclass` looks at a type".to_owned());
        }
        _ => {}
    }
}

/// Anything imported or built in, by its path.
pub(super) fn path(checker: &mut Checker<'_, '_>, path: &str, at: TextSize) {
    if DISPATCH.contains(&path) {
        checker.report(&RULE, Some(at), "`singledispatch` goes by the type of its argument".to_owned());
    }
}

pub(super) fn attribute(checker: &mut Checker<'_, '_>, attribute: &ExprAttribute, scope: ScopeId) {
    let at = attribute.attr.start();
    if &*attribute.attr == "__class__"
        && attribute.ctx == ExprContext::Load
        && !checker.is_quiet(at)
        && may_be_tensor(checker, &attribute.value, scope)
    {
        checker.report(&RULE, Some(at), "the type of what may be a tensor is looked at".to_owned());
    }
}

/// A comparison with text that names the tracer's own types.
pub(super) fn compare(checker: &mut Checker<'_, '_>, test: &ExprCompare) {
    for side in std::iter::once(&*test.left).chain(&test.comparators) {
        let Expr::StringLiteral(text) = side else { continue };
        let text = text.value.to_str().to_ascii_lowercase();
        if text.contains("fake") || text.contains("tilewright") {
            let message = "the file looks for signs of being traced".to_owned();
            checker.report_as(&RULE, Tier::Proof, Some(side.start()), message);
        }
    }
}

/// Whether all of `kinds`, a type or a tuple or union of types, are plain.
fn is_plain(checker: &Checker<'_, '_>, kinds: &Expr, scope: ScopeId, steps: usize) -> bool {
    if steps == 0 {
        return false;
    }
    match kinds {
        Expr::Tuple(_) | Expr::List(_) => elements(kinds).iter().all(|kind| is_plain(checker, kind, scope, steps - 1)),
        Expr::BinOp(union) if union.op == Operator::BitOr => {
            is_plain(checker, &union.left, scope, steps - 1) && is_plain(checker, &union.right, scope, steps - 1)
        }
        Expr::NoneLiteral(_) => true,
        _ => {
            let paths = checker.names.paths(kinds, scope);
            let known = |path: &String| path.starts_with("builtins.") || below_any(path, &PLAIN);
            if !paths.is_empty() {
                return paths.iter().all(known);
            }
            let Expr::Name(name) = kinds else { return false };
            checker.scopes.lookup(&name.id, scope).is_some_and(|(home, bindings)| {
                bindings.iter().all(|binding| match binding.kind {
                    BindingKind::Class => true,
                    BindingKind::Value(value) => is_plain(checker, value, home, steps - 1),
                    _ => false,
                })
            })
        }
    }
}
