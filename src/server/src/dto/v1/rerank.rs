//! Reranking: `POST /v1/rerank`.

use schemars::JsonSchema;
use serde::Serialize;

use super::{MODEL_NAME, TENANT_HEADER};
use crate::error::ApiError;
use crate::request::fields::missing;
use crate::request::{Field, Fields, Inputs, Kind, Request};
use lodestone_types::{TenantId, limits};

static MODEL: Field = Field::body(
    "model",
    MODEL_NAME,
    "Name of the reranker, or of the embedding model, whose scores are cosines. Absent: the \
     reranker, if one is installed. Other names get 404.",
);
static QUERY: Field = Field::body(
    "query",
    Kind::Text { chars_max: limits::QUERY_CHARS_MAX, is_filled: true },
    "Query text.",
)
.required();
static DOCUMENTS: Field = Field::body(
    "documents",
    Kind::Inputs { max: limits::RERANK_DOCUMENTS_MAX, tokens_max: 0, has_tokens: false },
    "At most 1,000 texts, or objects with a member `text`.",
)
.required();
static TOP_N: Field = Field::body(
    "top_n",
    Kind::Integer { min: 1, max: limits::RERANK_DOCUMENTS_MAX as u64, default: None },
    "Maximum number of results; all documents if absent.",
);
static RETURN_DOCUMENTS: Field = Field::body(
    "return_documents",
    Kind::Boolean { default: false },
    "Whether results include the texts of their documents.",
);

/// Input of `POST /v1/rerank`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rerank {
    /// Name of the model.
    pub model: Option<String>,
    /// The query.
    pub query: String,
    /// The documents.
    pub documents: Vec<String>,
    /// Maximum number of results; `None` returns all documents.
    pub top_n: Option<usize>,
    /// Whether results include the texts of the documents.
    pub return_documents: bool,
    /// The tenant that the request is made for.
    pub tenant: Option<TenantId>,
}

impl Request for Rerank {
    const FIELDS: &'static [&'static Field] =
        &[&MODEL, &QUERY, &DOCUMENTS, &TOP_N, &RETURN_DOCUMENTS, &TENANT_HEADER];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let query = fields.required_text(&QUERY)?;
        let documents = match fields.inputs(&DOCUMENTS)? {
            Some(Inputs::Texts(texts)) => texts,
            _ => return Err(missing(&DOCUMENTS)),
        };
        Ok(Self {
            model: fields.text(&MODEL)?.filter(|name| !name.is_empty()),
            query,
            documents,
            top_n: fields.integer(&TOP_N)?.map(|count| count as usize),
            return_documents: fields.boolean(&RETURN_DOCUMENTS)?,
            tenant: fields.tenant(&TENANT_HEADER)?,
        })
    }
}

/// Document of a rerank request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DocumentView {
    /// Text of the document.
    pub text: String,
}

/// Relevance of one document.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RankedView {
    /// Position of the document in the request.
    pub index: usize,
    /// Score: 0 to 1 from a reranker; from an embedding model the cosine similarity, -1 to 1.
    pub relevance_score: f32,
    /// Document, if requested; otherwise null.
    pub document: Option<DocumentView>,
}

/// Response of `POST /v1/rerank`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RankedList {
    /// Id of the request.
    pub id: String,
    /// Always `list`.
    pub object: &'static str,
    /// Name of the model that computed the scores.
    pub model: String,
    /// Results, most relevant first; equal scores in the order of the request.
    pub results: Vec<RankedView>,
}
