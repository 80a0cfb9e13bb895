use std::path::Path;

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

    /// For `map_err` of a file operation: `read`, `write`.
    pub(crate) fn io(what: &str, path: &Path) -> impl Fn(std::io::Error) -> Self {
        let what = format!("{what} {}", path.display());
        move |error| match error.kind() {
            std::io::ErrorKind::NotFound => Self::Usage(format!("failed to {what}: there is no such file or folder")),
            _ => Self::Io(what.clone(), error),
        }
    }
}
