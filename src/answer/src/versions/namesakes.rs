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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::testing::chunk;

    /// 23 November 2026.
    const NOW: Timestamp = Timestamp(1_795_392_000_000);

    fn titled(id: &str, title: &str) -> RetrievedChunk {
        let mut one = chunk(id, 0, "Text.", 0.5);
        Arc::make_mut(&mut one.source).title = title.to_owned();
        one
    }

    /// Goal: only documents that state an edition are searched for, by names without its marks.
    #[test]
    fn editions_are_sought_by_their_names() {
        let chunks = [
            titled("rules-2021", "Boat rules 2021"),
            titled("boats", "Boats"),
            titled("report-2021", "Annual report 2021"),
            titled("minutes-2021", "Minutes 2021"),
        ];
        assert_eq!(names_of_editions(&chunks, 4), ["boat rules rules"]);
    }

    /// Goal: the newer edition takes the place of the older one, unless the question names that one
    /// or compares both.
    #[test]
    fn a_newer_edition_is_in_force() {
        let (old, new) = (titled("a-2021", "Boat rules 2021"), titled("a-2024", "Boat rules 2024"));
        let later = titled("a-2099", "Boat rules 2099");
        let of = |question, known: &RetrievedChunk, found: &[RetrievedChunk]| {
            let pairs = editions_in_force(question, std::slice::from_ref(known), found, NOW);
            pairs.iter().map(|one| one.in_force.to_string()).collect::<Vec<_>>()
        };
        let found = [old.clone(), new.clone(), later, titled("cars-2025", "Car rules 2025")];
        assert_eq!(of("How long is a boat hired?", &old, &found), ["a-2024"]);
        assert!(of("How long is a boat hired?", &new, &found).is_empty());
        assert!(of("How long was a boat hired in 2021?", &old, &found).is_empty());
        assert!(of("How did boat hire change?", &old, &found).is_empty());
    }
}
