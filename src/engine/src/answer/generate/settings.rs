//! Which generator is asked, as plain data.

use std::fmt;

use ureq::http::Uri;

/// A generator of the operator's choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratorSettings {
    /// The URL before `/chat/completions`, for example `http://127.0.0.1:11434/v1`.
    pub base_url: String,
    /// Sent as a bearer token, if given.
    pub api_key: Option<Secret>,
    /// The name by which the server there knows the model.
    pub model: String,
    /// Tokens that prompt and answer may have together; 2048 to 2,000,000.
    pub context_tokens: usize,
}

/// A key that does not show itself in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Tokens of the window where the operator names no other. Small local servers often give less than
/// the model could have, and cut prompts without an error.
pub const CONTEXT_TOKENS_DEFAULT: usize = 8192;
/// Rules, a question and one source fit in.
const CONTEXT_TOKENS_MIN: usize = 2048;
const CONTEXT_TOKENS_MAX: usize = 2_000_000;

impl Secret {
    /// Hides `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Whether there is no key at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The key itself, for the one header that carries it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Whether a header can carry it: printable ASCII without spaces.
    pub(crate) fn is_header_value(&self) -> bool {
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

/// Whether a text is an address over http or https without credentials and without a query.
pub(crate) fn is_base_url(text: &str) -> bool {
    text.parse::<Uri>().is_ok_and(|uri| {
        let host = uri.authority().is_some_and(|host| !host.as_str().contains('@'));
        host && matches!(uri.scheme_str(), Some("http" | "https")) && uri.query().is_none()
    })
}

impl GeneratorSettings {
    /// Checks what can be checked without asking anybody.
    ///
    /// # Errors
    /// The setting that makes no sense, and why.
    pub fn validate(&self) -> Result<(), (&'static str, String)> {
        if !is_base_url(&self.base_url) {
            let problem = "must be http://HOST/PATH or https://HOST/PATH, without credentials";
            return Err(("llm-base-url", problem.to_owned()));
        }
        if self.model.trim().is_empty() {
            return Err(("llm-model", "is needed beside llm-base-url".to_owned()));
        }
        if self.api_key.as_ref().is_some_and(|key| !key.is_header_value()) {
            return Err(("llm-api-key", "must be printable ASCII without spaces".to_owned()));
        }
        if !(CONTEXT_TOKENS_MIN..=CONTEXT_TOKENS_MAX).contains(&self.context_tokens) {
            let problem = format!("must be {CONTEXT_TOKENS_MIN} to {CONTEXT_TOKENS_MAX}");
            return Err(("llm-context-tokens", problem));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_named_and_keys_stay_hidden() {
        let good = GeneratorSettings {
            base_url: "http://127.0.0.1:11434/v1".to_owned(),
            api_key: Some(Secret::new("sk-hidden")),
            model: "small".to_owned(),
            context_tokens: CONTEXT_TOKENS_DEFAULT,
        };
        assert_eq!(good.validate(), Ok(()));
        assert!(!format!("{good:?}").contains("hidden"));
        for wrong in ["", "localhost", "ftp://host/v1", "http://me:pw@host/v1", "http://h/?k=1"] {
            let settings = GeneratorSettings { base_url: wrong.to_owned(), ..good.clone() };
            assert_eq!(settings.validate().unwrap_err().0, "llm-base-url", "{wrong}");
        }
        let settings = GeneratorSettings { model: " ".to_owned(), ..good.clone() };
        assert_eq!(settings.validate().unwrap_err().0, "llm-model");
        let settings = GeneratorSettings { api_key: Some(Secret::new("a\nb")), ..good.clone() };
        assert_eq!(settings.validate().unwrap_err().0, "llm-api-key");
        let settings = GeneratorSettings { context_tokens: 100, ..good };
        assert_eq!(settings.validate().unwrap_err().0, "llm-context-tokens");
    }
}
