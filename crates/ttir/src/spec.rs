//! What the table of operations (`ops.rs`) says of one operation, and the small language that it is written in.
//!
//! A *form* is the custom syntax after the operation's name, as words:
//!
//! | word | reads |
//! |---|---|
//! | `%`, `%2` | an operand; its segment is the next one, or the one named |
//! | `%*` | operands separated by commas, maybe none |
//! | `{}` | an optional attribute dictionary |
//! | `<name>` `'name'` `@name` `+name` | attribute `name` as an enumeration case, a string, a symbol, its bare name |
//! | `~fastmath` `~overflow` | an optional flag set, `fastmath<nnan, ninf>` |
//! | `S` | a successor block with its operands |
//! | `T:o` `L:o` | a type, or a list of types, and what has it: segments by number, `o` every operand, `r` a result, `p` a result that it points to, `b` a result of its shape and `i1`, `e` a result of its element |
//! | `P:r` `D:r` | the same for a pointer or descriptor type, whose `!tt.ptr` or `!tt.tensordesc` may be left out |
//! | `F` | `(operand types) -> result types` |
//! | `SELECT` | the types of `arith.select` |
//! | `[?` … `?]` | taken when its first word comes next |
//! | anything else | itself |
//!
//! An *attribute list* has words `name:kind` (required), `name:kind?` (optional) or `name:kind=default`.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::enums::EnumKind;
use crate::ir::{Attr, Attrs, Type};
use crate::ops::OPS;
use crate::verify::Rule;

/// One row of the table as written.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Empty: only the generic form, or a parser of its own.
    pub(crate) form: &'static str,
    pub(crate) attrs: &'static str,
    pub(crate) rule: Rule,
}

