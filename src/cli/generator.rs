//! Which generator writes answers, as flags, variables and keys of the file.

use clap::Args;
use lodestone_engine::answer::generate::{CONTEXT_TOKENS_DEFAULT, GeneratorSettings, Secret};
use lodestone_engine::settings::InvalidSetting;

/// A generator behind an interface like OpenAI's.
#[derive(Debug, Clone, Default, Args)]
pub struct GeneratorOptions {
    /// What writes answers: the URL before `/chat/completions`, for example
    /// http://127.0.0.1:11434/v1 [default: none, answers are extracted].
    #[arg(long, env = "LODESTONE_LLM_BASE_URL")]
    pub llm_base_url: Option<String>,
    /// Its key, if it wants one.
    #[arg(long, env = "LODESTONE_LLM_API_KEY", hide_env_values = true)]
    pub llm_api_key: Option<String>,
    /// The name of its model.
    #[arg(long, env = "LODESTONE_LLM_MODEL")]
    pub llm_model: Option<String>,
    /// Tokens that its prompt and answer may have together [default: 8192].
    #[arg(long, env = "LODESTONE_LLM_CONTEXT_TOKENS")]
    pub llm_context_tokens: Option<usize>,
    /// Whether answers are extracted while it fails; else they are 503 [default: true].
    #[arg(long, env = "LODESTONE_LLM_FALLBACK")]
    pub llm_fallback: Option<bool>,
    /// Whether it reads what is ingested too and adds to the knowledge graph [default: false].
    #[arg(long, env = "LODESTONE_LLM_GRAPH")]
    pub llm_graph: Option<bool>,
}

impl GeneratorOptions {
    /// These, and where they are silent the `other` ones. An empty text is silent, as the variable
    /// of a container often is.
    pub fn over(&self, other: &Self) -> Self {
        let text = |own: &Option<String>, other: &Option<String>| {
            let own = own.clone().filter(|text| !text.is_empty());
            own.or_else(|| other.clone().filter(|text| !text.is_empty()))
        };
        Self {
            llm_base_url: text(&self.llm_base_url, &other.llm_base_url),
            llm_api_key: text(&self.llm_api_key, &other.llm_api_key),
            llm_model: text(&self.llm_model, &other.llm_model),
            llm_context_tokens: self.llm_context_tokens.or(other.llm_context_tokens),
            llm_fallback: self.llm_fallback.or(other.llm_fallback),
            llm_graph: self.llm_graph.or(other.llm_graph),
        }
    }

    /// The generator, if there is one, and whether answers are extracted while it fails.
    ///
    /// # Errors
    /// A model without the URL of its server.
    pub fn settings(self) -> Result<(Option<GeneratorSettings>, bool), InvalidSetting> {
        let fallback = self.llm_fallback.unwrap_or(true);
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        let (base_url, model) = (filled(self.llm_base_url), filled(self.llm_model));
        let Some(base_url) = base_url else {
            let problem = "is needed beside llm-model".to_owned();
            return match model {
                Some(_) => Err(InvalidSetting { name: "llm-base-url", problem }),
                None => Ok((None, fallback)),
            };
        };
        let settings = GeneratorSettings {
            base_url,
            api_key: filled(self.llm_api_key).map(Secret::new),
            model: model.unwrap_or_default(),
            context_tokens: self.llm_context_tokens.unwrap_or(CONTEXT_TOKENS_DEFAULT),
        };
        Ok((Some(settings), fallback))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_win_and_empty_texts_are_silent() {
        let text = |text: &str| Some(text.to_owned());
        let flags = GeneratorOptions {
            llm_base_url: text(""),
            llm_model: text("large"),
            ..Default::default()
        };
        let file = GeneratorOptions {
            llm_base_url: text("http://localhost:1/v1"),
            llm_model: text("small"),
            llm_fallback: Some(false),
            ..Default::default()
        };
        let (llm, fallback) = flags.over(&file).settings().unwrap();
        let llm = llm.unwrap();
        assert_eq!((llm.model.as_str(), llm.context_tokens), ("large", CONTEXT_TOKENS_DEFAULT));
        assert_eq!((llm.base_url.as_str(), fallback), ("http://localhost:1/v1", false));
        assert_eq!(flags.settings().unwrap_err().name, "llm-base-url");
        assert_eq!(GeneratorOptions::default().settings(), Ok((None, true)));
    }
}
