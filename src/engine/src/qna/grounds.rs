//! The search that provides the grounds of an answer.

use std::collections::BTreeMap;

use crate::qna::{Conversation, QnaRequest};
use crate::query::{QueryError, Retrieved};
use crate::stage::stage;
use crate::{Engine, EngineError, TenantAccess};
use lodestone_answer::generate::{Understood, Usage};
use lodestone_answer::{Correction, corrected, questions_of};
use lodestone_types::{RetrievedChunk, SourceId, limits};

/// The grounds of an answer: the question as understood, and the results of its search.
#[derive(Debug)]
pub struct Grounds {
    /// The search results.
    pub retrieved: Retrieved,
    /// The question, rewritten to be understood without the conversation.
    pub question: String,
    /// The questions that it consists of, each understood without the others; empty if it is one.
    pub(super) parts: Vec<String>,
    /// The rewritten question before its words were corrected.
    pub(super) written: String,
    /// The preceding turns, oldest first, each a question and its answer.
    pub past: Vec<(String, String)>,
    /// The search queries written by the generator; empty if it wrote none.
    pub queries: Vec<String>,
    /// Words of the question that occur nowhere and were replaced by similar ones. Only done
    /// without a generator.
    pub corrections: Vec<Correction>,
    /// Tokens that the generator used to understand the question.
    pub usage: Usage,
}

impl Engine {
    /// Interprets a question in the light of the preceding turns, with the generator if there is
    /// one and the request allows it, and by rules otherwise; then searches. Each part of a split
    /// question is searched for as well, and the results are merged.
    pub(super) fn grounds(
        &self,
        access: &TenantAccess,
        request: &QnaRequest,
    ) -> Result<Grounds, EngineError> {
        let understanding = stage!("understand");
        let past = self.past_turns(access, &request.conversation)?;
        let mut search = request.search.clone();
        let (understood, access) = match &self.writer {
            Some(writer) if request.ai_generation => {
                let (query, context) = (&search.query, &access.context);
                let understood = writer.understand(query, &past, request.may_split, context);
                // The generator has time limits of its own, so the request's limit starts again.
                (understood, &access.restarted())
            }
            _ => (Understood::by_rule(&search.query, &past, &access.context), access),
        };
        let Understood { mut question, mut parts, is_generated, usage, .. } =
            understood.map_err(QueryError::from)?;
        let written = question.clone();
        let mut corrections = Vec::new();
        if self.writer.is_none() {
            corrections = self.read(access, |snapshot| {
                let (context, sub_tenant) = (&access.context, &access.sub_tenant);
                self.query.corrections(context, snapshot, sub_tenant, &question)
            })?;
            question = corrected(&question, &corrections);
            let asked = corrected(&search.query, &corrections);
            parts = questions_of(&asked, &past, &access.context).map_err(QueryError::from)?;
        }
        drop(understanding);
        search.query.clone_from(&question);
        let mut pools = vec![self.retrieve(access, &search)?];
        for part in &parts {
            search.query.clone_from(part);
            pools.push(self.retrieve(access, &search)?);
        }
        let retrieved = merged(pools, search.max_chunks, search.per_source_max);
        search.query.clone_from(&question);
        let retrieved = self.in_force(access, &search, retrieved)?;
        let mut queries = Vec::new();
        if is_generated {
            queries.push(question.clone());
            queries.extend(parts.iter().cloned());
        }
        Ok(Grounds { retrieved, question, parts, written, past, queries, corrections, usage })
    }

    /// The turns of a conversation, oldest first, each a question and its answer.
    pub(super) fn past_turns(
        &self,
        access: &TenantAccess,
        conversation: &Conversation,
    ) -> Result<Vec<(String, String)>, EngineError> {
        let session = match conversation {
            Conversation::New => return Ok(Vec::new()),
            Conversation::Told(turns) => return Ok(turns.clone()),
            Conversation::Session(session) => session,
        };
        let (collection, sub_tenant) = (access.tenant.collection, &access.sub_tenant);
        let turns = self.catalog.turns(collection, sub_tenant, session, limits::SESSION_TURNS)?;
        Ok(turns.into_iter().map(|turn| (turn.question, turn.answer)).collect())
    }
}

/// Merges the results for the parts of a question. Takes the next best chunk from each in turn
/// until there are enough, so that no part crowds out another, and then sorts by score like any
/// other result. The results for the whole question come first and provide everything except the
/// chunks. No source has more than `per_source_max` chunks.
fn merged(
    mut pools: Vec<Retrieved>,
    chunks_max: usize,
    per_source_max: Option<usize>,
) -> Retrieved {
    let mut first = pools.remove(0);
    if pools.is_empty() {
        return first;
    }
    let mut columns = vec![std::mem::take(&mut first.chunks)];
    for pool in pools {
        first.timings.total += pool.timings.total;
        first.segments_missing = first.segments_missing.max(pool.segments_missing);
        first.embedder_fails |= pool.embedder_fails;
        // If one part went without the reranker, the whole does not rest on it.
        first.reranker = first.reranker.filter(|_| pool.reranker.is_some());
        first.is_reranked_in_part |= pool.is_reranked_in_part;
        if let (Some(all), Some(relations)) = (&mut first.relations, pool.relations) {
            all.of_chunks.extend(relations.of_chunks);
        }
        columns.push(pool.chunks);
    }
    let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
    let mut position_of: BTreeMap<String, usize> = BTreeMap::new();
    let mut taken: Vec<RetrievedChunk> = Vec::new();
    let mut of_source: BTreeMap<SourceId, usize> = BTreeMap::new();
    loop {
        let mut is_over = true;
        for column in &mut columns {
            let Some(chunk) = column.next() else { continue };
            is_over = false;
            match position_of.get(&chunk.uuid) {
                Some(known) => taken[*known].score = taken[*known].score.max(chunk.score),
                None if taken.len() < chunks_max => {
                    let count = of_source.entry(chunk.source.id.clone()).or_default();
                    if per_source_max.is_some_and(|most| *count >= most) {
                        continue;
                    }
                    *count += 1;
                    position_of.insert(chunk.uuid.clone(), taken.len());
                    taken.push(chunk);
                }
                None => {}
            }
        }
        if is_over {
            break;
        }
    }
    // The sort is stable: equal scores stay in the order in which they were taken.
    taken.sort_by(|a, b| b.score.total_cmp(&a.score));
    if let Some(relations) = &mut first.relations {
        relations.of_chunks.retain(|chunk, _| position_of.contains_key(chunk));
    }
    first.chunks = taken;
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodestone_answer::testing::chunk;

    /// Goal: the parts of a question share one limit per source.
    #[test]
    fn merged_parts_keep_to_the_limit_a_source() {
        let part = |words: &str| {
            let found = |(at, (source, score)): (usize, (&str, f32))| {
                chunk(source, at as u32, words, score)
            };
            let sources = [("large", 0.9), ("large", 0.8), (words, 0.5)].into_iter().enumerate();
            let chunks = sources.map(found).map(|mut chunk| {
                chunk.uuid += words;
                chunk
            });
            Retrieved { chunks: chunks.collect(), ..Retrieved::default() }
        };
        let sources = |most| -> Vec<String> {
            let merged = merged(vec![part("one"), part("two")], 10, most);
            merged.chunks.iter().map(|chunk| chunk.source.id.to_string()).collect()
        };
        assert_eq!(sources(None), ["large", "large", "large", "large", "one", "two"]);
        assert_eq!(sources(Some(1)), ["large", "one", "two"]);
        assert_eq!(sources(Some(3)), ["large", "large", "large", "one", "two"]);
    }
}
