//! What expressions evaluate to.

use ruff_python_ast::{
    BoolOp, CmpOp, Comprehension, Expr, ExprBinOp, ExprCompare, ExprFString, ExprSubscript, FStringPart,
    InterpolatedStringElement, Operator, UnaryOp,
};
use ruff_text_size::{Ranged, TextRange};

use super::engine::{Body, Engine, ObjectKind};
use super::intern::{LONGEST, Sym};
use super::value::{COMPUTED, Effect, Guard, ObjId, Set, Value};

/// Strings that a folded expression may stand for.
const MOST_STRINGS: usize = 16;

impl<'a> Engine<'_, 'a> {
    pub(super) fn expr(&mut self, expr: &'a Expr) -> Set {
        if self.steps == 0 {
            return Set::unknown();
        }
        self.steps -= 1;
        match expr {
            Expr::NumberLiteral(number) => {
                let small = number.value.as_int().and_then(ruff_python_ast::Int::as_i32);
                Set::of(small.map_or(Value::Plain, Value::Int))
            }
            Expr::BooleanLiteral(literal) => Set::of(Value::Int(literal.value.into())),
            Expr::StringLiteral(literal) => self.text(literal.value.to_str()),
            Expr::FString(string) => self.fstring(string),
            Expr::Name(name) => self.name_at(name),
            Expr::Attribute(attribute) => {
                let base = self.expr(&attribute.value);
                let attr = self.sym_at(&attribute.attr);
                self.attribute(&base, attr, expr.range())
            }
            Expr::Subscript(subscript) => self.subscript(subscript, expr),
            Expr::Call(call) => self.call_expr(call, expr),
            Expr::BinOp(operation) => self.binary(operation),
            Expr::UnaryOp(unary) => {
                let operand = self.expr(&unary.operand);
                match (unary.op, operand.values()) {
                    (UnaryOp::USub, &[Value::Int(n)]) => Set::of(Value::Int(n.wrapping_neg())),
                    _ => self.arithmetic(&[&operand], unary.range()),
                }
            }
            Expr::BoolOp(chain) => {
                let mut all = Set::default();
                let mut open = false;
                for (index, value) in chain.values.iter().enumerate() {
                    let set = if index == 0 { self.expr(value) } else { self.under(open, |it| it.expr(value)) };
                    open |= self.is_open(&set);
                    // `a or b`: constants that are surely true or false could be left out; they do no harm.
                    all.join(&set);
                }
                let _: BoolOp = chain.op;
                all.opened(open)
            }
            Expr::Compare(compare) => self.compare(compare),
            Expr::If(choice) => {
                let test = self.expr(&choice.test);
                let open = self.is_open(&test);
                let (mut set, first) = self.touching(|it| it.under(open, |it| it.expr(&choice.body)));
                let (other, second) = self.touching(|it| it.under(open, |it| it.expr(&choice.orelse)));
                if open {
                    self.choice_arms([(&choice.body, &set, first), (&choice.orelse, &other, second)]);
                }
                set.join(&other);
                set.opened(open)
            }
            Expr::Named(named) => {
                let set = self.expr(&named.value);
                self.assign(&named.target, &set);
                set
            }
            Expr::Lambda(lambda) => {
                let unit = self.unit_of(Body::Lambda(lambda), lambda.range(), self.class);
                if let Some(parameters) = &lambda.parameters {
                    self.defaults(unit, parameters);
                }
                Set::of(Value::Function(unit))
            }
            Expr::Tuple(tuple) => self.display(&tuple.elts, expr.range(), ObjectKind::Container),
            Expr::List(list) => self.display(&list.elts, expr.range(), ObjectKind::Container),
            Expr::Set(set) => self.display(&set.elts, expr.range(), ObjectKind::Unordered),
            Expr::Dict(dict) => {
                let object = self.object(expr.range(), 0, ObjectKind::Container);
                for item in &dict.items {
                    let value = self.expr(&item.value);
                    match &item.key {
                        Some(key) => {
                            let key = self.expr(key);
                            self.store(object, &key, &value);
                        }
                        None => self.pour(object, &value),
                    }
                }
                Set::of(Value::Object(object))
            }
            Expr::ListComp(comp) => {
                let made = self.comprehension(expr.range(), &comp.generators, &[&comp.elt]);
                let random = self.note_order(&made, expr.range(), false);
                made.opened(random)
            }
            Expr::SetComp(comp) => {
                let made = self.comprehension(expr.range(), &comp.generators, &[&comp.elt]);
                self.retype(&made, ObjectKind::Unordered);
                made
            }
            Expr::Generator(comp) => self.comprehension(expr.range(), &comp.generators, &[&comp.elt]),
            Expr::DictComp(comp) => match comp.key.as_deref() {
                Some(key) => self.comprehension(expr.range(), &comp.generators, &[key, &comp.value]),
                None => self.comprehension(expr.range(), &comp.generators, &[&comp.value]),
            },
            Expr::Starred(starred) => self.expr(&starred.value),
            Expr::Await(wait) => {
                let coroutine = self.expr(&wait.value);
                self.iterate(&coroutine)
            }
            Expr::Yield(give) => {
                let set = give.value.as_deref().map_or_else(Set::plain, |value| self.expr(value));
                self.yields(&set);
                Set::unknown()
            }
            Expr::YieldFrom(give) => {
                let set = self.expr(&give.value);
                let each = self.iterate(&set);
                self.yields(&each);
                Set::unknown()
            }
            Expr::Slice(slice) => {
                let mut open = false;
                for part in [&slice.lower, &slice.upper, &slice.step].into_iter().flatten() {
                    let set = self.expr(part);
                    open |= self.is_open(&set);
                }
                Set::plain().opened(open)
            }
            Expr::NoneLiteral(_)
            | Expr::BytesLiteral(_)
            | Expr::EllipsisLiteral(_)
            | Expr::IpyEscapeCommand(_)
            | Expr::TString(_) => Set::plain(),
        }
    }

    /// Runs something below a condition.
    pub(super) fn under<T>(&mut self, open: bool, run: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.guard;
        self.guard = before.max(if open { Guard::Open } else { Guard::Settled });
        let result = run(self);
        self.guard = before;
        result
    }

    /// Whether a condition, or a number made from this, may come out differently in a trace.
    pub(super) fn is_open(&mut self, set: &Set) -> bool {
        set.open
            || set.values().iter().any(|&value| match value {
                Value::Path(path) => super::library::is_open_value(self.interner.text(path)),
                // How many elements there are, and which.
                Value::Object(object) => self.elements(object).open,
                Value::Tensor(_) | Value::TensorMethod(..) | Value::UnknownMethod(_) | Value::Unknown | Value::Any => {
                    true
                }
                _ => false,
            })
    }

    pub(super) fn text(&mut self, text: &str) -> Set {
        if text.len() >= LONGEST {
            return Set::plain();
        }
        Set::of(Value::Str(self.sym(text)))
    }

    /// The strings that a set surely consists of.
    pub(super) fn strings(&self, set: &Set) -> Option<Vec<Sym>> {
        let one = |value: &Value| match value {
            Value::Str(sym) => Some(*sym),
            _ => None,
        };
        set.values().iter().map(one).collect::<Option<Vec<_>>>().filter(|all| !all.is_empty())
    }

    fn concatenated(&mut self, left: &Set, right: &Set) -> Option<Set> {
        let (left_texts, right_texts) = (self.strings(left)?, self.strings(right)?);
        if left_texts.len() * right_texts.len() > MOST_STRINGS {
            return None;
        }
        let mut all = Set::default().opened(left.open || right.open);
        for &left in &left_texts {
            for &right in &right_texts {
                let text = [self.interner.text(left), self.interner.text(right)].concat();
                all.join(&self.text(&text));
            }
        }
        Some(all)
    }

    fn fstring(&mut self, string: &'a ExprFString) -> Set {
        let mut all = self.text("");
        let mut whole = true;
        let mut open = false;
        for part in string.value.as_slice() {
            let elements = match part {
                FStringPart::Literal(literal) => {
                    let text = self.text(literal);
                    match self.concatenated(&all, &text) {
                        Some(longer) => all = longer,
                        None => whole = false,
                    }
                    continue;
                }
                FStringPart::FString(part) => &part.elements,
            };
            for element in elements {
                let set = match element {
                    InterpolatedStringElement::Literal(literal) => self.text(&literal.value),
                    InterpolatedStringElement::Interpolation(hole) => {
                        let set = self.expr(&hole.expression);
                        open |= self.is_open(&set);
                        set
                    }
                };
                let joined = if whole { self.concatenated(&all, &set) } else { None };
                match joined {
                    Some(longer) => all = longer,
                    None => whole = false,
                }
            }
        }
        let set = if whole { all } else { Set::plain() };
        set.opened(open)
    }

    fn binary(&mut self, operation: &'a ExprBinOp) -> Set {
        let left = self.expr(&operation.left);
        let right = self.expr(&operation.right);
        if operation.op == Operator::Add {
            if let Some(text) = self.concatenated(&left, &right) {
                return text;
            }
            let is_object = |set: &Set| set.values().iter().any(|value| matches!(value, Value::Object(_)));
            if is_object(&left) && is_object(&right) {
                return self.collect(&[&left, &right], operation.range());
            }
        }
        if operation.op == Operator::BitOr && self.merges(&left, &right) {
            return self.collect(&[&left, &right], operation.range());
        }
        self.arithmetic(&[&left, &right], operation.range())
    }

    fn merges(&self, left: &Set, right: &Set) -> bool {
        [left, right].iter().all(|set| set.values().iter().any(|value| matches!(value, Value::Object(_))))
    }

    /// An operator: arithmetic of torch if an operand may be a tensor.
    pub(super) fn arithmetic(&mut self, operands: &[&Set], place: TextRange) -> Set {
        let mut open = operands.iter().any(|set| set.open);
        let mut result = Set::default();
        let tensor = operands.iter().any(|set| set.has_tensor());
        if tensor {
            result.add(Value::Tensor(COMPUTED));
            self.note(place, Effect::Compute, open);
        } else if operands.iter().any(|set| !set.is_inert()) {
            result.add(Value::Unknown);
            self.note(place, Effect::Unknown, open);
        } else {
            result.add(Value::Plain);
            open |= operands.iter().any(|set| self.is_open(set));
        }
        for set in operands {
            for &value in set.values() {
                match value {
                    Value::Instance(class) => {
                        let set = self.operators(class);
                        result.join(&set);
                    }
                    Value::Object(_) => {
                        result.add(value);
                    }
                    _ => {}
                }
            }
        }
        result.opened(open)
    }

    fn compare(&mut self, compare: &'a ExprCompare) -> Set {
        let mut left = self.expr(&compare.left);
        let mut open = false;
        let mut tensor = false;
        for (op, comparator) in compare.ops.iter().zip(&compare.comparators) {
            let right = self.expr(comparator);
            let by_value = !matches!(op, CmpOp::Is | CmpOp::IsNot);
            let ask = |it: &mut Self, set: &Set| {
                set.open
                    || set.values().iter().any(|value| match value {
                        // Whether something is a certain tensor or `None` is known; what is in it is not.
                        Value::Tensor(_) => by_value,
                        _ => it.is_open(&Set::of(*value)),
                    })
            };
            open |= ask(self, &left) || ask(self, &right);
            if by_value && (left.has_tensor() || right.has_tensor()) {
                let never = self.never_equal(&left, &right);
                if !never {
                    tensor = true;
                    self.note(compare.range(), Effect::Compute, left.open || right.open);
                }
            }
            left = right;
        }
        if tensor { Set::of(Value::Tensor(COMPUTED)).opened(open) } else { Set::plain().opened(open) }
    }

    /// A container of numbers, text or types is compared with a tensor by mistake only.
    fn never_equal(&self, left: &Set, right: &Set) -> bool {
        let texts = |set: &Set| !set.is_empty() && set.values().iter().all(|value| matches!(value, Value::Str(_)));
        texts(left) || texts(right)
    }

    /// A tuple, list or set display.
    fn display(&mut self, elements: &'a [Expr], place: TextRange, kind: ObjectKind) -> Set {
        let object = self.object(place, 0, kind);
        let mut known = true;
        for (index, element) in elements.iter().enumerate() {
            if let Expr::Starred(starred) = element {
                known = false;
                let set = self.expr(&starred.value);
                self.pour(object, &set);
                continue;
            }
            let set = self.expr(element);
            let cell = if known { self.indexed(object, index) } else { self.objects[object as usize].rest };
            self.write(cell, &set);
        }
        Set::of(Value::Object(object))
    }

    pub(super) fn indexed(&mut self, object: ObjId, index: usize) -> u32 {
        let key = self.index(index);
        self.element(object, key)
    }

    fn comprehension(&mut self, place: TextRange, generators: &'a [Comprehension], elements: &[&'a Expr]) -> Set {
        let object = self.object(place, 0, ObjectKind::Container);
        let (scope, guard) = (self.scope, self.guard);
        let inner = self.scopes.opened_by(place);
        let (mut opened, mut shuffled) = (false, false);
        for (index, generator) in generators.iter().enumerate() {
            if index > 0 {
                self.scope = inner;
            }
            let set = self.expr(&generator.iter);
            self.scope = inner;
            let each = self.iterate(&set);
            shuffled |= self.is_shuffled(&set);
            opened |= set.open;
            self.guard = self.guard.max(if set.open { Guard::Open } else { Guard::Settled });
            self.assign(&generator.target, &each);
            for test in &generator.ifs {
                let set = self.expr(test);
                let open = self.is_open(&set);
                opened |= open;
                self.guard = self.guard.max(if open { Guard::Open } else { Guard::Settled });
            }
        }
        self.scope = inner;
        let mut values = Vec::new();
        for element in elements {
            values.push(self.expr(element));
        }
        (self.scope, self.guard) = (scope, guard);
        match values.as_slice() {
            [key, value] => {
                let key = key.clone().opened(opened);
                self.store(object, &key, value);
            }
            [value] => {
                let rest = self.objects[object as usize].rest;
                self.write(rest, &value.clone().opened(opened));
            }
            _ => {}
        }
        let made = Set::of(Value::Object(object)).opened(opened);
        if shuffled {
            self.retype(&made, ObjectKind::Shuffled);
        }
        made
    }

    fn yields(&mut self, set: &Set) {
        let unit = self.unit as usize;
        let place = match self.units[unit].body {
            Body::Function(def) => def.range(),
            Body::Lambda(lambda) => lambda.range(),
            _ => return,
        };
        let object = self.object(place, 3, ObjectKind::Container);
        self.units[unit].generator = Some(object);
        let rest = self.objects[object as usize].rest;
        let open = self.guard == Guard::Open;
        self.write(rest, &set.clone().opened(open));
        let cell = self.units[unit].result;
        self.write(cell, &Set::of(Value::Object(object)));
    }

    fn subscript(&mut self, subscript: &'a ExprSubscript, whole: &'a Expr) -> Set {
        let base = self.expr(&subscript.value);
        let index = self.expr(&subscript.slice);
        if matches!(&*subscript.slice, Expr::Slice(_)) {
            let mut result = Set::default().opened(base.open || index.open);
            for &value in base.values() {
                match value {
                    Value::Object(object) => {
                        let place = subscript.range();
                        let cut = self.object(place, 0, ObjectKind::Container);
                        let all = self.elements(object);
                        let rest = self.objects[cut as usize].rest;
                        self.write(rest, &all);
                        result.add(Value::Object(cut));
                    }
                    Value::Str(_) => {
                        match self.names.string(whole, self.scope) {
                            Some(text) => result.join(&self.text(&text)),
                            None => result.add(Value::Plain),
                        };
                    }
                    _ => {
                        result.join(&self.item(&Set::of(value), &index, subscript.range()));
                    }
                }
            }
            return result;
        }
        self.item(&base, &index, subscript.range())
    }
}
