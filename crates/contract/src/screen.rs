use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CandidateId, Finding};

/// What the screen saw in some files, none of which it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Screening {
    /// `tilewright.screen/1`
    pub schema: String,
    /// In the order in which they were asked for; a folder's files by name.
    pub files: Vec<ScreenedFile>,
}

impl Screening {
    pub const SCHEMA: &'static str = "tilewright.screen/1";
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScreenedFile {
    pub candidate: CandidateId,
    /// Whether no finding refuses it.
    pub clean: bool,
    /// Names of the jit functions that can be cut out of it, in source order.
    pub kernels: Vec<String>,
    /// In source order.
    pub findings: Vec<Finding>,
    /// Why the file could not be screened through no fault of its own; then nothing is known about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
