//! Reads the text that Triton prints before its GPU passes, and MLIR's generic form of the same.

mod attrs;
mod cursor;
mod float;
mod function;
mod locs;
mod ops;
mod regions;
mod types;

pub use cursor::{MAX_NESTING, ParseError};

use std::collections::HashMap;

use crate::ir::{Attr, Module};
pub(crate) use float::width;
pub(crate) use types::float_name;

use cursor::{Cursor, Result};
use function::Scope;
use locs::Locs;

/// Reads a module. The result is well formed as text; [`crate::verify`] says whether it also makes sense.
///
/// # Errors
/// The first place where the text is not what it should be, and what was expected there.
pub fn parse(text: &str) -> Result<Module> {
    Parser { cur: Cursor::new(text), locs: Locs::default(), aliases: HashMap::new(), scope: Scope::default() }.module()
}

struct Parser<'a> {
    cur: Cursor<'a>,
    locs: Locs,
    /// Attributes by their aliases.
    aliases: HashMap<String, Attr>,
    /// The values of the function being read.
    scope: Scope,
}
