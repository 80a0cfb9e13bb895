use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Finding, Tier};

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

impl OpenCall {
    /// The call as a finding that refuses the candidate.
    pub fn unproven(&self) -> Finding {
        let why = match self.certain {
            true => "may call a torch function that computes",
            false => "was run by no trace, and it may compute outside of a kernel",
        };
        Finding {
            rule: "unproven-branch".into(),
            tier: Tier::Proof,
            message: format!("`{}` {why}", self.text),
            line: self.line,
            column: self.column + 1,
            help: Some(
                "call kernels and allocations by name, on a path that every input of this signature takes".into(),
            ),
        }
    }
}
