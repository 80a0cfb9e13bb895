use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a language model thinks of an accepted candidate: advice, unless the profile says that it decides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Opinion {
    /// Name of the endpoint in the configuration.
    pub endpoint: String,
    pub model: String,
    pub answer: OpinionAnswer,
    /// What the model found missing, delegated or hard-coded; each begins with the one of these that it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub concerns: Vec<String>,
    /// The model's reasons in its own words; with `no_opinion`, why there is none.
    pub text: String,
    /// From the question to the answer, with all retries.
    pub seconds: f64,
    /// Tokens of question and answer, as the endpoint counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpinionAnswer {
    /// The kernels compute the stated operation.
    Implements,
    /// Something is missing, left to somebody else, or written down instead of computed.
    Doubts,
    /// The endpoint failed, was too slow, or said nothing that counts as an answer.
    NoOpinion,
}

/// What becomes of an opinion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpinionRole {
    /// It is recorded.
    #[default]
    Advice,
    /// Doubts make an accepted candidate `rejected`. `no_opinion` changes nothing.
    Decides,
}
