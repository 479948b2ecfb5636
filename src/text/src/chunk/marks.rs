//! Sentence-ending characters, shared by chunking and answering.

/// Whether the character is a Chinese or Japanese mark that always ends a sentence.
pub fn is_wide_end(c: char) -> bool {
    matches!(c, '。' | '\u{FF01}' | '\u{FF1F}' | '\u{FF0E}' | '\u{FF61}')
}

/// Whether the character is a quote, bracket or emphasis mark that may stand between the end of a
/// sentence and the next one.
pub fn is_closer(c: char) -> bool {
    [
        '"', '\'', ')', ']', '}', '*', '_', '\u{2019}', '\u{201C}', '\u{201D}', '\u{BB}', '」',
        '』', '\u{FF09}', '】', '》',
    ]
    .contains(&c)
}
