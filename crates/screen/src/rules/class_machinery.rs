use ruff_python_ast::{ExprAttribute, ExprContext, StmtClassDef, StmtFunctionDef};
use ruff_text_size::Ranged;
use tilewright_contract::Tier;

use super::Rule;
use super::checker::Checker;
use crate::scope::{ScopeId, ScopeKind};

/// # What it does
/// Refuses finalisers (`__del__`), assignment to `__class__` and a `__getattribute__` of the file's own. Reports metaclasses,
/// `__init_subclass__`, `__set_name__`, `__instancecheck__`, `__prepare__`, `__mro_entries__` and
/// `__dict__` of things other than `self`.
///
/// # Why is this bad?
/// They run code where the file shows no call, at times that nobody chose, or turn an object into another.
///
/// # Example
/// ```python
/// class Late:
///     def __del__(self): work()
/// ```
///
/// # Use instead
/// Plain classes and plain calls.
pub(crate) const RULE: Rule =
    Rule { id: "class-machinery", tier: Tier::Proof, help: "use plain classes and plain calls" };

const REFUSED: [&str; 2] = ["__del__", "__getattribute__"];
const ODD: [&str; 7] = [
    "__init_subclass__",
    "__set_name__",
    "__instancecheck__",
    "__subclasscheck__",
    "__prepare__",
    "__mro_entries__",
    "__class_getitem__",
];

pub(super) fn function(checker: &mut Checker<'_, '_>, def: &StmtFunctionDef, scope: ScopeId) {
    if checker.scopes.get(scope).kind != ScopeKind::Class {
        return;
    }
    let name = &*def.name;
    let tier = if REFUSED.contains(&name) {
        Tier::Proof
    } else if ODD.contains(&name) {
        Tier::Evidence
    } else {
        return;
    };
    checker.report_as(&RULE, tier, Some(def.name.start()), format!("`{name}` runs where the file shows no call"));
}

pub(super) fn class(checker: &mut Checker<'_, '_>, class: &StmtClassDef, scope: ScopeId) {
    let Some(metaclass) = class.arguments.as_deref().and_then(|arguments| arguments.find_keyword("metaclass")) else {
        return;
    };
    if !checker.names.is(&metaclass.value, scope, &["abc.ABCMeta", "enum.EnumMeta", "enum.EnumType"]) {
        let message = format!("class `{}` has a metaclass", class.name);
        checker.report_as(&RULE, Tier::Evidence, Some(metaclass.start()), message);
    }
}

pub(super) fn attribute(checker: &mut Checker<'_, '_>, attribute: &ExprAttribute, _: ScopeId) {
    let at = Some(attribute.attr.start());
    match (&*attribute.attr, attribute.ctx) {
        ("__class__", ExprContext::Store | ExprContext::Del) => {
            checker.report(&RULE, at, "the class of an object is changed".to_owned());
        }
        ("__dict__", _) if attribute.value.as_name_expr().is_none_or(|name| &*name.id != "self") => {
            let message = "`__dict__` opens up the attributes of something other than `self`".to_owned();
            checker.report_as(&RULE, Tier::Evidence, at, message);
        }
        _ => {}
    }
}
