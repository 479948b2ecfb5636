//! A chunk on its way out of a search.

use std::sync::Arc;

use crate::{ChunkPlace, PageBox, SourceRecord};

/// One chunk of a result, with what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct RetrievedChunk {
    /// Its id: stable for one version of one source.
    pub uuid: String,
    /// The source, shared by its chunks.
    pub source: Arc<SourceRecord>,
    /// Position in the source.
    pub index: u32,
    /// The text.
    pub text: String,
    /// Where the text stands in the source.
    pub place: ChunkPlace,
    /// Where it stands on the pages, one rectangle a page; empty where pages are not fixed.
    pub boxes: Vec<PageBox>,
    /// Final score: 0 to 1 in hybrid search, at least 0 in full-text search.
    pub score: f32,
    /// What that score is made of.
    pub parts: ScoreParts,
}

/// The parts of a score. In hybrid search the score is
/// `max(s, .8 link + .2 s) x recency` with `s = semantic_share + keyword_share`; where a reranker
/// ran, with `s = .6 rerank + .4 (semantic_share + keyword_share)`, and 0 for what it did not read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoreParts {
    /// Cosine with the query, where the semantic leg took part.
    pub cosine: Option<f32>,
    /// BM25, where the keyword leg took part.
    pub keyword: Option<f32>,
    /// What the semantic leg gave, 0 to alpha.
    pub semantic_share: f32,
    /// What the keyword leg gave, 0 to 1 - alpha.
    pub keyword_share: f32,
    /// Weight of being named by a good result; 0 where none names it.
    pub link: f32,
    /// Factor of the source's age; 1 without a recency bias.
    pub recency: f32,
    /// Score of the reranker, 0 to 1, where one has read the chunk.
    pub rerank: Option<f32>,
}

impl Default for ScoreParts {
    fn default() -> Self {
        Self {
            cosine: None,
            keyword: None,
            semantic_share: 0.0,
            keyword_share: 0.0,
            link: 0.0,
            recency: 1.0,
            rerank: None,
        }
    }
}
