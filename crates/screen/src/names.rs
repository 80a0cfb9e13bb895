//! Dotted paths that an expression may stand for, through aliases, assignments and `getattr`.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use ruff_python_ast::{Expr, FStringPart, InterpolatedStringElement, Operator};
use ruff_text_size::{Ranged, TextRange, TextSize};
use rustc_hash::FxHashMap;

use crate::scope::{BindingKind, ScopeId, Scopes};

/// Bounds the work of one query on hostile chains of assignments.
const STEPS: usize = 64;
/// Longest path or folded string, in bytes.
const LONGEST: usize = 256;

/// Modules that mean the same wherever they are reached from: `typing.sys` is `sys`.
const WELL_KNOWN: [&str; 24] = [
    "sys",
    "os",
    "inspect",
    "gc",
    "ctypes",
    "builtins",
    "importlib",
    "pickle",
    "marshal",
    "threading",
    "_thread",
    "subprocess",
    "socket",
    "atexit",
    "multiprocessing",
    "tempfile",
    "shutil",
    "pathlib",
    "_sys",
    "_os",
    "posix",
    "io",
    "_io",
    "runpy",
];

/// An expression and the scope in which it is read.
type Place = (TextRange, ScopeId);

pub(crate) struct Names<'s, 'a> {
    scopes: &'s Scopes<'a>,
    /// The paths of names, once they are known, by the place where a name is bound first.
    known: RefCell<FxHashMap<TextSize, Rc<[String]>>>,
    /// What was asked for before, by the place of the expression: many rules ask for the same.
    asked: RefCell<FxHashMap<Place, Rc<[String]>>>,
}

impl<'s, 'a> Names<'s, 'a> {
    pub(crate) fn new(scopes: &'s Scopes<'a>) -> Self {
        Self { scopes, known: RefCell::default(), asked: RefCell::default() }
    }

    pub(crate) fn scopes(&self) -> &'s Scopes<'a> {
        self.scopes
    }

    /// The dotted paths of imported or built-in things that `expr` may be; empty if unknown or local.
    pub(crate) fn paths(&self, expr: &Expr, scope: ScopeId) -> Rc<[String]> {
        let key = (expr.range(), scope);
        if let Some(known) = self.asked.borrow().get(&key) {
            return known.clone();
        }
        let mut found = Vec::new();
        self.collect(expr, scope, &mut STEPS.clone(), &mut found);
        for path in &mut found {
            let shorter = canonical(path);
            if *shorter != **path {
                *path = shorter.into_owned();
            }
        }
        found.sort_unstable();
        found.dedup();
        let found: Rc<[String]> = found.into();
        self.asked.borrow_mut().insert(key, found.clone());
        found
    }

    /// Whether `expr` may be the thing named by one of `wanted`.
    pub(crate) fn is(&self, expr: &Expr, scope: ScopeId, wanted: &[&str]) -> bool {
        self.paths(expr, scope).iter().any(|path| wanted.contains(&path.as_str()))
    }

    /// Whether the paths of something are `good`, apart from guesses about a name that the file does not bind.
    pub(crate) fn settled(&self, paths: &[String], good: impl Fn(&str) -> bool) -> bool {
        let guess = |path: &str| {
            path.starts_with("builtins.") || self.scopes.stars.iter().any(|star| path.starts_with(star.module))
        };
        paths.iter().any(|path| good(path)) && paths.iter().all(|path| good(path) || guess(path))
    }

    fn collect(&self, expr: &Expr, scope: ScopeId, steps: &mut usize, found: &mut Vec<String>) {
        if *steps == 0 {
            return;
        }
        *steps -= 1;
        match expr {
            Expr::Name(name) => self.collect_name(&name.id, scope, steps, found),
            Expr::Attribute(attribute) => self.extend(&attribute.value, &attribute.attr, scope, steps, found),
            Expr::Call(call) => self.collect_call(call, scope, steps, found),
            Expr::Subscript(subscript) => {
                if let Some(space) = self.namespace_of(&subscript.value, scope)
                    && let Some(key) = self.string(&subscript.slice, scope)
                {
                    self.extend(space, &key, scope, steps, found);
                }
            }
            Expr::If(choice) => {
                self.collect(&choice.body, scope, steps, found);
                self.collect(&choice.orelse, scope, steps, found);
            }
            Expr::BoolOp(choice) => {
                for value in &choice.values {
                    self.collect(value, scope, steps, found);
                }
            }
            Expr::Named(named) => self.collect(&named.value, scope, steps, found),
            _ => {}
        }
    }

