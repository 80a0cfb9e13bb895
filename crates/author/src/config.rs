//! `tilewright.toml`: the endpoints that a user has.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcetera::BaseStrategy;
use serde::Deserialize;

use crate::{Secret, Usage};

const FILE: &str = "tilewright.toml";
/// Names the configuration file.
const VARIABLE: &str = "TILEWRIGHT_CONFIG";
/// A request may not wait longer than this.
const MAX_TIMEOUT_S: f64 = 3600.0;

/// The configuration. Unknown keys are errors, since a misspelt limit would be no limit.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    #[serde(default)]
    pub endpoints: BTreeMap<String, Endpoint>,
    /// Recorded conversations.
    #[serde(default)]
    pub replay: BTreeMap<String, ReplayEntry>,
    /// Models that run in this process.
    #[serde(default)]
    pub gguf: BTreeMap<String, GgufEntry>,
    /// Where it was read from; paths in it are relative to its folder.
    #[serde(skip)]
    path: PathBuf,
}

/// A server that speaks OpenAI's chat completions.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// Up to and without `/chat/completions`: `http://127.0.0.1:8000/v1`.
    pub base_url: String,
    pub model: String,
    /// Name of the variable that holds the key.
    #[serde(default)]
    pub key_env: Option<String>,
    /// File that holds the key and nothing else.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    #[serde(default)]
    pub temperature: Option<f64>,
    #[serde(default)]
    pub top_p: Option<f64>,
    /// `low`, `medium`, `high`, or what else the server knows.
    #[serde(default)]
    pub reasoning_effort: Option<String>,
    /// Of one answer.
    #[serde(default = "max_tokens")]
    pub max_tokens: u32,
    /// Seconds for one question, with all retries.
    #[serde(default = "timeout_s")]
    pub timeout_s: f64,
    /// After a failure that may pass: no connection, too many requests, an error of the server's.
    #[serde(default = "retries")]
    pub retries: u32,
    /// Name of the field that says `max_tokens`.
    #[serde(default)]
    pub max_tokens_field: MaxTokensField,
    /// Tokens that question and answer may have together. Older turns of a conversation are left out to keep to it.
    #[serde(default)]
    pub context_tokens: Option<u64>,
    /// Whether answers come in pieces.
    #[serde(default = "yes")]
    pub stream: bool,
    /// Whether to send a `seed`, another one for each answer of a run.
    #[serde(default)]
    pub send_seed: bool,
    /// No more requests and tokens a minute than this, and requests at a time.
    #[serde(default)]
    pub requests_per_minute: Option<f64>,
    #[serde(default)]
    pub tokens_per_minute: Option<f64>,
    #[serde(default = "concurrent")]
    pub concurrent: u32,
    /// Of a million tokens, in any currency.
    #[serde(default)]
    pub price_input: f64,
    #[serde(default)]
    pub price_output: f64,
    /// Further fields of each request, as the server wants them.
    #[serde(default)]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

/// Servers differ in the name of one field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    #[default]
    MaxTokens,
    MaxCompletionTokens,
}

impl MaxTokensField {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// A conversation that was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayEntry {
    /// A file of replies, or the folder of a run.
    pub path: PathBuf,
}

/// A quantised model in a file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GgufEntry {
    pub path: PathBuf,
    /// 0 for the likeliest token each time, which makes all answers to a question the same.
    #[serde(default = "gguf_temperature")]
    pub temperature: f64,
    #[serde(default)]
    pub top_p: Option<f64>,
    /// Of one answer.
    #[serde(default = "gguf_max_tokens")]
    pub max_tokens: u32,
    /// Tokens that question and answer have together; no more than the model attends to. A CPU reads for seconds or minutes.
    #[serde(default = "gguf_context_tokens")]
    pub context_tokens: u64,
}

fn yes() -> bool {
    true
}

fn concurrent() -> u32 {
    8
}

fn max_tokens() -> u32 {
    4096
}

fn gguf_temperature() -> f64 {
    0.6
}

fn gguf_max_tokens() -> u32 {
    1024
}

fn gguf_context_tokens() -> u64 {
    2048
}

fn timeout_s() -> f64 {
    300.0
}

fn retries() -> u32 {
    2
}

/// A configuration that cannot be used. No message shows a key.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error(
        "found no {FILE}: give --config FILE, set {VARIABLE}, or write ./{FILE} or {}",
        user_file().map_or_else(|| "the one in your configuration folder".into(), |path| path.display().to_string())
    )]
    NotFound,
    #[error("failed to read {}: {error}", path.display())]
    Read { path: PathBuf, error: std::io::Error },
    #[error("{} is not a valid configuration: {why}", path.display())]
    Invalid { path: PathBuf, why: String },
    #[error("no endpoint {name:?} in {}: it has {known}", path.display())]
    NoEndpoint { name: String, path: PathBuf, known: String },
    #[error("endpoint {name:?}: {why}")]
    Endpoint { name: String, why: String },
}

