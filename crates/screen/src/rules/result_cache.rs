use rustc_hash::FxHashSet;

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, ExprSubscript, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;
use tilewright_contract::Tier;

use super::Rule;
use super::checker::Checker;
use crate::scope::{BindingKind, ScopeId};

/// # What it does
/// Reports a dict of the module, of a global or of `self` that is filled under a key made from the address, the identity
/// or the version of a tensor, or under its shape with what the function returns; and `functools.lru_cache` over tensors.
///
/// # Why is this bad?
/// The next call with the same storage gets the answer to the previous contents.
///
/// # Example
/// ```python
/// self.seen[x.data_ptr()] = out
/// return out
/// ```
///
/// # Use instead
/// Allocate the output in each call. What depends on numbers only, such as a tuned block size, may be cached under numbers.
pub(crate) const RULE: Rule =
    Rule { id: "result-cache", tier: Tier::Evidence, help: "allocate outputs in each call; cache numbers only" };

const CACHES: [&str; 2] = ["functools.lru_cache", "functools.cache"];

/// What only tensors have.
const OF_TENSORS: [&str; 7] = ["shape", "data_ptr", "stride", "numel", "contiguous", "is_cuda", "is_contiguous"];

pub(super) fn function(checker: &mut Checker<'_, '_>, def: &StmtFunctionDef, scope: ScopeId) {
    let inner = checker.scopes.opened_by(def.range());
    let mut body = Body::default();
    body.visit_body(&def.body);
    for decorator in &def.decorator_list {
        let callee = decorator.expression.as_call_expr().map_or(&decorator.expression, |call| &*call.func);
        if checker.names.is(callee, scope, &CACHES)
            && let Some(name) = tensor_parameter(checker, def, &body)
        {
            let message = format!("results of `{}` are kept by the tensor `{name}`", def.name);
            checker.report(&RULE, Some(decorator.start()), message);
        }
    }
    for (store, value) in &body.stores {
        if !outlives_call(checker, &store.value, inner) {
            continue;
        }
        let key = Key::of(checker, &store.slice, inner);
        let returned = value.as_name_expr().is_some_and(|name| body.returned.contains(&*name.id));
        let message = match key {
            Key::Identity(what) => format!("a result is kept under the {what} of a tensor"),
            Key::Shape if returned => "what the function returns is kept under a shape".to_owned(),
            _ => continue,
        };
        checker.report(&RULE, Some(store.start()), message);
    }
}

/// A parameter that is a tensor by its annotation or by how it is used.
fn tensor_parameter<'a>(checker: &Checker<'_, '_>, def: &'a StmtFunctionDef, body: &Body<'_>) -> Option<&'a str> {
    def.parameters.iter().find_map(|parameter| {
        let name = parameter.name();
        let used = !checker.is_plain(name.start()) && body.like_tensors.contains(name.as_str());
        let said = parameter.annotation().is_some_and(mentions_tensor);
        (used || said).then_some(name.as_str())
    })
}

fn mentions_tensor(annotation: &Expr) -> bool {
    match annotation {
        Expr::Name(name) => &*name.id == "Tensor",
        Expr::Attribute(attribute) => &*attribute.attr == "Tensor",
        _ => false,
    }
}

/// Whether a container lives longer than the call: an attribute, or a name that the function does not bind.
fn outlives_call(checker: &Checker<'_, '_>, container: &Expr, scope: ScopeId) -> bool {
    match container {
        Expr::Name(name) => !checker.is_local(&name.id, scope),
        Expr::Attribute(_) => true,
        _ => false,
    }
}

/// What a key is made from.
#[derive(Clone, Copy)]
enum Key {
    Identity(&'static str),
    Shape,
    Other,
}

impl Key {
    fn of(checker: &Checker<'_, '_>, expr: &Expr, scope: ScopeId) -> Self {
        let mut parts = Parts { key: Key::Other, names: Vec::new() };
        parts.visit_expr(expr);
        // A key that was put together on a line of its own.
        for name in std::mem::take(&mut parts.names) {
            if let Some((_, bindings)) = checker.scopes.lookup(name, scope) {
                for binding in bindings.iter().take(4) {
                    if let BindingKind::Value(value) = binding.kind {
                        parts.visit_expr(value);
                    }
                }
            }
        }
        parts.key
    }
}

struct Parts<'a> {
    key: Key,
    names: Vec<&'a str>,
}

impl<'a> Visitor<'a> for Parts<'a> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) => self.names.push(&name.id),
            Expr::Attribute(attribute) => match &*attribute.attr {
                "data_ptr" => self.key = Key::Identity("address"),
                "_version" => self.key = Key::Identity("version"),
                "shape" | "size" if matches!(self.key, Key::Other) => self.key = Key::Shape,
                _ => {}
            },
            Expr::Call(call) if matches!(&*call.func, Expr::Name(name) if matches!(&*name.id, "id" | "hash")) => {
                self.key = Key::Identity("identity");
            }
            _ => {}
        }
        walk_expr(self, expr);
    }
}

/// What a function does in its own body, inner functions left out.
#[derive(Default)]
struct Body<'a> {
    /// `container[key] = value`
    stores: Vec<(&'a ExprSubscript, &'a Expr)>,
    /// Names that are returned, alone or in a tuple.
    returned: FxHashSet<&'a str>,
    /// Names of which something is asked that only tensors have.
    like_tensors: FxHashSet<&'a str>,
}

impl<'a> Visitor<'a> for Body<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => return,
            Stmt::Assign(assign) => {
                let stores = assign.targets.iter().filter_map(|target| target.as_subscript_expr());
                self.stores.extend(stores.map(|store| (store, &*assign.value)));
            }
            Stmt::Return(back) => {
                let value = back.value.as_deref();
                let values = value.into_iter().chain(value.map_or(&[][..], crate::scope::elements));
                self.returned.extend(values.filter_map(|value| value.as_name_expr()).map(|name| name.id.as_str()));
            }
            _ => {}
        }
        walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Attribute(attribute) = expr
            && let Expr::Name(name) = &*attribute.value
            && OF_TENSORS.contains(&&*attribute.attr)
        {
            self.like_tensors.insert(&name.id);
        }
        walk_expr(self, expr);
    }
}
