//! A server's answer: one JSON document, or a stream of server-sent events with a piece of it each.

use std::io::{BufRead, BufReader, Read};

use serde::Deserialize;

use crate::chat::tell;
use crate::{ChatError, Listener, Piece, Usage};

/// Bytes of a response that are read. A stream has some 250 bytes around each token.
const MAX_RESPONSE: u64 = 4 << 20;
const MAX_STREAM: u64 = 64 << 20;
/// Of one event.
const MAX_LINE: u64 = 4 << 20;

/// What an answer says, as far as it came.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) thoughts: String,
    pub(super) model: Option<String>,
    pub(super) finish_reason: Option<String>,
    pub(super) usage: Option<Usage>,
}

/// How reading ends when it goes wrong.
pub(super) enum ReadError {
    /// The connection, or the time.
    Io(std::io::Error),
    Chat(ChatError),
}

#[derive(Deserialize)]
struct Completion {
    #[serde(default)]
    model: Option<String>,
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Tokens>,
    #[serde(default)]
    error: Option<serde_json::Value>,
}

/// A part of a completion. One without choices carries the usage.
#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Tokens>,
    #[serde(default)]
    error: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default, alias = "delta")]
    message: Content,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct Content {
    #[serde(default)]
    content: Option<String>,
    /// As vLLM, DeepSeek and others give a model's thoughts.
    #[serde(default, alias = "reasoning")]
    reasoning_content: Option<String>,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
    #[serde(default)]
    total_tokens: Option<u64>,
}

impl Tokens {
    fn usage(&self) -> Usage {
        let total = self.total_tokens.unwrap_or(0);
        let input = self.prompt_tokens.unwrap_or_else(|| total.saturating_sub(self.completion_tokens.unwrap_or(0)));
        let output = self.completion_tokens.unwrap_or_else(|| total.saturating_sub(input));
        Usage { input_tokens: input, output_tokens: output, ..Usage::default() }
    }
}

/// All bytes of a body that is no stream.
pub(super) fn body(reader: impl Read) -> Result<Vec<u8>, ReadError> {
    let mut body = Vec::new();
    reader.take(MAX_RESPONSE + 1).read_to_end(&mut body).map_err(ReadError::Io)?;
    if body.len() as u64 > MAX_RESPONSE { Err(ReadError::Chat(ChatError::TooLarge(MAX_RESPONSE))) } else { Ok(body) }
}

/// An answer in one document.
pub(super) fn whole(body: &[u8]) -> Result<Answer, ChatError> {
    let malformed = |why: &str| malformed(why, body);
    let completion: Completion = serde_json::from_slice(body).map_err(|error| malformed(&error.to_string()))?;
    if let Some(error) = completion.error.filter(|error| !error.is_null()) {
        return Err(ChatError::Malformed(error.to_string()));
    }
    let choice = completion.choices.into_iter().next().ok_or_else(|| malformed("it has no choices"))?;
    let thoughts = choice.message.reasoning_content.unwrap_or_default();
    // A model that was cut off, or ended, within its thoughts has said nothing, and that is an answer.
    let silent = (choice.finish_reason.is_some() || !thoughts.is_empty()).then(String::new);
    let text = choice.message.content.or(silent).ok_or_else(|| malformed("its message has no content"))?;
    Ok(Answer {
        text,
        thoughts,
        model: completion.model,
        finish_reason: choice.finish_reason,
        usage: completion.usage.as_ref().map(Tokens::usage),
    })
}

/// An answer that comes in pieces, each told as it comes.
///
/// # Errors
/// [`ChatError::CutOff`] where the stream ends before the server says that the answer does.
pub(super) fn streamed(reader: impl Read, listener: &mut Listener<'_>) -> Result<Answer, ReadError> {
    let mut reader = BufReader::new(reader.take(MAX_STREAM));
    let mut answer = Answer::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line).map_err(ReadError::Io)?;
        if read as u64 == MAX_LINE || reader.get_ref().limit() == 0 {
            return Err(ReadError::Chat(ChatError::TooLarge(MAX_STREAM)));
        }
        if read == 0 {
            break;
        }
        let Some(data) = line.strip_prefix(b"data:") else { continue };
        let data = data.trim_ascii();
        if data == b"[DONE]" {
            return finished(answer);
        }
        if !line.ends_with(b"\n") {
            // The connection broke within an event.
            break;
        }
        answer.add(data, listener).map_err(ReadError::Chat)?;
    }
    match answer.finish_reason {
        Some(_) => finished(answer),
        None => Err(ReadError::Chat(ChatError::CutOff(answer.text.chars().count()))),
    }
}

fn finished(answer: Answer) -> Result<Answer, ReadError> {
    if answer.text.is_empty() && answer.thoughts.is_empty() && answer.finish_reason.is_none() {
        return Err(ReadError::Chat(ChatError::Malformed("the stream has no choices".into())));
    }
    Ok(answer)
}

