use serde::{Deserialize, Serialize};
use tilewright_cell::{CellError, Death};
use tilewright_contract::Finding;

/// Why a stage gave no result. Each variant says whose fault it is.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// What the job was given is at fault: the candidate's file or, for the oracle, the problem's.
    #[error("{0}")]
    Candidate(Box<Failure>),
    /// The job ended without an answer: out of time or memory, or a crash.
    #[error("the {kind} job {death}")]
    Death {
        /// Which job.
        kind: &'static str,
        /// How it ended.
        death: Death,
        /// The head of what it printed.
        output: String,
    },
    /// The job answered something that is no answer to its request. From a hostile job that is the candidate's doing.
    #[error("the {kind} job gave a malformed answer: {why}")]
    Malformed {
        /// Which job.
        kind: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A handler of ours failed: never the candidate's fault.
    #[error("the {kind} job failed inside: {0}", kind = .0.kind)]
    Internal(Box<Failure>),
    /// The Python side or the sandbox: never the candidate's fault.
    #[error(transparent)]
    Cell(#[from] CellError),
    /// The process that holds a problem's data has ended: never the candidate's fault, and not the problem's.
    #[error("the process that holds the problem's data ended: {0}")]
    Lost(String),
    /// Reading or writing files on this side: never the candidate's fault.
    #[error("failed to {what}: {error}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        error: std::io::Error,
    },
}

impl StageError {
    pub(crate) fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |error| Self::Io { what, error }
    }
}

/// An error document of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// `exception`, `compile_error`, `untraceable`, `unsupported`, `problem`, `too-large`, `no-device`, `weights`, …
    pub kind: String,
    /// The Python exception's type.
    #[serde(rename = "type", default)]
    pub exception: String,
    pub message: String,
    /// 1-based line in the candidate's file (for the oracle: in the problem's).
    #[serde(default)]
    pub line: Option<u32>,
    /// Frames of the candidate's file, outermost first, one a line.
    #[serde(default)]
    pub traceback: String,
    /// What a trace had seen before it failed.
    #[serde(skip)]
    pub findings: Vec<Finding>,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            // What is said of a problem's file begins with the place: `problem.py:3: …`.
            Some(line) if !self.message.contains(&format!(":{line}: ")) => write!(f, "line {line}: {}", self.message),
            _ => f.write_str(&self.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_said_once() {
        let shown = |message: &str, line| {
            let failure = serde_json::json!({"kind": "problem", "message": message, "line": line});
            serde_json::from_value::<Failure>(failure).map(|failure| failure.to_string()).expect("a failure")
        };
        assert_eq!(shown("no such name", Some(3)), "line 3: no such name");
        assert_eq!(shown("a/problem.py:3: not UTF-8 text", Some(3)), "a/problem.py:3: not UTF-8 text");
        assert_eq!(shown("a/problem.py is empty", None), "a/problem.py is empty");
    }
}
