//! The words of a field as an automaton (FST), and a traversal that finds the words similar to a
//! pattern.
//!
//! ```text
//! file of a field: automaton, posting offsets | u64 bytes of the offsets | u32 x 2 versions
//! ```
//! The index library can traverse it too, but reads every node before asking whether the pattern
//! can still match below it, which is most of the cost of a traversal.

use std::io;

use tantivy::HasLen;
use tantivy::directory::{FileSlice, OwnedBytes};
use tantivy_fst::raw::{Fst, Node};

use crate::pattern::{Likeness, Pattern, State, Ways};

/// Bytes after the posting offsets.
const FOOTER_BYTES: usize = 16;

/// The words of a field.
pub(super) struct Dictionary(Option<Fst<OwnedBytes>>);

impl Dictionary {
    /// Opens the file of a field; a missing file means no words.
    pub(super) fn open(file: Option<FileSlice>) -> io::Result<Self> {
        let Some(file) = file else { return Ok(Self(None)) };
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        let footer = file.len().checked_sub(FOOTER_BYTES).ok_or_else(invalid)?;
        let places = file.read_bytes_slice(footer..footer + size_of::<u64>())?;
        let places = places.as_slice().try_into().map_err(|_| invalid())?;
        let places = usize::try_from(u64::from_le_bytes(places)).map_err(|_| invalid())?;
        let end = footer.checked_sub(places).ok_or_else(invalid)?;
        let automaton = Fst::new(file.read_bytes_slice(0..end)?).map_err(io::Error::other)?;
        Ok(Self(Some(automaton)))
    }

    /// Calls `each` with the words similar to the pattern and their likeness, in ascending order,
    /// until it returns false. Counts down `steps` by each byte read, and stops early at 0.
    pub(super) fn walk(
        &self,
        pattern: &Pattern,
        steps: &mut u32,
        mut each: impl FnMut(&str, Likeness) -> bool,
    ) {
        let Some(automaton) = &self.0 else { return };
        let mut word = Vec::new();
        let mut path =
            vec![NodeCursor::new(automaton.root(), Onward::of(pattern, pattern.start()))];
        while let Some(cursor) = path.last_mut() {
            let Some(way) = cursor.next_way().filter(|_| *steps > 0) else {
                path.pop();
                word.pop();
                continue;
            };
            *steps -= 1;
            let way = cursor.node.transition(way);
            let Some(onward) = cursor.after(way.inp, pattern) else { continue };
            word.push(way.inp);
            let node = automaton.node(way.addr);
            if node.is_final()
                && let Ok(text) = std::str::from_utf8(&word)
                && let Some(likeness) = pattern.likeness(&onward.state, text)
                && !each(text, likeness)
            {
                return;
            }
            path.push(NodeCursor::new(node, onward));
        }
    }

    /// Builds a dictionary of ascending words.
    #[cfg(test)]
    pub(super) fn of_words(words: &[String]) -> Self {
        let mut builder = tantivy_fst::MapBuilder::memory();
        for (at, word) in words.iter().enumerate() {
            builder.insert(word, at as u64).unwrap();
        }
        Self(Some(Fst::new(OwnedBytes::new(builder.into_inner().unwrap())).unwrap()))
    }
}

/// The pattern's state after a prefix of a word, and the letters that may follow.
#[derive(Clone)]
struct Onward {
    state: State,
    ways: Ways,
}

impl Onward {
    fn of(pattern: &Pattern, state: State) -> Self {
        Self { ways: pattern.ways(&state), state }
    }
}

/// A node on the path from the root, and the transitions from it tried so far.
struct NodeCursor<'f> {
    node: Node<'f>,
    here: Onward,
    /// State after a letter that the pattern does not contain, computed once: most transitions of a
    /// node are such letters.
    foreign: Option<Option<Onward>>,
    /// Number of letters tried, if only some may follow; otherwise of transitions tried.
    tried: usize,
    /// The first non-ASCII transition, once the ASCII ones have been tried.
    other: Option<usize>,
}

impl<'f> NodeCursor<'f> {
    fn new(node: Node<'f>, here: Onward) -> Self {
        Self { node, here, foreign: None, tried: 0, other: None }
    }

    /// State after one more byte; `None` if no similar word continues with it.
    fn after(&mut self, byte: u8, pattern: &Pattern) -> Option<Onward> {
        let state = &self.here.state;
        let next = || {
            let state = pattern.next(state, byte);
            pattern.goes_on(&state).then(|| Onward::of(pattern, state))
        };
        match pattern.is_foreign(state, byte) {
            true => self.foreign.get_or_insert_with(next).clone(),
            false => next(),
        }
    }

    /// Position of the next transition to try.
    fn next_way(&mut self) -> Option<usize> {
        let Self { node, here: Onward { ways, .. }, tried, other, .. } = self;
        if let Ways::Some(letters) = ways {
            while let Some(letter) = letters.get(*tried) {
                *tried += 1;
                if let Some(way) = node.find_input(letter) {
                    return Some(way);
                }
            }
        }
        let next = match ways {
            Ways::All => tried,
            Ways::Some(_) => other.get_or_insert_with(|| first_beyond_ascii(node)),
        };
        *next += 1;
        (*next <= node.len()).then(|| *next - 1)
    }
}

/// Position of the first non-ASCII transition; transitions are in ascending order.
fn first_beyond_ascii(node: &Node<'_>) -> usize {
    let is_ascii = |way: &usize| node.transition(*way).inp.is_ascii();
    (0..node.len()).rev().find(is_ascii).map_or(0, |last| last + 1)
}
