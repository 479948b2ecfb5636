//! Messages between query nodes that search one collection together.
//!
//! ```text
//! POST /nodes/share   ShareTask -> ShareAnswer, both JSON
//! ```
//! JSON preserves every digit of the numbers, so rows have the same scores as in one search over
//! all segments. Only nodes of the same release are asked, and a node that does not have the
//! version of the collection refuses.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use lodestone_embed::SparseVector;
use lodestone_storage::segment::flat::{SearchPath, Thoroughness};
use lodestone_text::{CorpusStats, SentQuery};
use lodestone_types::{Filter, Metric, limits};

/// Path for working on a share.
pub const SHARE: &str = "/nodes/share";
/// Maximum bytes of a task: a few hundred queries of a batch, or a filter with many values.
pub const TASK_BYTES_MAX: usize = 16 << 20;
/// Maximum bytes of an answer.
pub const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Maximum number of rows of each leg that a task requests: those up to the last page of a
/// full-text search.
pub const TASK_ROWS_MAX: usize = 10_000 + limits::RESULTS_MAX;
const _: () = assert!(3 * limits::RESULTS_MAX <= TASK_ROWS_MAX, "candidates of accurate mode");
const _: () = assert!(limits::VECTOR_RESULTS_MAX <= TASK_ROWS_MAX);

/// One step of a search over a share of its segments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShareTask {
    /// Release of the asking node.
    pub release: String,
    /// The collection.
    pub collection: Uuid,
    /// Version of the collection.
    pub version: u64,
    /// Stored name of the sub-tenant, or of its memories.
    pub sub_tenant: String,
    /// The filter of the search.
    pub filter: Filter,
    /// The segments; hits refer to them by position in this list.
    pub segments: Vec<Uuid>,
    /// Time in milliseconds after which nobody waits for the answer.
    pub within_millis: u64,
    /// The step to run.
    pub step: ShareStep,
}

/// The question to a share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ShareStep {
    /// The statistics of its rows for a query.
    Counts(SentQuery),
    /// Its best rows.
    Tops(TopsTask),
}

/// Requests the best rows by vectors, by words and by a sparse model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TopsTask {
    /// Number of rows wanted from each leg.
    pub k: usize,
    /// The metric of the vectors.
    pub metric: Metric,
    /// The query vectors.
    pub vectors: Vec<Vec<f32>>,
    /// Thoroughness of the vector search.
    pub thoroughness: Thoroughness,
    /// The words, with the statistics over all shares.
    pub words: Option<(SentQuery, CorpusStats)>,
    /// The terms of the sparse model.
    pub sparse: Option<SparseVector>,
    /// Whether to return the scores of each row by all legs, which are then fused; allowed with at
    /// most one vector. Otherwise the vectors are client vectors, compared by their exact scores.
    pub has_scores: bool,
}

/// The answer to a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ShareAnswer {
    /// Answers [`ShareStep::Counts`].
    Counts(CorpusStats),
    /// Answers [`ShareStep::Tops`].
    Tops(ShareTops),
}

/// A row, as the position of its segment in the task and its number in the segment.
pub type SharedRow = (usize, u32);

/// The best rows of a share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ShareTops {
    /// The nearest rows of each vector, plus those that tie with the last of them.
    pub near: Vec<Vec<(SharedRow, f32)>>,
    /// The best rows by words.
    pub words: Vec<(SharedRow, f32)>,
    /// The best rows by the sparse model.
    pub sparse: Vec<(SharedRow, f32)>,
    /// Each of these rows once, with its true scores: cosine, words, sparse.
    pub scores: Vec<(SharedRow, [Option<f32>; 3])>,
    /// Paths of the vector search.
    pub paths: Vec<SearchPath>,
    /// Number of lists without a better row after which a search ended.
    pub patience: Option<usize>,
}
