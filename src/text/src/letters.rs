//! Alphabets that have a stemmer.

/// An alphabet with its own stemmer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Letters {
    /// Latin letters, and the apostrophe inside words.
    Latin,
    /// The Russian alphabet.
    Russian,
    Greek,
    /// Letters and vowel signs of Arabic, without those specific to Persian and Urdu.
    Arabic,
}

impl Letters {
    /// The alphabet of a folded word, if all of its letters belong to the same one.
    pub(super) fn of(folded: &str) -> Option<Self> {
        let family = Self::of_char(folded.chars().next()?)?;
        folded.chars().all(|c| Self::of_char(c) == Some(family)).then_some(family)
    }

    fn of_char(c: char) -> Option<Self> {
        match c as u32 {
            0x27 | 0x61..=0x7A => Some(Self::Latin),
            0xC0..=0x24F | 0x1E00..=0x1EFF if c.is_alphabetic() => Some(Self::Latin),
            0x430..=0x44F | 0x451 => Some(Self::Russian),
            0x370..=0x3FF | 0x1F00..=0x1FFF if c.is_alphabetic() => Some(Self::Greek),
            0x621..=0x63A | 0x640..=0x652 | 0x670 => Some(Self::Arabic),
            _ => None,
        }
    }
}
