use std::fmt;

/// A key. It is shown nowhere: `{:?}` gives a placeholder, and there is no way to serialise it.
#[derive(Clone)]
pub struct Secret(String);

const HIDDEN: &str = "(hidden)";

impl Secret {
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// The key itself, for the one header that carries it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// The text without the key, should a server have repeated it.
    pub(crate) fn hide_in(&self, text: &str) -> String {
        if self.0.is_empty() { text.into() } else { text.replace(&self.0, HIDDEN) }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(HIDDEN)
    }
}