/// Names what came too: the page of a proxy tells more than where it is no JSON. The client cuts it off.
fn malformed(why: &str, came: &[u8]) -> ChatError {
    ChatError::Malformed(match came.trim_ascii() {
        [] => "it is empty".into(),
        came => format!("{why}: {}", String::from_utf8_lossy(came)),
    })
}

impl Answer {
    fn add(&mut self, data: &[u8], listener: &mut Listener<'_>) -> Result<(), ChatError> {
        let chunk: Chunk = serde_json::from_slice(data).map_err(|error| malformed(&error.to_string(), data))?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            let status = error["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
            return Err(ChatError::Status { status, body: error.to_string() });
        }
        self.model = chunk.model.or(self.model.take());
        self.usage = chunk.usage.as_ref().map(Tokens::usage).or(self.usage);
        let Some(choice) = chunk.choices.into_iter().next() else { return Ok(()) };
        if let Some(thought) = choice.message.reasoning_content.filter(|text| !text.is_empty()) {
            tell(listener, Piece::Thought(&thought))?;
            self.thoughts += &thought;
        }
        if let Some(text) = choice.message.content.filter(|text| !text.is_empty()) {
            tell(listener, Piece::Text(&text))?;
            self.text += &text;
        }
        self.finish_reason = choice.finish_reason.or(self.finish_reason.take());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;

    fn read(text: &[u8]) -> (Result<Answer, ReadError>, String) {
        let mut heard = String::new();
        let answer = streamed(text, &mut |piece| {
            match piece {
                Piece::Text(text) => heard += text,
                Piece::Thought(text) => heard += &format!("({text})"),
                Piece::Reading(_) | Piece::Again(_) => {}
            }
            ControlFlow::Continue(())
        });
        (answer, heard)
    }

    const STREAM: &str = concat!(
        ": a comment\n\n",
        "data: {\"model\": \"m\", \"choices\": [{\"delta\": {\"role\": \"assistant\", \"content\": \"\"}}]}\n\n",
        "data: {\"choices\": [{\"delta\": {\"reasoning_content\": \"hm\"}}]}\r\n\r\n",
        "event: message\ndata: {\"choices\": [{\"delta\": {\"content\": \"a é\"}}]}\n\n",
        "data:{\"choices\": [{\"delta\": {\"content\": \"b\"}, \"finish_reason\": \"length\"}]}\n\n",
        "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 7, \"completion_tokens\": 3}}\n\n",
        "data: [DONE]\n\n",
    );

    #[test]
    fn a_stream_is_told_piece_by_piece_and_put_together() {
        let (answer, heard) = read(STREAM.as_bytes());
        let Ok(answer) = answer else { panic!("no answer") };
        assert_eq!((answer.text.as_str(), answer.thoughts.as_str(), heard.as_str()), ("a éb", "hm", "(hm)a éb"));
        assert_eq!((answer.model.as_deref(), answer.finish_reason.as_deref()), (Some("m"), Some("length")));
        assert_eq!(answer.usage.map(|usage| (usage.input_tokens, usage.output_tokens)), Some((7, 3)));
    }

    #[test]
    fn a_stream_that_is_cut_anywhere_is_no_answer_before_its_end() {
        let end = STREAM.find("\"finish_reason\"").expect("an end");
        for cut in 0..STREAM.len() {
            let Some(part) = STREAM.get(..cut) else { continue };
            match read(part.as_bytes()).0 {
                Ok(answer) => assert!(cut > end && answer.text == "a éb", "cut at {cut}: {answer:?}"),
                Err(ReadError::Chat(ChatError::CutOff(_))) => {}
                Err(_) => panic!("cut at {cut}: another error"),
            }
        }
    }

    #[test]
    fn a_model_that_only_thinks_has_said_nothing() {
        for rest in [r#", "reasoning_content": "hm"}"#, r#"}, "finish_reason": "length""#] {
            let body = format!("{{\"choices\": [{{\"message\": {{\"content\": null{rest}}}]}}");
            let answer = whole(body.as_bytes()).expect("an answer");
            assert_eq!(answer.text, "", "{body}");
        }
        assert!(whole(br#"{"choices": [{"message": {"content": null}}]}"#).is_err());
    }

    #[test]
    fn a_listener_may_break_it_off() {
        let mut heard = 0;
        let answer = streamed(STREAM.as_bytes(), &mut |_| {
            heard += 1;
            if heard == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(matches!(answer, Err(ReadError::Chat(ChatError::Stopped))) && heard == 2);
    }

    #[test]
    fn what_is_no_event_of_a_completion_is_told() {
        for (text, cause) in [
            (&b"data: [DONE]\n\n"[..], "no choices"),
            (b"data: {\"choices\": 3}\n\n", "no chat completion"),
            (b"data: \xff\xfe\n\n", "no chat completion"),
            (b"data: {\"error\": {\"message\": \"overloaded\", \"code\": 503}}\n\n", "503"),
            (b"", "broke off"),
        ] {
            let Err(ReadError::Chat(error)) = read(text).0 else { panic!("{text:?} is taken") };
            assert!(error.to_string().contains(cause), "{error}");
        }
    }
}
