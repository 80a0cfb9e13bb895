//! Standard output: the one way in which commands give their data.

use std::fmt::Display;
use std::io::{ErrorKind, Write, stdout};

/// Standard output takes no more.
#[derive(Debug, thiserror::Error)]
#[error("failed to write to standard output: {0}")]
pub(crate) struct OutputError(#[from] std::io::Error);

impl OutputError {
    /// Whether the reader has gone, as `head` does when it has seen enough. That is no news to anybody.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.kind() == ErrorKind::BrokenPipe
    }
}

/// Writes text as it is.
pub(crate) fn text(text: impl Display) -> Result<(), OutputError> {
    let mut out = stdout().lock();
    write!(out, "{text}")?;
    Ok(out.flush()?)
}

/// Writes text and ends the line.
pub(crate) fn line(line: impl Display) -> Result<(), OutputError> {
    text(format_args!("{line}\n"))
}

/// Writes a document as indented JSON.
pub(crate) fn json(document: &(impl serde::Serialize + ?Sized)) -> anyhow::Result<()> {
    Ok(line(serde_json::to_string_pretty(document)?)?)
}
