//! What every language model has in common, wherever it runs: messages in, pieces of text and then a reply out.

use std::ops::ControlFlow;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A language model that continues a conversation.
pub trait Chat: Send + Sync {
    /// Name of the endpoint in the configuration.
    fn name(&self) -> &str;

    /// Says the messages and gives the answer; `listener` hears of it while it comes.
    fn say(&self, messages: &[Message], sampling: Sampling, listener: &mut Listener<'_>) -> Result<Reply, ChatError>;

    /// Tokens that a question may have, where it is known.
    fn question_tokens(&self) -> Option<u64> {
        None
    }
}

/// Hears what a model says, as it says it, and may break it off.
pub type Listener<'a> = dyn FnMut(Piece<'_>) -> ControlFlow<()> + Send + 'a;

/// A part of an answer in the making.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A question of so many tokens is read, which takes a model on a CPU a while.
    Reading(u64),
    /// Text of the answer.
    Text(&'a str),
    /// What a reasoning model says to itself; no part of the answer.
    Thought(&'a str),
    /// What came so far does not count: the question is asked again, because of this.
    Again(&'a str),
}

/// Lets a listener hear a piece; an error where it breaks the answer off.
pub(crate) fn tell(listener: &mut Listener<'_>, piece: Piece<'_>) -> Result<(), ChatError> {
    if listener(piece).is_break() { Err(ChatError::Stopped) } else { Ok(()) }
}

/// How one answer differs from another to the same question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sampling {
    /// Number of the answer within its run.
    pub sample: u64,
    /// For models that take one.
    pub seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    System,
    User,
    Assistant,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    pub content: String,
}

impl Message {
    pub fn system(content: impl Into<String>) -> Self {
        Self { role: Role::System, content: content.into() }
    }

    pub fn user(content: impl Into<String>) -> Self {
        Self { role: Role::User, content: content.into() }
    }

    pub fn assistant(content: impl Into<String>) -> Self {
        Self { role: Role::Assistant, content: content.into() }
    }
}

/// What the model said.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    pub text: String,
    /// As the server gives it; the asked one if it does not.
    pub model: String,
    /// The answer was cut off at its greatest number of tokens.
    pub truncated: bool,
    pub usage: Usage,
}

/// What an answer took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens of the question.
    #[serde(default)]
    pub input_tokens: u64,
    /// Tokens of the answer, with thoughts.
    #[serde(default)]
    pub output_tokens: u64,
    /// The tokens are a guess by the number of characters: the server counted none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// In the currency of the endpoint's prices; 0 where none are given.
    #[serde(default)]
    pub cost: f64,
    /// From the question to the answer, with all retries.
    #[serde(default)]
    pub seconds: f64,
}

impl Usage {
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.estimated |= other.estimated;
        self.cost += other.cost;
        self.seconds += other.seconds;
    }
}

/// Characters of a token, for guesses. Code has fewer than prose, which has some 4.
const CHARS_PER_TOKEN: u64 = 3;

/// A guess of how many tokens a text has; rather too many than too few.
pub fn estimated_tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(CHARS_PER_TOKEN)
}

/// Why there is no answer. Never shows the key.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ChatError {
    #[error("no answer within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    #[error("no connection to {0}")]
    Connection(String),
    #[error("the server answered {status}: {body}")]
    Status { status: u16, body: String },
    /// The pause that the server asks for does not fit into the time for one question.
    #[error("{failed}; it asks to wait {} s, and timeout_s leaves less", .pause.as_secs())]
    TooLongPause { failed: Box<ChatError>, pause: Duration },
    #[error("the answer has more than {0} bytes")]
    TooLarge(u64),
    #[error("the answer is no chat completion: {0}")]
    Malformed(String),
    #[error("the answer broke off after {0} characters")]
    CutOff(usize),
    #[error("{0}")]
    Local(String),
    /// The listener wanted no more.
    #[error("broken off")]
    Stopped,
    /// Of a recording.
    #[error("answer {0} is not recorded")]
    NotRecorded(u64),
}

impl ChatError {
    /// Whether the same request may be answered a little later.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Connection(_) | Self::CutOff(_) => true,
            Self::Status { status, .. } => matches!(status, 408 | 409 | 425 | 429 | 500..=599),
            _ => false,
        }
    }

    /// Whether another question may be answered: what went wrong may be the fault of this one answer.
    pub fn is_of_one_answer(&self) -> bool {
        let own = matches!(self, Self::Timeout(_) | Self::TooLarge(_) | Self::Malformed(_) | Self::TooLongPause { .. });
        own || self.may_pass()
    }
}
