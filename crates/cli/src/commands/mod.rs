//! One file a command.

pub(crate) mod ask;
pub(crate) mod audit;
pub(crate) mod bench;
pub(crate) mod controls;
pub(crate) mod doctor;
pub(crate) mod executor;
pub(crate) mod generate;
pub(crate) mod repl;
pub(crate) mod rule;
pub(crate) mod run;
pub(crate) mod sanitize;
pub(crate) mod schema;
pub(crate) mod screen;
pub(crate) mod search;
pub(crate) mod session;
pub(crate) mod stream;
pub(crate) mod tree;
pub(crate) mod verify;

/// The caller asked for something that cannot be: exit status 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    UsageError(message.into()).into()
}

/// 2 for usage, 3 for whatever else kept a command from its answer.
pub(crate) fn exit_code(error: &anyhow::Error) -> u8 {
    if error.is::<UsageError>() { 2 } else { 3 }
}
