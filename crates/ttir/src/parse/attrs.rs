//! Attributes.

use super::Parser;
use super::cursor::Result;
use super::float;
use super::types::scalar_type;
use crate::enums::EnumKind;
use crate::ir::{Attr, Attrs, Type};

/// Characters of an attribute after its aliases were replaced.
const MAX_ALIASED: usize = 1 << 16;

impl Parser<'_> {
    /// `{name = attribute, name}`
    pub(super) fn dictionary(&mut self) -> Result<Attrs> {
        let mut attrs = Attrs::new();
        self.cur.expect("{")?;
        if self.cur.eat("}") {
            return Ok(attrs);
        }
        loop {
            let name = match self.cur.peek() {
                Some(b'"') => self.cur.string()?,
                _ => self.cur.word("the name of an attribute")?.to_owned(),
            };
            let value = if self.cur.eat("=") { self.attribute()? } else { Attr::Unit };
            if attrs.insert(name.clone(), value).is_some() {
                return self.cur.error_at(self.cur.pos, format!("attribute `{name}` is given twice"));
            }
            if !self.cur.eat(",") {
                self.cur.expect("}")?;
                return Ok(attrs);
            }
        }
    }

    pub(super) fn attribute(&mut self) -> Result<Attr> {
        self.cur.enter()?;
        let attr = self.nested_attribute();
        self.cur.leave();
        attr
    }

    fn nested_attribute(&mut self) -> Result<Attr> {
        match self.cur.peek() {
            Some(b'"') => {
                let text = self.cur.string()?;
                if self.cur.eat(":") {
                    self.ty()?;
                }
                Ok(Attr::Str(text))
            }
            Some(b'@') => Ok(Attr::Symbol(self.symbol()?)),
            Some(b'#') => self.dialect_attribute(),
            Some(b'[') => self.array(),
            Some(b'{') => Ok(Attr::Dict(self.dictionary()?)),
            Some(b'-' | b'0'..=b'9') => self.typed_number(),
            Some(b'(' | b'!') => Ok(Attr::Type(self.ty()?)),
            _ => self.keyword_attribute(),
        }
    }

    fn keyword_attribute(&mut self) -> Result<Attr> {
        let start = self.cur.pos;
        let word = self.cur.word("an attribute")?;
        match word {
            "true" => Ok(Attr::Bool(true)),
            "false" => Ok(Attr::Bool(false)),
            "unit" => Ok(Attr::Unit),
            "dense" => self.dense(),
            "array" => self.dense_array(),
            "loc" => Ok(Attr::Raw(format!("loc{}", self.cur.balanced()?))),
            "tensor" => {
                self.cur.pos = start;
                Ok(Attr::Type(self.ty()?))
            }
            word => match scalar_type(word) {
                Some(ty) => Ok(Attr::Type(ty)),
                None => self.cur.error_at(start, format!("expected an attribute, found `{word}`")),
            },
        }
    }

    /// `@name`, or a quoted name for one with other characters; nested references are kept as written.
    pub(super) fn symbol(&mut self) -> Result<String> {
        self.cur.expect("@")?;
        if self.cur.rest().starts_with('"') { self.cur.string() } else { Ok(self.cur.suffix("a name")?.to_owned()) }
    }

    /// `#dialect.name<…>`, kept as text, or an alias of one.
    pub(super) fn dialect_attribute(&mut self) -> Result<Attr> {
        self.cur.expect("#")?;
        let start = self.cur.pos;
        let name = self.cur.suffix("the name of an attribute")?;
        if !name.contains('.') {
            return self.aliased(name, start);
        }
        let body = if self.cur.rest().starts_with('<') { self.cur.balanced()? } else { "" };
        let raw = format!("#{name}{}", self.without_aliases(body, self.cur.pos - body.len())?);
        Ok(Attr::Raw(raw))
    }

    fn aliased(&self, name: &str, used_at: usize) -> Result<Attr> {
        match self.aliases.get(name) {
            Some(attr) => Ok(attr.clone()),
            None => self.cur.error_at(used_at, format!("`#{name}` is not defined")),
        }
    }

    /// The text of an attribute with the aliases in it replaced by what they stand for.
    fn without_aliases(&self, text: &str, at: usize) -> Result<String> {
        let mut parts = text.split('#');
        let mut whole = parts.next().unwrap_or_default().to_owned();
        let mut position = at + whole.len();
        for part in parts {
            position += 1;
            let end = part.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.' | '-')));
            let (name, rest) = part.split_at(end.unwrap_or(part.len()));
            match self.aliases.get(name) {
                Some(Attr::Raw(raw)) => whole += raw,
                _ if name.contains('.') => whole.extend(["#", name]),
                _ => return self.cur.error_at(position, format!("`#{name}` is not defined")),
            }
            whole += rest;
            position += part.len();
            // Aliases of aliases could grow without bound.
            if whole.len() > MAX_ALIASED {
                return self.cur.error_at(position, format!("an attribute of more than {MAX_ALIASED} characters"));
            }
        }
        Ok(whole)
    }

    /// `<flag, flag>`
    pub(super) fn flags(&mut self, kind: &EnumKind) -> Result<String> {
        self.cur.expect("<")?;
        let mut flags = Vec::new();
        loop {
            flags.push(self.keyword(kind)?);
            if !self.cur.eat(",") {
                self.cur.expect(">")?;
                return Ok(flags.join(", "));
            }
        }
    }

    /// One keyword of an enumeration.
    pub(super) fn keyword(&mut self, kind: &EnumKind) -> Result<String> {
        self.cur.skip_space();
        let start = self.cur.pos;
        let word = self.cur.word(&format!("one of {}", kind.keywords()))?;
        if kind.has(word) {
            Ok(word.to_owned())
        } else {
            self.cur.error_at(start, format!("expected one of {}, found `{word}`", kind.keywords()))
        }
    }

    fn array(&mut self) -> Result<Attr> {
        self.cur.expect("[")?;
        let mut items = Vec::new();
        if self.cur.eat("]") {
            return Ok(Attr::Array(items));
        }
        loop {
            items.push(self.attribute()?);
            if !self.cur.eat(",") {
                self.cur.expect("]")?;
                return Ok(Attr::Array(items));
            }
        }
    }

    /// `array<i32: 1, 2>`, `array<i32>`
    fn dense_array(&mut self) -> Result<Attr> {
        self.cur.expect("<")?;
        let ty = self.ty()?;
        let mut items = Vec::new();
        if self.cur.eat(":") {
            loop {
                items.push(match ty {
                    Type::Int(1) if self.cur.eat("true") => 1,
                    Type::Int(1) if self.cur.eat("false") => 0,
                    _ => self.small_integer()?,
                });
                if !self.cur.eat(",") {
                    break;
                }
            }
        }
        self.cur.expect(">")?;
        match ty {
            Type::Int(_) => Ok(Attr::DenseArray(items)),
            _ => self.cur.error_at(self.cur.pos, "only arrays of integers are known"),
        }
    }

    fn small_integer(&mut self) -> Result<i64> {
        let text = self.cur.number()?;
        match text.parse() {
            Ok(value) => Ok(value),
            Err(_) => self.cur.error_at(self.cur.pos - text.len(), format!("expected an integer, found `{text}`")),
        }
    }

    fn typed_number(&mut self) -> Result<Attr> {
        let start = self.cur.pos;
        let text = self.cur.number()?;
        let ty = match self.cur.eat(":") {
            true => self.ty()?,
            false if text.contains('.') => Type::Float(crate::ir::FloatKind::F64),
            false => Type::Int(64),
        };
        self.number_of_type(text, &ty, start)
    }

    fn number_of_type(&self, text: &str, ty: &Type, start: usize) -> Result<Attr> {
        match number(text, ty) {
            Some(attr) => Ok(attr),
            None => self.cur.error_at(start, format!("`{text}` is not a value of type {ty}")),
        }
    }

    /// `dense<value>`, `dense<[…]>` or `dense<"0x…">`, then its type.
    fn dense(&mut self) -> Result<Attr> {
        self.cur.expect("<")?;
        let start = self.cur.pos;
        // The elements come before the type that says how to read them.
        let literal = self.dense_literal()?;
        self.cur.expect(">")?;
        self.cur.expect(":")?;
        let ty = self.ty()?;
        let Type::Tensor(shape, element) = &ty else {
            return self.cur.error_at(start, format!("dense elements have a tensor type, not {ty}"));
        };
        let count = shape.iter().product::<u64>() as usize;
        let elements = match literal {
            Literal::Hex(text) => match blob_elements(&text, element, count) {
                Some(elements) => elements,
                None => return self.cur.error_at(start, format!("these are not the bytes of a {ty}")),
            },
            Literal::Scalar(text, at) => vec![self.number_of_type(&text, element, at)?],
            list => {
                let mut elements = Vec::new();
                self.flatten(list, element, shape, &mut elements, start)?;
                elements
            }
        };
        Ok(Attr::Dense(elements, ty.clone()))
    }

    fn dense_literal(&mut self) -> Result<Literal> {
        match self.cur.peek() {
            Some(b'"') => Ok(Literal::Hex(self.cur.string()?)),
            Some(b'[') => {
                self.cur.enter()?;
                self.cur.expect("[")?;
                let mut items = Vec::new();
                while !self.cur.eat("]") {
                    if !items.is_empty() {
                        self.cur.expect(",")?;
                    }
                    items.push(self.dense_literal()?);
                }
                self.cur.leave();
                Ok(Literal::List(items))
            }
            _ => {
                let start = self.cur.pos;
                let text = match self.cur.peek() {
                    Some(b't' | b'f') => self.cur.word("an element")?,
                    _ => self.cur.number()?,
                };
                Ok(Literal::Scalar(text.to_owned(), start))
            }
        }
    }

    fn flatten(
        &self,
        literal: Literal,
        element: &Type,
        shape: &[u64],
        elements: &mut Vec<Attr>,
        start: usize,
    ) -> Result<()> {
        match (literal, shape) {
            (Literal::Scalar(text, at), []) => elements.push(self.number_of_type(&text, element, at)?),
            (Literal::List(items), [size, inner @ ..]) if items.len() as u64 == *size => {
                for item in items {
                    self.flatten(item, element, inner, elements, start)?;
                }
            }
            _ => return self.cur.error_at(start, "these elements do not have the shape of their type"),
        }
        Ok(())
    }
}

