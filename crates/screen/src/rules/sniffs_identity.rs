use ruff_python_ast::{Expr, ExprAttribute, ExprBinOp, ExprCall, Operator};
use ruff_text_size::Ranged;
use tilewright_contract::Tier;

use super::Rule;
use super::checker::Checker;
use super::tensors::{is_address, may_be_tensor};
use crate::scope::{ScopeId, elements};

/// # What it does
/// Reports looks at what a tensor is rather than what it holds: `id(x)`, `hash(x)`, `sys.getsizeof(x)`, `x._version`,
/// `x.untyped_storage()`, `x._is_view()`, and `x.data_ptr()` in arithmetic, comparisons and keys. The test of an
/// alignment, `x.data_ptr() % 16`, is fine. Refuses `x._version`, `x._cdata`, and the `uuid` of a device.
///
/// # Why is this bad?
/// It tells whether a call is a repetition, a measurement or a trace. The trace gives out pretend addresses that differ in
/// every run and compares.
///
/// # Example
/// ```python
/// if x.data_ptr() == self.last: return self.out
/// ```
///
/// # Use instead
/// Shapes, strides, dtypes and devices.
pub(crate) const RULE: Rule =
    Rule { id: "sniffs-identity", tier: Tier::Evidence, help: "decide by shapes, strides, dtypes and devices only" };

const ATTRIBUTES: [&str; 13] = [
    "uuid",
    "pci_bus_id",
    "cuda_stream",
    "_version",
    "_is_view",
    "_base",
    "_cdata",
    "_typed_storage",
    "_storage",
    "_use_count",
    "_backward_hooks",
    "untyped_storage",
    "is_set_to",
];

/// Those of them for which no candidate has a use.
const HIDDEN: [&str; 5] = ["_version", "_cdata", "_use_count", "uuid", "pci_bus_id"];

pub(super) fn attribute(checker: &mut Checker<'_, '_>, attribute: &ExprAttribute) {
    if ATTRIBUTES.contains(&&*attribute.attr) {
        let message = format!("`{}` tells tensors of the same contents apart", attribute.attr);
        let tier = if HIDDEN.contains(&&*attribute.attr) { Tier::Proof } else { Tier::Evidence };
        checker.report_as(&RULE, tier, Some(attribute.attr.start()), message);
    }
}

pub(super) fn call(checker: &mut Checker<'_, '_>, call: &ExprCall, scope: ScopeId) {
    let Some(first) = call.arguments.args.first() else { return };
    for callee in checker.names.paths(&call.func, scope).iter() {
        if callee == "builtins.getattr"
            && let Some(attr) = call.arguments.args.get(1).and_then(|name| checker.names.string(name, scope))
            && HIDDEN.contains(&attr.as_str())
        {
            let message = format!("`{attr}` tells tensors or devices apart");
            checker.report_as(&RULE, Tier::Proof, Some(call.start()), message);
        }
        let told = match callee.as_str() {
            "builtins.id" => true,
            "builtins.hash" | "sys.getsizeof" => may_be_tensor(checker, first, scope) || is_address(first),
            _ => false,
        };
        if told {
            let message = format!("`{}` tells objects apart", callee.trim_start_matches("builtins."));
            checker.report(&RULE, Some(call.start()), message);
        }
    }
    // `CACHE.get(x.data_ptr())`
    if let Expr::Attribute(method) = &*call.func
        && matches!(&*method.attr, "get" | "setdefault" | "pop" | "add" | "__getitem__" | "__contains__")
    {
        report_address(checker, first);
    }
}

pub(super) fn operation(checker: &mut Checker<'_, '_>, operation: &ExprBinOp) {
    let alignment =
        matches!(operation.op, Operator::Mod | Operator::BitAnd) && operation.right.is_number_literal_expr();
    if !alignment {
        report_address(checker, &operation.left);
        report_address(checker, &operation.right);
    }
}

/// Comparisons, subscripts, sets and dict displays.
pub(super) fn key(checker: &mut Checker<'_, '_>, expr: &Expr) {
    match expr {
        Expr::Compare(test) => {
            report_address(checker, &test.left);
            test.comparators.iter().for_each(|value| report_address(checker, value));
        }
        Expr::Subscript(subscript) => report_address(checker, &subscript.slice),
        Expr::Set(set) => set.elts.iter().for_each(|value| report_address(checker, value)),
        Expr::Dict(dict) => dict.iter_keys().flatten().for_each(|key| report_address(checker, key)),
        _ => {}
    }
}

fn report_address(checker: &mut Checker<'_, '_>, expr: &Expr) {
    if let Some(address) = std::iter::once(expr).chain(elements(expr)).find(|part| is_address(part)) {
        checker.report(&RULE, Some(address.start()), "the address of a tensor is used as a number".to_owned());
    }
}
