//! Types.

use super::Parser;
use super::cursor::Result;
use crate::ir::{FloatKind, Type};

/// No Triton tensor has more dimensions or elements than these.
const MAX_RANK: usize = 64;

const FLOATS: &[(&str, FloatKind)] = &[
    ("f8E4M3FN", FloatKind::E4M3),
    ("f8E5M2", FloatKind::E5M2),
    ("f8E4M3FNUZ", FloatKind::E4M3Uz),
    ("f8E5M2FNUZ", FloatKind::E5M2Uz),
    ("f8E4M3B11FNUZ", FloatKind::E4M3B11Uz),
    ("f16", FloatKind::F16),
    ("bf16", FloatKind::Bf16),
    ("tf32", FloatKind::Tf32),
    ("f32", FloatKind::F32),
    ("f64", FloatKind::F64),
];

pub(crate) fn float_name(kind: FloatKind) -> &'static str {
    FLOATS.iter().find(|(_, known)| *known == kind).map_or("f64", |(name, _)| name)
}

/// The scalar types that are a bare word.
pub(crate) fn scalar_type(word: &str) -> Option<Type> {
    if word == "index" {
        return Some(Type::Index);
    }
    if let Some((_, kind)) = FLOATS.iter().find(|(name, _)| *name == word) {
        return Some(Type::Float(*kind));
    }
    let signed = word.strip_prefix(['s', 'u']);
    let digits = signed.unwrap_or(word).strip_prefix('i')?;
    if digits.starts_with('0') || !digits.bytes().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let width = digits.parse().ok().filter(|width| (1..=128).contains(width))?;
    Some(if signed.is_some() { Type::Other(word.to_owned()) } else { Type::Int(width) })
}

impl Parser<'_> {
    pub(super) fn ty(&mut self) -> Result<Type> {
        self.cur.enter()?;
        let ty = match self.cur.peek() {
            Some(b'(') => self.function_type(),
            Some(b'!') => self.dialect_type(),
            _ => self.builtin_type(),
        };
        self.cur.leave();
        ty
    }

    fn builtin_type(&mut self) -> Result<Type> {
        let start = {
            self.cur.skip_space();
            self.cur.pos
        };
        let word = self.cur.word("a type")?;
        if word == "tensor" {
            return self.tensor_type();
        }
        match scalar_type(word) {
            Some(ty) => Ok(ty),
            None => self.cur.error_at(start, format!("expected a type, found `{word}`")),
        }
    }

    fn tensor_type(&mut self) -> Result<Type> {
        self.cur.expect("<")?;
        let mut shape = Vec::new();
        while self.cur.peek().is_some_and(|c| c.is_ascii_digit()) {
            let start = self.cur.pos;
            shape.push(self.cur.digits("a dimension")?);
            if !self.cur.rest().starts_with('x') {
                return self.cur.expected("`x` after a dimension");
            }
            self.cur.pos += 1;
            let elements = shape.iter().try_fold(1u64, |product, size| product.checked_mul(*size));
            if shape.len() > MAX_RANK || elements.is_none_or(|count| count > u64::from(u32::MAX)) {
                return self.cur.error_at(start, "this tensor is too large");
            }
        }
        let element = self.ty()?;
        if self.cur.eat(",") {
            self.attribute()?;
        }
        self.cur.expect(">")?;
        match element {
            Type::Tensor(..) | Type::Function(..) => self.cur.expected("a scalar or pointer element"),
            element => Ok(Type::Tensor(shape, Box::new(element))),
        }
    }

    fn dialect_type(&mut self) -> Result<Type> {
        self.cur.skip_space();
        let start = self.cur.pos;
        self.cur.pos += 1;
        match self.cur.suffix("the name of a type")? {
            "tt.ptr" => self.pointer_parameters(),
            "tt.tensordesc" => self.descriptor_parameters(),
            _ => {
                if self.cur.rest().starts_with('<') {
                    self.cur.balanced()?;
                }
                Ok(Type::Other(self.cur.text[start..self.cur.pos].to_owned()))
            }
        }
    }

    fn pointer_parameters(&mut self) -> Result<Type> {
        self.cur.expect("<")?;
        let pointee = self.ty()?;
        let mut space = 1;
        if self.cur.eat(",") {
            space = self.cur.digits("an address space")?;
        }
        self.cur.expect(">")?;
        match u32::try_from(space) {
            Ok(space) => Ok(Type::Ptr(Box::new(pointee), space)),
            Err(_) => self.cur.error_at(self.cur.pos, "this address space is too large"),
        }
    }

    fn descriptor_parameters(&mut self) -> Result<Type> {
        self.cur.expect("<")?;
        let block = self.ty()?;
        if self.cur.eat(",") {
            self.attribute()?;
        }
        self.cur.expect(">")?;
        Ok(Type::TensorDesc(Box::new(block)))
    }

    /// A pointer type, whose `!tt.ptr` may be left out.
    pub(super) fn short_pointer_type(&mut self) -> Result<Type> {
        if !self.cur.peek_is("<") {
            return self.ty();
        }
        self.cur.enter()?;
        let ty = self.pointer_parameters();
        self.cur.leave();
        ty
    }

    /// A descriptor type, whose `!tt.tensordesc` may be left out.
    pub(super) fn short_descriptor_type(&mut self) -> Result<Type> {
        if !self.cur.peek_is("<") {
            return self.ty();
        }
        self.cur.enter()?;
        let ty = self.descriptor_parameters();
        self.cur.leave();
        ty
    }

    fn function_type(&mut self) -> Result<Type> {
        let (inputs, results) = self.function_types()?;
        Ok(Type::Function(inputs, results))
    }

    /// `(inputs) -> results`
    pub(super) fn function_types(&mut self) -> Result<(Vec<Type>, Vec<Type>)> {
        self.cur.expect("(")?;
        let inputs = self.types_until_parenthesis()?;
        self.cur.expect("->")?;
        Ok((inputs, self.result_types()?))
    }

    /// `T`, `(T, T)` or `()`
    pub(super) fn result_types(&mut self) -> Result<Vec<Type>> {
        if self.cur.eat("(") { self.types_until_parenthesis() } else { Ok(vec![self.ty()?]) }
    }

    fn types_until_parenthesis(&mut self) -> Result<Vec<Type>> {
        if self.cur.eat(")") {
            return Ok(Vec::new());
        }
        let types = self.type_list()?;
        self.cur.expect(")")?;
        Ok(types)
    }

    /// `T, T`
    pub(super) fn type_list(&mut self) -> Result<Vec<Type>> {
        let mut types = vec![self.ty()?];
        while self.cur.eat(",") {
            types.push(self.ty()?);
        }
        Ok(types)
    }
}
