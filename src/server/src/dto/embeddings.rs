//! Client-supplied vectors (docs/api.md, "Your own vectors").

use std::collections::{BTreeMap, HashSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::dto::inputs::{
    FILE_ID_BODY, SUB_TENANT_BODY, SUB_TENANT_QUERY, TENANT_BODY, TENANT_QUERY, body_scope,
    query_scope, source_id,
};
use crate::dto::search_warning::SearchWarning;
use crate::dto::upload::Status;
use crate::error::{ApiError, Location};
use crate::request::fields::{missing, wrong};
use crate::request::{Field, Fields, Kind, Request, Vectors};
use lodestone_engine::EngineError;
use lodestone_engine::query::{QueryError, VectorParts};
use lodestone_types::{Filter, Metadata, Scope, SourceId, limits};

static ROWS: Field = Field::body(
    "embeddings",
    Kind::Rows,
    "1 to 2,000 vectors of the same dimension, from 1 to 3,024; all values must be finite.",
)
.required();
static NAMED_ROWS: Field = Field::body(
    "embeddings",
    Kind::NamedRows,
    "New vectors by chunk id: 1 to 2,000 entries of one batch.",
)
.required();
static QUERIES: Field =
    Field::body("embeddings", Kind::RowOrRows, "Query vector, or list of 1 to 100 query vectors.")
        .required();
static CHUNK_IDS: Field = Field::body(
    "chunk_ids",
    Kind::Texts { min: 1, max: limits::CHUNK_IDS_MAX },
    "Chunk ids: your own ones or `{batch_id}_{index}`.",
)
.required();
static IDS: Field = Field::body(
    "ids",
    Kind::Texts { min: 1, max: limits::VECTOR_ROWS_MAX },
    "Your own chunk id for each row, following the rules of source ids; unique in the sub-tenant.",
)
.anywhere();
static ROW_METADATA: Field = Field::body(
    "metadata",
    Kind::MetadataRows,
    "One map or `null` per row, each at most 64 KiB and 8 levels deep; keys have at most 128 \
     characters.",
);
static FILTER: Field = Field::body(
    "filter",
    Kind::Filter,
    "Filter on vector metadata: equality, lists (any of), $gt, $in and others.",
);
static WITH_METADATA: Field = Field::body(
    "with_metadata",
    Kind::Boolean { default: false },
    "Whether entries include `metadata`.",
);
static WITH_VECTORS: Field = Field::body(
    "with_vectors",
    Kind::Boolean { default: false },
    "Whether entries include `embedding`.",
);
static LIMIT: Field = Field::body(
    "limit",
    Kind::Integer { min: 1, max: limits::LISTING_PAGE_MAX as u64, default: Some(100) },
    "Maximum number of vectors per page.",
);
static CURSOR: Field = Field::body(
    "cursor",
    Kind::Text { chars_max: 8192, is_filled: false },
    "`next_cursor` of the previous page.",
);
static MAX_CHUNKS: Field = Field::body(
    "max_chunks",
    Kind::Integer { min: 1, max: limits::VECTOR_RESULTS_MAX as u64, default: Some(10) },
    "Maximum number of results.",
);

/// Input of `POST /upload/upload_embeddings`.
#[derive(Debug, Clone, PartialEq)]
pub struct UploadEmbeddings {
    /// Destination scope.
    pub scope: Scope,
    /// Id of the batch; generated when `None`.
    pub file_id: Option<SourceId>,
    /// The vectors to store.
    pub vectors: Vectors,
    /// One chunk id per row; derived when `None`.
    pub ids: Option<Vec<SourceId>>,
    /// Metadata of each row.
    pub metadata: Option<Vec<Option<Metadata>>>,
}

impl Request for UploadEmbeddings {
    const FIELDS: &'static [&'static Field] =
        &[&TENANT_QUERY, &SUB_TENANT_QUERY, &ROWS, &FILE_ID_BODY, &IDS, &ROW_METADATA];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = query_scope(fields)?;
        let file_id = source_id(fields, &FILE_ID_BODY)?;
        let vectors = fields.vectors(&ROWS)?;
        let ids = fields.source_ids(&IDS)?;
        if let Some(ids) = &ids {
            let (given, rows) = (ids.len(), vectors.len());
            if given != rows {
                let problem = format!("has {given} entries for {rows} rows");
                return Err(ApiError::field("count_mismatch", Location::Body, IDS.name, &problem));
            }
            let mut seen = HashSet::with_capacity(given);
            if let Some(twice) = ids.iter().find(|id| !seen.insert(id.as_str())) {
                let problem = format!("contains {:?} twice", twice.as_str());
                return Err(ApiError::field("duplicate_id", Location::Body, IDS.name, &problem));
            }
        }
        let metadata = fields.metadata_of_items(&ROW_METADATA, vectors.len())?;
        let metadata = metadata.iter().any(Option::is_some).then_some(metadata);
        Ok(Self { scope, file_id, vectors, ids, metadata })
    }
}

