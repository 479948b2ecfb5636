//! Graph relations of sources and search results, converted to response types.

use std::collections::BTreeMap;

use crate::app::{App, blocking, degraded};
use crate::dto::chunks::Chunk;
use crate::dto::graph::{
    Entity, EntityPath, ExtraContext, GraphRelations, ListedTriplet, Relation, RelationsById,
    RelationsFound, Triplet,
};
use crate::error::ApiError;
use crate::reply::Json;
use crate::request::Call;
use crate::routes::{Group, Route};
use lodestone_engine::query::Retrieved;
use lodestone_types::{Relations, Role, TenantMode};

/// Returns the graph operation.
pub fn routes() -> Vec<Route<App>> {
    vec![
        Route::<App>::post(
            "/list/graph_relations_by_id",
            Group::Listing,
            Role::Read,
            "List the relations stated by sources, as triplets",
        )
        .handle(blocking(relations_by_id)),
    ]
}

fn relations_by_id(
    app: &App,
    call: &Call,
    input: RelationsById,
) -> Result<Json<RelationsFound>, ApiError> {
    let access = app.engine.open(call.grant()?, &input.scope, Some(TenantMode::Standard))?;
    let found = app.engine.relations_of(&access, &input.source_ids, input.limit)?;
    let (mut relations, mut not_found) = (BTreeMap::new(), Vec::new());
    for (id, triplets) in input.source_ids.iter().zip(found) {
        match triplets {
            Some(triplets) => {
                let listed = triplets.into_iter().map(|triplet| ListedTriplet {
                    triplet_id: triplet.id.clone(),
                    chunk_uuid: triplet.chunk.clone(),
                    triplet: shown(&triplet, false),
                });
                relations.insert(id.to_string(), listed.collect());
            }
            None => not_found.push(id.to_string()),
        }
    }
    let message = "Successfully fetched graph relations".to_owned();
    let body = RelationsFound { relations, not_found, success: true, message };
    Ok(Json::new(body).with_degraded(degraded(&access)))
}

/// Builds `graph_relations` of a search; null unless requested. A statement found in several chunks
/// is shown with the sentence of the best-ranked one.
pub(super) fn graph_relations(found: &Retrieved) -> Option<GraphRelations> {
    let relations = found.relations.as_ref()?;
    let mut chunk_triplets: BTreeMap<String, Triplet> = BTreeMap::new();
    for triplet in found.chunks.iter().flat_map(|chunk| stated(relations, &chunk.uuid)) {
        chunk_triplets.entry(triplet.id.clone()).or_insert_with(|| shown(triplet, true));
    }
    Some(GraphRelations {
        entity_paths: relations.paths.iter().map(path).collect(),
        chunk_triplets,
    })
}

/// Adds to a chunk of a result the relations that it states.
pub(super) fn relate(chunk: &mut Chunk, relations: Option<&Relations>) {
    let Some(relations) = relations else { return };
    let ids = match chunk.joined.as_slice() {
        [] => std::slice::from_ref(&chunk.chunk_uuid),
        joined => joined,
    };
    let mut triplets: Vec<&lodestone_types::Triplet> = Vec::new();
    for triplet in ids.iter().flat_map(|id| stated(relations, id)) {
        if !triplets.iter().any(|known| known.id == triplet.id) {
            triplets.push(triplet);
        }
    }
    chunk.graph_triplet_ids = triplets.iter().map(|triplet| triplet.id.clone()).collect();
    let chunk_relations = triplets.into_iter().map(|triplet| shown(triplet, true)).collect();
    chunk.extra_context = Some(ExtraContext { chunk_relations });
}

fn stated<'a>(relations: &'a Relations, chunk: &str) -> &'a [lodestone_types::Triplet] {
    relations.of_chunks.get(chunk).map_or(&[], Vec::as_slice)
}

fn path(path: &lodestone_types::EntityPath) -> EntityPath {
    let contexts: Vec<&str> =
        path.triplets.iter().map(|triplet| triplet.context.as_str()).collect();
    EntityPath {
        combined_context: contexts.join(" | "),
        triplets: path.triplets.iter().map(|triplet| shown(triplet, false)).collect(),
        relevancy_score: path.relevancy,
    }
}

fn shown(triplet: &lodestone_types::Triplet, is_scored: bool) -> Triplet {
    let entity = |entity: &lodestone_types::Entity| Entity {
        name: entity.name.clone(),
        kind: entity.kind.to_owned(),
    };
    Triplet {
        source: entity(&triplet.source),
        target: entity(&triplet.target),
        relation: Relation {
            canonical_predicate: triplet.predicate.to_owned(),
            context: triplet.context.clone(),
        },
        relevancy_score: is_scored.then_some(triplet.relevancy),
    }
}
