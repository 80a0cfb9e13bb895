use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something seen in a candidate, with the place where it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Rule id in kebab case, such as `torch-compute`.
    pub rule: String,
    pub tier: Tier,
    pub message: String,
    /// 1-based line and column in the candidate; 0 where there is none.
    pub line: u32,
    #[serde(default)]
    pub column: u32,
    /// What the author can do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Refuses the candidate alone.
    Proof,
    /// Reported; the trace decides.
    Evidence,
    /// Feedback for the author.
    Advice,
    /// The tracer cannot follow the file here: verdict `untraceable`.
    Untraceable,
    /// We lack a feature here: verdict `unsupported`.
    Unsupported,
}