pub(crate) struct Spec {
    pub(crate) row: &'static Row,
    pub(crate) form: Vec<Part>,
    pub(crate) attrs: Vec<AttrSpec>,
    /// How many operand words the form has.
    pub(crate) segments: usize,
    /// Whether the operation records how many operands each of them has.
    pub(crate) segmented: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    Word(&'static str),
    Operand(usize),
    Operands(usize),
    Dict,
    Case(&'static str),
    Text(&'static str),
    Symbol(&'static str),
    Unit(&'static str),
    Flags(&'static str),
    Successor,
    Types { shape: TypeShape, of: &'static str },
    Functional,
    Select,
    Optional(Vec<Part>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypeShape {
    One,
    List,
    Pointer,
    Descriptor,
}

#[derive(Debug)]
pub(crate) struct AttrSpec {
    pub(crate) name: &'static str,
    pub(crate) kind: AttrKind,
    pub(crate) presence: Presence,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum AttrKind {
    Enum(&'static EnumKind),
    Bool,
    I32,
    Text,
    Ints,
    Unit,
    Symbol,
    Any,
}

#[derive(Debug)]
pub(crate) enum Presence {
    Required,
    Optional,
    Default(Attr),
}

static SPECS: LazyLock<HashMap<&'static str, Spec>> =
    LazyLock::new(|| OPS.iter().map(|row| (row.name, Spec::compile(row))).collect());

/// The operation's description, if the table has it.
pub(crate) fn spec(name: &str) -> Option<&'static Spec> {
    SPECS.get(name)
}

impl Spec {
    fn compile(row: &'static Row) -> Spec {
        let mut words = row.form.split_whitespace();
        let mut segments = 0;
        let form = compile_form(&mut words, &mut segments);
        let mut attrs: Vec<_> = row.attrs.split_whitespace().map(compile_attr).collect();
        let segmented = attrs.iter().any(|attr| attr.name == SEGMENTS);
        attrs.retain(|attr| attr.name != SEGMENTS);
        Spec { row, form, attrs, segments, segmented }
    }

    /// Brings attributes to their in-memory form: cases by keyword, defaults present.
    pub(crate) fn normalise(&self, attrs: &mut Attrs) {
        for AttrSpec { name, kind, presence } in &self.attrs {
            match (attrs.remove(*name), kind, presence) {
                (Some(attr), AttrKind::Enum(kind), _) => {
                    attrs.insert((*name).to_owned(), kind.decode(attr));
                }
                (Some(attr), ..) => {
                    attrs.insert((*name).to_owned(), attr);
                }
                (None, _, Presence::Default(attr)) => {
                    attrs.insert((*name).to_owned(), attr.clone());
                }
                (None, ..) => {}
            }
        }
    }

    pub(crate) fn has_attr(&self, name: &str) -> bool {
        self.attrs.iter().any(|attr| attr.name == name)
    }

    pub(crate) fn attr_kind(&self, name: &str) -> Option<AttrKind> {
        self.attrs.iter().find(|attr| attr.name == name).map(|attr| attr.kind)
    }
}

/// Records how many operands each optional or variadic part of the form has.
pub(crate) const SEGMENTS: &str = "operandSegmentSizes";

fn compile_form(words: &mut dyn Iterator<Item = &'static str>, segments: &mut usize) -> Vec<Part> {
    let mut parts = Vec::new();
    while let Some(word) = words.next() {
        let part = match word {
            "?]" => return parts,
            "[?" => Part::Optional(compile_form(words, segments)),
            "{}" => Part::Dict,
            "S" => Part::Successor,
            "F" => Part::Functional,
            "SELECT" => Part::Select,
            _ => compile_word(word, segments),
        };
        parts.push(part);
    }
    parts
}

fn compile_word(word: &'static str, segments: &mut usize) -> Part {
    let mut segment = |number: &str| {
        let index = number.parse().unwrap_or(*segments);
        *segments += 1;
        index
    };
    if let Some(number) = word.strip_prefix("%*") {
        return Part::Operands(segment(number));
    }
    if let Some(number) = word.strip_prefix('%') {
        return Part::Operand(segment(number));
    }
    let inner = |open, close| word.strip_prefix(open)?.strip_suffix(close);
    if let Some(name) = inner('<', '>').filter(|name| !name.is_empty()) {
        return Part::Case(name);
    }
    if let Some(name) = inner('\'', '\'') {
        return Part::Text(name);
    }
    if let Some((shape, of)) = word.split_once(':').filter(|(shape, _)| !shape.is_empty()) {
        let shape = match shape {
            "L" => TypeShape::List,
            "P" => TypeShape::Pointer,
            "D" => TypeShape::Descriptor,
            _ => TypeShape::One,
        };
        return Part::Types { shape, of };
    }
    match word.as_bytes() {
        [b'@', _, ..] => Part::Symbol(&word[1..]),
        [b'+', _, ..] => Part::Unit(&word[1..]),
        [b'~', _, ..] => Part::Flags(&word[1..]),
        _ => Part::Word(word),
    }
}

fn compile_attr(word: &'static str) -> AttrSpec {
    let (name, rest) = word.split_once(':').unwrap_or((word, "any"));
    let (kind, default) = match rest.split_once('=') {
        Some((kind, default)) => (kind, Some(default)),
        None => (rest, None),
    };
    let optional = kind.ends_with('?');
    let kind = match kind.trim_end_matches('?') {
        "bool" => AttrKind::Bool,
        "i32" => AttrKind::I32,
        "str" => AttrKind::Text,
        "ints" => AttrKind::Ints,
        "unit" => AttrKind::Unit,
        "symbol" => AttrKind::Symbol,
        name => EnumKind::by_name(name).map_or(AttrKind::Any, AttrKind::Enum),
    };
    let presence = match default {
        Some(default) => Presence::Default(default_value(kind, default)),
        None if optional => Presence::Optional,
        None => Presence::Required,
    };
    AttrSpec { name, kind, presence }
}

fn default_value(kind: AttrKind, text: &str) -> Attr {
    match kind {
        AttrKind::Bool => Attr::Bool(text == "true"),
        AttrKind::I32 => Attr::Int(text.parse().unwrap_or(0), Type::Int(32)),
        AttrKind::Ints => Attr::DenseArray(Vec::new()),
        AttrKind::Enum(_) => Attr::Enum(text.to_owned()),
        _ => Attr::Str(text.to_owned()),
    }
}
