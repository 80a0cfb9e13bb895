//! What a call passes, and how it reaches parameters.

use ruff_python_ast::{Expr, ExprCall, Parameters};
use ruff_text_size::Ranged;
use smallvec::SmallVec;

use super::engine::{Engine, ObjectKind};
use super::intern::Sym;
use super::value::{Set, UnitId, Value};

/// The arguments of a call.
#[derive(Debug, Clone, Default)]
pub(super) struct Args {
    pub(super) positional: SmallVec<[Set; 4]>,
    pub(super) keywords: SmallVec<[(Sym, Set); 2]>,
    /// What `*` and `**` add, at positions and under names that are not known.
    pub(super) more: Option<Set>,
}

impl Args {
    pub(super) fn of(positional: impl IntoIterator<Item = Set>) -> Self {
        Self { positional: positional.into_iter().collect(), ..Self::default() }
    }

    /// Any number of arguments, each one of a set.
    pub(super) fn any(set: Set) -> Self {
        Self { more: Some(set), ..Self::default() }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Set> {
        self.positional.iter().chain(self.keywords.iter().map(|(_, set)| set)).chain(&self.more)
    }

    pub(super) fn first(&self) -> Set {
        self.positional.first().or(self.more.as_ref()).cloned().unwrap_or_default()
    }

    pub(super) fn at(&self, index: usize) -> Option<&Set> {
        self.positional.get(index).or(self.more.as_ref())
    }
}

fn is_number_or_text(expr: &Expr) -> bool {
    match expr {
        Expr::UnaryOp(minus) => is_number_or_text(&minus.operand),
        _ => expr.is_literal_expr() && !expr.is_none_literal_expr(),
    }
}

impl<'a> Engine<'_, 'a> {
    pub(super) fn arguments(&mut self, call: &'a ExprCall) -> Args {
        let mut args = Args::default();
        for argument in &call.arguments.args {
            match argument {
                Expr::Starred(starred) => {
                    let set = self.expr(&starred.value);
                    let random = self.note_order(&set, starred.range(), true);
                    let each = self.iterate(&set).opened(random);
                    args.more.get_or_insert_default().join(&each);
                }
                _ if args.more.is_some() => {
                    let set = self.expr(argument);
                    args.more.get_or_insert_default().join(&set);
                }
                _ => {
                    let set = self.expr(argument);
                    args.positional.push(set);
                }
            }
        }
        for keyword in &call.arguments.keywords {
            let set = self.expr(&keyword.value);
            match &keyword.arg {
                Some(name) => {
                    let name = self.sym_at(name);
                    args.keywords.push((name, set));
                }
                None => self.splat(&set, &mut args),
            }
        }
        args
    }

    /// `**mapping`
    pub(super) fn splat(&mut self, mapping: &Set, args: &mut Args) {
        for &value in mapping.values() {
            let Value::Object(object) = value else {
                let each = self.iterate(&Set::of(value).opened(mapping.open));
                args.more.get_or_insert_default().join(&each);
                continue;
            };
            let (entries, rest) = (self.objects[object as usize].keyed.clone(), self.objects[object as usize].rest);
            for (name, cell) in entries {
                let set = self.read(cell).opened(mapping.open);
                args.keywords.push((name, set));
            }
            let set = self.read(rest);
            if !set.is_empty() {
                args.more.get_or_insert_default().join(&set);
            }
        }
    }

    pub(super) fn bind_parameters(
        &mut self,
        unit: UnitId,
        parameters: &'a Parameters,
        receiver: Option<Value>,
        args: &Args,
    ) {
        let scope = self.units[unit as usize].scope;
        let plain = Set::plain();
        let mut given = receiver.map(Set::of).into_iter().chain(args.positional.iter().cloned());
        let mut bound: SmallVec<[Sym; 8]> = SmallVec::new();
        for parameter in parameters.posonlyargs.iter().chain(&parameters.args) {
            let name = self.sym_at(&parameter.parameter.name);
            let cell = self.variable(scope, name);
            if let Some(set) = given.next() {
                self.write(cell, &set);
                bound.push(name);
            } else if let Some(more) = &args.more {
                // A number or name among the arguments of `forward`, by its default.
                let number = self.unit == self.entry && parameter.default.as_deref().is_some_and(is_number_or_text);
                self.write(cell, if number { &plain } else { more });
            }
        }
        let extra: SmallVec<[Set; 4]> = given.collect();
        if let Some(vararg) = &parameters.vararg {
            let object = self.object(vararg.range(), 0, ObjectKind::Container);
            for (index, set) in extra.iter().enumerate() {
                let cell = self.indexed(object, index);
                self.write(cell, set);
            }
            let rest = self.objects[object as usize].rest;
            args.more.iter().for_each(|more| self.write(rest, more));
            let name = self.sym(&vararg.name);
            let cell = self.variable(scope, name);
            self.write(cell, &Set::of(Value::Object(object)));
        }
        let names: SmallVec<[Sym; 8]> = parameters
            .args
            .iter()
            .chain(&parameters.kwonlyargs)
            .map(|parameter| self.sym_at(&parameter.parameter.name))
            .collect();
        if let Some(more) = &args.more {
            for parameter in &parameters.kwonlyargs {
                let name = self.sym(&parameter.parameter.name);
                let cell = self.variable(scope, name);
                self.write(cell, more);
            }
        }
        let rest = parameters.kwarg.as_ref().map(|kwarg| {
            let object = self.object(kwarg.range(), 0, ObjectKind::Container);
            let name = self.sym(&kwarg.name);
            let cell = self.variable(scope, name);
            self.write(cell, &Set::of(Value::Object(object)));
            object
        });
        for (name, set) in &args.keywords {
            let cell = match rest {
                _ if names.contains(name) => self.variable(scope, *name),
                Some(object) => self.element(object, *name),
                None => continue,
            };
            self.write(cell, set);
        }
        if let (Some(object), Some(more)) = (rest, &args.more) {
            let rest = self.objects[object as usize].rest;
            self.write(rest, more);
        }
    }

    /// What parameters are by default.
    pub(super) fn defaults(&mut self, unit: UnitId, parameters: &'a Parameters) {
        let scope = self.units[unit as usize].scope;
        for parameter in parameters.iter_non_variadic_params() {
            if let Some(default) = &parameter.default {
                let set = self.expr(default);
                let name = self.sym(&parameter.parameter.name);
                let cell = self.variable(scope, name);
                self.write(cell, &set);
            }
        }
    }
}
