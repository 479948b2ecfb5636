//! Chunks and cited sources in search results (docs/api.md, "Retrieve" and "Questions").

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::dto::graph::ExtraContext;
use crate::dto::search_warning::SearchWarning;
use crate::dto::source_maps::SourceMap;
use lodestone_types::{ChunkPlace, PageArea, PageBox, PageRef, limits};

/// Chunk found by retrieve or full-text search.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Chunk {
    /// Chunk id.
    pub chunk_uuid: String,
    /// Ids of the adjacent chunks merged into this one, including its own, in reading order; empty
    /// for a single chunk.
    pub joined: Vec<String>,
    /// Id of the source that contains it.
    pub source_id: String,
    /// Text of the chunk.
    pub chunk_content: String,
    /// Type of the source.
    pub source_type: String,
    /// Upload time of the source in epoch seconds.
    pub source_upload_time: String,
    /// Title of the source.
    pub source_title: String,
    /// Date of the source (`source_time`), else its last update, in epoch seconds.
    pub source_last_updated_time: String,
    /// Position in the document, as JSON encoded in a string.
    pub layout: Option<String>,
    /// Final score, a finite number.
    pub relevancy_score: Option<f32>,
    /// Metadata of the document.
    pub document_metadata: Option<SourceMap>,
    /// Values of the tenant's schema.
    pub tenant_metadata: Option<SourceMap>,
    /// Relations of the chunk, if graph context is on.
    pub extra_context: Option<ExtraContext>,
    /// Keys of `graph_relations.chunk_triplets`.
    pub graph_triplet_ids: Vec<String>,
    /// URL from which the source was fetched or that was given on upload; empty if none.
    pub source_url: String,
    /// Collections of the source.
    pub source_collection: Vec<String>,
    /// Version of the source: `v1`, `v2` and so on.
    pub version: String,
    /// Score of the reranker, if it read the chunk.
    pub rerank_score: Option<f32>,
    /// Cosine similarity to the query; null if semantic search was not used.
    pub vector_score: Option<f32>,
    /// BM25 score; null if keyword search was not used.
    pub keyword_score: Option<f32>,
    /// Score of the sparse model; absent if it was not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sparse_score: Option<f32>,
    /// Probability that the chunk is relevant to the query, 0 to 1, comparable between queries and
    /// collections.
    pub confidence: f32,
    /// Positions of the query words, in full-text search with `highlights`: `[start, end)` in
    /// Unicode characters of `chunk_content`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub highlights: Option<Vec<[usize; 2]>>,
    /// Components of the score, if requested by `explain`.
    pub explain: Option<Explanation>,
}

/// Components of a score: `relevancy_score = max(s, .8 link + .2 s) x recency` with
/// `s = semantic_share + keyword_share`; if a reranker ran, with
/// `s = .6 rerank + .4 (semantic_share + keyword_share)`, where `rerank` is 0 for chunks that it
/// did not read.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Explanation {
    /// Cosine similarity to the vector of the query.
    pub cosine: Option<f32>,
    /// BM25 score.
    pub bm25: Option<f32>,
    /// Contribution of semantic search, at most alpha.
    pub semantic_share: f32,
    /// Contribution of keyword search, at most 1 - alpha.
    pub keyword_share: f32,
    /// Contribution of the sparse model; absent if it was not used. The other two then share the
    /// remainder, and `s` is the sum of all three.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sparse_share: Option<f32>,
    /// Share of the query's words in the chunk and its title, weighted by rarity.
    pub coverage: f32,
    /// Boost because a good result names this source or its entities.
    pub link: f32,
    /// Factor for the age of the source.
    pub recency: f32,
    /// Score of the reranker.
    pub rerank: Option<f32>,
}

/// Formats the position of a chunk as the JSON text of `layout`, with its rectangles if there are
/// any. Indexes count Unicode characters from 0. Slides and sheets have an empty `page` and a
/// member of their own instead.
pub fn layout(place: &ChunkPlace, boxes: &[PageBox]) -> String {
    let mut layout = json!({
        "offsets": {
            "document_level_start_index": place.document_start,
            "page_level_start_index": place.page_start,
        },
    });
    let (page, extra) = match place.page {
        PageRef::Whole => (json!(1), None),
        PageRef::Page(page) => (json!(page), None),
        PageRef::Slide(slide) => (json!(""), Some(("slide", slide))),
        PageRef::Sheet(sheet) => (json!(""), Some(("sheet", sheet))),
    };
    layout["page"] = page;
    if let Some((name, number)) = extra {
        layout[name] = Value::from(number);
    }
    if let Some(PageBox { page, area: PageArea { x, y, width, height } }) = boxes.first() {
        layout["coordinates"] = json!({"x": x, "y": y, "width": width, "height": height});
        layout["page"] = json!(page);
    }
    layout.to_string()
}

