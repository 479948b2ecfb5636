//! The words of a scope, for what a question may mean.

use std::cell::Cell;

use crate::query::legs::SegmentScope;
use crate::query::{Query, QueryError};
use lodestone_answer::translation::{Language, Lexicon};
use lodestone_answer::{Correction, Vocabulary, corrections};
use lodestone_storage::collection::Snapshot;
use lodestone_types::{Filter, RequestContext, SubTenantId};

/// Words of dictionaries that are looked at for one question: some 20 ms.
const LISTED_MAX: usize = 1 << 18;
/// Words that are looked up in all segments for one question.
const LOOKED_UP_MAX: usize = 256;

impl Query {
    /// The words of a question that occur nowhere in a scope and are read as others that do.
    ///
    /// # Errors
    /// [`QueryError::Stopped`] where the request is over; damage.
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
            listed: Cell::new(LISTED_MAX),
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

/// The words of some segments, as far as the bounds of one question go.
struct Words<'a> {
    context: &'a RequestContext,
    segments: &'a [SegmentScope],
    listed: Cell<usize>,
    looked_up: Cell<usize>,
}

impl Vocabulary for Words<'_> {
    type Error = QueryError;

    /// Beyond the bound every word counts as one that occurs.
    fn rows(&self, word: &str) -> Result<u64, QueryError> {
        let Some(left) = self.looked_up.get().checked_sub(1) else { return Ok(1) };
        self.looked_up.set(left);
        let mut rows = 0;
        for segment in self.segments {
            self.context.check()?;
            rows += segment.live.segment.text_index().rows_with(word, segment.scope.mask())?;
        }
        Ok(rows)
    }

    fn neighbours(&self, word: &str) -> Result<Vec<String>, QueryError> {
        let Some(initial) = word.chars().next() else { return Ok(Vec::new()) };
        let letters = word.chars().count();
        let mut found = Vec::new();
        for segment in self.segments {
            self.context.check()?;
            let index = segment.live.segment.text_index();
            index.words_from(&initial.to_string(), self.listed.get(), |other| {
                self.listed.set(self.listed.get().saturating_sub(1));
                // No correction has more edits.
                if other.chars().count().abs_diff(letters) <= 2 {
                    found.push(other.to_owned());
                }
            })?;
        }
        Ok(found)
    }
}
