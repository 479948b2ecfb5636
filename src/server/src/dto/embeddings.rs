//! Client vectors (API 3.1 #10, #11, 3.2 #13, 3.4).

use std::collections::{BTreeMap, HashMap, HashSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::dto::inputs::{
    FILE_ID_BODY, SUB_TENANT_BODY, SUB_TENANT_QUERY, TENANT_BODY, TENANT_QUERY, body_scope,
    query_scope, source_id,
};
use crate::dto::upload::Status;
use crate::error::{ApiError, Location};
use crate::request::fields::missing;
use crate::request::{Field, Fields, Kind, Request, Vectors};
use lodestone_types::{Scope, SourceId, limits};

static ROWS: Field = Field::body(
    "embeddings",
    Kind::Rows,
    "1 to 2,000 vectors of one width, each 1 to 3,024 wide, all values finite.",
)
.required();
static NAMED_ROWS: Field = Field::body(
    "embeddings",
    Kind::NamedRows,
    "Chunk id to vector; 1 to 2,000 entries of one batch.",
)
.required();
static QUERIES: Field =
    Field::body("embeddings", Kind::RowOrRows, "One vector, or 1 to 100 vectors.").required();
static CHUNK_IDS: Field = Field::body(
    "chunk_ids",
    Kind::Texts { min: 1, max: limits::CHUNK_IDS_MAX },
    "Chunk ids, `{batch_id}_{index}`.",
)
.required();
static MAX_CHUNKS: Field = Field::body(
    "max_chunks",
    Kind::Integer { min: 1, max: limits::VECTOR_RESULTS_MAX as u64, default: Some(10) },
    "Number of results wanted.",
);

/// The batch and the row of a chunk id: split at the last underscore, index decimal.
pub fn split_chunk_id(chunk_id: &str) -> Option<(&str, u32)> {
    let (batch, index) = chunk_id.rsplit_once('_')?;
    // One spelling for each index: no sign, no leading zero.
    let is_canonical = index == "0" || !index.starts_with(['0', '+']);
    (is_canonical && !batch.is_empty()).then(|| index.parse().ok().map(|index| (batch, index)))?
}

/// The chunk id of row `index` of a batch.
pub fn chunk_id(batch: &SourceId, index: u32) -> String {
    format!("{batch}_{index}")
}

/// `POST /upload/upload_embeddings`.
#[derive(Debug, Clone, PartialEq)]
pub struct UploadEmbeddings {
    /// Destination scope.
    pub scope: Scope,
    /// Id of the batch; generated when `None`.
    pub file_id: Option<SourceId>,
    /// The rows.
    pub vectors: Vectors,
}

impl Request for UploadEmbeddings {
    const FIELDS: &'static [&'static Field] =
        &[&TENANT_QUERY, &SUB_TENANT_QUERY, &ROWS, &FILE_ID_BODY];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = query_scope(fields)?;
        let file_id = source_id(fields, &FILE_ID_BODY)?;
        Ok(Self { scope, file_id, vectors: fields.vectors(&ROWS)? })
    }
}

/// `PATCH /upload/update_embeddings`.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateEmbeddings {
    /// Scope addressed.
    pub scope: Scope,
    /// The batch of all of them.
    pub batch_id: SourceId,
    /// Row of each new vector inside the batch, in request order, no row twice.
    pub indexes: Vec<u32>,
    /// The new vectors with their chunk ids, in the same order.
    pub vectors: Vectors,
}

impl Request for UpdateEmbeddings {
    const FIELDS: &'static [&'static Field] = &[&TENANT_QUERY, &SUB_TENANT_QUERY, &NAMED_ROWS];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = query_scope(fields)?;
        let vectors = each_name_once(fields.vectors(&NAMED_ROWS)?)?;
        let refuse = |reason: &'static str, problem: &str| {
            Err(ApiError::field(reason, Location::Body, NAMED_ROWS.name, problem))
        };
        let mut indexes = Vec::with_capacity(vectors.len());
        let mut batch_id: Option<SourceId> = None;
        for name in &vectors.names {
            let Some((batch, index)) = split_chunk_id(name) else {
                let problem = "holds a key that is not a chunk id {batch_id}_{index}";
                return refuse("invalid_identifier", problem);
            };
            let batch = SourceId::parse_field("embeddings", batch)?;
            if batch_id.as_ref().is_some_and(|earlier| *earlier != batch) {
                return refuse("invalid_value", "names chunks of several batches");
            }
            batch_id = Some(batch);
            indexes.push(index);
        }
        let batch_id = batch_id.ok_or_else(|| missing(&NAMED_ROWS))?;
        Ok(Self { scope, batch_id, indexes, vectors })
    }
}

