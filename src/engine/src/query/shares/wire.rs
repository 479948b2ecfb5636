//! Messages between query nodes that search one collection together.
//!
//! ```text
//! POST /nodes/share   ShareTask -> ShareAnswer, both JSON
//! ```
//! JSON keeps every digit of the numbers, so rows have the scores of one search over all segments.
//! Only a node of the same release is asked, and a node with another version of the collection
//! refuses.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use lodestone_embed::SparseVector;
use lodestone_storage::segment::flat::{SearchPath, Thoroughness};
use lodestone_text::{CorpusStats, SentQuery};
use lodestone_types::{Filter, Metric};

/// Path of the work on a share.
pub const SHARE: &str = "/nodes/share";
/// Bytes of a task at most: some hundred queries of a batch, or a filter of many values.
pub const TASK_BYTES_MAX: usize = 16 << 20;
/// Bytes of an answer at most.
pub const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// One step of a search, over a share of its segments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShareTask {
    /// The release that asks.
    pub release: String,
    /// The collection.
    pub collection: Uuid,
    /// Its version.
    pub version: u64,
    /// The stored name of the sub-tenant, or of its memories.
    pub sub_tenant: String,
    /// The filter of the search.
    pub filter: Filter,
    /// The segments: hits name them by their position here.
    pub segments: Vec<Uuid>,
    /// Milliseconds after which nobody waits for the answer.
    pub within_millis: u64,
    /// The step.
    pub step: ShareStep,
}

/// A question to a share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ShareStep {
    /// The statistics of its rows for a query.
    Counts(SentQuery),
    /// Its best rows.
    Tops(TopsTask),
}

/// The best rows by vectors, by words and by a sparse model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TopsTask {
    /// Rows wanted of each.
    pub k: usize,
    /// The metric of the vectors.
    pub metric: Metric,
    /// Query vectors.
    pub vectors: Vec<Vec<f32>>,
    /// The portion of the nearest rows that may be missed.
    pub thoroughness: Thoroughness,
    /// Words, with the statistics of all shares.
    pub words: Option<(SentQuery, CorpusStats)>,
    /// Terms of a sparse model.
    pub sparse: Option<SparseVector>,
    /// Whether each row is to be returned with its scores by all legs; with one vector at most.
    pub has_scores: bool,
}

/// The answer to a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ShareAnswer {
    /// To [`ShareStep::Counts`].
    Counts(CorpusStats),
    /// To [`ShareStep::Tops`].
    Tops(ShareTops),
}

/// A row by the position of its segment in the task, and its number there.
pub type SharedRow = (usize, u32);

/// The best rows of a share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ShareTops {
    /// The nearest rows of each vector, and those as near as the last of them.
    pub near: Vec<Vec<(SharedRow, f32)>>,
    /// The best by words.
    pub words: Vec<(SharedRow, f32)>,
    /// The best by the sparse model.
    pub sparse: Vec<(SharedRow, f32)>,
    /// All of them once, with their true scores: cosine, words, sparse.
    pub scores: Vec<(SharedRow, [Option<f32>; 3])>,
    /// The ways in which vectors were searched.
    pub paths: Vec<SearchPath>,
    /// Lists passed without a better row before a search ended.
    pub patience: Option<usize>,
}
