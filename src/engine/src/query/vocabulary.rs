//! The words of a scope, used to correct the words of a question.

use std::cell::Cell;

use crate::query::legs::SegmentScope;
use crate::query::{Query, QueryError};
use lodestone_answer::translation::{Language, Lexicon};
use lodestone_answer::{Correction, Vocabulary, corrections};
use lodestone_storage::collection::Snapshot;
use lodestone_types::{Filter, RequestContext, SubTenantId};

/// Maximum steps of [`lodestone_text::TextIndex::words_near`] for all words of a question in all
/// segments; they take about 20 ms. In a tenant with very many words, some corrections are omitted.
const STEPS_MAX: u32 = 1 << 19;
/// Maximum words looked up in all segments for one question.
const LOOKED_UP_MAX: usize = 256;

impl Query {
    /// The words of a question that occur nowhere in a scope, with the similar words they are read
    /// as.
    ///
    /// # Errors
    /// [`QueryError::Stopped`] if the request is over; damaged data.
    pub fn corrections(
        &self,
        context: &RequestContext,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        question: &str,
    ) -> Result<Vec<Correction>, QueryError> {
        let segments = self.in_scope(context, snapshot, sub_tenant, &Filter::All)?;
        let words = Words {
            context,
            segments: &segments,
            steps: Cell::new(STEPS_MAX),
            looked_up: Cell::new(LOOKED_UP_MAX),
        };
        let (model, lexicon) = (self.model(snapshot), Lexicon::get());
        let language = lexicon.language_told(question);
        let is_listed = |word: &str| match language {
            Some(language) => lexicon.knows(word, language),
            None => Language::ALL.iter().any(|language| lexicon.knows(word, *language)),
        };
        let is_word = |word: &str| {
            model.token_offsets(word).len() <= 1 || (language.is_some() && is_listed(word))
        };
        corrections(question, (is_word, is_listed), &words)
    }
}

/// The words of some segments, within the limits of one question.
struct Words<'a> {
    context: &'a RequestContext,
    segments: &'a [SegmentScope],
    steps: Cell<u32>,
    looked_up: Cell<usize>,
}

impl Vocabulary for Words<'_> {
    type Error = QueryError;

    fn rows(&self, word: &str) -> Result<Option<u64>, QueryError> {
        let Some(left) = self.looked_up.get().checked_sub(1) else { return Ok(None) };
        self.looked_up.set(left);
        let mut rows = 0;
        for segment in self.segments {
            self.context.check()?;
            rows += segment.live.segment.text_index().rows_with(word, segment.scope.mask())?;
        }
        Ok(Some(rows))
    }

    fn neighbours(&self, word: &str, edits: u8) -> Result<Vec<String>, QueryError> {
        let (mut found, mut steps) = (Vec::new(), self.steps.get());
        for segment in self.segments {
            self.context.check()?;
            let index = segment.live.segment.text_index();
            found.extend(index.words_near(word, edits, segment.scope.mask(), &mut steps)?);
        }
        self.steps.set(steps);
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tempfile::TempDir;

    use super::*;
    use crate::query::fixture::{self, source};
    use lodestone_compute::SimdBackend;
    use lodestone_embed::HashEmbedder;
    use lodestone_storage::segment::VectorKind;

    /// Goal: no word is read as one that only another sub-tenant wrote, even if it is an inflection
    /// of one of the scope's own.
    #[test]
    fn words_of_other_scopes_change_no_correction() {
        let found = |own: &str, others: &[&str]| {
            let root = TempDir::new().unwrap();
            let mut sources = vec![source("default", "own", &[own])];
            sources.extend(others.iter().map(|text| source("another", "other", &[*text])));
            let collection = fixture::collection(&root, VectorKind::F16, [sources]);
            let query = Query::new(Arc::new(SimdBackend), Arc::new(HashEmbedder));
            let (context, snapshot) = (RequestContext::default(), collection.snapshot());
            let scope = SubTenantId::default_name();
            let question = "When do the sumers begin?";
            let found = query.corrections(&context, &snapshot, &scope, question).unwrap();
            found.into_iter().map(|one| one.to).collect::<Vec<_>>()
        };
        for (own, meant) in [("The summer house", &[][..]), ("All summers", &["summers"][..])] {
            assert_eq!(found(own, &[]), meant);
            assert_eq!(found(own, &["Long summers, sumerss and summersx"]), meant);
        }
    }
}
