//! Keys of the operator that do not show themselves.

use std::fmt;

/// A key that does not show itself in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Whether there is no key at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The key itself, for what carries or compares it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether a header can carry it: printable ASCII without spaces.
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