/// Input of `PATCH /upload/update_embeddings`.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateEmbeddings {
    /// Scope addressed.
    pub scope: Scope,
    /// The new vectors with their chunk ids, in request order and without repetitions.
    pub vectors: Vectors,
}

impl Request for UpdateEmbeddings {
    const FIELDS: &'static [&'static Field] = &[&TENANT_QUERY, &SUB_TENANT_QUERY, &NAMED_ROWS];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = query_scope(fields)?;
        let vectors = fields.vectors(&NAMED_ROWS)?.each_name_once(&NAMED_ROWS)?;
        Ok(Self { scope, vectors })
    }
}

/// Input of operations on chunk ids: `DELETE /embeddings/delete` and
/// `POST /embeddings/retrieve_by_ids`.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedChunks {
    /// Scope addressed.
    pub scope: Scope,
    /// The ids as sent; one that is not a valid chunk id is treated as unknown.
    pub chunk_ids: Vec<String>,
}

impl Request for NamedChunks {
    const FIELDS: &'static [&'static Field] = &[&TENANT_BODY, &SUB_TENANT_BODY, &CHUNK_IDS];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = body_scope(fields)?;
        let chunk_ids = fields.texts(&CHUNK_IDS)?.ok_or_else(|| missing(&CHUNK_IDS))?;
        Ok(Self { scope, chunk_ids })
    }
}

/// Input of `POST /embeddings/search`.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchEmbeddings {
    /// Scope to search.
    pub scope: Scope,
    /// The query vectors.
    pub queries: Vectors,
    /// Maximum number of results.
    pub max_chunks: usize,
    /// Condition on the metadata of vectors.
    pub filter: Filter,
    /// Optional parts to include with each result.
    pub parts: VectorParts,
}

impl Request for SearchEmbeddings {
    const FIELDS: &'static [&'static Field] = &[
        &TENANT_BODY, &SUB_TENANT_BODY, &QUERIES, &MAX_CHUNKS, &FILTER, &WITH_METADATA,
        &WITH_VECTORS,
    ];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = body_scope(fields)?;
        let max_chunks = fields.integer(&MAX_CHUNKS)?.unwrap_or(10) as usize;
        let queries = fields.vectors(&QUERIES)?;
        let (filter, parts) = (vector_filter(fields)?, vector_parts(fields)?);
        let results = queries.len() * max_chunks;
        if parts != VectorParts::default() && results > limits::CHUNK_IDS_MAX {
            let problem = format!(
                "times the number of query vectors is {results}; with with_metadata or \
                 with_vectors it must be at most {}",
                limits::CHUNK_IDS_MAX
            );
            return Err(wrong(&MAX_CHUNKS, Location::Body, &problem));
        }
        Ok(Self { scope, queries, max_chunks, filter, parts })
    }
}

fn vector_filter(fields: &mut Fields) -> Result<Filter, ApiError> {
    let filter = fields.filter(&FILTER)?;
    let parsed = lodestone_storage::filter::parse_for_vectors(filter.as_ref());
    Ok(parsed.map_err(|error| EngineError::from(QueryError::Filter(error)))?)
}

fn vector_parts(fields: &mut Fields) -> Result<VectorParts, ApiError> {
    let metadata = fields.boolean(&WITH_METADATA)?;
    Ok(VectorParts { metadata, vector: fields.boolean(&WITH_VECTORS)? })
}

/// Input of `POST /embeddings/scroll`.
#[derive(Debug, Clone, PartialEq)]
pub struct ScrollEmbeddings {
    /// Scope to list.
    pub scope: Scope,
    /// Condition on the metadata of vectors.
    pub filter: Filter,
    /// Maximum number of vectors per page.
    pub limit: usize,
    /// The cursor returned with the previous page.
    pub cursor: Option<String>,
    /// Optional parts to include with each vector.
    pub parts: VectorParts,
}

