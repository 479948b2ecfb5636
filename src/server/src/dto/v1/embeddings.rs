//! Embeddings: `POST /v1/embeddings`.

use schemars::JsonSchema;
use serde::Serialize;

use super::{MODEL_NAME, TENANT_HEADER};
use crate::error::ApiError;
use crate::request::fields::missing;
use crate::request::{Field, Fields, Inputs, Kind, Request};
use lodestone_types::{TenantId, limits};

static INPUT: Field = Field::body(
    "input",
    Kind::Inputs {
        max: limits::EMBEDDING_INPUTS_MAX,
        tokens_max: limits::EMBEDDING_IDS_MAX,
        has_tokens: true,
    },
    "A text or at most 2,048 texts, as strings or as token ids of the model's vocabulary, at \
     most 8,192 per text.",
)
.required();
static MODEL: Field = Field::body(
    "model",
    MODEL_NAME,
    "Name of the embedding model: the installed one or the tenant's; if absent, the tenant's, \
     else the installed one. Other names get 404.",
);
static ENCODING_FORMAT: Field = Field::body(
    "encoding_format",
    Kind::Choice { words: &["float", "base64"], default: Some("float"), is_exact: true },
    "`float`: numbers; `base64`: little-endian 32-bit floats, base64-encoded.",
);
static DIMENSIONS: Field = Field::body(
    "dimensions",
    Kind::Integer { min: 1, max: limits::VECTOR_DIMENSION_MAX as u64, default: None },
    "Dimension of the vectors: the model's own, or a smaller one if the model was trained for it.",
);
static TRUNCATE: Field = Field::body(
    "truncate",
    Kind::Boolean { default: true },
    "Whether a text that exceeds the model's window is truncated; if false, it is refused.",
);
static INPUT_TYPE: Field = Field::body(
    "input_type",
    Kind::Choice {
        words: &["document", "query", "passage", "search_document", "search_query"],
        default: Some("document"),
        is_exact: true,
    },
    "Role of the texts, for models that expect a prefix before documents or queries. `passage` \
     and `search_document` are aliases of `document`, and `search_query` of `query`.",
);

/// Input of `POST /v1/embeddings`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Embed {
    /// The texts to embed.
    pub input: Inputs,
    /// Name of the model.
    pub model: Option<String>,
    /// Whether to encode vectors in base64.
    pub is_base64: bool,
    /// Width to shorten the vectors to; `None` keeps the model's width.
    pub dimensions: Option<usize>,
    /// Whether to truncate texts that are too long, instead of refusing them.
    pub truncate: bool,
    /// Whether the texts are queries rather than documents.
    pub is_query: bool,
    /// The tenant that the request is made for.
    pub tenant: Option<TenantId>,
}

impl Request for Embed {
    const FIELDS: &'static [&'static Field] =
        &[&INPUT, &MODEL, &ENCODING_FORMAT, &DIMENSIONS, &TRUNCATE, &INPUT_TYPE, &TENANT_HEADER];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        Ok(Self {
            input: fields.inputs(&INPUT)?.ok_or_else(|| missing(&INPUT))?,
            model: fields.text(&MODEL)?.filter(|name| !name.is_empty()),
            is_base64: fields.choice(&ENCODING_FORMAT)? == Some("base64"),
            dimensions: fields.integer(&DIMENSIONS)?.map(|width| width as usize),
            truncate: fields.boolean(&TRUNCATE)?,
            is_query: matches!(fields.choice(&INPUT_TYPE)?, Some("query" | "search_query")),
            tenant: fields.tenant(&TENANT_HEADER)?,
        })
    }
}

/// Vector in the requested encoding.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum VectorView {
    /// List of numbers.
    Numbers(Vec<f32>),
    /// Little-endian 32-bit floats, base64-encoded.
    Base64(String),
}

/// Vector of one text.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EmbeddingView {
    /// Always `embedding`.
    pub object: &'static str,
    /// Position of the text.
    pub index: usize,
    /// Vector of unit length.
    pub embedding: VectorView,
}

/// Token counts of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EmbeddingUsage {
    /// Number of tokens read by the model.
    pub prompt_tokens: usize,
    /// Equal to `prompt_tokens`.
    pub total_tokens: usize,
}

/// Response of `POST /v1/embeddings`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EmbeddingList {
    /// Always `list`.
    pub object: &'static str,
    /// One vector per text, in the order of the texts.
    pub data: Vec<EmbeddingView>,
    /// Name of the model.
    pub model: String,
    /// Number of tokens read by the model.
    pub usage: EmbeddingUsage,
    /// Positions of the texts that were truncated to the model's window.
    pub truncated: Vec<usize>,
}
