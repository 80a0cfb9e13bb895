//! Conversations that were recorded: the same answers again, without a model.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::chat::tell;
use crate::{Chat, ChatError, Listener, Message, Piece, Reply, Sampling, Usage};

/// The log in the folder of a run, which holds the replies among other things.
pub const REPLIES: &str = "log.jsonl";

/// One line of a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Number of the answer within its run; where it is missing, the number of the line, from 0.
    #[serde(default)]
    pub sample: Option<u64>,
    /// What the model said, word by word.
    pub reply: String,
    #[serde(default)]
    pub truncated: bool,
    #[serde(default)]
    pub usage: Usage,
}

/// A recording as a model: it gives the answer with the asked number.
#[derive(Debug)]
pub struct Replay {
    name: String,
    replies: BTreeMap<u64, Recorded>,
}

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("failed to read the recording {}: {error}", path.display())]
    Read { path: PathBuf, error: std::io::Error },
    #[error("{}:{line}: no recorded reply: {why}", path.display())]
    Line { path: PathBuf, line: usize, why: String },
    #[error("there are no replies in {}", .0.display())]
    Empty(PathBuf),
}

impl Replay {
    /// Reads a file of JSON lines, or the one in a run's folder. A last line that a kill tore is left out.
    pub fn open(name: &str, path: &Path) -> Result<Self, ReplayError> {
        let path = if path.is_dir() { path.join(REPLIES) } else { path.to_owned() };
        let text = std::fs::read_to_string(&path).map_err(|error| ReplayError::Read { path: path.clone(), error })?;
        let mut replies = BTreeMap::new();
        for (number, line) in text.split_inclusive('\n').enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            match recorded(line) {
                Ok(Some(recorded)) => {
                    replies.insert(recorded.sample.unwrap_or(number as u64), recorded);
                }
                Ok(None) => {}
                Err(_) if !line.ends_with('\n') => break,
                Err(error) => return Err(ReplayError::Line { path, line: number + 1, why: error.to_string() }),
            }
        }
        if replies.is_empty() { Err(ReplayError::Empty(path)) } else { Ok(Self { name: name.into(), replies }) }
    }
}

/// A line's reply; none where it is about something else.
fn recorded(line: &str) -> Result<Option<Recorded>, serde_json::Error> {
    let value: serde_json::Value = serde_json::from_str(line)?;
    if value.get("event").is_some_and(|event| event != "answer" || value.get("reply").is_none()) {
        return Ok(None);
    }
    serde_json::from_value(value).map(Some)
}

impl Chat for Replay {
    fn name(&self) -> &str {
        &self.name
    }

    fn say(&self, _: &[Message], sampling: Sampling, listener: &mut Listener<'_>) -> Result<Reply, ChatError> {
        let recorded = self.replies.get(&sampling.sample);
        let recorded = recorded.ok_or(ChatError::NotRecorded(sampling.sample))?;
        for line in recorded.reply.split_inclusive('\n') {
            tell(listener, Piece::Text(line))?;
        }
        Ok(Reply {
            text: recorded.reply.clone(),
            model: self.name.clone(),
            truncated: recorded.truncated,
            usage: recorded.usage,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;

    fn open(text: &str) -> Result<Replay, ReplayError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(REPLIES), text).unwrap();
        Replay::open("recorded", folder.path())
    }

    fn said(replay: &Replay, sample: u64) -> Result<String, ChatError> {
        let mut heard = String::new();
        let reply = replay.say(&[], Sampling { sample, seed: 0 }, &mut |piece| {
            if let Piece::Text(text) = piece {
                heard += text;
            }
            ControlFlow::Continue(())
        })?;
        assert_eq!(heard, reply.text);
        Ok(reply.text)
    }

    #[test]
    fn answers_come_by_their_number_in_any_order() {
        let replay = open("{\"sample\": 4, \"reply\": \"four\\nlines\", \"event\": \"answer\"}\n{\"reply\": \"one\"}\n{\"event\": \"verdict\"}\n{\"rep").unwrap();
        assert_eq!((said(&replay, 4).unwrap().as_str(), said(&replay, 1).unwrap().as_str()), ("four\nlines", "one"));
        assert!(said(&replay, 0).unwrap_err().to_string().contains("answer 0 is not recorded"));
    }

    #[test]
    fn what_is_no_recording_is_told() {
        assert!(matches!(open(""), Err(ReplayError::Empty(_))));
        assert!(matches!(open("{\"reply\": 3}\n{\"reply\": \"x\"}\n"), Err(ReplayError::Line { line: 1, .. })));
        assert!(matches!(Replay::open("x", Path::new("/nowhere")), Err(ReplayError::Read { .. })));
    }
}
