//! Document text quoted as data for a language model: between fences that it cannot contain, and
//! stripped of invisible characters.

use crate::IdSource;

/// 128 random bits, which the author of a document cannot guess.
const FENCE_BYTES: usize = 16;

/// Draws a fresh fence that occurs in none of `texts`.
pub fn fence(ids: &dyn IdSource, texts: &[&str]) -> String {
    loop {
        let mut bytes = [0; FENCE_BYTES];
        ids.fill(&mut bytes);
        let fence: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        // A collision never happens by chance, but an id source that repeats itself would cause
        // one.
        if !texts.iter().any(|text| text.contains(&fence)) {
            return fence;
        }
    }
}

/// Removes characters that hide or reorder others.
pub fn visible(text: &str) -> String {
    text.chars().filter(|c| !is_hidden(*c)).collect()
}

/// Whether the character is a control character other than tab and line feed, has no width, changes
/// the writing direction, or is one of the tag characters that spell out ASCII invisibly.
fn is_hidden(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}'..='\u{200F}'
            | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}'
            | '\u{E0000}'..='\u{E007F}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SeededIds;

    #[test]
    fn a_fence_that_is_in_a_text_is_not_taken() {
        let known = fence(&SeededIds::new(7), &[]);
        let drawn = fence(&SeededIds::new(7), &["harmless", &format!("x{known}x")]);
        assert_ne!(known, drawn);
        assert_eq!(drawn.len(), 32);
    }

    #[test]
    fn hidden_characters_are_dropped() {
        assert_eq!(visible("a\u{200B}b\u{202E}c\r\n\u{E0041}d\te"), "abc\nd\te");
    }
}
