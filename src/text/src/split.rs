//! Splits a text in NFKC into words (UAX #29) and runs of scripts without spaces.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

/// One piece of a text, with its byte range.
pub(super) enum Piece<'a> {
    /// A word with at least one letter or digit. Combining marks stay with their letters.
    Word(&'a str, Range<usize>),
    /// A maximal run of the characters that [`split`] keeps together.
    Run(&'a str, Range<usize>),
}

/// Calls `each` with every word, and every run of characters that satisfy `in_run`, in order.
pub(super) fn split(text: &str, in_run: impl Fn(char) -> bool, mut each: impl FnMut(Piece<'_>)) {
    if text.is_ascii() {
        return words(text, 0, &mut each);
    }
    let mut from = 0;
    while let Some(start) = text[from..].find(&in_run).map(|at| from + at) {
        words(&text[from..start], from, &mut each);
        let end = text[start..].find(|c| !in_run(c)).map_or(text.len(), |at| start + at);
        each(Piece::Run(&text[start..end], start..end));
        from = end;
    }
    words(&text[from..], from, &mut each);
}

fn words(text: &str, base: usize, each: &mut impl FnMut(Piece<'_>)) {
    for (at, word) in text.unicode_word_indices() {
        each(Piece::Word(word, base + at..base + at + word.len()));
    }
}
