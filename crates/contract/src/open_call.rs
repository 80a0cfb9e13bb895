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
    /// What at this place must have been seen.
    #[serde(default)]
    pub what: Watched,
}

/// What a trace must have seen at a place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Watched {
    /// This call or operator ran.
    #[default]
    Call,
    /// A statement or expression of this branch ran.
    Branch,
    /// The test of an `if` that has no `else` failed.
    Otherwise,
}

impl OpenCall {
    /// The call as a finding that refuses the candidate.
    pub fn unproven(&self) -> Finding {
        let why = match (self.certain, self.what) {
            (true, _) => "may call a torch function that computes, where evaluators differ",
            (_, Watched::Call) => "was run by no trace: it may compute outside of a kernel, or launch something else",
            (_, Watched::Branch) => "was taken by no trace, and whether it is depends on more than the signature",
            (_, Watched::Otherwise) => "held in every trace, and whether it does depends on more than the signature",
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
