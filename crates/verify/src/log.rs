//! JSON lines that survive a kill at any moment.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

use serde_json::Value;

/// A file of JSON documents, one a line, each written as a whole before the next. Locked while it is open.
#[derive(Debug)]
pub struct Log {
    file: File,
}

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("{0} is in use by another run")]
    InUse(String),
    #[error("failed to open {0}: {1}")]
    Io(String, std::io::Error),
}

impl Log {
    /// Opens or creates the file, and gives the documents in it. A line torn by a kill is left out.
    pub fn open(path: &Path) -> Result<(Self, Vec<Value>), LogError> {
        let name = || path.display().to_string();
        let io = |error| LogError::Io(name(), error);
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(io)?;
        file.try_lock().map_err(|_| LogError::InUse(name()))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(io)?;
        let lines = text.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        if text.last().is_some_and(|&last| last != b'\n') {
            // The next line must not continue the torn one.
            file.write_all(b"\n").map_err(io)?;
        }
        Ok((Self { file }, lines))
    }

    /// Appends one document, which must hold no line break: as `serde_json::to_string` writes it.
    pub fn append(&mut self, line: &str) -> std::io::Result<()> {
        self.file.write_all(format!("{line}\n").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_at_any_byte_loses_the_torn_line_alone() {
        let folder = tempfile::tempdir().unwrap();
        let whole = "{\"a\":1}\n{\"b\":\"é\"}\n";
        for cut in 0..=whole.len() {
            let path = folder.path().join(cut.to_string());
            std::fs::write(&path, &whole.as_bytes()[..cut]).unwrap();
            let (mut log, before) = Log::open(&path).unwrap();
            log.append("{\"c\":3}").unwrap();
            drop(log);
            let (_, after) = Log::open(&path).unwrap();
            assert_eq!(after[..before.len()], before);
            assert_eq!(after[before.len()..], [serde_json::json!({"c": 3})], "cut at {cut}");
            // A line counts once all of it but the line break is there.
            let complete = usize::from(cut >= 7) + usize::from(cut + 1 >= whole.len());
            assert_eq!(before.len(), complete, "cut at {cut}");
        }
    }

    #[test]
    fn two_runs_cannot_share_a_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let (_log, _) = Log::open(&path).unwrap();
        assert!(matches!(Log::open(&path), Err(LogError::InUse(_))));
    }
}
