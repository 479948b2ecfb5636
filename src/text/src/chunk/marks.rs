//! Characters at the end of sentences that cutting and answering read alike.

/// Marks of Chinese and Japanese that end a sentence, whatever follows.
pub fn is_wide_end(c: char) -> bool {
    matches!(c, '。' | '\u{FF01}' | '\u{FF1F}' | '\u{FF0E}' | '\u{FF61}')
}

/// Quotes, brackets and emphasis that may stand between the end of a sentence and the next.
pub fn is_closer(c: char) -> bool {
    [
        '"', '\'', ')', ']', '}', '*', '_', '\u{2019}', '\u{201C}', '\u{201D}', '\u{BB}', '」',
        '』', '\u{FF09}', '】', '》',
    ]
    .contains(&c)
}
