use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A call or tensor operator in host code of which static analysis cannot say that it does not compute, and whose
/// guard the signature does not settle.
///
/// The place is given as CPython's `co_positions` gives it: lines count from 1, columns from 0 in UTF-8 bytes, and the
/// end is exclusive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenCall {
    pub line: u32,
    pub column: u32,
    pub end_line: u32,
    pub end_column: u32,
    /// The source text, shortened, on one line.
    pub text: String,
    /// It may call a torch function that is known to compute, so it is refused whether or not a trace ran it.
    pub certain: bool,
}
