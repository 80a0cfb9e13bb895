//! From a name to the model behind it.

use std::path::Path;

use crate::config::GgufEntry;
use crate::{Chat, Client, Config, ConfigError, Replay, ReplayError};

/// Before the path of a recording.
const RECORDING: &str = "replay:";

/// What a command sets in place of the configuration.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Overrides {
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    /// Of one answer.
    pub max_tokens: Option<u32>,
}

#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Replay(#[from] ReplayError),
    #[cfg(feature = "gguf")]
    #[error(transparent)]
    Gguf(#[from] crate::GgufError),
    #[error("it runs a model in this process, which this build cannot: build with `--features gguf`")]
    NoGguf,
}

/// The model that `name` means: an endpoint, recording or local model of the configuration, or `replay:PATH`.
/// `config`: the file that the user named.
pub fn chat(name: &str, config: Option<&Path>, overrides: Overrides) -> Result<Box<dyn Chat>, SelectError> {
    if let Some(path) = name.strip_prefix(RECORDING) {
        return Ok(Box::new(Replay::open(name, Path::new(path))?));
    }
    let mut config = Config::find(config)?;
    if let Some(entry) = config.replay.get(name) {
        return Ok(Box::new(Replay::open(name, &config.beside(&entry.path))?));
    }
    if let Some(entry) = config.gguf.get_mut(name) {
        entry.temperature = overrides.temperature.unwrap_or(entry.temperature);
        entry.top_p = overrides.top_p.or(entry.top_p);
        entry.max_tokens = overrides.max_tokens.unwrap_or(entry.max_tokens);
        let entry = entry.clone();
        entry.check().map_err(|why| ConfigError::Endpoint { name: name.into(), why })?;
        return gguf(name, &config.beside(&entry.path), &entry);
    }
    if let Some(endpoint) = config.endpoints.get_mut(name) {
        endpoint.temperature = overrides.temperature.or(endpoint.temperature);
        endpoint.top_p = overrides.top_p.or(endpoint.top_p);
        endpoint.max_tokens = overrides.max_tokens.unwrap_or(endpoint.max_tokens);
    }
    Ok(Box::new(Client::new(&config, name)?))
}

#[cfg(feature = "gguf")]
fn gguf(name: &str, path: &Path, entry: &GgufEntry) -> Result<Box<dyn Chat>, SelectError> {
    Ok(Box::new(crate::Gguf::open(name, path, entry)?))
}

#[cfg(not(feature = "gguf"))]
fn gguf(_: &str, _: &Path, _: &GgufEntry) -> Result<Box<dyn Chat>, SelectError> {
    Err(SelectError::NoGguf)
}
