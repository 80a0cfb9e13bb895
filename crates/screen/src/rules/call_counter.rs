use ruff_python_ast::{Expr, StmtAugAssign};
use ruff_text_size::Ranged;
use tilewright_contract::Tier;

use super::Rule;
use super::checker::Checker;
use crate::scope::ScopeId;

/// # What it does
/// Reports a counter that host code moves on: an attribute, a global or an item of one, to which a number is added.
///
/// # Why is this bad?
/// A file that counts its calls can do the work while it is checked and skip it while it is timed. The trace calls
/// `forward` several times and compares.
///
/// # Example
/// ```python
/// self.calls += 1
/// if self.calls > 10: return self.last
/// ```
///
/// # Use instead
/// Nothing: `forward` keeps no state. A statistic that belongs to the module is a tensor in a registered buffer.
pub(crate) const RULE: Rule =
    Rule { id: "call-counter", tier: Tier::Evidence, help: "keep no state between calls; a statistic is a buffer" };

pub(super) fn stmt(checker: &mut Checker<'_, '_>, assign: &StmtAugAssign, scope: ScopeId) {
    let kept = match &*assign.target {
        Expr::Attribute(attribute) => &*attribute.attr != "num_batches_tracked",
        Expr::Name(name) => checker.is_declared_outer(&name.id, scope),
        Expr::Subscript(subscript) => match &*subscript.value {
            Expr::Name(name) => !checker.is_local(&name.id, scope),
            Expr::Attribute(_) => true,
            _ => false,
        },
        _ => false,
    };
    if kept && assign.value.is_number_literal_expr() && checker.in_function(scope) {
        let message = "host code counts: the next call can tell that it is not the first".to_owned();
        checker.report(&RULE, Some(assign.target.start()), message);
    }
}
