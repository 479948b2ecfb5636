//! Models: `GET /v1/models`.

use schemars::JsonSchema;
use serde::Serialize;

use super::MODEL_NAME;
use crate::error::ApiError;
use crate::request::{Field, Fields, Request};

static MODEL: Field =
    Field::path("model", MODEL_NAME, "Name of the model, with `/` encoded as `%2F`.");

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

/// Anything that can be given as `model`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ModelView {
    /// Name of the model or tenant.
    pub id: String,
    /// Always `model`.
    pub object: &'static str,
    /// Creation time of the tenant in epoch seconds; 0 for an embedding model or a reranker.
    pub created: u64,
    /// Always `lodestone`.
    pub owned_by: &'static str,
    /// `embedding`, for embeddings and rerank; `reranker`, for rerank; `knowledge`, a tenant, for
    /// chat completions.
    pub kind: &'static str,
    /// Dimension of its vectors; null if it produces none.
    pub dimension: Option<usize>,
}

/// Response of `GET /v1/models`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ModelList {
    /// Always `list`.
    pub object: &'static str,
    /// Installed models, followed by the tenants that the key may access.
    pub data: Vec<ModelView>,
}
