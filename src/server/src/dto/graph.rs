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
    "Ids of the sources whose relations are listed.",
)
.or(OTHER_THAN_SOURCE_IDS)
.required();
static LIMIT: Field = Field::body(
    "limit",
    Kind::Integer { min: 1, max: limits::RELATIONS_MAX as u64, default: Some(500) },
    "Maximum number of triplets in total.",
);

/// Named entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Entity {
    /// Name as written in the text.
    pub name: String,
    /// Type: `PERSON`, `ORGANIZATION`, `LOCATION`, `WORK`, `EVENT`, `PRODUCT`, `DATE`,
    /// `IDENTIFIER`, `TERM` or `OTHER`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// Relation between two entities.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Relation {
    /// Upper-case predicate such as `DIRECTED_BY`; `RELATED_TO` if a sentence connects both
    /// entities in another way.
    pub canonical_predicate: String,
    /// Supporting sentence.
    pub context: String,
}

/// Statement, to be read as "source relation target".
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Triplet {
    /// Source entity.
    pub source: Entity,
    /// Target entity.
    pub target: Entity,
    /// Relation from source to target.
    pub relation: Relation,
    /// Relevance to the query, 0 to 1; absent in paths and listings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relevancy_score: Option<f32>,
}

/// Path of triplets from one entity to another.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EntityPath {
    /// Contexts of its triplets, joined by ` | `.
    pub combined_context: String,
    /// One or two triplets, each sharing an entity with the next.
    pub triplets: Vec<Triplet>,
    /// Relevance to the query, 0 to 1.
    pub relevancy_score: f32,
}

/// Relations from the knowledge graph for a result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct GraphRelations {
    /// Paths between entities, best first.
    pub entity_paths: Vec<EntityPath>,
    /// Triplets by id.
    pub chunk_triplets: BTreeMap<String, Triplet>,
}

/// `extra_context` of a chunk.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ExtraContext {
    /// Relations stated by the chunk, most relevant first.
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

/// Triplet of a relation listing.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ListedTriplet {
    /// Triplet id, as in `graph_relations.chunk_triplets`.
    pub triplet_id: String,
    /// Id of the chunk that states it.
    pub chunk_uuid: String,
    /// The statement.
    #[serde(flatten)]
    pub triplet: Triplet,
}

/// Response of `list/graph_relations_by_id`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RelationsFound {
    /// Relations by source id, in text order.
    pub relations: BTreeMap<String, Vec<ListedTriplet>>,
    /// Ids that do not exist, in request order.
    pub not_found: Vec<String>,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
}
