//! What writes candidates: the offline author, language models behind OpenAI-compatible servers, models in this process and
//! recorded conversations, all behind [`Author`]; the conversation with a model (prompts, feedback, extraction of code); and
//! the judge layer, which asks a model whether a kernel computes what it should.
//! Design: `docs/design/author.md`, `docs/design/opinion.md`.
//!
//! What a model says is foreign text. Keys are never printed, logged or kept in a document.

mod author;
mod chat;
mod config;
mod extract;
mod feedback;
#[cfg(feature = "gguf")]
mod gguf;
mod model;
mod offline;
mod openai;
mod opinion;
mod prompt;
mod replay;
mod secret;
mod select;

pub use author::{Answer, Author, AuthorError, Goal, Hardware, Request, Turn};
pub use chat::{Chat, ChatError, Listener, Message, Piece, Reply, Role, Sampling, Usage, estimated_tokens};
pub use config::{Config, ConfigError, Endpoint, GgufEntry, MaxTokensField, ReplayEntry};
pub use extract::{Extracted, NoCode, extract};
pub use feedback::{Style, feedback};
#[cfg(feature = "gguf")]
pub use gguf::{Gguf, GgufError};
pub use model::Model;
pub use offline::{OFFLINE, Offline, Teacher};
pub use openai::Client;
pub use opinion::Judge;
pub use prompt::Conversation;
pub use replay::{REPLIES, Recorded, Replay, ReplayError};
pub use secret::Secret;
pub use select::{Overrides, SelectError, chat};