    fn collect_name(&self, name: &str, scope: ScopeId, steps: &mut usize, found: &mut Vec<String>) {
        let Some((home, bindings)) = self.scopes.lookup(name, scope) else {
            found.push(format!("builtins.{name}"));
            found.extend(self.scopes.stars.iter().take(STEPS).map(|star| format!("{}.{name}", star.module)));
            return;
        };
        let Some(first) = bindings.first() else { return };
        if let Some(known) = self.known.borrow().get(&first.at) {
            // Each path counts as a step, so that they do not multiply from name to name.
            let some = known.len().min(*steps);
            *steps -= some;
            found.extend_from_slice(&known[..some]);
            return;
        }
        let before = found.len();
        for binding in bindings {
            match &binding.kind {
                BindingKind::Import { path } => found.push(path.clone()),
                BindingKind::Value(value) | BindingKind::Element(value) => self.collect(value, home, steps, found),
                _ => {}
            }
            if *steps == 0 {
                return;
            }
        }
        // A name that is defined by itself uses up the steps, so this is complete.
        self.known.borrow_mut().insert(first.at, found[before..].into());
    }

    /// Adds `base.attr` for every path of `base`.
    fn extend(&self, base: &Expr, attr: &str, scope: ScopeId, steps: &mut usize, found: &mut Vec<String>) {
        let mut bases = Vec::new();
        self.collect(base, scope, steps, &mut bases);
        for mut path in bases {
            if path.len() + attr.len() < LONGEST {
                path.push('.');
                path.push_str(attr);
                found.push(path);
            }
        }
    }

    fn collect_call(
        &self,
        call: &ruff_python_ast::ExprCall,
        scope: ScopeId,
        steps: &mut usize,
        found: &mut Vec<String>,
    ) {
        let (Some(first), second) = (call.arguments.args.first(), call.arguments.args.get(1)) else { return };
        let mut callees = Vec::new();
        self.collect(&call.func, scope, steps, &mut callees);
        for callee in callees {
            match callee.as_str() {
                "builtins.getattr" => {
                    if let Some(attr) = second.and_then(|name| self.string(name, scope)) {
                        self.extend(first, &attr, scope, steps, found);
                    }
                }
                "builtins.__import__" | "importlib.import_module" => {
                    if let Some(module) = self.string(first, scope) {
                        found.push(module);
                    }
                }
                _ => {}
            }
        }
    }

