//! Operations: by their form in the table, or in generic form.

use super::Parser;
use super::cursor::Result;
use super::function::Operand;
use super::regions::Labels;
use crate::ir::{Attr, Op, Region, Type, ValueId};
use crate::ops::refusal;
use crate::spec::{AttrKind, Part, SEGMENTS, Spec, TypeShape, spec};

/// More results than this are an error in the text.
const MAX_RESULTS: u64 = 1 << 16;

/// An operation while it is being read: operands by segment, results as types.
pub(super) struct Draft {
    pub(super) op: Op,
    segments: Vec<Vec<Operand>>,
    pub(super) results: Vec<Type>,
}

impl Draft {
    pub(super) fn operands(&mut self, parts: &[&[Operand]]) {
        self.segments = parts.iter().map(|part| part.to_vec()).collect();
    }

    /// Regions of loops and branches may leave out a `scf.yield` without operands.
    pub(super) fn implicit_yield(&mut self) {
        for block in self.op.regions.iter_mut().flat_map(|region| &mut region.blocks) {
            let terminated =
                block.ops.last().is_some_and(|op| matches!(op.name.as_str(), "scf.yield" | "scf.condition"));
            if !terminated {
                block.ops.push(Op::named("scf.yield"));
            }
        }
    }

    fn flat(&self) -> Vec<Operand> {
        self.segments.concat()
    }
}

