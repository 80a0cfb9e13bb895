//! From a name to the model behind it.

use std::path::Path;

use crate::{Chat, Client, Config, ConfigError, Replay, ReplayError};

/// Before the path of a recording.
const RECORDING: &str = "replay:";

#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Replay(#[from] ReplayError),
    #[error("{0:?} runs a model in this process, which this build cannot: build with `--features gguf`")]
    NoGguf(String),
}

/// The model that `name` means: an endpoint, recording or local model of the configuration, or `replay:PATH`.
/// `config`: the file that the user named.
pub fn chat(name: &str, config: Option<&Path>) -> Result<Box<dyn Chat>, SelectError> {
    if let Some(path) = name.strip_prefix(RECORDING) {
        return Ok(Box::new(Replay::open(name, Path::new(path))?));
    }
    let config = Config::find(config)?;
    if let Some(entry) = config.replay.get(name) {
        return Ok(Box::new(Replay::open(name, &config.beside(&entry.path))?));
    }
    if config.gguf.contains_key(name) {
        return Err(SelectError::NoGguf(name.into()));
    }
    Ok(Box::new(Client::new(&config, name)?))
}
