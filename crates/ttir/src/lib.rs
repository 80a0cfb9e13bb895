//! Triton IR text: typed form, parser, printer, verifier.

mod enums;
mod ir;
mod module;
mod ops;
mod parse;
mod print;
mod spec;
mod verify;

pub use ir::*;
pub use parse::{MAX_NESTING, ParseError, parse};
pub use verify::{VerifyError, verify};

/// Names of all operations that have a syntax and rules here.
pub fn known_ops() -> impl Iterator<Item = &'static str> {
    ops::OPS.iter().map(|row| row.name)
}

/// Operations of Triton's dialects that are not read, and why; a name that ends in `*` stands for all that begin so.
pub fn refused_ops() -> impl Iterator<Item = (&'static str, &'static str)> {
    ops::REFUSED.iter().copied()
}
