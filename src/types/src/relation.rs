//! Entities and how they relate, on their way out of a search.

use std::collections::BTreeMap;

/// A named thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    /// Its name as a text writes it.
    pub name: String,
    /// What it is: an upper-case word such as `PERSON`.
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
    /// How much it has to do with the query, 0 to 1.
    pub relevancy: f32,
}

/// Triplets that lead from one entity to another, each sharing an entity with the next.
#[derive(Debug, Clone, PartialEq)]
pub struct EntityPath {
    /// One or two of them.
    pub triplets: Vec<Triplet>,
    /// How much the path has to do with the query, 0 to 1.
    pub relevancy: f32,
}

/// What the graph adds to a result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Relations {
    /// Paths from the entities of the query and of the first results, best first.
    pub paths: Vec<EntityPath>,
    /// By id of a chunk of the result what it states, best first.
    pub of_chunks: BTreeMap<String, Vec<Triplet>>,
}
