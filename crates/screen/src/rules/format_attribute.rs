use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;
use tilewright_contract::Tier;

use super::Rule;
use super::checker::Checker;
use crate::scope::ScopeId;

/// # What it does
/// Refuses `str.format` with a template that reaches for attributes whose name starts with an underscore. Reports other
/// attributes and items in a template, and templates that cannot be read off the file, outside of messages of exceptions.
///
/// # Why is this bad?
/// `"{0.__class__}"` is an attribute access that no analysis of the code sees.
///
/// # Example
/// ```python
/// kind = "{0.__class__.__name__}".format(x)
/// ```
///
/// # Use instead
/// An f-string.
pub(crate) const RULE: Rule =
    Rule { id: "format-attribute", tier: Tier::Proof, help: "use an f-string; do not look at attributes by text" };

pub(super) fn call(checker: &mut Checker<'_, '_>, call: &ExprCall, scope: ScopeId) {
    let Expr::Attribute(method) = &*call.func else { return };
    if !matches!(&*method.attr, "format" | "format_map" | "vformat" | "get_field") {
        return;
    }
    let fields = match checker.names.string(&method.value, scope) {
        Some(template) => fields(&template),
        None if matches!(&*method.attr, "vformat" | "get_field") => vec!["?".to_owned()],
        // A long template, or an object of the file's own.
        None => return,
    };
    for field in fields {
        let private = field.contains("._") || field.contains("[_");
        let (tier, what) = match field.as_str() {
            "?" => (Tier::Evidence, "a template that is made at run time is filled in".to_owned()),
            _ if private => (Tier::Proof, format!("the template reaches for `{field}`")),
            _ if checker.is_quiet(call.start()) => continue,
            _ => (Tier::Evidence, format!("the template looks at `{field}`")),
        };
        checker.report_as(&RULE, tier, Some(call.start()), what);
    }
}

/// The replacement fields of a template that look at attributes or items, without conversion and format.
fn fields(template: &str) -> Vec<String> {
    let text = template.replace("{{", "").replace("}}", "");
    text.split('{')
        .skip(1)
        .filter_map(|field| field.split(['}', '!', ':']).next())
        .filter(|field| field.contains(['.', '[']))
        .map(str::to_owned)
        .collect()
}
