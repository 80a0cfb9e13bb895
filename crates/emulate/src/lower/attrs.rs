//! Reading attributes, whatever form the parser gives them.

use tilewright_ttir::{Attr, Op};

/// The keyword of an enumeration.
pub(super) fn keyword<'a>(op: &'a Op, name: &str) -> Option<&'a str> {
    match op.attrs.get(name)? {
        Attr::Enum(text) | Attr::Str(text) | Attr::Raw(text) => Some(text),
        _ => None,
    }
}

pub(super) fn int(op: &Op, name: &str) -> Option<i64> {
    match op.attrs.get(name)? {
        Attr::Int(value, _) => i64::try_from(*value).ok(),
        Attr::Bool(value) => Some(i64::from(*value)),
        _ => None,
    }
}

pub(super) fn flag(op: &Op, name: &str) -> bool {
    matches!(op.attrs.get(name), Some(Attr::Unit | Attr::Bool(true)))
}

pub(super) fn ints(op: &Op, name: &str) -> Option<Vec<i64>> {
    match op.attrs.get(name)? {
        Attr::DenseArray(values) => Some(values.clone()),
        Attr::Array(items) => items
            .iter()
            .map(|item| match item {
                Attr::Int(value, _) => i64::try_from(*value).ok(),
                _ => None,
            })
            .collect(),
        _ => None,
    }
}

/// The integers of `dense<…>`; one is a splat.
pub(super) fn dense(op: &Op, name: &str) -> Option<Vec<i64>> {
    let Attr::Dense(values, _) = op.attrs.get(name)? else { return None };
    let int = |value: &Attr| match value {
        Attr::Int(value, _) => i64::try_from(*value).ok(),
        _ => None,
    };
    values.iter().map(int).collect()
}

pub(super) fn text<'a>(op: &'a Op, name: &str) -> Option<&'a str> {
    match op.attrs.get(name)? {
        Attr::Str(text) => Some(text),
        _ => None,
    }
}

/// A dimension given as an attribute, within a rank.
pub(super) fn axis(op: &Op, rank: usize) -> Option<usize> {
    usize::try_from(int(op, "axis")?).ok().filter(|&axis| axis < rank)
}
