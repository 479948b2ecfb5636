//! The operator's keys, protected from being printed.

use std::fmt;

/// A key that is not revealed by `Debug`, and so not in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Whether the key is empty, that is, not set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the key itself, for code that transmits or compares it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether the key fits in an HTTP header: printable ASCII without spaces.
    pub fn is_header_value(&self) -> bool {
        self.0.chars().all(|c| c.is_ascii_graphic())
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
