//! Triton IR text: typed form, parser, printer, verifier.

mod ir;

pub use ir::*;
