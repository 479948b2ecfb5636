//! The first candidates, read again together with the query (API 5.7, `accurate`).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::query::hydrate::Ranked;
use crate::query::ranking::{Legs, Links, Semantic};
use crate::query::request::{Mode, Retrieved};
use crate::query::shard::{Place, Reach};
use crate::query::{Query, QueryError};
use lodestone_rank::Reranker;
use lodestone_text::chunk::passage;
use lodestone_types::{SourceRecord, TenantSchema, limits};

/// What a reranker says of the candidates that it has read, 0 to 1.
pub(super) type Verdicts = BTreeMap<Place, f32>;

impl Query {
    /// What reads the first candidates of a search in this mode, if anything does.
    pub(super) fn reranker_for(&self, mode: Mode) -> Option<&dyn Reranker> {
        match mode {
            Mode::Fast => None,
            Mode::Accurate => self.reranker.as_deref(),
        }
    }
}

/// Has the first of `ranked` read and ranks all anew; `legs` keep the verdicts for the passes that
/// follow. A failing reranker changes nothing but what the result says of it.
///
/// # Errors
/// What the disk says.
pub(super) fn reranked(
    reranker: &dyn Reranker,
    legs: &mut Legs<'_>,
    semantic: &Semantic,
    schema: Option<&TenantSchema>,
    ranked: Vec<Ranked>,
    result: &mut Retrieved,
) -> Result<Vec<Ranked>, QueryError> {
    legs.verdicts = verdicts(reranker, legs, schema, &ranked)?;
    if legs.verdicts.is_none() {
        result.reranker = None;
        return Ok(ranked);
    }
    legs.rank(semantic, &Links::new(), &mut result.candidates)
}

/// What the reranker says of the first of `ranked`; `None` where it fails, for a search is worth
/// answering without it.
fn verdicts(
    reranker: &dyn Reranker,
    legs: &Legs<'_>,
    schema: Option<&TenantSchema>,
    ranked: &[Ranked],
) -> Result<Option<Verdicts>, QueryError> {
    let first = &ranked[..ranked.len().min(limits::RERANK_CANDIDATES)];
    if first.is_empty() {
        return Ok(Some(Verdicts::new()));
    }
    let passages = passages(legs.reached, schema, first)?;
    let passages: Vec<&str> = passages.iter().map(String::as_str).collect();
    match reranker.score(&legs.request.steered_query(), &passages) {
        Ok(scores) => {
            let places = first.iter().map(|ranked| ranked.place);
            Ok(Some(places.zip(scores.into_iter().map(lodestone_rank::settle)).collect()))
        }
        Err(error) => {
            tracing::warn!(%error, reranker = reranker.name(), "a search goes on without verdicts");
            Ok(None)
        }
    }
}

/// The candidates as the embedding model has read them. What stands before the chunks of a source
/// is read once.
fn passages(
    reached: &[Reach],
    schema: Option<&TenantSchema>,
    ranked: &[Ranked],
) -> Result<Vec<String>, QueryError> {
    let mut words: BTreeMap<(usize, u32), (String, String)> = BTreeMap::new();
    let mut passages = Vec::with_capacity(ranked.len());
    for Ranked { place, .. } in ranked {
        let segment = &reached[place.reach].live.segment;
        let position = segment.source_of(place.row);
        let (title, searchable) = match words.entry((place.reach, position)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(words_of(&segment.record(position)?, schema)),
        };
        passages.push(passage(title, searchable, &segment.text(place.row)?));
    }
    Ok(passages)
}

/// The title of a source, unless that is its id for want of another, and its searchable values.
fn words_of(record: &SourceRecord, schema: Option<&TenantSchema>) -> (String, String) {
    let title = match record.title == record.id.as_str() {
        true => String::new(),
        false => record.title.clone(),
    };
    let searchable = schema.map(|schema| schema.searchable_text(&record.tenant_metadata));
    (title, searchable.unwrap_or_default())
}
