//! Which expressions have the same value whenever and wherever they are evaluated.

use ruff_python_ast::{Expr, ExprCall, Stmt, StmtFunctionDef};
use ruff_text_size::{Ranged, TextSize};

use crate::names::Names;
use crate::scope::{BindingKind, ScopeId, Scopes};

/// A name in the scope that binds it.
pub(crate) type Key<'a> = (ScopeId, &'a str);

/// A name that a piece of the module needs, and where it is used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Need<'a> {
    pub(crate) key: Key<'a>,
    pub(crate) at: TextSize,
}

const BUILTIN_CALLS: [&str; 14] = [
    "float",
    "int",
    "bool",
    "str",
    "abs",
    "min",
    "max",
    "round",
    "len",
    "pow",
    "tuple",
    "divmod",
    "range",
    "isinstance",
];

/// What is not pure, and where.
#[derive(Debug)]
pub(crate) struct Impure {
    pub(crate) what: String,
    pub(crate) at: TextSize,
}

/// Checks purity and collects the names that the expression needs; those are checked by who asks.
pub(crate) struct Purity<'s, 'a> {
    pub(crate) scopes: &'s Scopes<'a>,
    pub(crate) names: &'s Names<'s, 'a>,
    /// Scope of the function whose own variables are fine.
    pub(crate) local: Option<ScopeId>,
    pub(crate) needs: Vec<Need<'a>>,
}

