//! Mutations: changes to inputs that a format's reader does not reject immediately.
//!
//! - `bytes`: changes to arbitrary bytes; `tokens`: to numbers and words of a notation
//! - `markup`: tags of XML and HTML; `values`: JSON
//! - `archive`: parts of a repacked ZIP; `compound`: streams and sectors of a compound file
//! - `objects`: a PDF whose cross-reference table is rebuilt

mod archive;
mod bytes;
mod compound;
mod markup;
mod objects;
mod tokens;
mod values;

use crate::chance::Chance;

/// The kind of an input.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// Text with its own vocabulary.
    Text(&'static [&'static str]),
    Markup,
    Values,
    Archive,
    Compound,
    Objects,
    /// The seeds are of several kinds.
    Anything,
}

impl Shape {
    /// Derives another input from `base`; `other` donates parts.
    pub fn mutate(self, chance: &mut Chance, base: &[u8], other: &[u8]) -> Vec<u8> {
        if chance.one_in(8) {
            return bytes::mutate(chance, base, other);
        }
        match self {
            Self::Text(words) if chance.one_in(2) => tokens::mutate(chance, base, words),
            Self::Text(_) => bytes::mutate(chance, base, other),
            Self::Markup => markup::mutate(chance, base, other),
            Self::Values => values::mutate(chance, base, other),
            Self::Archive => archive::mutate(chance, base, other),
            Self::Compound => compound::mutate(chance, base, other),
            Self::Objects => objects::mutate(chance, base, other),
            Self::Anything if base.starts_with(b"PK") => archive::mutate(chance, base, other),
            Self::Anything if base.starts_with(b"<") => markup::mutate(chance, base, other),
            Self::Anything => bytes::mutate(chance, base, other),
        }
    }
}
