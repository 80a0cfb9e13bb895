//! Locations: `loc(…)` and `#loc1 = loc(…)`; other attributes with an alias, `#loop = #llvm.loop_annotation<…>`.

use std::collections::HashMap;

use super::Parser;
use super::cursor::{MAX_NESTING, ParseError, Result};
use crate::ir::{Loc, LocId, Module};
use crate::module::for_each_op_mut;

/// The locations met so far. An alias may be used before it is defined.
#[derive(Default)]
pub(super) struct Locs {
    list: Vec<Loc>,
    aliases: HashMap<String, Alias>,
}

struct Alias {
    id: LocId,
    /// Where it was first used, until it is defined.
    used_at: Option<usize>,
}

impl Locs {
    fn add(&mut self, loc: Loc) -> LocId {
        self.list.push(loc);
        LocId(self.list.len() as u32 - 1)
    }
}

impl Parser<'_> {
    /// `loc(…)` if it comes next.
    pub(super) fn trailing_loc(&mut self) -> Result<Option<LocId>> {
        if !self.cur.eat("loc") {
            return Ok(None);
        }
        self.cur.expect("(")?;
        let loc = self.loc_body()?;
        self.cur.expect(")")?;
        Ok(Some(loc))
    }

    /// `#loc1 = loc(…)`, `#name = #dialect.attribute<…>`
    pub(super) fn alias(&mut self) -> Result<()> {
        self.cur.expect("#")?;
        let start = self.cur.pos;
        let name = self.cur.suffix("the name of a location")?;
        self.cur.expect("=")?;
        if self.cur.peek() == Some(b'#') {
            return self.attribute_alias(name, start);
        }
        if !self.cur.peek_is("loc") {
            return self.cur.expected("`loc`: only locations and attributes of dialects have aliases here");
        }
        let Some(body) = self.trailing_loc()? else {
            return self.cur.expected("a location");
        };
        match self.locs.aliases.get_mut(name) {
            None => {
                self.locs.aliases.insert(name.to_owned(), Alias { id: body, used_at: None });
            }
            Some(alias) => {
                if alias.used_at.take().is_none() {
                    return self.cur.error_at(start, format!("`#{name}` is defined twice"));
                }
                self.locs.list[alias.id.0 as usize] = self.locs.list[body.0 as usize].clone();
            }
        }
        Ok(())
    }

    fn attribute_alias(&mut self, name: &str, start: usize) -> Result<()> {
        let attr = self.dialect_attribute()?;
        if self.aliases.insert(name.to_owned(), attr).is_some() {
            return self.cur.error_at(start, format!("`#{name}` is defined twice"));
        }
        Ok(())
    }

    fn loc_body(&mut self) -> Result<LocId> {
        self.cur.enter()?;
        let loc = match self.cur.peek() {
            Some(b'#') => self.loc_reference(),
            Some(b'"') => self.quoted_loc(),
            _ if self.cur.eat("unknown") => Ok(self.locs.add(Loc::Unknown)),
            _ if self.cur.eat("callsite") => self.call_loc(),
            _ if self.cur.eat("fused") => self.fused_loc(),
            _ if self.cur.peek_is("loc") => match self.trailing_loc()? {
                Some(loc) => Ok(loc),
                None => self.cur.expected("a location"),
            },
            _ => self.cur.expected("a location"),
        };
        self.cur.leave();
        loc
    }

    fn loc_reference(&mut self) -> Result<LocId> {
        self.cur.expect("#")?;
        let used_at = self.cur.pos;
        let name = self.cur.suffix("the name of a location")?;
        if let Some(alias) = self.locs.aliases.get(name) {
            return Ok(alias.id);
        }
        let id = self.locs.add(Loc::Unknown);
        self.locs.aliases.insert(name.to_owned(), Alias { id, used_at: Some(used_at) });
        Ok(id)
    }

    /// `"file":1:2`, `"name"(child)` or `"name"`
    fn quoted_loc(&mut self) -> Result<LocId> {
        let text = self.cur.string()?;
        if self.cur.eat(":") {
            let line = self.cur.digits("a line")?;
            self.cur.expect(":")?;
            let column = self.cur.digits("a column")?;
            if self.cur.eat("to") {
                if !self.cur.peek_is(":") {
                    self.cur.digits("a line")?;
                }
                self.cur.expect(":")?;
                self.cur.digits("a column")?;
            }
            let small = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
            return Ok(self.locs.add(Loc::File { file: text, line: small(line), column: small(column) }));
        }
        let child = if self.cur.eat("(") {
            let child = self.loc_body()?;
            self.cur.expect(")")?;
            child
        } else {
            self.locs.add(Loc::Unknown)
        };
        Ok(self.locs.add(Loc::Named(text, child)))
    }

    fn call_loc(&mut self) -> Result<LocId> {
        self.cur.expect("(")?;
        let callee = self.loc_body()?;
        self.cur.expect("at")?;
        let caller = self.loc_body()?;
        self.cur.expect(")")?;
        Ok(self.locs.add(Loc::Call { callee, caller }))
    }

    fn fused_loc(&mut self) -> Result<LocId> {
        if self.cur.peek_is("<") {
            self.cur.balanced()?;
        }
        self.cur.expect("[")?;
        let mut parts = vec![self.loc_body()?];
        while self.cur.eat(",") {
            parts.push(self.loc_body()?);
        }
        self.cur.expect("]")?;
        Ok(self.locs.add(Loc::Fused(parts)))
    }

    /// Numbers the locations in use in the order of their use, children first, each once.
    pub(super) fn number_locs(&mut self, module: &mut Module) -> Result<()> {
        let undefined = self.locs.aliases.iter().filter_map(|(name, alias)| Some((alias.used_at?, name))).min();
        if let Some((at, name)) = undefined {
            return self.cur.error_at(at, format!("`#{name}` is not defined"));
        }
        let mut numbering = Numbering {
            old: &self.locs.list,
            new: Vec::new(),
            by_value: HashMap::new(),
            by_old: vec![None; self.locs.list.len()],
            too_deep: false,
        };
        numbering.replace(&mut module.loc);
        for func in &mut module.funcs {
            numbering.replace(&mut func.loc);
            func.values.iter_mut().for_each(|value| numbering.replace(&mut value.loc));
            for_each_op_mut(&mut func.body, &mut |op| numbering.replace(&mut op.loc));
        }
        if numbering.too_deep {
            return Err(ParseError {
                line: 1,
                column: 1,
                message: "locations that nest too deep or in a circle".into(),
            });
        }
        module.locs = numbering.new;
        Ok(())
    }
}

