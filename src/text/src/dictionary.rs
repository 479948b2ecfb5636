//! The words of a field as an automaton (FST), and a walk of it that finds words similar to a
//! pattern.
//!
//! ```text
//! file of a field: automaton, places of postings | u64 bytes of the places | u32 x 2 versions
//! ```
//! The index library can walk it too, but reads every node before it asks whether the pattern can
//! still match behind it; that is most of the cost of a walk.

use std::io;

use tantivy::HasLen;
use tantivy::directory::{FileSlice, OwnedBytes};
use tantivy_fst::raw::{Fst, Node};

use crate::pattern::{Likeness, Pattern, State, Ways};

/// Bytes behind the places.
const FOOTER_BYTES: usize = 16;

/// The words of a field.
pub(super) struct Dictionary(Option<Fst<OwnedBytes>>);

impl Dictionary {
    /// Opens the file of a field; without one there are no words.
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

    /// Calls `each` with the words that are similar to the pattern's, ascending, and with their
    /// likeness, until it returns false. Ends early after `steps` bytes.
    pub(super) fn walk(
        &self,
        pattern: &Pattern,
        steps: u32,
        mut each: impl FnMut(&str, Likeness) -> bool,
    ) {
        let Some(automaton) = &self.0 else { return };
        let mut word = Vec::new();
        let mut path =
            vec![NodeCursor::new(automaton.root(), Onward::of(pattern, pattern.start()))];
        let mut steps_left = steps;
        while let Some(cursor) = path.last_mut() {
            let Some(way) = cursor.next_way().filter(|_| steps_left > 0) else {
                path.pop();
                word.pop();
                continue;
            };
            steps_left -= 1;
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

    /// A dictionary of ascending words.
    #[cfg(test)]
    pub(super) fn of_words(words: &[String]) -> Self {
        let mut builder = tantivy_fst::MapBuilder::memory();
        for (at, word) in words.iter().enumerate() {
            builder.insert(word, at as u64).unwrap();
        }
        Self(Some(Fst::new(OwnedBytes::new(builder.into_inner().unwrap())).unwrap()))
    }
}

/// State of the pattern after a part of a word, and the letters that may follow.
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

/// A node on the path from the root, and the transitions out of it that were tried.
struct NodeCursor<'f> {
    node: Node<'f>,
    here: Onward,
    /// State after a letter that the pattern does not contain, once computed: most transitions of a
    /// node are such letters.
    foreign: Option<Option<Onward>>,
    /// Number of letters that were tried, where only some may follow; else of transitions.
    tried: usize,
    /// The first transition that is not ASCII, once the ASCII ones were tried.
    other: Option<usize>,
}

impl<'f> NodeCursor<'f> {
    fn new(node: Node<'f>, here: Onward) -> Self {
        Self { node, here, foreign: None, tried: 0, other: None }
    }

    /// State after a further byte; `None` where no similar word continues with it.
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

/// Position of the first transition that is not ASCII; transitions ascend.
fn first_beyond_ascii(node: &Node<'_>) -> usize {
    let is_ascii = |way: &usize| node.transition(*way).inp.is_ascii();
    (0..node.len()).rev().find(is_ascii).map_or(0, |last| last + 1)
}
