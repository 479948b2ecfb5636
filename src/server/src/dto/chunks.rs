//! Chunks and cited sources in search results (docs/api.md, "Retrieve" and "Questions").

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::dto::graph::ExtraContext;
use crate::dto::search_warning::SearchWarning;
use lodestone_types::{ChunkPlace, Metadata, PageArea, PageBox, PageRef, limits};

/// A chunk of retrieve and of full-text search.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Chunk {
    /// Its id.
    pub chunk_uuid: String,
    /// Ids of the neighbouring chunks that it was joined from, itself among them, in reading
    /// order; empty for a chunk alone.
    pub joined: Vec<String>,
    /// The source that it is part of.
    pub source_id: String,
    /// Its text.
    pub chunk_content: String,
    /// Kind of the source.
    pub source_type: String,
    /// Upload time of the source, epoch seconds.
    pub source_upload_time: String,
    /// Title of the source.
    pub source_title: String,
    /// Date of the source (`source_time`), else its last update, epoch seconds.
    pub source_last_updated_time: String,
    /// Position in the document: JSON in a string.
    pub layout: Option<String>,
    /// Final score; finite.
    pub relevancy_score: Option<f32>,
    /// Map of the document.
    pub document_metadata: Option<Metadata>,
    /// Map of the tenant's schema.
    pub tenant_metadata: Option<Metadata>,
    /// Relations of the chunk, with graph context on.
    pub extra_context: Option<ExtraContext>,
    /// Keys of `graph_relations.chunk_triplets`.
    pub graph_triplet_ids: Vec<String>,
    /// Address that the source was fetched from or that was given with it; empty where there is
    /// none.
    pub source_url: String,
    /// Collections of the source.
    pub source_collection: Vec<String>,
    /// Version of the source: `v1`, `v2` and so on.
    pub version: String,
    /// Score of the reranker, where one has read the chunk.
    pub rerank_score: Option<f32>,
    /// Cosine with the query; null where meaning took no part.
    pub vector_score: Option<f32>,
    /// BM25; null where words took no part.
    pub keyword_score: Option<f32>,
    /// Score by the sparse model; absent where it took no part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sparse_score: Option<f32>,
    /// Chance that the chunk is about what was asked for, 0 to 1, comparable between queries and
    /// collections.
    pub confidence: f32,
    /// Places of the words of the query, in full-text search with `highlights`: `[start, end)` in
    /// Unicode characters of `chunk_content`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub highlights: Option<Vec<[usize; 2]>>,
    /// Parts of the score, where `explain` asked for them.
    pub explain: Option<Explanation>,
}

/// The parts of a score: `relevancy_score = max(s, .8 link + .2 s) x recency` with
/// `s = semantic_share + keyword_share`; where a reranker ran, with
/// `s = .6 rerank + .4 (semantic_share + keyword_share)`, and 0 for what it did not read.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Explanation {
    /// Cosine with the query's vector.
    pub cosine: Option<f32>,
    /// BM25.
    pub bm25: Option<f32>,
    /// Share of the semantic leg, up to alpha.
    pub semantic_share: f32,
    /// Share of the keyword leg, up to 1 - alpha.
    pub keyword_share: f32,
    /// Share of the sparse leg; absent where it took no part. Those of the two others are of the
    /// rest then, and `s` has all three.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sparse_share: Option<f32>,
    /// Share of the query's words that the chunk and its title hold, weighed by how rare they are.
    pub coverage: f32,
    /// Gain because a good result names this source or its entities.
    pub link: f32,
    /// Factor of the source's age.
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

/// A rectangle on a page, in points from its top left corner.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct BoundingBox {
    /// Page, from 1.
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

/// A chunk of qna.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QnaChunk {
    /// The chunk.
    #[serde(flatten)]
    pub chunk: Chunk,
    /// Rectangle on its first page; null without geometry.
    pub bounding_box: Option<BoundingBox>,
    /// One rectangle a page, when there are several.
    pub bounding_boxes: Vec<BoundingBox>,
    /// Name of the source's file.
    pub source_filename: String,
    /// Page, where the format has pages.
    pub page_number: Option<u32>,
    /// Text around the best match, up to 300 characters.
    pub snippet: String,
    /// Position in `sources`, from 0.
    pub source_index: usize,
}

/// A source of an answer. Pairs of equal members are the old and the new name.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QnaSource {
    /// Its id.
    pub source_id: String,
    /// Equal to `source_id`.
    pub id: String,
    /// Its title.
    pub source_title: String,
    /// Equal to `source_title`.
    pub title: String,
    /// Its kind.
    pub source_type: String,
    /// Equal to `source_type`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Address that it was fetched from or that was given with it; empty where there is none.
    pub source_url: String,
    /// Name of its file.
    pub source_filename: String,
    /// Upload time, epoch seconds.
    pub source_upload_time: String,
    /// Equal to `source_upload_time`.
    pub timestamp: String,
    /// Date of the source (`source_time`), else its last update, epoch seconds.
    pub source_last_updated_time: String,
    /// Pages of its chunks, ascending.
    pub page_numbers: Vec<u32>,
    /// Text around the best match, up to 300 characters.
    pub snippet: String,
    /// Score of its best chunk.
    pub relevancy_score: f32,
    /// Map of the document.
    pub document_metadata: Metadata,
    /// Map of the tenant's schema.
    pub tenant_metadata: Metadata,
    /// Its chunks among the retrieved ones.
    pub chunk_uuids: Vec<String>,
    /// Whether the answer cites it. While a generator still writes, false.
    pub cited: bool,
}

/// A passage that an answer quotes or, where a generator has written it, rests on.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QnaCitation {
    /// Number of its source: `[n]` in the answer, `sources[n - 1]`.
    pub n: usize,
    /// Id of the source.
    pub file_id: String,
    /// The chunk that it stands in: one of `chunks`, or one beside them.
    pub chunk_uuid: String,
    /// Page, slide or sheet on which the passage begins, or, where its lines are not known, the
    /// chunk; null where there are none.
    pub page: Option<u32>,
    /// The passage.
    pub text: String,
    /// First character of the passage in the text of the source, counted as `layout` does.
    pub start: usize,
    /// Position after its last character.
    pub end: usize,
    /// Rectangles of the lines that the passage touches, each as a whole; those of the chunk where
    /// it was stored by a release that kept no lines. Empty where pages are not fixed.
    pub boxes: Vec<BoundingBox>,
}

/// The answer of full-text search: the chunks, or with `facets` an object.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum FoundChunks {
    /// Without `facets`.
    List(Vec<Chunk>),
    /// With `facets`.
    Page(FacetedChunks),
}

/// A page of chunks with counts over all that match.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FacetedChunks {
    /// The chunks of the page, best first.
    pub chunks: Vec<Chunk>,
    /// For each key its most frequent values, up to 100, each with its number of matching chunks.
    pub facets: BTreeMap<String, ValueCounts>,
    /// For each key whose values are not all listed the number of those that are not, at most.
    pub facets_left_out: BTreeMap<String, u64>,
    /// Matching chunks.
    pub total: u64,
    /// The `offset` of the next page; null on the last.
    pub next_offset: Option<usize>,
    /// Why a filter may have let nothing pass or a facet counts nothing, and ignored names that may
    /// be meant to narrow; absent where there is nothing to tell.
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
