//! Editions in force of documents found, among sources of similar names.

use std::cmp::Ordering;

use crate::text::dates;
use crate::text::dates::Day;
use crate::versions::asked::relative_year;
use crate::versions::editions::{Wish, is_in_force, order};
use crate::versions::notices::Notice;
use lodestone_types::{RetrievedChunk, SourceId, Timestamp};

/// A document found that another source supersedes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditionInForce {
    /// The source of the document found.
    pub superseded: SourceId,
    /// The source of the edition in force.
    pub in_force: SourceId,
}

/// The names of the first documents among the chunks that state which edition they are: at most
/// `names_max`, each without the marks of editions, as a search for the other editions needs them.
pub fn names_of_editions(chunks: &[RetrievedChunk], names_max: usize) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (_, notice) in notices(chunks).filter(|(_, notice)| notice.is_edition()) {
        let name = format!("{} {}", notice.title.stem, notice.file.stem).trim().to_owned();
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names.truncate(names_max);
    names
}

/// The sources among `found` that are in force in place of documents in `chunks`, and not there
/// themselves; none if the question names an edition or wants to compare several.
pub fn editions_in_force(
    question: &str,
    chunks: &[RetrievedChunk],
    found: &[RetrievedChunk],
    now: Timestamp,
) -> Vec<EditionInForce> {
    let today = Day::of(now);
    let mut asked = dates::all(question);
    asked.extend(relative_year(question, today));
    let wish = Wish::of(question, &asked);
    if wish.wants_all {
        return Vec::new();
    }
    let known: Vec<(&SourceId, Notice)> = notices(chunks).collect();
    let is_new = |one: &&RetrievedChunk| !known.iter().any(|(id, _)| **id == one.source.id);
    let in_force_in_place = |one: &RetrievedChunk| {
        let notice = notice_of(one);
        let is_superseded = |(_, this): &&(&SourceId, Notice)| {
            this.is_edition_with(&notice)
                && !wish.names(this)
                && is_in_force(&notice, today)
                && order(this, &notice, today) == Ordering::Less
        };
        let superseded = known.iter().filter(is_superseded);
        let pair = |(id, _): &(&SourceId, Notice)| EditionInForce {
            superseded: (*id).clone(),
            in_force: one.source.id.clone(),
        };
        superseded.map(pair).collect::<Vec<_>>()
    };
    found.iter().filter(is_new).flat_map(in_force_in_place).collect()
}

/// The notice of each source, in the order of their first chunks.
fn notices(chunks: &[RetrievedChunk]) -> impl Iterator<Item = (&SourceId, Notice)> {
    let is_first =
        |at: &usize| !chunks[..*at].iter().any(|one| one.source.id == chunks[*at].source.id);
    (0..chunks.len()).filter(is_first).map(|at| (&chunks[at].source.id, notice_of(&chunks[at])))
}

fn notice_of(chunk: &RetrievedChunk) -> Notice {
    let source = &chunk.source;
    let text = if chunk.index == 0 { &chunk.text } else { &source.description };
    Notice::of(source, text)
}
