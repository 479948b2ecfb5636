//! Entities and triplets of a search result.

use std::collections::BTreeMap;

/// A named entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    /// Its name as a text writes it.
    pub name: String,
    /// Its kind: an upper-case word such as `PERSON`.
    pub kind: &'static str,
}

/// A statement of a chunk about two entities: read "source PREDICATE target".
#[derive(Debug, Clone, PartialEq)]
pub struct Triplet {
    /// `g_` and a hash of scope, entities and predicate: the same statement has the same id in
    /// every chunk of a sub-tenant.
    pub id: String,
    /// The source.
    pub source: Entity,
    /// The target.
    pub target: Entity,
    /// The canonical predicate: an upper-case word such as `DIRECTED_BY`.
    pub predicate: &'static str,
    /// The supporting sentence.
    pub context: String,
    /// Id of the chunk that states it.
    pub chunk: String,
    /// Its relevance for the query, 0 to 1.
    pub relevancy: f32,
}

/// Triplets that lead from one entity to another, each sharing an entity with the next.
#[derive(Debug, Clone, PartialEq)]
pub struct EntityPath {
    /// One or two of them.
    pub triplets: Vec<Triplet>,
    /// Relevance of the path for the query, 0 to 1.
    pub relevancy: f32,
}

/// The part of a result that comes from the graph.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Relations {
    /// Paths from the entities of the query and of the first results, best first.
    pub paths: Vec<EntityPath>,
    /// Triplets of each chunk of the result, by its id, best first.
    pub of_chunks: BTreeMap<String, Vec<Triplet>>,
}
