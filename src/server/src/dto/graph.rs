//! Entities, triplets and paths, and the relations of sources (docs/api.md, "Knowledge graph").

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::dto::inputs::{OTHER_THAN_SOURCE_IDS, SUB_TENANT_BODY, TENANT_BODY, body_scope};
use crate::error::ApiError;
use crate::request::{Field, Fields, Kind, Request};
use lodestone_types::{Scope, SourceId, limits};

static SOURCE_IDS: Field = Field::body(
    "source_ids",
    Kind::Texts { min: 1, max: limits::RELATED_SOURCES_MAX },
    "Sources whose relations are wanted.",
)
.or(OTHER_THAN_SOURCE_IDS)
.required();
static LIMIT: Field = Field::body(
    "limit",
    Kind::Integer { min: 1, max: limits::RELATIONS_MAX as u64, default: Some(500) },
    "Greatest number of triplets in all.",
);

/// A named thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Entity {
    /// Its name as a text writes it.
    pub name: String,
    /// Type: `PERSON`, `ORGANIZATION`, `LOCATION`, `WORK`, `EVENT`, `PRODUCT`, `DATE`,
    /// `IDENTIFIER`, `TERM` or `OTHER`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// Relation between two entities.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Relation {
    /// An upper-case word such as `DIRECTED_BY`; `RELATED_TO` where a sentence connects both in
    /// another way.
    pub canonical_predicate: String,
    /// The supporting sentence.
    pub context: String,
}

/// A statement: read "source relation target".
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Triplet {
    /// The source.
    pub source: Entity,
    /// The target.
    pub target: Entity,
    /// Relation between them.
    pub relation: Relation,
    /// Relevance for the query, 0 to 1; left out in paths and in listings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relevancy_score: Option<f32>,
}

/// Triplets that lead from one entity to another.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EntityPath {
    /// The contexts of its triplets, joined by ` | `.
    pub combined_context: String,
    /// One or two, each sharing an entity with the next.
    pub triplets: Vec<Triplet>,
    /// Relevance for the query, 0 to 1.
    pub relevancy_score: f32,
}

/// Relations that the graph holds for a result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct GraphRelations {
    /// Paths between entities, best first.
    pub entity_paths: Vec<EntityPath>,
    /// Triplet id to triplet.
    pub chunk_triplets: BTreeMap<String, Triplet>,
}

/// `extra_context` of a chunk.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ExtraContext {
    /// Relations that the chunk states, most relevant first.
    pub chunk_relations: Vec<Triplet>,
}

/// Input of `POST /list/graph_relations_by_id`.
#[derive(Debug, Clone, PartialEq)]
pub struct RelationsById {
    /// Scope addressed.
    pub scope: Scope,
    /// The sources in request order, without duplicates.
    pub source_ids: Vec<SourceId>,
    /// Maximum number of triplets in total.
    pub limit: usize,
}

impl Request for RelationsById {
    const FIELDS: &'static [&'static Field] =
        &[&TENANT_BODY, &SUB_TENANT_BODY, &SOURCE_IDS, &LIMIT];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = body_scope(fields)?;
        let given = fields.source_ids(&SOURCE_IDS)?.unwrap_or_default();
        let mut seen = std::collections::HashSet::new();
        let source_ids = given.into_iter().filter(|id| seen.insert(id.clone())).collect();
        let limit = fields.integer(&LIMIT)?.unwrap_or(500) as usize;
        Ok(Self { scope, source_ids, limit })
    }
}

/// A triplet of a listing.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ListedTriplet {
    /// Its id, as in `graph_relations.chunk_triplets`.
    pub triplet_id: String,
    /// Chunk that states it.
    pub chunk_uuid: String,
    /// The statement.
    #[serde(flatten)]
    pub triplet: Triplet,
}

/// Answer to `list/graph_relations_by_id`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RelationsFound {
    /// Relations by source id, in the order of the text.
    pub relations: BTreeMap<String, Vec<ListedTriplet>>,
    /// Unknown ids in request order.
    pub not_found: Vec<String>,
    /// Always true.
    pub success: bool,
    /// Text for people.
    pub message: String,
}
