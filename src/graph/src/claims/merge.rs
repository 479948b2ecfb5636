//! Adds those claims of a reply that the texts support.

use std::ops::Range;

use crate::claims::reply::{ClaimedEntity, ClaimedTriplet, Claims, claims};
use crate::claims::request::ChunkText;
use crate::claims::support::{context, stands, stretches};
use crate::key::{in_one_line, key};
use crate::row::{
    EntityKind, NAME_BYTES_MAX, Predicate, ROW_ENTITIES_MAX, ROW_TRIPLETS_MAX, RowEntity, RowGraph,
    RowTriplet,
};

/// Maximum claims of one kind examined per passage.
const CLAIMS_MAX: usize = 256;

/// Outcome of merging a reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Added {
    /// Number of entities that the rules had not found.
    pub entities: usize,
    /// Number of triplets that the rules had not found.
    pub triplets: usize,
    /// Number of claims that the texts do not support.
    pub refused: usize,
}

/// Adds to the graphs of passages those claims of the reply that the passages' texts support.
/// `None`, with the graphs untouched, if the reply cannot be parsed.
pub fn merge(reply: &str, passages: &[ChunkText<'_>], graphs: &mut [RowGraph]) -> Option<Added> {
    let all = claims(reply, passages.len())?;
    let mut added = Added::default();
    for ((claims, passage), graph) in all.iter().zip(passages).zip(graphs) {
        merge_passage(claims, passage.text, graph, &mut added);
    }
    Some(added)
}

fn merge_passage(claims: &Claims, text: &str, graph: &mut RowGraph, added: &mut Added) {
    for claim in claims.entities.iter().take(CLAIMS_MAX) {
        let known = graph.entities.len();
        match entity(graph, text, claim) {
            Some(_) => added.entities += graph.entities.len() - known,
            None => added.refused += 1,
        }
    }
    let stretches = if claims.triplets.is_empty() { Vec::new() } else { stretches(text) };
    for claim in claims.triplets.iter().take(CLAIMS_MAX) {
        let names = [claim.source.as_str(), claim.target.as_str()];
        let Some(context) = context(text, &stretches, &claim.sentence, names) else {
            added.refused += 1;
            continue;
        };
        let known = graph.entities.len();
        let triplet = triplet(graph, text, claim, context.start as u32..context.end as u32);
        added.entities += graph.entities.len() - known;
        match triplet {
            Some(triplet) if !is_known(graph, &triplet) => {
                graph.triplets.push(triplet);
                added.triplets += 1;
            }
            Some(_) => {}
            None => added.refused += 1,
        }
    }
}

/// Finds or adds the claimed entity, if its name occurs in the text and the graph is not full.
fn entity(graph: &mut RowGraph, text: &str, claim: &ClaimedEntity) -> Option<u8> {
    let name = claim.name.as_str();
    let key: String = key(name).into();
    if key.is_empty() || name.len() > NAME_BYTES_MAX || !stands(name, text) {
        return None;
    }
    let kind = kind(&claim.kind);
    let names = |one: &RowEntity| one.key == key || one.aliases.contains(&key);
    if let Some(at) = graph.entities.iter().position(names) {
        let known = &mut graph.entities[at].kind;
        if *known == EntityKind::Other {
            *known = kind;
        }
        return Some(at as u8);
    }
    if graph.entities.len() == ROW_ENTITIES_MAX {
        return None;
    }
    let at = graph.entities.len() as u8;
    graph.entities.push(RowEntity { key, name: in_one_line(name), kind, aliases: Vec::new() });
    Some(at)
}

fn triplet(
    graph: &mut RowGraph,
    text: &str,
    claim: &ClaimedTriplet,
    context: Range<u32>,
) -> Option<RowTriplet> {
    if graph.triplets.len() == ROW_TRIPLETS_MAX || key(&claim.source) == key(&claim.target) {
        return None;
    }
    let mut named = |name: &String| {
        entity(graph, text, &ClaimedEntity { name: name.clone(), kind: String::new() })
    };
    let (source, target) = (named(&claim.source)?, named(&claim.target)?);
    let predicate = predicate(&claim.predicate);
    (source != target).then_some(RowTriplet { source, target, predicate, context })
}

/// Whether the graph has the triplet, or something more specific about the pair than that they are
/// related.
fn is_known(graph: &RowGraph, triplet: &RowTriplet) -> bool {
    let ends = [triplet.source, triplet.target];
    graph.triplets.iter().any(|one| {
        let is_same = [one.source, one.target] == ends && one.predicate == triplet.predicate;
        let is_pair = ends.contains(&one.source) && ends.contains(&one.target);
        is_same || is_pair && triplet.predicate == Predicate::RelatedTo
    })
}

fn kind(name: &str) -> EntityKind {
    EntityKind::of_name(&name.to_ascii_uppercase()).unwrap_or(EntityKind::Other)
}

/// Parses the name of a predicate, in any case and with any separators.
fn predicate(name: &str) -> Predicate {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("_").to_ascii_uppercase();
    Predicate::of_name(&name).unwrap_or(Predicate::RelatedTo)
}
