//! Questions: what is searched for, and what an answer is written from.

use std::collections::BTreeMap;

use crate::answer::generate::{
    CancellationToken, Delivery, Question, Tell, Understood, Usage, Writer, Written,
};
use crate::answer::{Answer, AnswerSource, SourceOrder};
use crate::query::{RetrieveRequest, Retrieved};
use crate::{Engine, EngineError, TenantAccess};
use lodestone_types::id::SessionId;
use lodestone_types::{RetrievedChunk, limits};

/// How a question is to be understood.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    /// The conversation it belongs to.
    pub session: Option<&'a SessionId>,
    /// Whether the generator, if there is one, may help.
    pub may_generate: bool,
    /// Whether it may split the question; each part is then searched for in the same mode.
    pub may_split: bool,
    /// Ends the help.
    pub cancel: &'a CancellationToken,
}

/// What an answer rests on.
#[derive(Debug)]
pub struct Grounds {
    /// What was found.
    pub retrieved: Retrieved,
    /// The question as it stands alone.
    pub question: String,
    /// The turns before it, oldest first.
    pub past: Vec<(String, String)>,
    /// What was searched for, where the generator has said it; else empty.
    pub queries: Vec<String>,
    /// Tokens that took.
    pub usage: Usage,
}

impl Engine {
    /// The search behind a question. In a session the turns before it help to understand it; its
    /// filters are its own. Of a question in parts each part is searched for, and the pools are
    /// merged.
    ///
    /// # Errors
    /// As [`Self::retrieve`].
    pub fn retrieve_for_question(
        &self,
        access: &TenantAccess,
        asking: Asking<'_>,
        mut request: RetrieveRequest,
    ) -> Result<Grounds, EngineError> {
        let past = match asking.session {
            Some(session) => self.past_turns(access, session)?,
            None => Vec::new(),
        };
        let Understood { question, parts, is_generated, usage, failure: _ } = match &self.writer {
            Some(writer) if asking.may_generate => {
                writer.understand(&request.query, &past, asking.may_split, asking.cancel)
            }
            _ => Understood::by_rule(&request.query, &past),
        };
        request.query.clone_from(&question);
        let mut pools = vec![self.retrieve(access, &request)?];
        for part in &parts {
            request.query.clone_from(part);
            pools.push(self.retrieve(access, &request)?);
        }
        let retrieved = merged(pools, request.max_chunks);
        let mut queries = Vec::new();
        if is_generated {
            queries.push(question.clone());
            queries.extend(parts);
        }
        Ok(Grounds { retrieved, question, past, queries, usage })
    }

    fn past_turns(
        &self,
        access: &TenantAccess,
        session: &SessionId,
    ) -> Result<Vec<(String, String)>, EngineError> {
        let (collection, sub_tenant) = (access.tenant.collection, &access.sub_tenant);
        let turns = self.catalog.turns(collection, sub_tenant, session, limits::SESSION_TURNS)?;
        Ok(turns.into_iter().map(|turn| (turn.question, turn.answer)).collect())
    }

    /// An answer made of sentences of retrieved chunks.
    ///
    /// # Errors
    /// What the model says.
    pub fn answer(
        &self,
        question: &str,
        chunks: &[RetrievedChunk],
        order: SourceOrder,
    ) -> Result<Answer, EngineError> {
        Ok(self.answerer.answer(question, chunks, order)?)
    }

    /// What writes answers by a generator, where one is configured.
    pub fn writer(&self) -> Option<&Writer> {
        self.writer.as_ref()
    }

    /// An answer that the generator writes over retrieved chunks, whose sources are numbered as
    /// in `sources`.
    ///
    /// # Errors
    /// [`EngineError::Generate`], possibly after pieces of the answer were told.
    pub fn write_answer(
        &self,
        writer: &Writer,
        question: &Question<'_>,
        grounded: (&[AnswerSource], &[RetrievedChunk]),
        delivery: Delivery,
        cancel: &CancellationToken,
        tell: Tell<'_>,
    ) -> Result<Written, EngineError> {
        let (sources, chunks) = grounded;
        Ok(writer.write(question, sources, chunks, delivery, cancel, tell)?)
    }
}

/// One pool of several: from each in turn its next best chunk until there are enough, so that no
/// part of a question is crowded out by another; then by score, as any other result. The whole
/// question's pool comes first and gives everything but the chunks.
fn merged(mut pools: Vec<Retrieved>, chunks_max: usize) -> Retrieved {
    let mut first = pools.remove(0);
    if pools.is_empty() {
        return first;
    }
    let mut columns = vec![std::mem::take(&mut first.chunks)];
    for pool in pools {
        first.timings.total += pool.timings.total;
        first.segments_missing = first.segments_missing.max(pool.segments_missing);
        // One part without the reranker, and the whole does not rest on it.
        first.reranker = first.reranker.filter(|_| pool.reranker.is_some());
        if let (Some(all), Some(relations)) = (&mut first.relations, pool.relations) {
            all.of_chunks.extend(relations.of_chunks);
        }
        columns.push(pool.chunks);
    }
    let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
    let mut place_of: BTreeMap<String, usize> = BTreeMap::new();
    let mut taken: Vec<RetrievedChunk> = Vec::new();
    loop {
        let mut is_over = true;
        for column in &mut columns {
            let Some(chunk) = column.next() else { continue };
            is_over = false;
            match place_of.get(&chunk.uuid) {
                Some(place) => taken[*place].score = taken[*place].score.max(chunk.score),
                None if taken.len() < chunks_max => {
                    place_of.insert(chunk.uuid.clone(), taken.len());
                    taken.push(chunk);
                }
                None => {}
            }
        }
        if is_over {
            break;
        }
    }
    // Stable: equal scores keep the order in which they were taken.
    taken.sort_by(|a, b| b.score.total_cmp(&a.score));
    if let Some(relations) = &mut first.relations {
        relations.of_chunks.retain(|chunk, _| place_of.contains_key(chunk));
    }
    first.chunks = taken;
    first
}
