//! The editions in force of the documents found. Without them, a superseded edition would answer
//! whenever the one in force was not among the results.

use crate::query::{Alpha, GraphContext, Join, Mode, RetrieveRequest, Retrieved};
use crate::{Engine, EngineError, TenantAccess};
use lodestone_answer::{EditionInForce, editions_in_force, names_of_editions};
use lodestone_types::{RetrievedChunk, SourceId};

/// Maximum number of documents whose names are searched for.
const NAMES_MAX: usize = 2;
/// Maximum number of sources compared with a name.
const NAMESAKES_MAX: usize = 10;
/// Maximum number of chunks of editions in force.
const CHUNKS_MAX: usize = 3;

impl Engine {
    /// Puts the best chunks of editions in force in the places of the chunks of superseded editions
    /// that were found, unless the question wants to compare editions.
    pub(super) fn in_force(
        &self,
        access: &TenantAccess,
        search: &RetrieveRequest,
        mut retrieved: Retrieved,
    ) -> Result<Retrieved, EngineError> {
        let mut others: Vec<EditionInForce> = Vec::new();
        for name in names_of_editions(&retrieved.chunks, NAMES_MAX) {
            let by_name = RetrieveRequest {
                query: name,
                extra_context: None,
                max_chunks: NAMESAKES_MAX,
                mode: Mode::Fast,
                alpha: Alpha::Fixed(0.0),
                is_personalised: false,
                graph_context: GraphContext::Off,
                per_source_max: Some(1),
                join: Join::Never,
                min_confidence: 0.0,
                ..search.clone()
            };
            let namesakes = self.retrieve(access, &by_name)?;
            let (query, known) = (&search.query, &retrieved.chunks);
            let found = editions_in_force(query, known, &namesakes.chunks, self.clock.now());
            others.extend(found);
        }
        if others.is_empty() {
            return Ok(retrieved);
        }
        let ids: Vec<SourceId> = others.iter().map(|one| one.in_force.clone()).collect();
        let within = RetrieveRequest {
            max_chunks: CHUNKS_MAX,
            filter: search.filter.clone().over_sources(&ids),
            ..search.clone()
        };
        let further = self.retrieve(access, &within)?;
        retrieved.timings.total += further.timings.total;
        let mut waiting = further.chunks;
        for chunk in &mut retrieved.chunks {
            let is_next = |next: &RetrievedChunk| {
                let mut pairs = others.iter().filter(|one| one.superseded == chunk.source.id);
                pairs.any(|one| one.in_force == next.source.id)
            };
            if let Some(next) = waiting.iter().position(is_next) {
                // Results stay in the order of their scores.
                *chunk = RetrievedChunk { score: chunk.score, ..waiting.remove(next) };
            }
        }
        if let (Some(all), Some(relations)) = (&mut retrieved.relations, further.relations) {
            let chunks = &retrieved.chunks;
            all.of_chunks.extend(relations.of_chunks);
            all.of_chunks.retain(|uuid, _| chunks.iter().any(|chunk| chunk.uuid == *uuid));
        }
        Ok(retrieved)
    }
}