impl Parser<'_> {
    pub(super) fn op(&mut self, labels: &mut Labels) -> Result<Op> {
        let names = self.result_names()?;
        self.cur.skip_space();
        let start = self.cur.pos;
        let mut draft = if self.cur.peek_is("\"") { self.generic_op(labels)? } else { self.custom_op(labels)? };
        if !names.is_empty() && names.len() != draft.results.len() {
            let message = format!("`{}` has {} results, not {}", draft.op.name, draft.results.len(), names.len());
            return self.cur.error_at(start, message);
        }
        draft.op.operands = draft.flat().into_iter().map(|(value, _)| value).collect();
        if let Some(spec) = spec(&draft.op.name) {
            spec.normalise(&mut draft.op.attrs);
        }
        draft.op.loc = self.trailing_loc()?;
        inherit_loc(&mut draft.op);
        for (index, ty) in draft.results.into_iter().enumerate() {
            let value = match names.get(index) {
                Some(name) => self.define(name.clone(), ty, None, start)?,
                None => self.anonymous(ty),
            };
            draft.op.results.push(value);
        }
        Ok(draft.op)
    }

    fn anonymous(&mut self, ty: Type) -> ValueId {
        let name = self.scope.values.len().to_string();
        self.scope.values.push(crate::ir::ValueInfo { ty, name, loc: None });
        ValueId(self.scope.values.len() as u32 - 1)
    }

    /// `%a, %b:2 =`
    fn result_names(&mut self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        if !self.cur.peek_is("%") {
            return Ok(names);
        }
        loop {
            let name = self.value_name()?;
            let count = if self.cur.eat(":") { self.cur.digits("a number of results")? } else { 1 };
            if count == 0 || count > MAX_RESULTS {
                return self.cur.error_at(self.cur.pos, "expected a reasonable number of results");
            }
            names.push(name.clone());
            names.extend((1..count).map(|index| format!("{name}#{index}")));
            if !self.cur.eat(",") {
                self.cur.expect("=")?;
                return Ok(names);
            }
        }
    }

    fn custom_op(&mut self, labels: &mut Labels) -> Result<Draft> {
        self.cur.skip_space();
        let start = self.cur.pos;
        let name = self.cur.word("an operation")?;
        let Some(spec) = spec(name) else {
            let why = refusal(name).map(|why| format!(": {why}")).unwrap_or_default();
            return self.cur.error_at(start, format!("unknown operation `{name}`{why}"));
        };
        let mut draft = Draft { op: Op::named(name), segments: Vec::new(), results: Vec::new() };
        match name {
            "arith.constant" => self.constant(&mut draft)?,
            "scf.for" => self.scf_for(&mut draft)?,
            "scf.if" => self.scf_if(&mut draft)?,
            "scf.while" => self.scf_while(&mut draft)?,
            _ if spec.form.is_empty() => {
                return self.cur.error_at(start, format!("`{name}` is only known in generic form, `\"{name}\"(…)`"));
            }
            _ => {
                draft.segments.resize(spec.segments, Vec::new());
                self.form(spec, &spec.form, &mut draft, labels)?;
                if spec.segmented {
                    let sizes = draft.segments.iter().map(|segment| segment.len() as i64).collect();
                    draft.op.attrs.insert(SEGMENTS.to_owned(), Attr::DenseArray(sizes));
                }
            }
        }
        Ok(draft)
    }

    /// `{…} value`, where the value says its type.
    fn constant(&mut self, draft: &mut Draft) -> Result<()> {
        self.optional_dictionary(draft)?;
        self.cur.skip_space();
        let start = self.cur.pos;
        let value = self.attribute()?;
        let Some(ty) = attribute_type(&value) else {
            return self.cur.error_at(start, "expected a constant with a type");
        };
        draft.results.push(ty);
        draft.op.attrs.insert("value".to_owned(), value);
        Ok(())
    }

    fn form(&mut self, spec: &Spec, parts: &[Part], draft: &mut Draft, labels: &mut Labels) -> Result<()> {
        parts.iter().try_for_each(|part| self.part(spec, part, draft, labels))
    }

    fn part(&mut self, spec: &Spec, part: &Part, draft: &mut Draft, labels: &mut Labels) -> Result<()> {
        let attrs = &mut draft.op.attrs;
        match part {
            Part::Word(word) => self.cur.expect(word)?,
            Part::Operand(segment) => {
                let operand = self.operand()?;
                draft.segments[*segment].push(operand);
            }
            Part::Operands(segment) => {
                if self.cur.peek_is("%") {
                    draft.segments[*segment] = self.operand_list()?;
                }
            }
            Part::Dict => self.optional_dictionary(draft)?,
            Part::Case(name) => {
                let Some(AttrKind::Enum(kind)) = spec.attr_kind(name) else {
                    return self.cur.expected("an attribute");
                };
                attrs.insert((*name).to_owned(), Attr::Enum(self.keyword(kind)?));
            }
            Part::Text(name) => {
                attrs.insert((*name).to_owned(), Attr::Str(self.cur.string()?));
            }
            Part::Symbol(name) => {
                attrs.insert((*name).to_owned(), Attr::Symbol(self.symbol()?));
            }
            Part::Unit(name) => {
                self.cur.expect(name)?;
                attrs.insert((*name).to_owned(), Attr::Unit);
            }
            Part::Flags(keyword) => {
                let name = if *keyword == "overflow" { "overflowFlags" } else { keyword };
                if let Some(AttrKind::Enum(kind)) = spec.attr_kind(name)
                    && self.cur.eat(keyword)
                {
                    attrs.insert(name.to_owned(), Attr::Enum(self.flags(kind)?));
                }
            }
            Part::Successor => draft.op.successors.push(self.successor(labels)?),
            Part::Types { shape, of } => {
                let types = match shape {
                    TypeShape::One => vec![self.ty()?],
                    TypeShape::List => self.type_list()?,
                    TypeShape::Pointer => vec![self.short_pointer_type()?],
                    TypeShape::Descriptor => vec![self.short_descriptor_type()?],
                };
                self.assign_types(draft, types, *shape == TypeShape::List, of)?;
            }
            Part::Functional => {
                let (inputs, results) = self.function_types()?;
                self.expect_types(&draft.flat(), &inputs)?;
                draft.results = results;
            }
            Part::Select => self.select_types(draft)?,
            Part::Optional(parts) => {
                if self.comes_next(spec, &parts[0]) {
                    self.form(spec, parts, draft, labels)?;
                }
            }
        }
        Ok(())
    }

    fn comes_next(&mut self, spec: &Spec, part: &Part) -> bool {
        match part {
            Part::Word(word) | Part::Unit(word) => self.cur.peek_is(word),
            Part::Operand(_) | Part::Operands(_) => self.cur.peek_is("%"),
            Part::Case(name) => match (spec.attr_kind(name), self.cur.clone().word("")) {
                (Some(AttrKind::Enum(kind)), Ok(word)) => kind.has(word),
                _ => false,
            },
            _ => false,
        }
    }

    /// Gives printed types to the operands and results that the form names.
    fn assign_types(&mut self, draft: &mut Draft, types: Vec<Type>, list: bool, of: &str) -> Result<()> {
        for target in of.chars() {
            let operands = match target {
                'o' => draft.flat(),
                'r' => {
                    draft.results.extend(types.iter().cloned());
                    continue;
                }
                'b' => {
                    draft.results.push(types[0].with_scalar(Type::Int(1)));
                    continue;
                }
                'e' => {
                    draft.results.push(types[0].scalar().clone());
                    continue;
                }
                'p' => {
                    let Some(pointee) = types[0].pointee() else {
                        let message = format!("expected a pointer type, found {}", types[0]);
                        return self.cur.error_at(self.cur.pos, message);
                    };
                    draft.results.push(pointee);
                    continue;
                }
                digit => draft.segments[digit.to_digit(10).unwrap_or(0) as usize].clone(),
            };
            if list {
                self.expect_types(&operands, &types)?;
            } else {
                operands.iter().try_for_each(|(value, at)| self.expect_type(*value, &types[0], *at))?;
            }
        }
        Ok(())
    }

    /// `T`, or the condition's type and then `T`.
    fn select_types(&mut self, draft: &mut Draft) -> Result<()> {
        let first = self.ty()?;
        let (condition, ty) = if self.cur.eat(",") { (first, self.ty()?) } else { (Type::Int(1), first) };
        let types = [condition, ty.clone(), ty.clone()];
        self.expect_types(&draft.flat(), &types)?;
        draft.results.push(ty);
        Ok(())
    }

    /// `"name"(%0)[^bb1] <{…}> ({ region }) {…} : (T) -> T`
    fn generic_op(&mut self, labels: &mut Labels) -> Result<Draft> {
        let name = self.cur.string()?;
        let mut draft = Draft { op: Op::named(&name), segments: Vec::new(), results: Vec::new() };
        self.cur.expect("(")?;
        let operands = if self.cur.peek_is("%") { self.operand_list()? } else { Vec::new() };
        self.cur.expect(")")?;
        if self.cur.eat("[") {
            loop {
                draft.op.successors.push(self.successor(labels)?);
                if !self.cur.eat(",") {
                    break;
                }
            }
            self.cur.expect("]")?;
        }
        draft.op.attrs = self.properties()?;
        if self.cur.eat("(") {
            loop {
                let region = self.generic_region()?;
                draft.op.regions.push(region);
                if !self.cur.eat(",") {
                    break;
                }
            }
            self.cur.expect(")")?;
        }
        self.optional_dictionary(&mut draft)?;
        self.cur.expect(":")?;
        let (inputs, results) = self.function_types()?;
        self.expect_types(&operands, &inputs)?;
        draft.results = results;
        draft.operands(&[operands.as_slice()]);
        self.split_branch_operands(&mut draft)?;
        Ok(draft)
    }

    /// A region that may have no blocks at all.
    fn generic_region(&mut self) -> Result<Region> {
        let mut ahead = self.cur.clone();
        if ahead.eat("{") && ahead.eat("}") {
            self.cur = ahead;
            return Ok(Region::default());
        }
        self.region(Vec::new())
    }

    /// The generic form of a branch lists the operands of its targets among its own.
    fn split_branch_operands(&mut self, draft: &mut Draft) -> Result<()> {
        let targets = draft.op.successors.len();
        if targets == 0 {
            return Ok(());
        }
        let operands = draft.flat();
        let sizes: Vec<usize> = match (draft.op.name.as_str(), draft.op.attrs.remove(SEGMENTS)) {
            ("cf.br", None) => vec![0, operands.len()],
            ("cf.cond_br", Some(Attr::DenseArray(sizes))) => {
                sizes.iter().map(|size| usize::try_from(*size).unwrap_or(usize::MAX)).collect()
            }
            (name, _) => return self.cur.error_at(self.cur.pos, format!("`{name}` cannot have successors like these")),
        };
        let total = sizes.iter().try_fold(0usize, |sum, size| sum.checked_add(*size));
        if sizes.len() != targets + 1 || total != Some(operands.len()) {
            return self.cur.error_at(self.cur.pos, "the operands of this branch do not add up");
        }
        let (own, mut rest) = operands.split_at(sizes[0]);
        for ((_, passed), size) in draft.op.successors.iter_mut().zip(&sizes[1..]) {
            let (part, after) = rest.split_at(*size);
            passed.extend(part.iter().map(|(value, _)| *value));
            rest = after;
        }
        draft.operands(&[own]);
        Ok(())
    }
}

/// A left-out `scf.yield` has the location of the operation around it.
fn inherit_loc(op: &mut Op) {
    let loc = op.loc;
    let blocks = op.regions.iter_mut().flat_map(|region| &mut region.blocks);
    for last in blocks.filter_map(|block| block.ops.last_mut()) {
        if last.loc.is_none() && last.name == "scf.yield" && last.operands.is_empty() {
            last.loc = loc;
        }
    }
}

fn attribute_type(attr: &Attr) -> Option<Type> {
    match attr {
        Attr::Bool(_) => Some(Type::Int(1)),
        Attr::Int(_, ty) | Attr::Float(_, ty) | Attr::Dense(_, ty) => Some(ty.clone()),
        _ => None,
    }
}
