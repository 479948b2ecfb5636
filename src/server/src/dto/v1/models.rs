//! Models: `GET /v1/models`.

use schemars::JsonSchema;
use serde::Serialize;

use super::MODEL_NAME;
use crate::error::ApiError;
use crate::request::{Field, Fields, Request};

static MODEL: Field = Field::path("model", MODEL_NAME, "Its name; `/` in it is written as `%2F`.");

/// Input of `GET /v1/models/{model}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetModel {
    /// Name of the model.
    pub model: String,
}

impl Request for GetModel {
    const FIELDS: &'static [&'static Field] = &[&MODEL];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        Ok(Self { model: fields.required_text(&MODEL)? })
    }
}

/// Something that can be named as a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ModelView {
    /// Its name.
    pub id: String,
    /// Always `model`.
    pub object: &'static str,
    /// When the tenant was created, epoch seconds; 0 for a model of vectors or of relevance.
    pub created: u64,
    /// Always `lodestone`.
    pub owned_by: &'static str,
    /// `embedding`: for embeddings and rerank; `reranker`: for rerank; `knowledge`: a tenant, for
    /// chat completions.
    pub kind: &'static str,
    /// Numbers in a vector; null where it makes none.
    pub dimension: Option<usize>,
}

/// Answer to `GET /v1/models`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ModelList {
    /// Always `list`.
    pub object: &'static str,
    /// The installed models, then the tenants that the key reaches.
    pub data: Vec<ModelView>,
}