enum Literal {
    Scalar(String, usize),
    List(Vec<Literal>),
    Hex(String),
}

/// A number, `true` or `false` as a value of the type.
fn number(text: &str, ty: &Type) -> Option<Attr> {
    let hex = text.strip_prefix("0x").map(|digits| u128::from_str_radix(digits, 16));
    match ty {
        Type::Int(1) => match text {
            "true" | "1" | "-1" | "0x1" => Some(Attr::Bool(true)),
            "false" | "0" | "0x0" => Some(Attr::Bool(false)),
            _ => None,
        },
        Type::Int(_) | Type::Index => {
            let value = match hex {
                Some(bits) => i128::try_from(bits.ok()?).ok()?,
                None => text.parse::<i128>().ok()?,
            };
            Some(Attr::Int(sign_extend(value, ty)?, ty.clone()))
        }
        Type::Float(kind) => {
            let bits = match hex {
                Some(bits) => u64::try_from(bits.ok()?).ok().filter(|bits| fits(*bits, float::width(*kind)))?,
                None => float::bits_of(text.parse::<f64>().ok()?, *kind),
            };
            Some(Attr::Float(bits, ty.clone()))
        }
        _ => None,
    }
}

fn fits(bits: u64, width: u32) -> bool {
    width >= 64 || bits >> width == 0
}

