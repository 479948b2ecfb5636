//! Reranking: in mode `accurate`, a model reads the first candidates together with the query.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::query::hydrate::Ranked;
use crate::query::legs::{RowAddress, SegmentScope};
use crate::query::ranking::Search;
use crate::query::request::Mode;
use crate::query::texts::Texts;
use crate::query::{Query, QueryError};
use lodestone_rank::{Reranker, Verdicts};
use lodestone_text::chunk::{Surroundings, passage};
use lodestone_types::{SourceRecord, TenantSchema, limits};

/// The reranker gets the remaining time of the search divided by this.
const TIME_SHARE: u32 = 4;

/// Scores of the first rows of a ranking, and whether time ran out before the others.
type Read = (Vec<(RowAddress, f32)>, bool);

impl Query {
    /// The reranker for searches in this mode, if any.
    pub(super) fn reranker_for(&self, mode: Mode) -> Option<&dyn Reranker> {
        match mode {
            Mode::Fast => None,
            Mode::Accurate => self.reranker.as_deref(),
        }
    }
}

/// The reranker's verdicts, 0 to 1, on the first rows of `ranked`, as many as it reads in its share
/// of the time. `None` if it fails or reads nothing in time, since the search is worth answering
/// without it.
///
/// # Errors
/// Errors of the disk.
pub(super) fn verdicts(
    reranker: &dyn Reranker,
    search: &Search<'_>,
    schema: Option<&TenantSchema>,
    ranked: &[Ranked],
) -> Result<Option<Read>, QueryError> {
    let first = &ranked[..ranked.len().min(limits::RERANK_CANDIDATES)];
    if first.is_empty() {
        return Ok(Some((Vec::new(), false)));
    }
    let passages = passages(search.segments, schema, first)?;
    let passages: Vec<&str> = passages.iter().map(String::as_str).collect();
    let until = search.context.part_of_rest(TIME_SHARE);
    match reranker.score(search.context, until, &search.request.steered_query(), &passages) {
        Ok(read) if read.scores.is_empty() => {
            tracing::warn!(reranker = reranker.name(), "the reranker scored no candidate in time");
            Ok(None)
        }
        Ok(Verdicts { scores, is_cut_short }) => {
            let rows = first.iter().map(|ranked| ranked.address);
            let verdicts = rows.zip(scores.into_iter().map(lodestone_rank::settle)).collect();
            Ok(Some((verdicts, is_cut_short)))
        }
        Err(error) => {
            search.context.check()?;
            tracing::warn!(%error, reranker = reranker.name(), "reranking failed: the search \
                continues without it");
            Ok(None)
        }
    }
}

/// The texts of candidates as the embedding model read them. Title and searchable values of a
/// source are read once.
fn passages(
    segments: &[SegmentScope],
    schema: Option<&TenantSchema>,
    ranked: &[Ranked],
) -> Result<Vec<String>, QueryError> {
    let mut headings: BTreeMap<(usize, u32), (String, String)> = BTreeMap::new();
    let texts = Texts::of(segments);
    let mut passages = Vec::with_capacity(ranked.len());
    for Ranked { address, .. } in ranked {
        let segment = &segments[address.segment].live.segment;
        let position = segment.source_of(address.row);
        let (title, searchable) = match headings.entry((address.segment, position)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(heading(&segment.record(position)?, schema)),
        };
        let around = Surroundings { title, searchable, context: segment.context(address.row) };
        passages.push(passage(around, &texts.text(*address)?));
    }
    Ok(passages)
}

/// The title of a source, empty if it is only the id, and the searchable values.
fn heading(record: &SourceRecord, schema: Option<&TenantSchema>) -> (String, String) {
    let title = match record.title == record.id.as_str() {
        true => String::new(),
        false => record.title.clone(),
    };
    let searchable = schema.map(|schema| schema.searchable_text(&record.tenant_metadata));
    (title, searchable.unwrap_or_default())
}
