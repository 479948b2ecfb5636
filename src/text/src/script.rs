//! Classes of characters that decide how text is cut into tokens.

/// Whether words of the script are written without spaces between them (API 8.14):
/// Han with Bopomofo, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar. Their digits and
/// punctuation are not part of a run.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(c as u32,
        0x0E01..=0x0E3A | 0x0E40..=0x0E4E          // Thai
        | 0x0E81..=0x0ECE | 0x0EDC..=0x0EDF        // Lao
        | 0x1000..=0x103F | 0x1050..=0x108F        // Myanmar
        | 0x109A..=0x109D | 0xA9E0..=0xA9EF | 0xA9FA..=0xA9FE | 0xAA60..=0xAA7F
        | 0x1780..=0x17D3 | 0x17D7 | 0x17DC..=0x17DD // Khmer
        | 0x2E80..=0x2FDF | 0x3005..=0x3007 | 0x3021..=0x3029 | 0x3038..=0x303B // Han
        | 0x3041..=0x309A | 0x309D..=0x309F        // Hiragana
        | 0x30A1..=0x30FA | 0x30FC..=0x30FF        // Katakana
        | 0x3105..=0x312F | 0x31A0..=0x31BF | 0x31F0..=0x31FF
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF
        | 0x1AFF0..=0x1B16F | 0x20000..=0x323AF)
}

/// Hangul. Korean puts spaces between phrases, not between a noun and its particles, so the
/// hybrid field takes bigrams; full-text search compares what stands between spaces.
pub(super) fn is_hangul(c: char) -> bool {
    matches!(c as u32,
        0x1100..=0x11FF | 0x3131..=0x318E | 0xA960..=0xA97C | 0xAC00..=0xD7A3 | 0xD7B0..=0xD7FB)
}

/// A family of words that one stemmer knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Letters {
    /// Latin letters, and the apostrophe inside a word.
    Latin,
    /// The letters of Russian.
    Russian,
    Greek,
    /// Letters and vowel signs of Arabic, without those of Persian and Urdu.
    Arabic,
}

impl Letters {
    /// The family of a folded word of which every letter belongs to one.
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

/// Characters that are invisible and carry no meaning for comparison (the part of Unicode's
/// Default_Ignorable_Code_Point that is found inside words): soft hyphen, joiners, marks of
/// direction, variation selectors.
pub(super) fn is_ignorable(c: char) -> bool {
    matches!(c as u32,
        0x00AD | 0x034F | 0x061C | 0x180B..=0x180F | 0x200B..=0x200F | 0x202A..=0x202E
        | 0x2060..=0x206F | 0xFE00..=0xFE0F | 0xFEFF | 0xE0000..=0xE0FFF)
}