/// The rows, each name once.
///
/// # Errors
/// 400 `conflicting_values` for a name with two different rows.
fn each_name_once(vectors: Vectors) -> Result<Vectors, ApiError> {
    if vectors.names.iter().collect::<HashSet<_>>().len() == vectors.len() {
        return Ok(vectors);
    }
    let mut first: HashMap<&str, &[f32]> = HashMap::with_capacity(vectors.len());
    let mut once = Vectors { dimension: vectors.dimension, ..Vectors::default() };
    for (name, row) in vectors.names.iter().zip(vectors.rows()) {
        match first.insert(name, row) {
            None => {
                once.names.push(name.clone());
                once.values.extend_from_slice(row);
            }
            Some(earlier) if earlier == row => {}
            Some(_) => {
                let problem = "holds a chunk id twice, with different vectors";
                let location = Location::Body;
                return Err(ApiError::field(
                    "conflicting_values", location, NAMED_ROWS.name, problem,
                ));
            }
        }
    }
    Ok(once)
}

/// Chunk ids in a scope: `DELETE /embeddings/delete`, `POST /embeddings/retrieve_by_ids`.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedChunks {
    /// Scope addressed.
    pub scope: Scope,
    /// The ids as sent; one that cannot be a chunk id is simply unknown.
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

/// `POST /embeddings/search`.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchEmbeddings {
    /// Scope to search.
    pub scope: Scope,
    /// The query vectors.
    pub queries: Vectors,
    /// Results wanted.
    pub max_chunks: usize,
}

impl Request for SearchEmbeddings {
    const FIELDS: &'static [&'static Field] =
        &[&TENANT_BODY, &SUB_TENANT_BODY, &QUERIES, &MAX_CHUNKS];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = body_scope(fields)?;
        let max_chunks = fields.integer(&MAX_CHUNKS)?.unwrap_or(10) as usize;
        Ok(Self { scope, queries: fields.vectors(&QUERIES)?, max_chunks })
    }
}

/// Answer to `upload_embeddings`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UploadedEmbeddings {
    /// Id of the batch.
    pub file_id: String,
    /// Text for people.
    pub message: String,
    /// Always true.
    pub success: bool,
    /// In row order.
    pub chunk_ids: Vec<String>,
    /// Equal to `file_id`.
    pub batch_id: String,
    /// Always `success`: rows are searchable when the call returns.
    pub status: Status,
    /// Whether an existing batch was replaced.
    pub overwritten: bool,
}

/// Answer to `update_embeddings`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UpdatedEmbeddings {
    /// Id of the batch.
    pub file_id: String,
    /// Text for people.
    pub message: String,
    /// Always true.
    pub success: bool,
    /// Equal to `file_id`.
    pub batch_id: String,
    /// In request order.
    pub chunk_ids: Vec<String>,
    /// Length of `chunk_ids`.
    pub updated_count: usize,
}

/// Answer to `embeddings/delete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeletedEmbeddings {
    /// Number of `true` in `status`.
    pub total_deleted: usize,
    /// Chunk id to whether it was there.
    pub status: BTreeMap<String, bool>,
    /// Always true.
    pub success: bool,
    /// Text for people.
    pub message: String,
}

/// One scored vector.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ScoredChunk {
    /// Its id.
    pub chunk_id: String,
    /// Cosine similarity.
    pub score: f32,
}

/// Answer to `embeddings/search`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EmbeddingHits {
    /// Best first, over all query vectors.
    pub chunk_ids: Vec<String>,
    /// Score of each, not increasing.
    pub scores: Vec<f32>,
    /// Always true.
    pub success: bool,
    /// Text for people.
    pub message: String,
    /// One list a query vector, in order.
    pub results: Vec<Vec<ScoredChunk>>,
}

impl EmbeddingHits {
    /// Merges the lists: best score of each chunk, up to `max_chunks`, ties by id.
    pub fn merge(results: Vec<Vec<ScoredChunk>>, max_chunks: usize) -> Self {
        let mut best: BTreeMap<&str, f32> = BTreeMap::new();
        for hit in results.iter().flatten() {
            let score = best.entry(&hit.chunk_id).or_insert(hit.score);
            *score = score.max(hit.score);
        }
        let merged: Vec<(String, f32)> = match results.as_slice() {
            // One query keeps its own order, whatever rule broke its ties.
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
        Self { chunk_ids, scores, success: true, message, results }
    }
}

/// Answer to `embeddings/retrieve_by_ids`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RetrievedEmbeddings {
    /// Chunk id to vector, bit for bit as uploaded.
    pub embeddings: BTreeMap<String, Vec<f32>>,
    /// Unknown ids in request order.
    pub not_found_chunk_ids: Vec<String>,
    /// Always true.
    pub success: bool,
    /// Text for people.
    pub message: String,
}
