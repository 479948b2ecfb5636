//! Finds names and supporting sentences in a text.

use std::ops::Range;

use crate::lines::{Block, blocks};
use crate::row::CONTEXT_BYTES_MAX;
use crate::sentences::sentences;
use crate::tokens::tokens;
use lodestone_types::script::is_in_unspaced_block as is_unspaced;

/// Maximum occurrences of a name examined in a text.
const PLACES_MAX: usize = 64;

/// Whether the name occurs in the text: verbatim, and not inside a word.
pub(super) fn stands(name: &str, text: &str) -> bool {
    if name.is_empty() {
        return false;
    }
    // Whether two adjacent letters belong to the same word.
    let joins = |one: char, other: char| {
        one.is_alphanumeric() && other.is_alphanumeric() && !is_unspaced(one) && !is_unspaced(other)
    };
    text.match_indices(name).take(PLACES_MAX).any(|(at, _)| {
        let before = text[..at].chars().next_back().zip(name.chars().next());
        let after = name.chars().next_back().zip(text[at + name.len()..].chars().next());
        let is_joined = |pair: Option<(char, char)>| pair.is_some_and(|(a, b)| joins(a, b));
        !is_joined(before) && !is_joined(after)
    })
}

/// Splits a text into stretches that can each support a statement: sentences, and lines where it is
/// not prose. None exceeds the maximum length of a context.
pub(super) fn stretches(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for block in blocks(text) {
        match block {
            Block::Prose(range) => {
                let mut words = Vec::new();
                tokens(text, range.start, range.end, &mut words);
                found.extend(sentences(text, &words).into_iter().filter_map(|sentence| {
                    let (first, last) = (words.get(sentence.start)?, words.get(sentence.end - 1)?);
                    Some(first.start..last.end)
                }));
            }
            Block::Heading(range) | Block::Code(range) => found.push(range),
            Block::Field { name, value } => found.push(name.start..value.end),
            Block::Row(cells) => {
                let ends = cells.first().zip(cells.last());
                found.extend(ends.map(|(first, last)| first.start..last.end));
            }
        }
    }
    found.retain(|stretch| stretch.len() <= CONTEXT_BYTES_MAX);
    found
}

/// Finds the part of the text that mentions both names: the quoted sentence if it occurs in the
/// text, or else the first of `stretches` that does.
pub(super) fn context(
    text: &str,
    stretches: &[Range<usize>],
    quoted: &str,
    names: [&str; 2],
) -> Option<Range<usize>> {
    let holds =
        |stretch: &Range<usize>| names.iter().all(|name| stands(name, &text[stretch.clone()]));
    let is_quote = (1..=CONTEXT_BYTES_MAX).contains(&quoted.len());
    let at = if is_quote { text.find(quoted) } else { None };
    let quoted = at.map(|at| at..at + quoted.len()).filter(holds);
    quoted.or_else(|| stretches.iter().find(|stretch| holds(stretch)).cloned())
}
