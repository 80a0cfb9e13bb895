//! Servers that speak OpenAI's chat completions.

mod answer;
mod client;
mod pace;

pub use client::Client;
