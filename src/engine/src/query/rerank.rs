//! The first candidates, read again together with the query (API 5.7, `accurate`).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::query::hydrate::Ranked;
use crate::query::legs::{RowAddress, SegmentScope};
use crate::query::ranking::Search;
use crate::query::request::Mode;
use crate::query::{Query, QueryError};
use lodestone_rank::Reranker;
use lodestone_text::chunk::{Surroundings, passage};
use lodestone_types::{SourceRecord, TenantSchema, limits};

impl Query {
    /// The reranker of searches in this mode, if there is one.
    pub(super) fn reranker_for(&self, mode: Mode) -> Option<&dyn Reranker> {
        match mode {
            Mode::Fast => None,
            Mode::Accurate => self.reranker.as_deref(),
        }
    }
}

/// The verdicts of the reranker, 0 to 1, on the first of `ranked`; `None` where it fails, for a
/// search is worth answering without it.
///
/// # Errors
/// Errors of the disk.
pub(super) fn verdicts(
    reranker: &dyn Reranker,
    search: &Search<'_>,
    schema: Option<&TenantSchema>,
    ranked: &[Ranked],
) -> Result<Option<Vec<(RowAddress, f32)>>, QueryError> {
    let first = &ranked[..ranked.len().min(limits::RERANK_CANDIDATES)];
    if first.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let passages = passages(search.segments, schema, first)?;
    let passages: Vec<&str> = passages.iter().map(String::as_str).collect();
    match reranker.score(search.context, &search.request.steered_query(), &passages) {
        Ok(scores) => {
            let rows = first.iter().map(|ranked| ranked.address);
            Ok(Some(rows.zip(scores.into_iter().map(lodestone_rank::settle)).collect()))
        }
        Err(error) => {
            search.context.check()?;
            tracing::warn!(%error, reranker = reranker.name(), "a search goes on without verdicts");
            Ok(None)
        }
    }
}

/// The texts of candidates as the embedding model has read them. Title and searchable values of a
/// source are read once.
fn passages(
    segments: &[SegmentScope],
    schema: Option<&TenantSchema>,
    ranked: &[Ranked],
) -> Result<Vec<String>, QueryError> {
    let mut headings: BTreeMap<(usize, u32), (String, String)> = BTreeMap::new();
    let mut passages = Vec::with_capacity(ranked.len());
    for Ranked { address, .. } in ranked {
        let segment = &segments[address.segment].live.segment;
        let position = segment.source_of(address.row);
        let (title, searchable) = match headings.entry((address.segment, position)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(heading(&segment.record(position)?, schema)),
        };
        let around = Surroundings { title, searchable, context: segment.context(address.row) };
        passages.push(passage(around, &segment.text(address.row)?));
    }
    Ok(passages)
}

/// The title of a source, empty where it is only the id, and its searchable values.
fn heading(record: &SourceRecord, schema: Option<&TenantSchema>) -> (String, String) {
    let title = match record.title == record.id.as_str() {
        true => String::new(),
        false => record.title.clone(),
    };
    let searchable = schema.map(|schema| schema.searchable_text(&record.tenant_metadata));
    (title, searchable.unwrap_or_default())
}
