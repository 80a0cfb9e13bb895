//! Regions, blocks, and the structured control flow that has a syntax of its own.

use std::collections::HashMap;

use super::Parser;
use super::cursor::Result;
use super::function::{Argument, Operand};
use super::ops::Draft;
use crate::ir::{Attr, Block, Op, Region, Type, ValueId};

/// The blocks of a region by label, in the order in which the labels are met.
#[derive(Default)]
pub(super) struct Labels {
    by_name: HashMap<String, usize>,
    /// For each label: its place among the region's blocks once it is defined, and its first use.
    places: Vec<(Option<usize>, usize)>,
}

impl Labels {
    fn index(&mut self, name: &str, at: usize) -> usize {
        if let Some(index) = self.by_name.get(name) {
            return *index;
        }
        self.places.push((None, at));
        self.by_name.insert(name.to_owned(), self.places.len() - 1);
        self.places.len() - 1
    }
}

impl Parser<'_> {
    /// `{ blocks }`, in a scope of its own. `entry` are the entry block's arguments, if the syntax puts them before.
    pub(super) fn region(&mut self, entry: Vec<Argument>) -> Result<Region> {
        self.cur.enter()?;
        self.cur.expect("{")?;
        self.open_scope();
        let region = self.blocks(entry);
        self.close_scope();
        self.cur.leave();
        region
    }

    fn blocks(&mut self, entry: Vec<Argument>) -> Result<Region> {
        let mut labels = Labels::default();
        let mut region = Region::default();
        if !self.cur.peek_is("^") || !entry.is_empty() {
            let args = self.define_all(entry)?;
            let ops = self.block_ops(&mut labels)?;
            region.blocks.push(Block { args, ops });
        }
        while !self.cur.eat("}") {
            let at = self.cur.pos;
            self.cur.expect("^")?;
            let name = self.cur.suffix("the name of a block")?;
            let label = labels.index(name, at);
            if labels.places[label].0.replace(region.blocks.len()).is_some() {
                return self.cur.error_at(at, format!("`^{name}` is defined twice"));
            }
            let args = if self.cur.peek_is("(") { self.block_arguments()? } else { Vec::new() };
            self.cur.expect(":")?;
            let args = self.define_all(args)?;
            let ops = self.block_ops(&mut labels)?;
            region.blocks.push(Block { args, ops });
        }
        if let Some((_, at)) = labels.places.iter().find(|(place, _)| place.is_none()) {
            return self.cur.error_at(*at, "this block is not defined");
        }
        for op in region.blocks.iter_mut().flat_map(|block| &mut block.ops) {
            for (target, _) in &mut op.successors {
                *target = labels.places[*target].0.unwrap_or(0);
            }
        }
        Ok(region)
    }

    fn block_ops(&mut self, labels: &mut Labels) -> Result<Vec<Op>> {
        let mut ops = Vec::new();
        loop {
            match self.cur.peek() {
                Some(b'}' | b'^') => return Ok(ops),
                None => return self.cur.expected("an operation or `}`"),
                _ => ops.push(self.op(labels)?),
            }
        }
    }

    fn block_arguments(&mut self) -> Result<Vec<Argument>> {
        let mut arguments = Vec::new();
        self.cur.expect("(")?;
        while !self.cur.eat(")") {
            if !arguments.is_empty() {
                self.cur.expect(",")?;
            }
            let name = self.value_name()?;
            self.cur.expect(":")?;
            let ty = self.ty()?;
            arguments.push(Argument { name, ty, loc: self.trailing_loc()? });
        }
        Ok(arguments)
    }

    pub(super) fn value_name(&mut self) -> Result<String> {
        if !self.cur.eat("%") {
            return self.cur.expected("a name such as `%0`");
        }
        Ok(self.cur.suffix("the name of a value")?.to_owned())
    }

    /// `^block`, `^block(%0, %1 : T, T)`; the number is the label's until the region ends.
    pub(super) fn successor(&mut self, labels: &mut Labels) -> Result<(usize, Vec<ValueId>)> {
        self.cur.skip_space();
        let at = self.cur.pos;
        self.cur.expect("^")?;
        let label = labels.index(self.cur.suffix("the name of a block")?, at);
        let mut operands = Vec::new();
        if self.cur.eat("(") {
            operands = self.operand_list()?;
            self.cur.expect(":")?;
            let types = self.type_list()?;
            self.cur.expect(")")?;
            self.expect_types(&operands, &types)?;
        }
        Ok((label, operands.into_iter().map(|(value, _)| value).collect()))
    }

    /// `%0, %1`
    pub(super) fn operand_list(&mut self) -> Result<Vec<Operand>> {
        let mut operands = vec![self.operand()?];
        while self.cur.eat(",") {
            operands.push(self.operand()?);
        }
        Ok(operands)
    }

    pub(super) fn expect_types(&mut self, operands: &[Operand], types: &[Type]) -> Result<()> {
        if operands.len() != types.len() {
            let message = format!("{} types for {} operands", types.len(), operands.len());
            return self.cur.error_at(self.cur.pos, message);
        }
        operands.iter().zip(types).try_for_each(|((value, at), ty)| self.expect_type(*value, ty, *at))
    }

    /// `%i = %lo to %hi step %s iter_args(%a = %b) -> (T) : i32 { body } {…}`
    pub(super) fn scf_for(&mut self, draft: &mut Draft) -> Result<()> {
        if self.cur.eat("unsigned") {
            draft.op.attrs.insert("unsignedCmp".to_owned(), Attr::Unit);
        }
        let induction = self.value_name()?;
        self.cur.expect("=")?;
        let low = self.operand()?;
        self.cur.expect("to")?;
        let high = self.operand()?;
        self.cur.expect("step")?;
        let step = self.operand()?;
        let (mut names, mut inits) = (Vec::new(), Vec::new());
        if self.cur.eat("iter_args") {
            (names, inits) = self.assignments()?;
            self.cur.expect("->")?;
            draft.results = self.result_types()?;
        }
        self.expect_types(&inits, &draft.results.clone())?;
        let bound_type = if self.cur.eat(":") { self.ty()? } else { Type::Index };
        for (value, at) in [low, high, step] {
            self.expect_type(value, &bound_type, at)?;
        }
        let mut entry = vec![Argument { name: induction, ty: bound_type, loc: None }];
        let carried = names.into_iter().zip(&draft.results);
        entry.extend(carried.map(|(name, ty)| Argument { name, ty: ty.clone(), loc: None }));
        let body = self.region(entry)?;
        draft.op.regions.push(body);
        draft.implicit_yield();
        self.optional_dictionary(draft)?;
        draft.operands(&[&[low, high, step], inits.as_slice()]);
        Ok(())
    }

    /// `(%a = %b, %c = %d)`
    fn assignments(&mut self) -> Result<(Vec<String>, Vec<Operand>)> {
        let (mut names, mut inits) = (Vec::new(), Vec::new());
        self.cur.expect("(")?;
        while !self.cur.eat(")") {
            if !names.is_empty() {
                self.cur.expect(",")?;
            }
            names.push(self.value_name()?);
            self.cur.expect("=")?;
            inits.push(self.operand()?);
        }
        Ok((names, inits))
    }

    /// `%c -> (T) { … } else { … } {…}`
    pub(super) fn scf_if(&mut self, draft: &mut Draft) -> Result<()> {
        let (condition, at) = self.operand()?;
        self.expect_type(condition, &Type::Int(1), at)?;
        if self.cur.eat("->") {
            draft.results = self.result_types()?;
        }
        let then = self.region(Vec::new())?;
        draft.op.regions.push(then);
        let otherwise = if self.cur.eat("else") { self.region(Vec::new())? } else { Region::default() };
        draft.op.regions.push(otherwise);
        draft.implicit_yield();
        self.optional_dictionary(draft)?;
        draft.operands(&[&[(condition, at)]]);
        Ok(())
    }

    /// `(%a = %b) : (T) -> (T) { … } do { … } attributes {…}`
    pub(super) fn scf_while(&mut self, draft: &mut Draft) -> Result<()> {
        let (names, inits) = if self.cur.peek_is("(") { self.assignments()? } else { Default::default() };
        self.cur.expect(":")?;
        let (inputs, results) = self.function_types()?;
        self.expect_types(&inits, &inputs)?;
        draft.results = results;
        let entry = names.into_iter().zip(inputs).map(|(name, ty)| Argument { name, ty, loc: None }).collect();
        let before = self.region(entry)?;
        self.cur.expect("do")?;
        let after = self.region(Vec::new())?;
        draft.op.regions.extend([before, after]);
        draft.implicit_yield();
        if self.cur.eat("attributes") {
            self.optional_dictionary(draft)?;
        }
        draft.operands(&[inits.as_slice()]);
        Ok(())
    }

    pub(super) fn optional_dictionary(&mut self, draft: &mut Draft) -> Result<()> {
        if self.cur.peek_is("{") {
            draft.op.attrs.extend(self.dictionary()?);
        }
        Ok(())
    }
}