struct Numbering<'a> {
    old: &'a [Loc],
    new: Vec<Loc>,
    by_value: HashMap<Loc, LocId>,
    by_old: Vec<Option<LocId>>,
    too_deep: bool,
}

impl Numbering<'_> {
    fn replace(&mut self, loc: &mut Option<LocId>) {
        if let Some(id) = loc {
            *id = self.number(*id, 0);
        }
    }

    fn number(&mut self, id: LocId, depth: usize) -> LocId {
        if let Some(known) = self.by_old[id.0 as usize] {
            return known;
        }
        // Inlining chains call sites, so this may go deeper than text does; a circle always gets here.
        if self.too_deep || depth > 4 * MAX_NESTING {
            self.too_deep = true;
            return id;
        }
        let old = self.old;
        let loc = match &old[id.0 as usize] {
            Loc::Named(name, child) => Loc::Named(name.clone(), self.number(*child, depth + 1)),
            Loc::Call { callee, caller } => {
                Loc::Call { callee: self.number(*callee, depth + 1), caller: self.number(*caller, depth + 1) }
            }
            Loc::Fused(parts) => Loc::Fused(parts.iter().map(|part| self.number(*part, depth + 1)).collect()),
            leaf => leaf.clone(),
        };
        let next = LocId(self.new.len() as u32);
        let number = *self.by_value.entry(loc.clone()).or_insert(next);
        if number == next {
            self.new.push(loc);
        }
        self.by_old[id.0 as usize] = Some(number);
        number
    }
}
