//! Decides whether a search benefits from the graph.
//!
//! Following the names in the first results finds documents that the question does not describe:
//! the directors of two films, the mother of a king. A question about one thing is answered by the
//! documents it describes, and following names leads away from them. The graph is therefore used if
//! the question names several things, or names one and asks for more than the first results that
//! name it contain.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::query::QueryError;
use crate::query::graph::{Neighbourhood, first};
use crate::query::hydrate::Ranked;
use crate::query::legs::RowAddress;
use lodestone_graph::EntityKind;
use lodestone_text::HybridQuery;

/// A question is badly covered if at least one in so many of its terms is missing. For a question
/// such as "where was the director of X born?", the page of X contains all but one in three.
const MISSING_OF: usize = 3;

/// Whether the graph is used, and the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) struct Verdict {
    pub(in crate::query) is_used: bool,
    pub(in crate::query) reason: &'static str,
}

impl Neighbourhood<'_> {
    /// Judges the question by its form and by the first results in `ranked`.
    pub(in crate::query) fn judge(&self, ranked: &[Ranked]) -> Result<Verdict, QueryError> {
        let mut asked = self.asked();
        asked.retain(|(key, range)| self.is_name(key, range));
        let keys: BTreeSet<&str> = asked.iter().map(|(key, _)| key.as_str()).collect();
        let (is_used, reason) = match (keys.len(), asked.first()) {
            (0, _) | (_, None) => (false, "the question names nothing that documents are about"),
            (1, Some((key, range))) => match self.is_covered(key, range, ranked)? {
                true => (false, "the first results cover what is asked of the one thing named"),
                false => (true, "the first results do not cover what is asked of the thing named"),
            },
            _ => (true, "the question names several things"),
        };
        Ok(Verdict { is_used, reason })
    }

    /// Whether the query writes an entity as a name: capitalized or in several words, and neither a
    /// date nor a term that some text defines.
    fn is_name(&self, key: &str, range: &Range<usize>) -> bool {
        let written = &self.query[range.clone()];
        if !written.contains(char::is_uppercase) && !key.contains(' ') {
            return false;
        }
        let kind = self.each_graph().find_map(|(segment, graph)| {
            let entity = graph.find(key)?;
            let row = self.rows_naming(segment, graph, entity).next()?;
            graph.named_in(row, entity).map(|(_, kind)| kind)
        });
        !matches!(kind, None | Some(EntityKind::Date | EntityKind::Term))
    }

    /// Whether the first results that name an entity contain the other terms of the query.
    fn is_covered(
        &self,
        key: &str,
        range: &Range<usize>,
        ranked: &[Ranked],
    ) -> Result<bool, QueryError> {
        let name = HybridQuery::analyse(&self.query[range.clone()]);
        let mut missing: BTreeSet<&String> =
            self.terms.iter().filter(|term| !name.terms().contains(term)).collect();
        let count = missing.len();
        for result in first(ranked) {
            let RowAddress { segment, row } = result.address;
            let Some(graph) = self.graphs[segment] else { continue };
            let names = |entity| graph.rows_of(entity).binary_search(&row.0).is_ok();
            if graph.find(key).is_some_and(names) {
                let text = HybridQuery::analyse(&self.text(result.address)?);
                missing.retain(|term| !text.terms().contains(term));
            }
        }
        Ok(missing.len() * MISSING_OF < count.max(1))
    }
}