impl Config {
    /// The configuration in `explicit`, in the file that `TILEWRIGHT_CONFIG` names, in `./tilewright.toml` or in the
    /// user's configuration folder: the first of these. A file that was asked for must exist.
    pub fn find(explicit: Option<&Path>) -> Result<Self, ConfigError> {
        let asked = explicit.map(Path::to_owned);
        let asked = asked.or_else(|| std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from));
        if let Some(path) = asked {
            return Self::read(&path);
        }
        let found = [Some(PathBuf::from(FILE)), user_file()].into_iter().flatten().find(|path| path.is_file());
        Self::read(&found.ok_or(ConfigError::NotFound)?)
    }

    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError::Read { path: path.to_owned(), error })?;
        let invalid = |error: toml::de::Error| ConfigError::Invalid { path: path.to_owned(), why: error.to_string() };
        Ok(Self { path: path.to_owned(), ..toml::from_str(&text).map_err(invalid)? })
    }

    /// An endpoint by its name, checked, with its key if it has one.
    pub fn endpoint(&self, name: &str) -> Result<(&Endpoint, Option<Secret>), ConfigError> {
        let endpoint = self.endpoints.get(name).ok_or_else(|| self.unknown(name))?;
        let wrong = |why| ConfigError::Endpoint { name: name.into(), why };
        endpoint.check().map_err(wrong)?;
        Ok((endpoint, endpoint.key(self.path.parent().unwrap_or(Path::new(""))).map_err(wrong)?))
    }
}

impl Config {
    /// The error about a name that stands nowhere.
    pub(crate) fn unknown(&self, name: &str) -> ConfigError {
        let known: Vec<&str> =
            self.endpoints.keys().chain(self.replay.keys()).chain(self.gguf.keys()).map(String::as_str).collect();
        let known = if known.is_empty() { "none".into() } else { known.join(", ") };
        ConfigError::NoEndpoint { name: name.into(), path: self.path.clone(), known }
    }

    /// A path of the configuration: relative ones begin at its folder.
    pub(crate) fn beside(&self, path: &Path) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(path)
    }
}

impl Endpoint {
    pub fn timeout(&self) -> Duration {
        Duration::from_secs_f64(self.timeout_s)
    }

    /// What these tokens cost.
    pub(crate) fn cost(&self, usage: &Usage) -> f64 {
        (usage.input_tokens as f64 * self.price_input + usage.output_tokens as f64 * self.price_output) / 1e6
    }

    fn check(&self) -> Result<(), String> {
        let rest = self.base_url.strip_prefix("http://").or_else(|| self.base_url.strip_prefix("https://"));
        match rest {
            None | Some("") => return Err("base_url must begin with http:// or https://".into()),
            // Addresses show up in messages.
            Some(rest) if rest.contains(['@', '?', '#']) => {
                return Err("base_url must hold no user, key or query: give a key by key_env or key_file".into());
            }
            Some(_) => {}
        }
        if !(self.timeout_s > 0.0 && self.timeout_s <= MAX_TIMEOUT_S) {
            return Err(format!("timeout_s must be above 0 and at most {MAX_TIMEOUT_S}"));
        }
        let rates = [("requests_per_minute", self.requests_per_minute), ("tokens_per_minute", self.tokens_per_minute)];
        if let Some((name, _)) = rates.iter().find(|(_, rate)| rate.is_some_and(|rate| !(rate > 0.0 && rate < 1e12))) {
            return Err(format!("{name} must be above 0"));
        }
        choice(self.temperature, self.top_p)?;
        if self.concurrent == 0 {
            return Err("concurrent must be at least 1".into());
        }
        if [self.price_input, self.price_output].iter().any(|price| !(0.0..1e9).contains(price)) {
            return Err("price_input and price_output must be 0 or more".into());
        }
        for field in ["model", "messages", "stream", "seed", "max_tokens", "max_completion_tokens"] {
            if self.extra.contains_key(field) {
                return Err(format!("extra must not set {field:?}"));
            }
        }
        Ok(())
    }

    fn key(&self, folder: &Path) -> Result<Option<Secret>, String> {
        let key = match (&self.key_env, &self.key_file) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => return Err("give key_env or key_file, not both".into()),
            (Some(variable), None) => std::env::var(variable)
                .map_err(|_| format!("key_env names {variable}, which is not set (or not text)"))?,
            (None, Some(file)) => {
                let path = folder.join(file);
                std::fs::read_to_string(&path).map_err(|error| format!("key_file {}: {error}", path.display()))?
            }
        };
        let key = key.trim();
        // A header is one line; an error of the client's might show what it refuses.
        if key.is_empty() || key.chars().any(|c| !c.is_ascii_graphic()) {
            return Err("the key is empty or holds spaces, line breaks or other characters that no header takes".into());
        }
        Ok(Some(Secret::new(key)))
    }
}