impl Request for ScrollEmbeddings {
    const FIELDS: &'static [&'static Field] =
        &[&TENANT_BODY, &SUB_TENANT_BODY, &FILTER, &LIMIT, &CURSOR, &WITH_METADATA, &WITH_VECTORS];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = body_scope(fields)?;
        let filter = vector_filter(fields)?;
        let limit = fields.integer(&LIMIT)?.unwrap_or(100) as usize;
        let cursor = fields.text(&CURSOR)?;
        Ok(Self { scope, filter, limit, cursor, parts: vector_parts(fields)? })
    }
}

/// Response of `upload_embeddings`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UploadedEmbeddings {
    /// Id of the batch.
    pub file_id: String,
    /// Human-readable message.
    pub message: String,
    /// Always `true`.
    pub success: bool,
    /// Chunk ids in row order.
    pub chunk_ids: Vec<String>,
    /// Equal to `file_id`.
    pub batch_id: String,
    /// Always `success`, because rows are searchable when the call returns.
    pub status: Status,
    /// Whether an existing batch was replaced.
    pub overwritten: bool,
}

/// Response of `update_embeddings`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UpdatedEmbeddings {
    /// Id of the batch.
    pub file_id: String,
    /// Human-readable message.
    pub message: String,
    /// Always `true`.
    pub success: bool,
    /// Equal to `file_id`.
    pub batch_id: String,
    /// Chunk ids in request order.
    pub chunk_ids: Vec<String>,
    /// Length of `chunk_ids`.
    pub updated_count: usize,
}

/// Response of `embeddings/delete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeletedEmbeddings {
    /// Number of `true` values in `status`.
    pub total_deleted: usize,
    /// Whether each chunk id existed.
    pub status: BTreeMap<String, bool>,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
}

/// Vector with its score.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ScoredChunk {
    /// Chunk id.
    pub chunk_id: String,
    /// Cosine similarity; with the metric `dot` the dot product, with `l2` the negative Euclidean
    /// distance.
    pub score: f32,
    /// Metadata of the vector; only with `with_metadata`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// Components of the vector; only with `with_vectors`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding: Option<Vec<f32>>,
}

/// Vector of a listing.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ListedVector {
    /// Chunk id.
    pub chunk_id: String,
    /// Id of its batch.
    pub file_id: String,
    /// Metadata of the vector; only with `with_metadata`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// Components of the vector; only with `with_vectors`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding: Option<Vec<f32>>,
}

/// Response of `embeddings/scroll`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EmbeddingPage {
    /// Vectors by batch, then by position in it.
    pub chunks: Vec<ListedVector>,
    /// Cursor of the next page; null on the last page.
    pub next_cursor: Option<String>,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
    /// Possible reasons why the filter matched nothing; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<SearchWarning>,
}

/// Response of `embeddings/search`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EmbeddingHits {
    /// Chunk ids, best first, over all query vectors.
    pub chunk_ids: Vec<String>,
    /// Scores in the order of `chunk_ids`, non-increasing.
    pub scores: Vec<f32>,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
    /// One list of results per query vector, in order.
    pub results: Vec<Vec<ScoredChunk>>,
    /// Possible reasons why the filter matched nothing; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<SearchWarning>,
}

impl EmbeddingHits {
    /// Merges the result lists: keeps the best score of each chunk, up to `max_chunks`, and breaks
    /// ties by id.
    pub fn merge(results: Vec<Vec<ScoredChunk>>, max_chunks: usize) -> Self {
        let mut best: BTreeMap<&str, f32> = BTreeMap::new();
        for hit in results.iter().flatten() {
            let score = best.entry(&hit.chunk_id).or_insert(hit.score);
            *score = score.max(hit.score);
        }
        let merged: Vec<(String, f32)> = match results.as_slice() {
            // The results of a single query keep their order, however ties were broken.
            [only] => only.iter().map(|hit| (hit.chunk_id.clone(), hit.score)).collect(),
            _ => {
                let mut merged: Vec<(String, f32)> =
                    best.into_iter().map(|(id, score)| (id.to_owned(), score)).collect();
                merged.sort_by(|a, b| b.1.total_cmp(&a.1));
                merged
            }
        };
        let (chunk_ids, scores): (Vec<_>, Vec<_>) = merged.into_iter().take(max_chunks).unzip();
        let message = format!("{} vectors found", chunk_ids.len());
        let warnings = Vec::new();
        Self { chunk_ids, scores, success: true, message, results, warnings }
    }
}

/// Response of `embeddings/retrieve_by_ids`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RetrievedEmbeddings {
    /// Vectors by chunk id, exactly as uploaded.
    pub embeddings: BTreeMap<String, Vec<f32>>,
    /// Ids that do not exist, in request order.
    pub not_found_chunk_ids: Vec<String>,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
}
