//! One conversation turn with an OpenAI-compatible server, within a deadline, a number of retries and a bound on bytes.

use std::io::Read;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use ureq::Agent;
use ureq::http::{Response, StatusCode};

use crate::{Config, ConfigError, Endpoint, Secret};

/// Bytes of a response that are read; a longer one is no answer.
const MAX_RESPONSE: u64 = 4 << 20;
/// Bytes of a server's error that are told.
const MAX_TOLD: usize = 300;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Between two tries, whatever the server asks for.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// A client of one endpoint. Cheap to share between threads.
#[derive(Debug, Clone)]
pub struct Client {
    name: String,
    endpoint: Endpoint,
    key: Option<Secret>,
    agent: Agent,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    pub role: &'static str,
    pub content: String,
}

/// What the model said.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    pub text: String,
    /// As the server gives it; the asked one if it does not.
    pub model: String,
    /// The answer was cut off at `max_tokens`.
    pub truncated: bool,
    pub tokens: Option<u64>,
}

/// Why there is no answer. Never shows the key.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ChatError {
    #[error("no answer within {0} s")]
    Timeout(f64),
    #[error("no connection: {0}")]
    Connection(String),
    #[error("the server answered {status}: {body}")]
    Status { status: u16, body: String },
    #[error("the answer has more than {MAX_RESPONSE} bytes")]
    TooLarge,
    #[error("the answer is no chat completion: {0}")]
    Malformed(String),
}

impl Message {
    pub fn system(content: impl Into<String>) -> Self {
        Self { role: "system", content: content.into() }
    }

    pub fn user(content: impl Into<String>) -> Self {
        Self { role: "user", content: content.into() }
    }
}

#[derive(Deserialize)]
struct Completion {
    #[serde(default)]
    model: Option<String>,
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Choice {
    message: Content,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    content: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    total_tokens: Option<u64>,
}

impl Client {
    /// A client of the endpoint with this name.
    pub fn new(config: &Config, name: &str) -> Result<Self, ConfigError> {
        let (endpoint, key) = config.endpoint(name)?;
        // Statuses are read here, and a redirect would take the question to a server that nobody named.
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("tilewright/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        Ok(Self { name: name.into(), endpoint: endpoint.clone(), key, agent })
    }

    /// The endpoint's name in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn model(&self) -> &str {
        &self.endpoint.model
    }

    /// Says the messages and waits for the answer. `further` fields go into the request where `extra` does not set them.
    pub fn chat(&self, messages: &[Message], further: &Map<String, Value>) -> Result<Reply, ChatError> {
        let deadline = Instant::now() + self.endpoint.timeout();
        let request = self.request(messages, further).to_string();
        let mut pause = FIRST_PAUSE;
        for left in (0..=self.endpoint.retries).rev() {
            let (error, asked) = match self.once(&request, deadline) {
                Ok(reply) => return Ok(reply),
                Err(failed) => failed,
            };
            let wait = asked.unwrap_or(pause).min(MAX_PAUSE);
            if left == 0 || !error.may_pass() || Instant::now() + wait >= deadline {
                return Err(error);
            }
            tracing::debug!(endpoint = self.name, %error, "asking again");
            std::thread::sleep(wait);
            pause *= 2;
        }
        Err(self.timeout())
    }

    fn request(&self, messages: &[Message], further: &Map<String, Value>) -> Value {
        let mut request = further.clone();
        request.extend(self.endpoint.extra.clone());
        request.insert("model".into(), json!(self.endpoint.model));
        request.insert("messages".into(), json!(messages));
        request.insert("max_tokens".into(), json!(self.endpoint.max_tokens));
        if let Some(temperature) = self.endpoint.temperature {
            request.insert("temperature".into(), json!(temperature));
        }
        Value::Object(request)
    }

    /// One try; a failure comes with the pause that the server asks for.
    fn once(&self, request: &str, deadline: Instant) -> Result<Reply, (ChatError, Option<Duration>)> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err((self.timeout(), None));
        }
        let url = format!("{}/chat/completions", self.endpoint.base_url.trim_end_matches('/'));
        let mut call = self.agent.post(url).header("content-type", "application/json");
        if let Some(key) = &self.key {
            call = call.header("authorization", format!("Bearer {}", key.expose()));
        }
        let call = call.config().timeout_global(Some(left)).build();
        let response = call.send(request).map_err(|error| (self.failed(error), None))?;
        let status = response.status();
        let asked = pause_asked(&response);
        let body = self.read(response).map_err(|error| (error, None))?;
        if status != StatusCode::OK {
            let body = self.hidden(&String::from_utf8_lossy(&body)).chars().take(MAX_TOLD).collect();
            return Err((ChatError::Status { status: status.as_u16(), body }, asked));
        }
        self.understand(&body).map_err(|error| (error, None))
    }

    fn read(&self, response: Response<ureq::Body>) -> Result<Vec<u8>, ChatError> {
        let mut body = Vec::new();
        let mut reader = response.into_body().into_reader().take(MAX_RESPONSE + 1);
        reader.read_to_end(&mut body).map_err(|error| self.failed(ureq::Error::from(error)))?;
        if body.len() as u64 > MAX_RESPONSE { Err(ChatError::TooLarge) } else { Ok(body) }
    }

    fn understand(&self, body: &[u8]) -> Result<Reply, ChatError> {
        let malformed = |why: String| ChatError::Malformed(self.hidden(&why));
        let completion: Completion = serde_json::from_slice(body).map_err(|error| malformed(error.to_string()))?;
        let choice = completion.choices.into_iter().next().ok_or_else(|| malformed("it has no choices".into()))?;
        let text = choice.message.content.ok_or_else(|| malformed("its message has no content".into()))?;
        Ok(Reply {
            text: self.hidden(&text),
            model: completion.model.map_or_else(|| self.endpoint.model.clone(), |model| self.hidden(&model)),
            truncated: choice.finish_reason.as_deref() == Some("length"),
            tokens: completion.usage.and_then(|usage| usage.total_tokens),
        })
    }

    fn failed(&self, error: ureq::Error) -> ChatError {
        match error {
            ureq::Error::Timeout(_) => self.timeout(),
            other => ChatError::Connection(self.hidden(&other.to_string())),
        }
    }

    fn timeout(&self) -> ChatError {
        ChatError::Timeout(self.endpoint.timeout_s)
    }

    fn hidden(&self, text: &str) -> String {
        self.key.as_ref().map_or_else(|| text.into(), |key| key.hide_in(text))
    }
}

impl ChatError {
    /// Whether the same request may be answered a little later.
    fn may_pass(&self) -> bool {
        match self {
            Self::Connection(_) => true,
            Self::Status { status, .. } => matches!(status, 408 | 429 | 500..=599),
            _ => false,
        }
    }
}

fn pause_asked(response: &Response<ureq::Body>) -> Option<Duration> {
    let text = response.headers().get("retry-after")?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}