impl GgufEntry {
    pub(crate) fn check(&self) -> Result<(), String> {
        choice(Some(self.temperature), self.top_p)
    }
}

/// How a model may choose its tokens.
fn choice(temperature: Option<f64>, top_p: Option<f64>) -> Result<(), String> {
    if temperature.is_some_and(|temperature| !(0.0..=100.0).contains(&temperature)) {
        return Err("temperature must be 0 or more".into());
    }
    if top_p.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
        return Err("top_p must be above 0 and at most 1".into());
    }
    Ok(())
}

fn user_file() -> Option<PathBuf> {
    etcetera::choose_base_strategy().ok().map(|strategy| strategy.config_dir().join("tilewright").join(FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> (Result<Config, ConfigError>, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(FILE);
        std::fs::write(&path, text).expect("a file");
        (Config::read(&path), folder)
    }

    fn why(text: &str) -> String {
        let (config, _folder) = config(text);
        match config.and_then(|config| config.endpoint("judge").map(|_| ())) {
            Ok(()) => panic!("{text} is taken"),
            Err(error) => error.to_string(),
        }
    }

    const PLAIN: &str = "[endpoints.judge]\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\n";

    #[test]
    fn what_is_not_said_has_a_default() {
        let (config, _folder) = config(PLAIN);
        let config = config.expect("a configuration");
        let (endpoint, key) = config.endpoint("judge").expect("an endpoint");
        assert_eq!((endpoint.max_tokens, endpoint.timeout_s, endpoint.retries), (4096, 300.0, 2));
        assert!(key.is_none() && endpoint.extra.is_empty() && endpoint.temperature.is_none());
    }

    #[test]
    fn mistakes_are_told() {
        for (text, told) in [
            (PLAIN.replace("judge", "other"), "it has other"),
            (String::new(), "it has none"),
            (format!("{PLAIN}temprature = 0.0\n"), "temprature"),
            (format!("{PLAIN}\n[endpoint]\n"), "endpoint"),
            (PLAIN.replace("model = \"m\"\n", ""), "model"),
            (PLAIN.replace("http:", "ftp:"), "http:// or https://"),
            (PLAIN.replace("127", "me:word@127"), "key_env or key_file"),
            (PLAIN.replace("/v1", "/v1?key=word"), "key_env or key_file"),
            (format!("{PLAIN}timeout_s = 0.0\n"), "timeout_s"),
            (format!("{PLAIN}timeout_s = nan\n"), "timeout_s"),
            (format!("{PLAIN}requests_per_minute = 0.0\n"), "requests_per_minute"),
            (format!("{PLAIN}temperature = -0.1\n"), "temperature"),
            (format!("{PLAIN}temperature = nan\n"), "temperature"),
            (format!("{PLAIN}top_p = 1.5\n"), "top_p"),
            (format!("{PLAIN}concurrent = 0\n"), "concurrent"),
            (format!("{PLAIN}price_input = -1.0\n"), "price_input"),
            (format!("{PLAIN}extra = {{ model = \"x\" }}\n"), "extra must not set"),
            (format!("{PLAIN}key_env = \"TILEWRIGHT_NO_SUCH_VARIABLE\"\n"), "not set"),
            (format!("{PLAIN}key_file = \"missing\"\n"), "missing"),
            (format!("{PLAIN}key_env = \"A\"\nkey_file = \"b\"\n"), "not both"),
        ] {
            let why = why(&text);
            assert!(why.contains(told) && !why.contains("word"), "{text}: {why}");
        }
    }

    #[test]
    fn a_key_file_lies_beside_the_configuration_and_its_key_is_not_shown() {
        let (config, folder) = config(&format!("{PLAIN}key_file = \"key\"\n"));
        std::fs::write(folder.path().join("key"), "sk-do-not-show\n").expect("a file");
        let config = config.expect("a configuration");
        let (endpoint, key) = config.endpoint("judge").expect("an endpoint");
        let key = key.expect("a key");
        assert_eq!(key.expose(), "sk-do-not-show");
        assert!(!format!("{config:?} {endpoint:?} {key:?}").contains("sk-do"));
        std::fs::write(folder.path().join("key"), "sk-do\nnot-show").expect("a file");
        let error = config.endpoint("judge").expect_err("two lines");
        assert!(!format!("{error} {error:?}").contains("sk-do"));
    }

    #[test]
    fn a_file_that_was_asked_for_must_be_there() {
        let error = Config::find(Some(Path::new("/nowhere/tilewright.toml"))).expect_err("no file");
        assert!(error.to_string().contains("/nowhere/tilewright.toml"));
    }
}
