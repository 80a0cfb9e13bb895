//! One question to an OpenAI-compatible server, within a deadline, a number of retries and a bound on bytes.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use ureq::Agent;
use ureq::http::{Response, StatusCode};

use super::answer::{self, Answer, ReadError};
use super::pace::Pace;
use crate::chat::tell;
use crate::secret::Veil;
use crate::{Chat, ChatError, Config, ConfigError, Endpoint, Listener, Message, Piece, Reply, Sampling, Secret, Usage};

/// Bytes of a server's error that are told.
const MAX_TOLD: usize = 300;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Between two tries, whatever the server asks for.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// A client of one endpoint. Cheap to share between threads.
#[derive(Debug, Clone)]
pub struct Client {
    name: String,
    endpoint: Endpoint,
    key: Option<Secret>,
    agent: Agent,
    pace: Arc<Pace>,
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
        let pace = Pace::new(endpoint.requests_per_minute, endpoint.tokens_per_minute, endpoint.concurrent);
        Ok(Self { name: name.into(), endpoint: endpoint.clone(), key, agent, pace: Arc::new(pace) })
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
        self.ask(self.request(messages, further), &mut |_| ControlFlow::Continue(()))
    }

    /// Tries until there is an answer, no time, or no hope.
    fn ask(&self, request: Value, listener: &mut Listener<'_>) -> Result<Reply, ChatError> {
        let request = request.to_string();
        let permit = self.pace.permit();
        let start = Instant::now();
        let deadline = start + self.endpoint.timeout();
        let mut pause = FIRST_PAUSE;
        for left in (0..=self.endpoint.retries).rev() {
            let (error, asked) = match self.once(&request, deadline, listener) {
                Ok(answer) => {
                    let reply = self.reply(answer, &request, start.elapsed());
                    self.pace.spent(reply.usage.tokens());
                    return Ok(reply);
                }
                Err(failed) => failed,
            };
            let wait = asked.unwrap_or(pause).min(MAX_PAUSE);
            if left == 0 || !error.may_pass() {
                return Err(error);
            }
            if Instant::now() + wait >= deadline {
                return Err(match asked {
                    Some(pause) => ChatError::TooLongPause { failed: Box::new(error), pause },
                    None => error,
                });
            }
            if asked.is_some() {
                self.pace.pause(wait);
            }
            tracing::debug!(endpoint = self.name, %error, "asking again");
            tell(listener, Piece::Again(&error.to_string()))?;
            std::thread::sleep(wait);
            pause *= 2;
        }
        drop(permit);
        Err(self.timeout())
    }

    fn request(&self, messages: &[Message], further: &Map<String, Value>) -> Value {
        let endpoint = &self.endpoint;
        let mut request = further.clone();
        request.extend(endpoint.extra.clone());
        request.insert("model".into(), json!(endpoint.model));
        request.insert("messages".into(), json!(messages));
        request.insert(endpoint.max_tokens_field.name().into(), json!(endpoint.max_tokens));
        for (field, value) in [("temperature", endpoint.temperature), ("top_p", endpoint.top_p)] {
            if let Some(value) = value {
                request.insert(field.into(), json!(value));
            }
        }
        if let Some(effort) = &endpoint.reasoning_effort {
            request.insert("reasoning_effort".into(), json!(effort));
        }
        Value::Object(request)
    }

    /// One try; a failure comes with the pause that the server asks for.
    fn once(
        &self,
        request: &str,
        deadline: Instant,
        listener: &mut Listener<'_>,
    ) -> Result<Answer, (ChatError, Option<Duration>)> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err((self.timeout(), None));
        }
        let mut call = self.agent.post(self.url()).header("content-type", "application/json");
        if let Some(key) = &self.key {
            call = call.header("authorization", format!("Bearer {}", key.expose()));
        }
        let call = call.config().timeout_global(Some(left)).build();
        let response = call.send(request).map_err(|error| (self.failed(error), None))?;
        let status = response.status();
        let asked = pause_asked(&response);
        let hint = self.hint(&response);
        let stream = header(&response, "content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        let reader = response.into_body().into_reader();
        let answer = if status != StatusCode::OK {
            answer::body(reader).and_then(|body| {
                let body: String = self.hidden(String::from_utf8_lossy(&body).trim()).chars().take(MAX_TOLD).collect();
                let body = [body, hint].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
                Err(ReadError::Chat(ChatError::Status { status: status.as_u16(), body }))
            })
        } else if stream {
            let mut veil = Veil::new(self.key.as_ref(), listener);
            let answer = answer::streamed(reader, &mut |piece| veil.hear(piece));
            if answer.is_ok() {
                veil.end();
            }
            answer
        } else {
            answer::body(reader).and_then(|body| answer::whole(&body).map_err(ReadError::Chat))
        };
        answer.map_err(|error| match error {
            ReadError::Io(error) => (self.failed(ureq::Error::from(error)), None),
            ReadError::Chat(error) => (self.without_key(error), asked),
        })
    }

    /// What a status means where the server does not say it in a way that helps.
    fn hint(&self, response: &Response<ureq::Body>) -> String {
        match response.status().as_u16() {
            300..=399 => {
                let place = self.hidden(header(response, "location").unwrap_or("another place"));
                format!("it points to {place}, and is not followed: let base_url be the address that answers")
            }
            404 | 405 => format!("asked at {}, which is base_url and /chat/completions", self.url()),
            _ => String::new(),
        }
    }

    fn url(&self) -> String {
        format!("{}/chat/completions", self.endpoint.base_url.trim_end_matches('/'))
    }

    fn reply(&self, answer: Answer, request: &str, spent: Duration) -> Reply {
        let mut usage = answer.usage.unwrap_or_else(|| Usage {
            input_tokens: crate::estimated_tokens(request),
            output_tokens: crate::estimated_tokens(&answer.text) + crate::estimated_tokens(&answer.thoughts),
            estimated: true,
            ..Usage::default()
        });
        usage.seconds = spent.as_secs_f64();
        usage.cost = self.endpoint.cost(&usage);
        Reply {
            text: self.hidden(&answer.text),
            model: answer.model.map_or_else(|| self.endpoint.model.clone(), |model| self.hidden(&model)),
            truncated: answer.finish_reason.as_deref() == Some("length"),
            usage,
        }
    }

    fn failed(&self, error: ureq::Error) -> ChatError {
        match error {
            ureq::Error::Timeout(_) => self.timeout(),
            other => ChatError::Connection(format!("{}: {}", self.endpoint.base_url, self.hidden(&other.to_string()))),
        }
    }

    fn timeout(&self) -> ChatError {
        ChatError::Timeout(self.endpoint.timeout())
    }

    fn without_key(&self, error: ChatError) -> ChatError {
        match error {
            ChatError::Malformed(why) => ChatError::Malformed(self.hidden(&why).chars().take(MAX_TOLD).collect()),
            ChatError::Status { status, body } => {
                ChatError::Status { status, body: self.hidden(&body).chars().take(MAX_TOLD).collect() }
            }
            other => other,
        }
    }

    fn hidden(&self, text: &str) -> String {
        self.key.as_ref().map_or_else(|| text.into(), |key| key.hide_in(text))
    }
}

impl Chat for Client {
    fn name(&self) -> &str {
        &self.name
    }

    fn say(&self, messages: &[Message], sampling: Sampling, listener: &mut Listener<'_>) -> Result<Reply, ChatError> {
        let mut further = Map::new();
        if self.endpoint.stream {
            further.insert("stream_options".into(), json!({"include_usage": true}));
        }
        let mut request = self.request(messages, &further);
        if self.endpoint.stream {
            request["stream"] = json!(true);
        }
        if self.endpoint.send_seed {
            // Servers read it into 32 or 64 bits, with a sign.
            request["seed"] = json!(sampling.seed >> 33);
        }
        self.ask(request, listener)
    }

    fn question_tokens(&self) -> Option<u64> {
        self.endpoint.context_tokens.map(|tokens| tokens.saturating_sub(u64::from(self.endpoint.max_tokens)))
    }
}

fn header<'a>(response: &'a Response<ureq::Body>, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

fn pause_asked(response: &Response<ureq::Body>) -> Option<Duration> {
    header(response, "retry-after")?.trim().parse().ok().map(Duration::from_secs)
}
