//! The chunks of a search result.

use std::sync::Arc;

use crate::{ChunkPlace, LineBox, PageBox, SourceRecord};

/// One chunk of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct RetrievedChunk {
    /// Its id: stable for one version of one source.
    pub uuid: String,
    /// The source, shared by its chunks.
    pub source: Arc<SourceRecord>,
    /// Ids of the neighbouring chunks that it was joined from, itself among them, in reading
    /// order; empty for a chunk alone.
    pub joined: Vec<String>,
    /// Position in the source.
    pub index: u32,
    /// The text.
    pub text: String,
    /// Position of the text in the source.
    pub place: ChunkPlace,
    /// Rectangles of the text, one a page; empty where pages are not fixed.
    pub boxes: Vec<PageBox>,
    /// Lines of the text, in characters of the document; empty where pages are not fixed.
    pub lines: Vec<LineBox>,
    /// Final score: 0 to 1 in hybrid search, at least 0 in full-text search.
    pub score: f32,
    /// The parts of that score.
    pub parts: ScoreParts,
}

/// The parts of a score. In hybrid search the score is `max(s, .8 link + .2 s) x recency` with `s =
/// semantic_share + keyword_share`; where a reranker ran, with `s = .6 rerank + .4 (semantic_share
/// + keyword_share)`, and 0 for chunks that it did not read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoreParts {
    /// Cosine with the query, if the semantic leg took part.
    pub cosine: Option<f32>,
    /// BM25 score, if the keyword leg took part.
    pub keyword: Option<f32>,
    /// Score by the sparse model, if its leg took part.
    pub sparse: Option<f32>,
    /// Share of the semantic leg, 0 to alpha.
    pub semantic_share: f32,
    /// Share of the keyword leg, 0 to 1 - alpha.
    pub keyword_share: f32,
    /// Share of the sparse leg, where it took part; those of the two others are shares of the rest.
    pub sparse_share: f32,
    /// Weight of being named by a good result; 0 if none names it.
    pub link: f32,
    /// Factor of the source's age; 1 without a recency bias.
    pub recency: f32,
    /// Score of the reranker, 0 to 1, if one has read the chunk.
    pub rerank: Option<f32>,
    /// Share of the query's words, by how rare they are, that chunk and title hold.
    pub coverage: f32,
    /// Chance that the chunk is about what was asked for, 0 to 1.
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
