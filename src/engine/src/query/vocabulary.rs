//! The words of a scope, used to correct the words of a question.

use std::cell::Cell;

use crate::query::legs::SegmentScope;
use crate::query::{Query, QueryError};
use lodestone_answer::translation::{Language, Lexicon};
use lodestone_answer::{Correction, Vocabulary, corrections};
use lodestone_storage::collection::Snapshot;
use lodestone_types::{Filter, RequestContext, SubTenantId};

/// Maximum dictionary words read for one question; takes about 20 ms.
const LISTED_MAX: usize = 1 << 18;
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

/// The words of some segments, within the limits of one question.
struct Words<'a> {
    context: &'a RequestContext,
    segments: &'a [SegmentScope],
    listed: Cell<usize>,
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

    fn neighbours(&self, word: &str) -> Result<Vec<String>, QueryError> {
        let Some(initial) = word.chars().next() else { return Ok(Vec::new()) };
        let letters = word.chars().count();
        let mut found = Vec::new();
        for segment in self.segments {
            self.context.check()?;
            let index = segment.live.segment.text_index();
            // Those that occur only elsewhere drop out when their rows are counted.
            index.words_from(&initial.to_string(), None, self.listed.get(), |other| {
                self.listed.set(self.listed.get().saturating_sub(1));
                // Corrections have at most two edits.
                if other.chars().count().abs_diff(letters) <= 2 {
                    found.push(other.to_owned());
                }
            })?;
        }
        Ok(found)
    }
}
