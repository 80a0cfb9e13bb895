use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;
use tilewright_contract::Tier;

use super::checker::Checker;
use super::{Rule, introspection};
use crate::scope::ScopeId;

/// # What it does
/// Refuses `setattr`, `delattr`, `operator.attrgetter` and `operator.methodcaller` whose string cannot be read off the
/// file, on anything but `self`. Reports `getattr` with such a string, and the `operator` functions with a string that
/// can be read.
///
/// # Why is this bad?
/// The string decides what is reached: `__traceback__`, `tb_frame` and `f_globals` lead from any exception to every object of
/// the process. A string that leads there is refused by the rule `introspection`.
///
/// # Example
/// ```python
/// look = operator.attrgetter("".join(parts))
/// ```
///
/// # Use instead
/// The attribute, written out; a dict from name to function.
pub(crate) const RULE: Rule =
    Rule { id: "indirect-attribute", tier: Tier::Proof, help: "write the attribute out, or use a dict of your own" };

pub(super) fn call(checker: &mut Checker<'_, '_>, call: &ExprCall, scope: ScopeId) {
    let at = Some(call.start());
    for callee in checker.names.paths(&call.func, scope).iter() {
        match callee.as_str() {
            "operator.attrgetter" | "operator.methodcaller" => by_operator(checker, call, scope, callee),
            "builtins.getattr" | "builtins.setattr" | "builtins.delattr" | "builtins.hasattr" => {
                let Some(name) = call.arguments.args.get(1) else { continue };
                match checker.names.string(name, scope) {
                    Some(attr) if introspection::is_inner(&attr) => introspection::report(checker, &attr, call.start()),
                    Some(_) => {}
                    None if is_own(&call.arguments.args[0]) || is_prefixed(name) => {}
                    None => {
                        let what = callee.trim_start_matches("builtins.");
                        let message = format!("`{what}` with a name that cannot be read off the file");
                        let changes = matches!(what, "setattr" | "delattr");
                        let tier = if changes { Tier::Proof } else { Tier::Evidence };
                        checker.report_as(&RULE, tier, at, message);
                    }
                }
            }
            _ => {}
        }
    }
}

fn by_operator(checker: &mut Checker<'_, '_>, call: &ExprCall, scope: ScopeId, callee: &str) {
    let at = call.start();
    // Only the first argument of a methodcaller is a name.
    let names = if callee == "operator.methodcaller" { 1 } else { usize::MAX };
    for name in call.arguments.args.iter().take(names) {
        match checker.names.string(name, scope) {
            Some(path) => match path.split('.').find(|attr| introspection::is_inner(attr)) {
                Some(attr) => introspection::report(checker, attr, at),
                None => {
                    let message = format!("`{callee}` reaches `{path}` by text");
                    checker.report_as(&RULE, Tier::Evidence, Some(at), message);
                }
            },
            None => {
                let message = format!("`{callee}` with a name that cannot be read off the file");
                checker.report(&RULE, Some(at), message);
            }
        }
    }
}

/// `self`, `cls`
fn is_own(expr: &Expr) -> bool {
    matches!(expr, Expr::Name(name) if matches!(&*name.id, "self" | "cls"))
}

/// A name that begins with letters which the file shows, such as `f"weight_{i}"`: no inner attribute begins like that.
fn is_prefixed(name: &Expr) -> bool {
    let Expr::FString(text) = name else { return false };
    let first = text.value.elements().next().and_then(|element| element.as_literal());
    first.is_some_and(|literal| literal.value.starts_with(|c: char| c.is_ascii_alphabetic()))
}
