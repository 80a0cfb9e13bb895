//! JSON lines that survive a kill at any moment.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

use serde_json::Value;

/// A file of JSON objects, one a line, each written as a whole before the next. Locked while it is open.
#[derive(Debug)]
pub struct Log {
    file: File,
    /// What is to be done before the next line is written.
    end: End,
}

/// How the file ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Clean,
    /// All of the last line is there but the line break.
    Unfinished,
    /// A kill or a full disk tore the last line, which begins at this byte.
    Torn(u64),
}

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("{0} is in use by another run")]
    InUse(String),
    #[error("failed to open {0}: {1}")]
    Io(String, std::io::Error),
    #[error("{0}:{1}: not a line of an earlier run: give another file, or one that does not exist")]
    Foreign(String, usize),
}

impl Log {
    /// Opens or creates the file, and gives the objects in it. A last line torn by a kill is left out, and goes when
    /// the next one is written; until then nothing in the file changes.
    pub fn open(path: &Path) -> Result<(Self, Vec<Value>), LogError> {
        let io = |error| LogError::Io(path.display().to_string(), error);
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(io)?;
        file.try_lock().map_err(|_| LogError::InUse(path.display().to_string()))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(io)?;
        let (found, end) = objects(path, &text)?;
        Ok((Self { file, end }, found))
    }

    /// The objects in a file that others may be writing: without a last line that is not whole.
    pub fn look(path: &Path) -> Result<Vec<Value>, LogError> {
        let text = std::fs::read(path).map_err(|error| LogError::Io(path.display().to_string(), error))?;
        Ok(objects(path, &text)?.0)
    }

    /// Appends one object, which must hold no line break: as `serde_json::to_string` writes it. Where that fails, the next one
    /// takes its place.
    pub fn append(&mut self, line: &str) -> std::io::Result<()> {
        self.write(|file| file.write_all(format!("{line}\n").as_bytes()))
    }

    fn write(&mut self, line: impl FnOnce(&mut File) -> std::io::Result<()>) -> std::io::Result<()> {
        match self.end {
            End::Clean => {}
            End::Unfinished => self.file.write_all(b"\n")?,
            End::Torn(start) => self.file.set_len(start)?,
        }
        let start = self.file.metadata()?.len();
        self.end = End::Torn(start);
        line(&mut self.file)?;
        self.end = End::Clean;
        Ok(())
    }
}

fn objects(path: &Path, text: &[u8]) -> Result<(Vec<Value>, End), LogError> {
    let (mut found, mut end, mut start) = (Vec::new(), End::Clean, 0);
    for (number, line) in text.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let finished = line.ends_with(b"\n");
        match serde_json::from_slice::<Value>(line) {
            Ok(object) if object.is_object() => {
                found.push(object);
                end = if finished { End::Clean } else { End::Unfinished };
            }
            Err(_) if !finished && line.starts_with(b"{") => end = End::Torn(start),
            _ => return Err(LogError::Foreign(path.display().to_string(), number + 1)),
        }
        start += line.len() as u64;
    }
    Ok((found, end))
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
            let looked = Log::look(&path).unwrap();
            let (mut log, before) = Log::open(&path).unwrap();
            assert_eq!(looked, before, "cut at {cut}");
            log.append("{\"c\":3}").unwrap();
            log.append("{\"d\":4}").unwrap();
            drop(log);
            let (_, after) = Log::open(&path).unwrap();
            assert_eq!(after[..before.len()], before);
            assert_eq!(
                after[before.len()..],
                [serde_json::json!({"c": 3}), serde_json::json!({"d": 4})],
                "cut at {cut}"
            );
            // A line counts once all of it but the line break is there.
            let complete = usize::from(cut >= 7) + usize::from(cut + 1 >= whole.len());
            assert_eq!(before.len(), complete, "cut at {cut}");
        }
    }

    #[test]
    fn a_line_that_could_not_be_written_as_a_whole_makes_room_for_the_next() {
        let folder = tempfile::tempdir().unwrap();
        for before in ["", "{\"a\":1}\n", "{\"a\":1}", "{\"a\":1}\n{\"b"] {
            let path = folder.path().join("log");
            std::fs::write(&path, before).unwrap();
            let (mut log, mut expected) = Log::open(&path).unwrap();
            for _ in 0..2 {
                let full = |file: &mut File| file.write_all(b"{\"half\":").and(Err(std::io::Error::other("full")));
                assert!(log.write(full).is_err());
            }
            log.append("{\"c\":3}").unwrap();
            drop(log);
            expected.push(serde_json::json!({"c": 3}));
            assert_eq!(Log::open(&path).unwrap().1, expected, "{before}");
        }
    }

    #[test]
    fn a_file_of_something_else_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        for (text, line) in
            [("[workspace]\nx = 1\n", 1), ("{\"a\":1}\nnotes\n", 2), ("notes", 1), ("{\n  \"a\": 1\n}\n", 1)]
        {
            let path = folder.path().join("file");
            std::fs::write(&path, text).unwrap();
            assert!(matches!(Log::open(&path), Err(LogError::Foreign(_, at)) if at == line), "{text}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
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