    /// `x` for `x.__dict__` and `vars(x)`.
    pub(crate) fn namespace_of<'e>(&self, expr: &'e Expr, scope: ScopeId) -> Option<&'e Expr> {
        match expr {
            Expr::Attribute(attribute) if &*attribute.attr == "__dict__" => Some(&attribute.value),
            Expr::Call(call) if self.is_builtin(&call.func, "vars", scope) => call.arguments.args.first(),
            _ => None,
        }
    }

    /// Whether `expr` is the name of a builtin that the file does not rebind.
    pub(crate) fn is_builtin(&self, expr: &Expr, name: &str, scope: ScopeId) -> bool {
        matches!(expr, Expr::Name(n) if n.id == name && self.scopes.lookup(name, scope).is_none())
    }

    /// The value of a string expression that can be folded.
    pub(crate) fn string(&self, expr: &Expr, scope: ScopeId) -> Option<String> {
        self.fold(expr, scope, &mut STEPS.clone()).filter(|text| text.len() < LONGEST)
    }

    fn fold(&self, expr: &Expr, scope: ScopeId, steps: &mut usize) -> Option<String> {
        *steps = steps.checked_sub(1)?;
        match expr {
            Expr::StringLiteral(literal) => Some(literal.value.to_str().to_owned()).filter(|text| text.len() < LONGEST),
            Expr::BinOp(sum) if sum.op == Operator::Add => {
                let mut text = self.fold(&sum.left, scope, steps)?;
                text.push_str(&self.fold(&sum.right, scope, steps)?);
                Some(text)
            }
            Expr::Name(name) => {
                let (home, bindings) = self.scopes.lookup(&name.id, scope)?;
                match bindings {
                    [binding] => match binding.kind {
                        BindingKind::Value(value) => self.fold(value, home, steps),
                        _ => None,
                    },
                    _ => None,
                }
            }
            Expr::FString(fstring) => {
                let mut text = String::new();
                for part in fstring.value.as_slice() {
                    match part {
                        FStringPart::Literal(literal) => text.push_str(literal),
                        FStringPart::FString(fstring) => {
                            for element in &fstring.elements {
                                match element {
                                    InterpolatedStringElement::Literal(literal) => text.push_str(&literal.value),
                                    InterpolatedStringElement::Interpolation(hole) => {
                                        text.push_str(&self.fold(&hole.expression, scope, steps)?);
                                    }
                                }
                            }
                        }
                    }
                }
                Some(text)
            }
            Expr::Call(call) => self.fold_call(call, scope, steps),
            Expr::Subscript(subscript) => {
                let text = self.fold(&subscript.value, scope, steps)?;
                is_reversal(&subscript.slice).then(|| text.chars().rev().collect())
            }
            _ => None,
        }
    }

    /// `"".join((…))` and argument-free string methods.
    fn fold_call(&self, call: &ruff_python_ast::ExprCall, scope: ScopeId, steps: &mut usize) -> Option<String> {
        let Expr::Attribute(method) = &*call.func else { return None };
        let text = self.fold(&method.value, scope, steps)?;
        match (&*method.attr, &*call.arguments.args) {
            ("join", [parts]) => {
                let parts = match parts {
                    Expr::Call(reversed) if self.is_builtin(&reversed.func, "reversed", scope) => {
                        let mut text = self.fold(reversed.arguments.args.first()?, scope, steps)?;
                        text = text.chars().rev().collect();
                        vec![text]
                    }
                    Expr::Tuple(_) | Expr::List(_) => crate::scope::elements(parts)
                        .iter()
                        .map(|part| self.fold(part, scope, steps))
                        .collect::<Option<Vec<_>>>()?,
                    _ => return None,
                };
                Some(parts.join(&text))
            }
            ("lower", []) => Some(text.to_lowercase()),
            ("upper", []) => Some(text.to_uppercase()),
            ("strip", []) => Some(text.trim().to_owned()),
            ("replace", [old, new]) => {
                let (old, new) = (self.fold(old, scope, steps)?, self.fold(new, scope, steps)?);
                Some(text.replace(&old, &new)).filter(|text| text.len() < LONGEST)
            }
            _ => None,
        }
    }
}

/// `[::-1]`
fn is_reversal(slice: &Expr) -> bool {
    let Expr::Slice(slice) = slice else { return false };
    let step = slice.step.as_deref();
    let minus_one = matches!(step, Some(Expr::UnaryOp(minus)) if minus.op == ruff_python_ast::UnaryOp::USub
        && matches!(&*minus.operand, Expr::NumberLiteral(one)
            if one.value.as_int().and_then(ruff_python_ast::Int::as_i64) == Some(1)));
    slice.lower.is_none() && slice.upper.is_none() && minus_one && !slice.range().is_empty()
}

/// One name for things that can be reached by several routes.
pub(crate) fn canonical(path: &str) -> Cow<'_, str> {
    // Where the last part stands that means the same wherever it is reached from, and the last that is torch or Triton.
    let (mut known, mut home, mut at) = (None, None, 0);
    for part in path.split('.') {
        if WELL_KNOWN.contains(&part) {
            known = Some(at);
        } else if part == "torch" || part == "triton" {
            home = Some(at);
        }
        at += part.len() + 1;
    }
    let path = &path[known.or(home).unwrap_or(0)..];
    let root = path.split('.').next().unwrap_or(path);
    let public = match root {
        "_sys" => "sys",
        "_os" | "posix" => "os",
        "_io" => "io",
        _ => root,
    };
    if public != root {
        return Cow::Owned(format!("{public}{}", &path[root.len()..]));
    }
    for (short, long) in [
        ("triton.runtime.jit.jit", "triton.jit"),
        ("triton.runtime.jit.constexpr_function", "triton.constexpr_function"),
        ("triton.runtime.autotuner.", "triton."),
        ("triton.language.core.", "triton.language."),
        ("torch.nn.functional.torch.", "torch."),
    ] {
        if let Some(rest) = path.strip_prefix(short) {
            return Cow::Owned(format!("{long}{rest}"));
        }
    }
    Cow::Borrowed(path)
}
