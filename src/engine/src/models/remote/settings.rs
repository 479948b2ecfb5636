//! The description of an embedding server, as plain data.

use std::time::Duration;

use lodestone_fetch::is_base_url;
use lodestone_types::Secret;
use lodestone_types::limits::VECTOR_DIMENSION_MAX;

/// Maximum texts per request: what common servers accept, and small enough for the answer to fit.
pub(crate) const BATCH_MAX: usize = 256;
const PREFIX_CHARS_MAX: usize = 1000;

/// An embedding server of the operator's choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingServer {
    /// The URL without `/embeddings`, for example `http://127.0.0.1:11434/v1`.
    pub url: String,
    /// The name of the model on that server.
    pub model: String,
    /// Sent as a bearer token, if given.
    pub key: Option<Secret>,
    /// Dimension of the vectors; `None` asks the server.
    pub dimension: Option<usize>,
    /// Prepended to queries.
    pub query_prefix: String,
    /// Prepended to documents.
    pub passage_prefix: String,
    /// Texts per request, 1 to 256.
    pub batch: usize,
    /// Time limit of one request with documents.
    pub timeout: Duration,
    /// Time limit of a query, including its second attempt.
    pub query_timeout: Duration,
}

impl EmbeddingServer {
    /// Validates what can be checked without contacting the server.
    ///
    /// # Errors
    /// The name of the invalid setting, and the problem.
    pub(crate) fn validate(&self) -> Result<(), (&'static str, String)> {
        if !is_base_url(&self.url) {
            let problem = "must be http://HOST/PATH or https://HOST/PATH, without credentials";
            return Err(("embedding-url", problem.to_owned()));
        }
        if self.model.trim().is_empty() {
            return Err(("embedding-model", "is required with embedding-url".to_owned()));
        }
        if self.key.as_ref().is_some_and(|key| !key.is_header_value()) {
            let problem = "must be printable ASCII without spaces".to_owned();
            return Err(("embedding-key", problem));
        }
        if self.dimension.is_some_and(|width| !(1..=VECTOR_DIMENSION_MAX).contains(&width)) {
            return Err(("embedding-dimension", format!("must be 1 to {VECTOR_DIMENSION_MAX}")));
        }
        if !(1..=BATCH_MAX).contains(&self.batch) {
            return Err(("embedding-batch", format!("must be 1 to {BATCH_MAX}")));
        }
        let prefixes = [
            ("embedding-query-prefix", &self.query_prefix),
            ("embedding-passage-prefix", &self.passage_prefix),
        ];
        let long = prefixes.iter().find(|(_, text)| text.chars().count() > PREFIX_CHARS_MAX);
        match long {
            Some((name, _)) => {
                Err((name, format!("must be at most {PREFIX_CHARS_MAX} characters")))
            }
            None => Ok(()),
        }
    }
}