/// Returns the page, slide or sheet number of a chunk, if its format has any.
pub fn page_number(place: &ChunkPlace) -> Option<u32> {
    match place.page {
        PageRef::Page(page) | PageRef::Slide(page) | PageRef::Sheet(page) => Some(page),
        PageRef::Whole => None,
    }
}

/// Rectangle on a page, in points from the top left corner.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct BoundingBox {
    /// Page number, from 1.
    pub page: u32,
    /// Left edge.
    pub x: f32,
    /// Top edge.
    pub y: f32,
    /// Width.
    pub width: f32,
    /// Height.
    pub height: f32,
}

impl From<&PageBox> for BoundingBox {
    fn from(PageBox { page, area }: &PageBox) -> Self {
        let PageArea { x, y, width, height } = *area;
        Self { page: *page, x, y, width, height }
    }
}

/// Chunk of a qna response.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QnaChunk {
    /// The chunk.
    #[serde(flatten)]
    pub chunk: Chunk,
    /// Rectangle on its first page; null if the format has no fixed pages.
    pub bounding_box: Option<BoundingBox>,
    /// One rectangle per page, if there are several.
    pub bounding_boxes: Vec<BoundingBox>,
    /// File name of the source.
    pub source_filename: String,
    /// Page, if the format has pages.
    pub page_number: Option<u32>,
    /// Text around the best match, at most 300 characters.
    pub snippet: String,
    /// Position in `sources`, from 0.
    pub source_index: usize,
}

/// Source of an answer. Members in equal pairs are an old and a new name.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QnaSource {
    /// Source id.
    pub source_id: String,
    /// Equal to `source_id`.
    pub id: String,
    /// Title of the source.
    pub source_title: String,
    /// Equal to `source_title`.
    pub title: String,
    /// Type of the source.
    pub source_type: String,
    /// Equal to `source_type`.
    #[serde(rename = "type")]
    pub kind: String,
    /// URL from which it was fetched or that was given on upload; empty if none.
    pub source_url: String,
    /// File name of the source.
    pub source_filename: String,
    /// Upload time in epoch seconds.
    pub source_upload_time: String,
    /// Equal to `source_upload_time`.
    pub timestamp: String,
    /// Date of the source (`source_time`), else its last update, in epoch seconds.
    pub source_last_updated_time: String,
    /// Pages of its chunks in ascending order.
    pub page_numbers: Vec<u32>,
    /// Text around the best match, at most 300 characters.
    pub snippet: String,
    /// Score of its best chunk.
    pub relevancy_score: f32,
    /// Metadata of the document.
    pub document_metadata: SourceMap,
    /// Values of the tenant's schema.
    pub tenant_metadata: SourceMap,
    /// Ids of its chunks among the retrieved ones.
    pub chunk_uuids: Vec<String>,
    /// Whether the answer cites it; `false` while a generator is still writing.
    pub cited: bool,
}

/// Passage that an answer quotes or, if written by a generator, is based on.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QnaCitation {
    /// Number of its source: `[n]` in the answer, `sources[n - 1]`.
    pub n: usize,
    /// Source id.
    pub file_id: String,
    /// Id of the chunk that contains it: one of `chunks`, or an adjacent one.
    pub chunk_uuid: String,
    /// Page, slide or sheet on which the passage begins, or the chunk if the lines of the passage
    /// are not known; null if there are none.
    pub page: Option<u32>,
    /// Text of the passage.
    pub text: String,
    /// Start of the passage in the text of the source, counted as in `layout`.
    pub start: usize,
    /// End, exclusive.
    pub end: usize,
    /// Rectangles of the whole lines that the passage touches, or of its chunk if that was stored
    /// by a release that kept no lines. Empty if the format has no fixed pages.
    pub boxes: Vec<BoundingBox>,
}

/// Response of full-text search: a list of chunks, or with `facets` an object.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum FoundChunks {
    /// Response without `facets`.
    List(Vec<Chunk>),
    /// Response with `facets`.
    Page(FacetedChunks),
}

/// Page of chunks, with counts over all matching chunks.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FacetedChunks {
    /// Chunks of the page, best first.
    pub chunks: Vec<Chunk>,
    /// Most frequent values of each key, at most 100, with their numbers of matching chunks.
    pub facets: BTreeMap<String, ValueCounts>,
    /// Upper bound on the number of values that are not listed, for each key that has any.
    pub facets_left_out: BTreeMap<String, u64>,
    /// Number of matching chunks.
    pub total: u64,
    /// `offset` of the next page; null on the last page.
    pub next_offset: Option<usize>,
    /// Possible reasons why a filter matched nothing or a facet is empty, and ignored names that
    /// may have been meant as filters; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<SearchWarning>,
}

/// Values with their counts, most frequent first.
#[derive(Debug, Clone, PartialEq, JsonSchema)]
pub struct ValueCounts(#[schemars(with = "BTreeMap<String, u64>")] pub Vec<(String, u64)>);

impl Serialize for ValueCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(value, count)| (value, count)))
    }
}

const _: () = assert!(limits::SNIPPET_CHARS == 300, "the docs above name the number");
