//! Senses of words as a text writes them.

use crate::key::key;
use crate::row::EntityKind;
use crate::words::{LISTED_BYTES_MAX, Senses, senses};

/// Looks up the senses of a word as written in a text.
pub(super) fn senses_of(word: &str) -> Senses {
    let mut buffer = [0; LISTED_BYTES_MAX];
    match buffer.get_mut(..word.len()) {
        Some(folded) if word.is_ascii() => {
            folded.copy_from_slice(word.as_bytes());
            folded.make_ascii_lowercase();
            senses(std::str::from_utf8(folded).expect("ASCII"))
        }
        Some(_) => senses(key(word).as_str()),
        None => Senses::default(),
    }
}

/// The kind of thing that a noun denotes, in the singular or the plural.
pub(super) fn kind_of_noun(noun: &str) -> Option<EntityKind> {
    let singular = || senses_of(noun.strip_suffix('s')?).kind;
    senses_of(noun).kind.or_else(singular)
}
