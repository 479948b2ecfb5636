//! Entities and triplets of a search result.

use std::collections::BTreeMap;

/// A named entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    /// The name as written in a text.
    pub name: String,
    /// The kind, an upper-case word such as `PERSON`.
    pub kind: &'static str,
}

/// A statement in a chunk about two entities, read as "source PREDICATE target".
#[derive(Debug, Clone, PartialEq)]
pub struct Triplet {
    /// `g_` followed by a hash of scope, entities and predicate; equal statements have equal ids in
    /// all chunks of a sub-tenant.
    pub id: String,
    /// The subject.
    pub source: Entity,
    /// The object.
    pub target: Entity,
    /// The canonical predicate, an upper-case word such as `DIRECTED_BY`.
    pub predicate: &'static str,
    /// The sentence that supports the statement.
    pub context: String,
    /// Id of the chunk that contains the statement.
    pub chunk: String,
    /// Relevance to the query, 0 to 1.
    pub relevancy: f32,
}

/// A path of triplets from one entity to another, in which consecutive triplets share an entity.
#[derive(Debug, Clone, PartialEq)]
pub struct EntityPath {
    /// The one or two triplets of the path.
    pub triplets: Vec<Triplet>,
    /// Relevance of the path to the query, 0 to 1.
    pub relevancy: f32,
}

/// The part of a search result that comes from the graph.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Relations {
    /// Paths from entities of the query and of the top results, best first.
    pub paths: Vec<EntityPath>,
    /// Triplets of each chunk in the result, keyed by chunk id, best first.
    pub of_chunks: BTreeMap<String, Vec<Triplet>>,
}
