//! Settings of an embedding model on another server.

use std::time::Duration;

use clap::Args;

use super::InvalidSetting;
use super::values::parse_seconds;
use crate::models::EmbeddingServer;
use lodestone_types::Secret;

/// Settings of an embedding model on another server, used instead of a local one.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct EmbeddingSettings {
    /// Base URL of an embedding model on another server, without `/embeddings`, for example
    /// http://127.0.0.1:11434/v1 [default: none, the model of model-dir].
    #[arg(long, env = "LODESTONE_EMBEDDING_URL", value_name = "URL")]
    pub embedding_url: Option<String>,
    /// Model name on the embedding server; required with embedding-url.
    #[arg(long, env = "LODESTONE_EMBEDDING_MODEL", value_name = "NAME")]
    pub embedding_model: Option<String>,
    /// API key for the embedding server [default: none].
    #[arg(long, env = "LODESTONE_EMBEDDING_KEY", value_name = "KEY", hide_env_values = true)]
    pub embedding_key: Option<Secret>,
    /// Dimension of the vectors from the embedding server, 1 to 3024 [default: determined at
    /// startup by asking the server, which must be reachable then].
    #[arg(long, env = "LODESTONE_EMBEDDING_DIMENSION", value_name = "N")]
    pub embedding_dimension: Option<usize>,
    /// Prefix that the model expects before queries, for example "query: ".
    #[arg(
        long,
        env = "LODESTONE_EMBEDDING_QUERY_PREFIX",
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub embedding_query_prefix: String,
    /// Prefix that the model expects before documents. Changing it counts as changing the model.
    #[arg(
        long,
        env = "LODESTONE_EMBEDDING_PASSAGE_PREFIX",
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub embedding_passage_prefix: String,
    /// Maximum number of texts in one request to the embedding server, 1 to 256.
    #[arg(long, env = "LODESTONE_EMBEDDING_BATCH", value_name = "TEXTS", default_value_t = 64)]
    pub embedding_batch: usize,
    /// Timeout of a request for documents to the embedding server, in seconds.
    #[arg(
        long,
        env = "LODESTONE_EMBEDDING_TIMEOUT",
        value_name = "SECONDS",
        default_value = "60",
        value_parser = parse_seconds
    )]
    pub embedding_timeout: Duration,
    /// Timeout of a request for a query to the embedding server, in seconds; then the search
    /// uses keywords only.
    #[arg(
        long,
        env = "LODESTONE_EMBEDDING_QUERY_TIMEOUT",
        value_name = "SECONDS",
        default_value = "5",
        value_parser = parse_seconds
    )]
    pub embedding_query_timeout: Duration,
}

impl EmbeddingSettings {
    /// Returns the embedding server, or `None` if none is configured. An empty text counts as not
    /// set.
    ///
    /// # Errors
    /// A model without the URL of its server, or an invalid value.
    pub fn server(&self) -> Result<Option<EmbeddingServer>, InvalidSetting> {
        let filled = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let model = filled(&self.embedding_model);
        let Some(url) = filled(&self.embedding_url) else {
            let problem = "is required with embedding-model".to_owned();
            return match model {
                Some(_) => Err(InvalidSetting { name: "embedding-url", problem }),
                None => Ok(None),
            };
        };
        let server = EmbeddingServer {
            url,
            model: model.unwrap_or_default(),
            key: self.embedding_key.clone().filter(|key| !key.is_empty()),
            dimension: self.embedding_dimension,
            query_prefix: self.embedding_query_prefix.clone(),
            passage_prefix: self.embedding_passage_prefix.clone(),
            batch: self.embedding_batch,
            timeout: self.embedding_timeout,
            query_timeout: self.embedding_query_timeout,
        };
        match server.validate() {
            Ok(()) => Ok(Some(server)),
            Err((name, problem)) => Err(InvalidSetting { name, problem }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn nonsense_is_named_and_the_key_stays_hidden() {
        let usual = Settings::new("data".into(), "models".into()).embedding;
        assert_eq!(usual.server(), Ok(None));
        let named = |change: fn(&mut EmbeddingSettings)| {
            let mut settings = EmbeddingSettings {
                embedding_url: Some("http://127.0.0.1:1/v1".to_owned()),
                embedding_model: Some("small".to_owned()),
                embedding_key: Some(Secret::new("sk-hidden")),
                ..usual.clone()
            };
            change(&mut settings);
            settings.server().map_err(|error| error.name)
        };
        let server = named(|_| ()).unwrap().unwrap();
        assert_eq!((server.batch, server.dimension), (64, None));
        assert!(!format!("{server:?}").contains("hidden"));
        assert_eq!(named(|all| all.embedding_url = None), Err("embedding-url"));
        let with_password = |all: &mut EmbeddingSettings| {
            all.embedding_url = Some("http://me:pw@host/v1".to_owned());
        };
        assert_eq!(named(with_password), Err("embedding-url"));
        assert_eq!(named(|all| all.embedding_model = None), Err("embedding-model"));
        let of_two_lines =
            |all: &mut EmbeddingSettings| all.embedding_key = Some(Secret::new("a\nb"));
        assert_eq!(named(of_two_lines), Err("embedding-key"));
        assert_eq!(named(|all| all.embedding_dimension = Some(0)), Err("embedding-dimension"));
        assert_eq!(named(|all| all.embedding_batch = 257), Err("embedding-batch"));
        let long = |all: &mut EmbeddingSettings| all.embedding_query_prefix = "x".repeat(1001);
        assert_eq!(named(long), Err("embedding-query-prefix"));
    }
}
