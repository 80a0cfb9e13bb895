/// Why a candidate could not be screened at all. Always the candidate's fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScreenError {
    #[error("the file holds no code")]
    Empty,
    #[error("the file has {bytes} bytes; a candidate may have {limit} at most")]
    TooLarge { bytes: usize, limit: usize },
    #[error("line {line}: the file is not text: it holds a NUL byte")]
    NulByte { line: u32 },
    #[error("line {line}: the file is not UTF-8 (byte {offset}){hint}")]
    NotUtf8 { line: u32, offset: usize, hint: &'static str },
    #[error("line {line}: the file declares the encoding `{name}`; only UTF-8 is read")]
    Encoding { line: u32, name: String },
    #[error("the code is nested too deeply: {what}")]
    TooDeep { what: String },
    #[error("line {line}, column {column}: {message}")]
    Syntax { line: u32, column: u32, message: String },
    /// The thread that analyses the file could not be started: not the candidate's fault.
    #[error("failed to start the screening thread: {0}")]
    Thread(String),
}

impl ScreenError {
    /// 1-based line in the candidate, where there is one.
    pub fn line(&self) -> Option<u32> {
        match self {
            Self::NulByte { line }
            | Self::NotUtf8 { line, .. }
            | Self::Encoding { line, .. }
            | Self::Syntax { line, .. } => Some(*line),
            Self::Empty | Self::TooLarge { .. } | Self::TooDeep { .. } | Self::Thread(_) => None,
        }
    }
}
