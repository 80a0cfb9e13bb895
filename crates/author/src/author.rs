//! What writes candidates: one interface, whoever is behind it.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tilewright_contract::{Target, Verdict};

use crate::{ChatError, Listener, Message, NoCode, Usage};

/// Writes candidates for a problem.
pub trait Author: Send + Sync {
    /// As the user calls it.
    fn name(&self) -> &str;

    /// One more candidate; `listener` hears of it while it comes.
    fn write(&self, request: &Request<'_>, listener: &mut Listener<'_>) -> Result<Answer, AuthorError>;

    /// Whether it learns from verdicts. One that does not is not asked for a second turn.
    fn learns(&self) -> bool {
        true
    }
}

/// What is to be written.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub problem: &'a Path,
    /// The problem's file.
    pub text: &'a str,
    pub goal: &'a Goal,
    /// Number of the candidate within its run, from 0. An author that lists its candidates gives the one with this number.
    pub sample: u64,
    /// For authors that draw at random.
    pub seed: u64,
    /// What this candidate is to be better than: the turns that led here, the oldest first.
    pub turns: &'a [Turn],
}

/// What candidates are written for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Goal {
    pub hardware: Hardware,
    /// What kernels are compiled for while they are verified.
    pub target: Target,
    /// Where they run while they are verified: `cpu` or `cuda:N`.
    pub device: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Hardware {
    #[default]
    Cuda,
    Ascend,
}

/// An answer and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub source: Result<String, NoCode>,
    /// None where there was no code to verify.
    pub verdict: Option<Verdict>,
}

/// What an author gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Which of several ways this is, for people: `split-k`, `sample 3`.
    pub variant: String,
    /// The candidate's file, or why there is none in the answer.
    pub source: Result<String, NoCode>,
    /// Remarks: several blocks of code, and the like.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What was asked, where a language model was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    /// What it said, word by word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reply: String,
    /// The reply was cut off at its greatest number of tokens.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    #[serde(default)]
    pub usage: Usage,
}

/// Why an author gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum AuthorError {
    /// There is no candidate with this number.
    #[error("it has no further candidate")]
    Exhausted,
    /// It can write nothing for this problem.
    #[error("{0}")]
    Cannot(String),
    /// The problem's file is at fault.
    #[error("the problem: {0}")]
    Problem(String),
    /// It did not answer.
    #[error("{0}")]
    Chat(#[source] ChatError),
    /// What is told to a model cannot be put together.
    #[error("failed to write a prompt: {0}")]
    Prompt(#[from] minijinja::Error),
    #[error("{0}")]
    Infrastructure(String),
}

impl From<ChatError> for AuthorError {
    fn from(error: ChatError) -> Self {
        match error {
            ChatError::NotRecorded(_) => Self::Exhausted,
            error => Self::Chat(error),
        }
    }
}

impl AuthorError {
    /// Whether the next question may be answered all the same.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Chat(error) => error.is_of_one_answer(),
            _ => false,
        }
    }
}