/// The value of the type that has these low bits; `None` if neither its signed nor its unsigned range holds it.
fn sign_extend(value: i128, ty: &Type) -> Option<i128> {
    let width = match ty {
        Type::Int(width) => *width,
        _ => 64,
    };
    if width >= 127 {
        return Some(value);
    }
    let limit = 1i128 << width;
    if value < -(limit / 2) || value >= limit {
        return None;
    }
    Some(if value >= limit / 2 { value - limit } else { value })
}

/// Elements from `"0x…"`: their bytes in little-endian order, an `i1` being one bit. One element is a splat.
fn blob_elements(text: &str, element: &Type, count: usize) -> Option<Vec<Attr>> {
    let digits = text.strip_prefix("0x")?;
    if !digits.is_ascii() || digits.len() % 2 != 0 {
        return None;
    }
    let bytes: Option<Vec<u8>> =
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok()).collect();
    let bytes = bytes?;
    let width = match element {
        Type::Int(width) => *width,
        Type::Float(kind) => float::width(*kind),
        _ => 64,
    };
    if width == 1 {
        return match bytes.as_slice() {
            [0xff] => Some(vec![Attr::Bool(true)]),
            [0x00] => Some(vec![Attr::Bool(false)]),
            bytes if bytes.len() == count.div_ceil(8) => {
                Some((0..count).map(|bit| Attr::Bool(bytes[bit / 8] >> (bit % 8) & 1 == 1)).collect())
            }
            _ => None,
        };
    }
    let size = (width as usize).div_ceil(8);
    if bytes.len() != size * count && bytes.len() != size {
        return None;
    }
    bytes
        .chunks_exact(size)
        .map(|chunk| {
            let value = chunk
                .iter()
                .rev()
                .try_fold(0u128, |value, byte| value.checked_mul(256).map(|value| value + u128::from(*byte)))?;
            number(&format!("{value:#x}"), element)
        })
        .collect()
}
