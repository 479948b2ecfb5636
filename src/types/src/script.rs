//! Character classes by script: written without spaces between words, wide, or invisible.

/// Whether the character belongs to a script written without spaces between words: Han with
/// Bopomofo, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar. Digits and punctuation of these scripts
/// are not included.
pub fn is_unspaced(c: char) -> bool {
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

/// Whether the character belongs to a phonetic script without spaces: Thai, Lao, Myanmar, Khmer.
/// There a word takes several characters, while in Han or Kana it takes one or two.
pub fn is_unspaced_letter(c: char) -> bool {
    is_unspaced(c)
        && matches!(c as u32,
            0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0xA9E0..=0xA9FF | 0xAA60..=0xAA7F)
}

/// Whether the character lies in a block of a script without spaces, including digits and
/// punctuation but not Bopomofo and rare extensions.
///
/// Keys of the stored graph are split by this class. [`is_unspaced`] is more precise, but would
/// split numbers in Thai digits differently, so stored keys would no longer be found.
pub fn is_in_unspaced_block(c: char) -> bool {
    matches!(c as u32,
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x2E80..=0x2FDF | 0x3005..=0x3007
        | 0x3041..=0x309F | 0x30A1..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF
        | 0xF900..=0xFAFF | 0x20000..=0x323AF)
}

/// Whether the character is Hangul. Korean separates phrases by spaces, but not a noun from its
/// particles.
pub fn is_hangul(c: char) -> bool {
    matches!(c as u32,
        0x1100..=0x11FF | 0x3131..=0x318E | 0xA960..=0xA97C | 0xAC00..=0xD7A3 | 0xD7B0..=0xD7FB)
}

/// Whether the character is as wide as two Latin letters and not Hangul: lines of such text are
/// joined without a space.
pub fn is_wide(c: char) -> bool {
    matches!(c as u32, 0x3000..=0x30FF | 0x3400..=0x9FFF | 0xFF00..=0xFFEF)
}

/// Whether the character is at or above U+3000, the start of the Chinese and Japanese symbols: all
/// East Asian scripts including Hangul, but also emoji. Broader than [`is_wide`], since questions
/// in Korean are matched by runs of characters too.
pub fn is_east_asian(c: char) -> bool {
    c as u32 >= 0x3000
}

/// Whether the character is invisible and irrelevant for comparison: soft hyphens, joiners,
/// direction marks, variation selectors (the part of Unicode's `Default_Ignorable_Code_Point` that
/// occurs inside words).
pub fn is_ignorable(c: char) -> bool {
    matches!(c as u32,
        0x00AD | 0x034F | 0x061C | 0x180B..=0x180F | 0x200B..=0x200F | 0x202A..=0x202E
        | 0x2060..=0x206F | 0xFE00..=0xFE0F | 0xFEFF | 0xE0000..=0xE0FFF)
}
