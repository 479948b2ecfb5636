//! Answers from texts in other languages than the question's.

use crate::qna::{Grounds, QnaRequest};
use crate::{Engine, EngineError, TenantAccess};
use lodestone_answer::translation::Gloss;
use lodestone_answer::{Answer, Answerer};
use lodestone_types::RetrievedChunk;

/// An answer and the chunks around those that it rests on.
type ForeignAnswer = (Answer, Vec<RetrievedChunk>);

impl Engine {
    /// The answer from texts in other languages, where the one in the question's own is abstained
    /// or holds little of the question, and they say clearly more. Their chunks are the grounds
    /// then, and the question stands there as it was written.
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
