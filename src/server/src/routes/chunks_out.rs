//! Conversion of chunks and sources found by the query pipeline to response types.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::dto::chunks::{
    BoundingBox, Chunk, Explanation, QnaChunk, QnaCitation, QnaSource, layout, page_number,
};
use crate::dto::source_maps::SourceMap;
use lodestone_answer::{AnswerSource, question_terms, snippet};
use lodestone_engine::qna::Quote;
use lodestone_types::{PageBox, RetrievedChunk, ScoreParts, limits};

/// Converts a chunk for `retrieve` and full-text search.
pub(super) fn chunk(found: RetrievedChunk) -> Chunk {
    let RetrievedChunk { uuid, joined, source, text, place, boxes, score, parts, .. } = found;
    Chunk {
        chunk_uuid: uuid,
        joined,
        source_id: source.id.to_string(),
        chunk_content: text,
        source_type: source.source_type().to_owned(),
        source_upload_time: source.uploaded_at.to_string(),
        source_title: source.title.clone(),
        source_last_updated_time: source.last_updated_at.to_string(),
        layout: Some(layout(&place, &boxes)),
        relevancy_score: Some(score),
        document_metadata: Some(SourceMap::Document(Arc::clone(&source))),
        tenant_metadata: Some(SourceMap::Tenant(Arc::clone(&source))),
        extra_context: None,
        graph_triplet_ids: Vec::new(),
        source_url: source.url.clone(),
        source_collection: source.detail.collections.clone(),
        version: format!("v{}", source.version),
        rerank_score: parts.rerank,
        vector_score: parts.cosine,
        keyword_score: parts.keyword,
        sparse_score: parts.sparse,
        confidence: parts.confidence,
        highlights: None,
        explain: None,
    }
}

/// Converts the components of a score.
pub(super) fn explanation(parts: &ScoreParts) -> Explanation {
    Explanation {
        cosine: parts.cosine,
        bm25: parts.keyword,
        semantic_share: parts.semantic_share,
        keyword_share: parts.keyword_share,
        sparse_share: parts.sparse.map(|_| parts.sparse_share),
        coverage: parts.coverage,
        link: parts.link,
        recency: parts.recency,
        rerank: parts.rerank,
    }
}

/// Converts the chunks of an answer; `sources` must be the sources of exactly these chunks.
pub(super) fn qna_chunks(
    question: &str,
    found: &[RetrievedChunk],
    sources: &[AnswerSource],
) -> Vec<QnaChunk> {
    let mut index_of = BTreeMap::new();
    for (index, source) in sources.iter().enumerate() {
        index_of.extend(source.chunks.iter().map(|chunk| (*chunk, index)));
    }
    let terms = question_terms(question);
    let chunks = found.iter().enumerate().map(|(position, found)| QnaChunk {
        bounding_box: found.boxes.first().map(BoundingBox::from),
        bounding_boxes: pages_of(&found.boxes),
        source_filename: found.source.filename.clone(),
        page_number: page_number(&found.place),
        snippet: snippet(&terms, &found.text, limits::SNIPPET_CHARS),
        source_index: *index_of.get(&position).expect("every chunk has its source"),
        chunk: chunk(found.clone()),
    });
    chunks.collect()
}

/// Returns the rectangles of a chunk that extends over several pages.
fn pages_of(boxes: &[PageBox]) -> Vec<BoundingBox> {
    match boxes.len() {
        0 | 1 => Vec::new(),
        _ => boxes.iter().map(BoundingBox::from).collect(),
    }
}

/// Converts a source of an answer; `found` are the chunks that its positions refer to.
pub(super) fn qna_source(cited: &AnswerSource, found: &[RetrievedChunk]) -> QnaSource {
    let source = &cited.source;
    let own = || cited.chunks.iter().map(|position| &found[*position]);
    let mut page_numbers: Vec<u32> = own().filter_map(|chunk| page_number(&chunk.place)).collect();
    page_numbers.sort_unstable();
    page_numbers.dedup();
    let (id, kind) = (source.id.to_string(), source.source_type().to_owned());
    let uploaded_at = source.uploaded_at.to_string();
    QnaSource {
        source_id: id.clone(),
        id,
        source_title: source.title.clone(),
        title: source.title.clone(),
        source_type: kind.clone(),
        kind,
        source_url: source.url.clone(),
        source_filename: source.filename.clone(),
        source_upload_time: uploaded_at.clone(),
        timestamp: uploaded_at,
        source_last_updated_time: source.last_updated_at.to_string(),
        page_numbers,
        snippet: cited.snippet.clone(),
        relevancy_score: cited.score,
        document_metadata: SourceMap::Document(Arc::clone(source)),
        tenant_metadata: SourceMap::Tenant(Arc::clone(source)),
        chunk_uuids: own().map(|chunk| chunk.uuid.clone()).collect(),
        cited: cited.is_cited,
    }
}

/// Converts a passage that an answer cites.
pub(super) fn citation(quote: Quote) -> QnaCitation {
    let Quote { number, chunk, text, document_chars } = quote;
    // Segments written by older releases have no line positions.
    let lines = chunk.lines.iter().filter(|line| line.touches(&document_chars));
    let mut boxes: Vec<BoundingBox> = lines.map(|line| (&line.place).into()).collect();
    let page = boxes.first().map(|line| line.page).or(page_number(&chunk.place));
    if boxes.is_empty() {
        boxes = chunk.boxes.iter().map(BoundingBox::from).collect();
    }
    QnaCitation {
        n: number,
        file_id: chunk.source.id.to_string(),
        chunk_uuid: chunk.uuid,
        page,
        text,
        start: document_chars.start,
        end: document_chars.end,
        boxes,
    }
}
