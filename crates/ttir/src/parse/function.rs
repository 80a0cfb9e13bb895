//! Modules, functions, and the names of a function's values.

use std::collections::HashMap;

use super::Parser;
use super::cursor::Result;
use crate::ir::{Attr, Attrs, Func, LocId, Module, Region, Type, ValueId, ValueInfo};

/// The values of the function being read, by name.
#[derive(Default)]
pub(super) struct Scope {
    pub(super) values: Vec<ValueInfo>,
    /// One map for each enclosing region, innermost last.
    regions: Vec<HashMap<String, ValueId>>,
    /// Names used before their definition (by a block that is printed earlier), with the first use.
    pending: HashMap<String, (ValueId, usize)>,
    /// Printed types of operands that were not yet defined.
    expected: Vec<(ValueId, Type, usize)>,
}

/// The type of a value that is not defined yet.
fn unknown_type() -> Type {
    Type::Other(String::new())
}

/// A value, and where it is used.
pub(super) type Operand = (ValueId, usize);

/// A block argument as printed.
pub(super) struct Argument {
    pub(super) name: String,
    pub(super) ty: Type,
    pub(super) loc: Option<LocId>,
}

impl Parser<'_> {
    pub(super) fn module(mut self) -> Result<Module> {
        let mut module = Module { funcs: Vec::new(), attrs: Attrs::new(), locs: Vec::new(), loc: None };
        self.aliases()?;
        if self.cur.eat("module") {
            self.plain_module(&mut module)?;
        } else if self.cur.peek_is("\"builtin.module\"") {
            self.generic_module(&mut module)?;
        } else {
            return self.cur.expected("`module`");
        }
        self.aliases()?;
        if self.cur.peek().is_some() {
            return self.cur.expected("the end of the text");
        }
        self.number_locs(&mut module)?;
        Ok(module)
    }

    fn aliases(&mut self) -> Result<()> {
        while self.cur.peek() == Some(b'#') {
            self.alias()?;
        }
        Ok(())
    }

    /// `module @name attributes {…} { functions } loc(…)`
    fn plain_module(&mut self, module: &mut Module) -> Result<()> {
        if self.cur.peek_is("@") {
            self.symbol()?;
        }
        if self.cur.eat("attributes") {
            module.attrs = self.dictionary()?;
        }
        self.cur.expect("{")?;
        while !self.cur.eat("}") {
            module.funcs.push(self.function()?);
        }
        module.loc = self.trailing_loc()?;
        Ok(())
    }

    /// `"builtin.module"() ({ functions }) {…} : () -> () loc(…)`
    fn generic_module(&mut self, module: &mut Module) -> Result<()> {
        self.cur.string()?;
        self.cur.expect("(")?;
        self.cur.expect(")")?;
        let mut attrs = self.properties()?;
        self.cur.expect("(")?;
        self.cur.expect("{")?;
        if self.cur.eat("^") {
            self.cur.suffix("the name of a block")?;
            self.cur.expect(":")?;
        }
        while !self.cur.eat("}") {
            module.funcs.push(self.function()?);
        }
        self.cur.expect(")")?;
        if self.cur.peek_is("{") {
            attrs.extend(self.dictionary()?);
        }
        self.cur.expect(":")?;
        self.function_types()?;
        module.attrs = attrs;
        module.loc = self.trailing_loc()?;
        Ok(())
    }

    fn function(&mut self) -> Result<Func> {
        self.scope = Scope::default();
        let mut func = match self.cur.peek() {
            Some(b'"') => self.generic_function()?,
            _ => self.plain_function()?,
        };
        func.loc = self.trailing_loc()?;
        if let Some((name, (_, at))) = self.scope.pending.iter().min_by_key(|(_, (_, at))| *at) {
            return self.cur.error_at(*at, format!("`%{name}` is not defined"));
        }
        for (value, ty, at) in std::mem::take(&mut self.scope.expected) {
            self.expect_type(value, &ty, at)?;
        }
        func.values = std::mem::take(&mut self.scope.values);
        Ok(func)
    }

    /// `tt.func public @name(%x: T {attr} loc(…)) -> T attributes {…} { body }`
    fn plain_function(&mut self) -> Result<Func> {
        self.cur.expect("tt.func")?;
        let public = !(self.cur.eat("private") || self.cur.eat("nested"));
        self.cur.eat("public");
        let name = self.symbol()?;
        let (params, param_attrs) = self.parameters()?;
        let (results, result_attrs) = if self.cur.eat("->") { self.function_results()? } else { Default::default() };
        let mut attrs = if self.cur.eat("attributes") { self.dictionary()? } else { Attrs::new() };
        if result_attrs.iter().any(|attrs| !attrs.is_empty()) {
            attrs.insert("res_attrs".to_owned(), Attr::Array(result_attrs.into_iter().map(Attr::Dict).collect()));
        }
        let (params, body) = if self.cur.peek_is("{") {
            let body = self.region(params)?;
            (body.blocks.first().map(|block| block.args.clone()).unwrap_or_default(), body)
        } else {
            (self.define_all(params)?, Region::default())
        };
        Ok(Func { name, public, params, param_attrs, results, attrs, body, values: Vec::new(), loc: None })
    }

    fn parameters(&mut self) -> Result<(Vec<Argument>, Vec<Attrs>)> {
        let (mut params, mut param_attrs) = (Vec::new(), Vec::new());
        self.cur.expect("(")?;
        while !self.cur.eat(")") {
            if !params.is_empty() {
                self.cur.expect(",")?;
            }
            // A declaration has types only.
            let name = if self.cur.eat("%") {
                let name = self.cur.suffix("the name of a parameter")?.to_owned();
                self.cur.expect(":")?;
                name
            } else {
                format!("arg{}", params.len())
            };
            let ty = self.ty()?;
            param_attrs.push(if self.cur.peek_is("{") { self.dictionary()? } else { Attrs::new() });
            let loc = self.trailing_loc()?;
            params.push(Argument { name, ty, loc });
        }
        Ok((params, param_attrs))
    }

    fn function_results(&mut self) -> Result<(Vec<Type>, Vec<Attrs>)> {
        let (mut results, mut result_attrs) = (Vec::new(), Vec::new());
        if !self.cur.eat("(") {
            return Ok((vec![self.ty()?], result_attrs));
        }
        while !self.cur.eat(")") {
            if !results.is_empty() {
                self.cur.expect(",")?;
            }
            results.push(self.ty()?);
            result_attrs.push(if self.cur.peek_is("{") { self.dictionary()? } else { Attrs::new() });
        }
        Ok((results, result_attrs))
    }

    /// `"tt.func"() <{sym_name = …, function_type = …}> ({ body }) {…} : () -> ()`
    fn generic_function(&mut self) -> Result<Func> {
        self.cur.skip_space();
        let start = self.cur.pos;
        if self.cur.string()? != "tt.func" {
            return self.cur.error_at(start, "expected `tt.func`");
        }
        self.cur.expect("(")?;
        self.cur.expect(")")?;
        let mut attrs = self.properties()?;
        self.cur.expect("(")?;
        let empty = self.cur.clone().eat("{") && {
            let mut ahead = self.cur.clone();
            ahead.eat("{") && ahead.eat("}")
        };
        let body = if empty {
            self.cur.expect("{")?;
            self.cur.expect("}")?;
            Region::default()
        } else {
            self.region(Vec::new())?
        };
        self.cur.expect(")")?;
        if self.cur.peek_is("{") {
            attrs.extend(self.dictionary()?);
        }
        self.cur.expect(":")?;
        self.function_types()?;

        let Some(Attr::Str(name)) = attrs.remove("sym_name") else {
            return self.cur.error_at(start, "expected attribute `sym_name` with the name of the function");
        };
        let Some(Attr::Type(Type::Function(inputs, results))) = attrs.remove("function_type") else {
            return self.cur.error_at(start, "expected attribute `function_type` with a function type");
        };
        let public = match attrs.remove("sym_visibility") {
            Some(Attr::Str(visibility)) => visibility == "public",
            _ => true,
        };
        let param_attrs = match attrs.remove("arg_attrs") {
            None => vec![Attrs::new(); inputs.len()],
            Some(Attr::Array(items)) => {
                items.into_iter().map(|item| if let Attr::Dict(attrs) = item { attrs } else { Attrs::new() }).collect()
            }
            Some(_) => return self.cur.error_at(start, "expected an array as attribute `arg_attrs`"),
        };
        let params = match body.blocks.first() {
            Some(block) => block.args.clone(),
            None => {
                let params = inputs.iter().enumerate();
                let params = params.map(|(at, ty)| Argument { name: format!("arg{at}"), ty: ty.clone(), loc: None });
                self.define_all(params.collect())?
            }
        };
        let types = params.iter().map(|value| &self.scope.values[value.0 as usize].ty);
        if !types.eq(inputs.iter()) || param_attrs.len() != params.len() {
            return self.cur.error_at(start, format!("the parameters of `@{name}` do not have its `function_type`"));
        }
        Ok(Func { name, public, params, param_attrs, results, attrs, body, values: Vec::new(), loc: None })
    }

    /// `<{name = attribute}>` if it comes next.
    pub(super) fn properties(&mut self) -> Result<Attrs> {
        if !self.cur.eat("<") {
            return Ok(Attrs::new());
        }
        let attrs = self.dictionary()?;
        self.cur.expect(">")?;
        Ok(attrs)
    }

    pub(super) fn open_scope(&mut self) {
        self.scope.regions.push(HashMap::new());
    }

    pub(super) fn close_scope(&mut self) {
        self.scope.regions.pop();
    }

    pub(super) fn define_all(&mut self, arguments: Vec<Argument>) -> Result<Vec<ValueId>> {
        arguments.into_iter().map(|Argument { name, ty, loc }| self.define(name, ty, loc, self.cur.pos)).collect()
    }

    pub(super) fn define(&mut self, name: String, ty: Type, loc: Option<LocId>, at: usize) -> Result<ValueId> {
        if self.lookup(&name).is_some() {
            return self.cur.error_at(at, format!("`%{name}` is defined twice"));
        }
        let scope = &mut self.scope;
        let value = match scope.pending.remove(&name) {
            Some((value, _)) => {
                scope.values[value.0 as usize] = ValueInfo { ty, name: name.clone(), loc };
                value
            }
            None => scope.add(ValueInfo { ty, name: name.clone(), loc }),
        };
        if let Some(region) = scope.regions.last_mut() {
            region.insert(name, value);
        }
        Ok(value)
    }

    fn lookup(&self, name: &str) -> Option<ValueId> {
        self.scope.regions.iter().rev().find_map(|region| region.get(name).copied())
    }

    /// `%name` or `%name#1`
    pub(super) fn operand(&mut self) -> Result<Operand> {
        self.cur.skip_space();
        let at = self.cur.pos;
        if !self.cur.eat("%") {
            return self.cur.expected("an operand such as `%0`");
        }
        let mut name = self.cur.suffix("the name of a value")?.to_owned();
        if self.cur.rest().starts_with('#') {
            self.cur.pos += 1;
            let index = self.cur.digits("the number of a result")?;
            name = if index == 0 { name } else { format!("{name}#{index}") };
        }
        if let Some(value) = self.lookup(&name) {
            return Ok((value, at));
        }
        if let Some((value, _)) = self.scope.pending.get(&name) {
            return Ok((*value, at));
        }
        let value = self.scope.add(ValueInfo { ty: unknown_type(), name: name.clone(), loc: None });
        self.scope.pending.insert(name, (value, at));
        Ok((value, at))
    }

    /// Checks a printed operand type, now or when the operand is defined.
    pub(super) fn expect_type(&mut self, value: ValueId, ty: &Type, at: usize) -> Result<()> {
        let info = &self.scope.values[value.0 as usize];
        if info.ty == *ty {
            return Ok(());
        }
        if info.ty == unknown_type() {
            self.scope.expected.push((value, ty.clone(), at));
            return Ok(());
        }
        let message = format!("`%{}` has type {}, but is used as {ty}", info.name, info.ty);
        self.cur.error_at(at, message)
    }
}

impl Scope {
    fn add(&mut self, info: ValueInfo) -> ValueId {
        self.values.push(info);
        ValueId(self.values.len() as u32 - 1)
    }
}
