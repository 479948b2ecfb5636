//! Answers from texts in languages other than the question's.

use crate::qna::{Grounds, QnaRequest};
use crate::{Engine, EngineError, TenantAccess};
use lodestone_answer::translation::Gloss;
use lodestone_answer::{Answer, Answerer};
use lodestone_types::RetrievedChunk;

/// An answer, and the chunks surrounding those that it was extracted from.
type ForeignAnswer = (Answer, Vec<RetrievedChunk>);

impl Engine {
    /// Tries to answer from texts in other languages, if the answer in the question's own language
    /// is an abstention or covers little of the question. Returns the foreign answer only if it is
    /// clearly better. Its chunks then replace the grounds, with the question as originally
    /// written.
    pub(super) fn foreign(
        &self,
        access: &TenantAccess,
        request: &QnaRequest,
        grounds: &mut Grounds,
        (answerer, own): (&Answerer, &Answer),
    ) -> Result<Option<ForeignAnswer>, EngineError> {
        if !own.is_abstained && !own.strength.is_weak() {
            return Ok(None);
        }
        let Some(gloss) = Gloss::of(&grounds.written) else { return Ok(None) };
        let schema = access.tenant.schema.as_ref();
        let chunks = self.read(access, |snapshot| {
            let asked = (&request.search, &gloss);
            let (context, sub_tenant) = (&access.context, &access.sub_tenant);
            self.query.translated(context, snapshot, sub_tenant, schema, asked)
        })?;
        if chunks.is_empty() {
            return Ok(None);
        }
        let around = self.around(access, &chunks)?;
        let answer = answerer.answer_foreign(&access.context, &gloss, &chunks, &around)?;
        let is_better = own.is_abstained || answer.strength.leads(&own.strength);
        if answer.is_abstained || !is_better {
            return Ok(None);
        }
        grounds.question.clone_from(&grounds.written);
        grounds.corrections.clear();
        if let Some(relations) = &mut grounds.retrieved.relations {
            relations.of_chunks.clear();
        }
        grounds.retrieved.chunks = chunks;
        Ok(Some((answer, around)))
    }
}
