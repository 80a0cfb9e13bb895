use ruff_python_ast::{Expr, ExprBinOp, ExprCall, ExprFString, InterpolatedStringElement, Operator};
use ruff_text_size::Ranged;
use tilewright_contract::Tier;

use super::checker::Checker;
use super::tensors::may_be_tensor;
use super::{Rule, below_any};
use crate::scope::{ScopeId, elements};

/// # What it does
/// Reports turning a tensor into text: `repr`, `str`, `ascii`, `format`, an f-string, `%`. In `raise`, `assert`,
/// warnings and `print` it is fine.
///
/// # Why is this bad?
/// The text shows the values, and the kind of tensor: a way around the rules about reading data and types.
///
/// # Example
/// ```python
/// if "Fake" in repr(x): return self.kernel_path(x)
/// ```
///
/// # Use instead
/// `x.shape`, `x.dtype` and `x.device`, which may be turned into text.
pub(crate) const RULE: Rule =
    Rule { id: "sniffs-text", tier: Tier::Evidence, help: "use x.shape, x.dtype or x.device instead of the tensor" };

const TO_TEXT: [&str; 5] = ["builtins.repr", "builtins.str", "builtins.ascii", "builtins.format", "builtins.bytes"];

/// Whether a call is talk: its arguments become text for people.
pub(super) fn is_talk(checker: &Checker<'_, '_>, call: &ExprCall, scope: ScopeId) -> bool {
    let talks = ["warnings.warn", "logging", "builtins.print", "torch._check", "torch._assert"];
    if checker.names.paths(&call.func, scope).iter().any(|path| below_any(path, &talks)) {
        return true;
    }
    // `logger.info(…)`, `self.log.debug(…)`
    let Expr::Attribute(method) = &*call.func else { return false };
    let name = match &*method.value {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        _ => return false,
    };
    let levels = ["debug", "info", "warning", "error", "critical", "exception", "log"];
    levels.contains(&&*method.attr) && name.to_ascii_lowercase().contains("log")
}

pub(super) fn call(checker: &mut Checker<'_, '_>, call: &ExprCall, scope: ScopeId) {
    if checker.names.is(&call.func, scope, &TO_TEXT) {
        for argument in &call.arguments.args {
            report(checker, argument, scope);
        }
    }
    if let Expr::Attribute(method) = &*call.func
        && &*method.attr == "format"
        && (method.value.is_string_literal_expr() || checker.names.string(&method.value, scope).is_some())
    {
        let words = call.arguments.keywords.iter().map(|word| &word.value);
        for argument in call.arguments.args.iter().chain(words) {
            report(checker, argument, scope);
        }
    }
}

pub(super) fn fstring(checker: &mut Checker<'_, '_>, text: &ExprFString, scope: ScopeId) {
    for element in text.value.elements() {
        if let InterpolatedStringElement::Interpolation(hole) = element {
            report(checker, &hole.expression, scope);
        }
    }
}

pub(super) fn percent(checker: &mut Checker<'_, '_>, operation: &ExprBinOp, scope: ScopeId) {
    if operation.op == Operator::Mod && (operation.left.is_string_literal_expr() || operation.left.is_f_string_expr()) {
        report(checker, &operation.right, scope);
        for value in elements(&operation.right) {
            report(checker, value, scope);
        }
    }
}

fn report(checker: &mut Checker<'_, '_>, value: &Expr, scope: ScopeId) {
    if !checker.is_quiet(value.start()) && may_be_tensor(checker, value, scope) {
        checker.report(&RULE, Some(value.start()), "what may be a tensor is turned into text".to_owned());
    }
}
