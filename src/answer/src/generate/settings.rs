//! The choice of a generator, as plain data.

use lodestone_fetch::is_base_url;
use lodestone_types::Secret;

/// A generator chosen by the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratorSettings {
    /// The URL before `/chat/completions`, such as `http://127.0.0.1:11434/v1`.
    pub base_url: String,
    /// API key, sent as a bearer token.
    pub api_key: Option<Secret>,
    /// Name of the model on that server.
    pub model: String,
    /// Size of the context window, shared by prompt and answer, in tokens; 2048 to 2,000,000.
    pub context_tokens: usize,
}

/// Default context window in tokens. Small local servers often provide less than the model
/// supports, and truncate prompts without an error.
pub const CONTEXT_TOKENS_DEFAULT: usize = 8192;
/// Enough for the rules, a question and one source.
const CONTEXT_TOKENS_MIN: usize = 2048;
const CONTEXT_TOKENS_MAX: usize = 2_000_000;

impl GeneratorSettings {
    /// Checks the settings without contacting the generator.
    ///
    /// # Errors
    /// The invalid setting, and the problem with it.
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
