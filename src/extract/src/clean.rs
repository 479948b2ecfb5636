//! Replacement of characters meant for display: ligatures, letter shapes, zero-width marks.
//!
//! A page shows a single glyph for "fi" and joined shapes of Arabic letters, while a question is
//! typed in plain letters. Only such characters are replaced: full normalisation would also turn
//! superscripts into digits and halfwidth forms into fullwidth ones, which the text index does for
//! itself.
//!
//! Line endings become LF here too, and U+0000 is dropped: decoding yields neither, but formats can
//! write any character as a number (`&#13;`, `\'00`).

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// Replaces presentation forms by their letters, and drops invisible characters: soft hyphens,
/// zero-width spaces, direction marks (text is in logical order anyway).
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    let is_plain = text.bytes().all(|b| b.is_ascii() && b != b'\r' && b != 0);
    let is_changed = |c| is_dropped(c) || is_presentation(c) || c == '\r';
    if is_plain || !text.chars().any(is_changed) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        if c == '\r' {
            if characters.peek() != Some(&'\n') {
                plain.push('\n');
            }
        } else if is_presentation(c) {
            plain.extend(std::iter::once(c).nfkc());
        } else if !is_dropped(c) {
            plain.push(c);
        }
    }
    Cow::Owned(plain)
}

/// Whether the character is dropped. Joiners (U+200C, U+200D) belong to Persian words and to emoji,
/// and stay.
fn is_dropped(c: char) -> bool {
    matches!(
        c,
        '\0' | '\u{AD}' | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{202A}'
            ..='\u{202E}' | '\u{2060}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}'
    )
}

/// Whether the character is a Latin or Armenian ligature, or a Hebrew or Arabic presentation form;
/// excludes the ornate ones, whose normal form is a whole sentence.
fn is_presentation(c: char) -> bool {
    matches!(
        c,
        '\u{FB00}'..='\u{FB06}'
            | '\u{FB13}'..='\u{FB17}'
            | '\u{FB1D}'..='\u{FB4F}'
            | '\u{FB50}'..='\u{FBB1}'
            | '\u{FBD3}'..='\u{FD3D}'
            | '\u{FD50}'..='\u{FDC7}'
            | '\u{FE70}'..='\u{FEFC}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_become_letters() {
        assert_eq!(
            clean("e\u{FB03}cient \u{FB02}ow, co\u{AD}operate"),
            "efficient flow, cooperate"
        );
        assert_eq!(clean("\u{FEB3}\u{FEFC}\u{FEE1}"), "\u{633}\u{644}\u{627}\u{645}");
        assert_eq!(clean("\u{202E}abc\u{202C} m\u{200C}n x²"), "abc m\u{200C}n x²");
        assert!(matches!(clean("café"), Cow::Borrowed(_)));
    }

    #[test]
    fn line_ends_are_one_and_nothing_is_nul() {
        assert_eq!(clean("a\r\nb\rc\r\r\n\0d"), "a\nb\nc\n\nd");
        assert!(matches!(clean("a\nb"), Cow::Borrowed(_)));
    }
}
