use std::io::ErrorKind;
use std::path::Path;

use tilewright_verify::LogError;

/// Why something could not be read, run or written. All but `Io` are for the caller to put right.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    #[error("{0}")]
    Usage(String),
    #[error("failed to {0}: {1}")]
    Io(String, std::io::Error),
}

impl BenchError {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    /// Why the log of a run cannot be opened.
    pub(crate) fn log(error: LogError) -> Self {
        match error {
            LogError::Io(name, why) => Self::io("open", Path::new(&name))(why),
            LogError::Foreign(name, line) if line > 1 => Self::Usage(format!(
                "{name}:{line}: the line is damaged: delete it, and what it said is found out again; or give another folder"
            )),
            other => Self::Usage(other.to_string()),
        }
    }

    /// For `map_err` of a file operation: `read`, `write`.
    pub(crate) fn io(what: &str, path: &Path) -> impl Fn(std::io::Error) -> Self {
        let what = format!("{what} {}", path.display());
        move |error| match error.kind() {
            ErrorKind::NotFound => Self::Usage(format!("failed to {what}: there is no such file or folder")),
            ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
                Self::Usage(format!("failed to {what}: it is no folder"))
            }
            ErrorKind::IsADirectory => Self::Usage(format!("failed to {what}: it is a folder")),
            ErrorKind::PermissionDenied => Self::Usage(format!("failed to {what}: it is not permitted")),
            _ => Self::Io(what.clone(), error),
        }
    }
}
