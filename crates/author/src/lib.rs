//! Language models: named endpoints in a configuration file, a chat client for OpenAI-compatible servers, and the judge
//! layer, which asks one of them whether a kernel computes what it should. Design: `docs/design/opinion.md`.
//!
//! A server's answer is foreign text. Keys are never printed, logged or kept in a document.

mod chat;
mod config;
mod opinion;
mod secret;

pub use chat::{ChatError, Client, Message, Reply};
pub use config::{Config, ConfigError, Endpoint};
pub use opinion::Judge;
pub use secret::Secret;
