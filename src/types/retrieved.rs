//! A chunk on its way out of a search.

use std::sync::Arc;

use crate::types::{ChunkPlace, PageBox, SourceRecord};

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
    /// Cosine with the query, where the semantic leg took part.
    pub cosine: Option<f32>,
    /// BM25, where the keyword leg took part.
    pub keyword: Option<f32>,
}