impl<'a> Purity<'_, 'a> {
    pub(crate) fn expr(&mut self, expr: &'a Expr, scope: ScopeId) -> Result<(), Impure> {
        let refuse = |what: &str| Err(Impure { what: what.to_owned(), at: expr.start() });
        match expr {
            Expr::NumberLiteral(_) | Expr::BooleanLiteral(_) | Expr::NoneLiteral(_) | Expr::StringLiteral(_) => Ok(()),
            Expr::Tuple(tuple) => self.all(&tuple.elts, scope),
            Expr::UnaryOp(unary) => self.expr(&unary.operand, scope),
            Expr::BinOp(binary) => self.expr(&binary.left, scope).and_then(|()| self.expr(&binary.right, scope)),
            Expr::BoolOp(chain) => self.all(&chain.values, scope),
            Expr::Compare(compare) => {
                self.expr(&compare.left, scope)?;
                self.all(&compare.comparators, scope)
            }
            Expr::If(choice) => {
                self.expr(&choice.test, scope)?;
                self.expr(&choice.body, scope)?;
                self.expr(&choice.orelse, scope)
            }
            Expr::Subscript(subscript) => {
                self.expr(&subscript.value, scope)?;
                self.expr(&subscript.slice, scope)
            }
            Expr::Name(name) => self.name(&name.id, name.start(), scope),
            Expr::Attribute(attribute) => self.attribute(expr, &attribute.value, &attribute.attr, scope),
            Expr::Call(call) => self.call(call, scope),
            Expr::List(_) | Expr::ListComp(_) => refuse("a list can change; write a tuple"),
            Expr::Dict(_) | Expr::DictComp(_) | Expr::Set(_) | Expr::SetComp(_) => refuse("a dict or set can change"),
            Expr::Lambda(_) => refuse("a lambda is not device code"),
            _ => refuse("it is not a literal or arithmetic of literals"),
        }
    }

    fn all(&mut self, exprs: &'a [Expr], scope: ScopeId) -> Result<(), Impure> {
        exprs.iter().try_for_each(|expr| self.expr(expr, scope))
    }

    fn is_local(&self, home: ScopeId) -> bool {
        self.local.is_some_and(|local| self.scopes.within(home, local))
    }

    fn name(&mut self, name: &'a str, at: TextSize, scope: ScopeId) -> Result<(), Impure> {
        match self.scopes.lookup(name, scope) {
            Some((home, _)) => {
                if !self.is_local(home) {
                    self.needs.push(Need { key: (home, name), at });
                }
                Ok(())
            }
            None if matches!(name, "float" | "int" | "bool" | "str" | "tuple") => Ok(()),
            None if !self.scopes.stars.is_empty() => Ok(()),
            None => Err(Impure { what: format!("`{name}` is not defined in the file"), at }),
        }
    }

    /// `tl.float32`, `math.pi`, and attributes of a pure function's own variables.
    fn attribute(&mut self, whole: &'a Expr, base: &'a Expr, attr: &str, scope: ScopeId) -> Result<(), Impure> {
        let paths = self.names.paths(whole, scope);
        if *paths == ["triton.__version__"] {
            return self.base(base, scope);
        }
        if attr.starts_with('_') {
            return Err(Impure { what: format!("`{attr}` is private"), at: whole.start() });
        }
        let known = self.names.settled(&paths, is_stable);
        let root_is_local = self.local.is_some() && paths.is_empty();
        if known || root_is_local || attr == "value" {
            return self.base(base, scope);
        }
        let what = match paths.first() {
            Some(path) => format!("`{path}` is not a constant of `triton.language` or `math`"),
            None => format!("the attribute `{attr}` has a value only when the file runs"),
        };
        Err(Impure { what, at: whole.start() })
    }

    /// The part before the dots: a name, or again such an attribute.
    fn base(&mut self, base: &'a Expr, scope: ScopeId) -> Result<(), Impure> {
        match base {
            Expr::Attribute(attribute) if !attribute.attr.starts_with('_') => self.base(&attribute.value, scope),
            _ => self.expr(base, scope),
        }
    }

    fn call(&mut self, call: &'a ExprCall, scope: ScopeId) -> Result<(), Impure> {
        let starred = call.arguments.args.iter().any(Expr::is_starred_expr)
            || call.arguments.keywords.iter().any(|keyword| keyword.arg.is_none());
        let pure = !starred
            && match &*call.func {
                Expr::Name(name) => match self.scopes.lookup(&name.id, scope) {
                    None => BUILTIN_CALLS.contains(&name.id.as_str()) || self.is_pure_callee(&call.func, scope),
                    Some((home, bindings)) => {
                        self.needs.push(Need { key: (home, name.id.as_str()), at: name.start() });
                        let defined = matches!(bindings.last().map(|b| &b.kind), Some(BindingKind::Function(_)));
                        defined || self.is_pure_callee(&call.func, scope)
                    }
                },
                Expr::Attribute(method) => {
                    let pure = self.is_pure_callee(&call.func, scope)
                        || (self.local.is_some()
                            && !method.attr.starts_with('_')
                            && self.names.paths(&call.func, scope).is_empty());
                    if pure {
                        self.base(&method.value, scope)?;
                    }
                    pure
                }
                _ => false,
            };
        if !pure {
            return Err(Impure { what: "it is computed by a call when the file runs".to_owned(), at: call.start() });
        }
        self.all(&call.arguments.args, scope)?;
        call.arguments.keywords.iter().try_for_each(|keyword| self.expr(&keyword.value, scope))
    }

    fn is_pure_callee(&self, callee: &Expr, scope: ScopeId) -> bool {
        let paths = self.names.paths(callee, scope);
        self.names.settled(&paths, |path| {
            path.starts_with("math.")
                || matches!(
                    path,
                    "triton.cdiv"
                        | "triton.next_power_of_2"
                        | "triton.language.constexpr"
                        | "triton.language.cdiv"
                        | "triton.language.next_power_of_2"
                )
        })
    }

    /// The body of a `constexpr_function`: assignments, branches, loops and returns of pure expressions.
    pub(crate) fn body(&mut self, body: &'a [Stmt], scope: ScopeId) -> Result<(), Impure> {
        for stmt in body {
            match stmt {
                Stmt::Pass(_) | Stmt::Break(_) | Stmt::Continue(_) => {}
                Stmt::Expr(docstring) if docstring.value.is_string_literal_expr() => {}
                Stmt::Return(stmt) => stmt.value.iter().try_for_each(|value| self.expr(value, scope))?,
                Stmt::Assert(stmt) => self.expr(&stmt.test, scope)?,
                Stmt::Assign(stmt) => {
                    self.all(&stmt.targets, scope)?;
                    self.expr(&stmt.value, scope)?;
                }
                Stmt::AugAssign(stmt) => {
                    self.expr(&stmt.target, scope)?;
                    self.expr(&stmt.value, scope)?;
                }
                Stmt::If(stmt) => {
                    self.expr(&stmt.test, scope)?;
                    self.body(&stmt.body, scope)?;
                    for clause in &stmt.elif_else_clauses {
                        clause.test.iter().try_for_each(|test| self.expr(test, scope))?;
                        self.body(&clause.body, scope)?;
                    }
                }
                Stmt::For(stmt) => {
                    self.expr(&stmt.target, scope)?;
                    self.expr(&stmt.iter, scope)?;
                    self.body(&stmt.body, scope)?;
                    self.body(&stmt.orelse, scope)?;
                }
                Stmt::While(stmt) => {
                    self.expr(&stmt.test, scope)?;
                    self.body(&stmt.body, scope)?;
                    self.body(&stmt.orelse, scope)?;
                }
                _ => {
                    return Err(Impure {
                        what: "a compile-time function may only compute and return".to_owned(),
                        at: stmt.start(),
                    });
                }
            }
        }
        Ok(())
    }
}

/// Paths whose value is fixed by the installed Triton and Python.
fn is_stable(path: &str) -> bool {
    let root = path.split('.').next();
    path.starts_with("triton.language.")
        || root == Some("math")
        || matches!(path, "triton.jit" | "triton.cdiv" | "triton.next_power_of_2")
}

/// Every expression that is evaluated when the function is defined: defaults.
pub(crate) fn defaults(def: &StmtFunctionDef) -> impl Iterator<Item = &Expr> {
    def.parameters.iter_non_variadic_params().filter_map(|parameter| parameter.default.as_deref())
}
