//! The chunks of a search result.

use std::sync::Arc;

use crate::{ChunkPlace, LineBox, PageBox, SourceRecord};

/// One chunk of a search result.
#[derive(Debug, Clone, PartialEq)]
pub struct RetrievedChunk {
    /// The chunk's id, stable for one version of one source.
    pub uuid: String,
    /// The source record, shared by all chunks of the source.
    pub source: Arc<SourceRecord>,
    /// Ids of the neighbouring chunks merged into this one, itself included, in reading order;
    /// empty if nothing was merged.
    pub joined: Vec<String>,
    /// Index of the chunk within the source.
    pub index: u32,
    /// The text.
    pub text: String,
    /// The lines above the text that it needs: its headings, outermost first without the title,
    /// then the header row of its table or the first line of its record; empty if there are none.
    pub above: String,
    /// Position of the text in the source.
    pub place: ChunkPlace,
    /// Bounding rectangles of the text, one per page; empty without a fixed page layout.
    pub boxes: Vec<PageBox>,
    /// Lines of the text, in characters of the document; empty without a fixed page layout.
    pub lines: Vec<LineBox>,
    /// Final score: 0 to 1 in hybrid search, at least 0 in full-text search.
    pub score: f32,
    /// The components of the score.
    pub parts: ScoreParts,
}

/// The components of a score. In hybrid search the score is `max(s, .8 link + .2 s) x recency` with
/// `s = semantic_share + keyword_share`. If a reranker ran,
/// `s = .6 rerank + .4 (semantic_share + keyword_share)`, or 0 for chunks that it did not read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoreParts {
    /// Cosine similarity to the query, if the semantic leg ran.
    pub cosine: Option<f32>,
    /// BM25 score, if the keyword leg ran.
    pub keyword: Option<f32>,
    /// Score of the sparse model, if its leg ran.
    pub sparse: Option<f32>,
    /// Contribution of the semantic leg, 0 to alpha.
    pub semantic_share: f32,
    /// Contribution of the keyword leg, 0 to 1 - alpha.
    pub keyword_share: f32,
    /// Contribution of the sparse leg, if it ran; the other two then divide the remainder.
    pub sparse_share: f32,
    /// Weight for being named by a good result; 0 if none names this chunk.
    pub link: f32,
    /// Factor for the source's age; 1 without a recency bias.
    pub recency: f32,
    /// Score of the reranker, 0 to 1, if it read the chunk.
    pub rerank: Option<f32>,
    /// Fraction of the query's words, weighted by rarity, that occur in the chunk or its title.
    pub coverage: f32,
    /// Probability that the chunk is about the subject of the query, 0 to 1.
    pub confidence: f32,
}

impl Default for ScoreParts {
    fn default() -> Self {
        Self {
            cosine: None,
            keyword: None,
            sparse: None,
            semantic_share: 0.0,
            keyword_share: 0.0,
            sparse_share: 0.0,
            link: 0.0,
            recency: 1.0,
            rerank: None,
            coverage: 0.0,
            confidence: 0.0,
        }
    }
}
