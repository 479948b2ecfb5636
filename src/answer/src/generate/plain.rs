//! Plain text of documents for a prompt: no hidden characters, and nothing that looks like a
//! citation.

use lodestone_types::quoted::visible;

/// A text without characters that hide or reorder others, and without brackets that look like
/// citations.
pub(super) fn plain(text: &str) -> String {
    crate::text::shown::unmarked(&visible(text))
}

/// A text in one line, for titles; otherwise as [`plain`].
pub(super) fn plain_line(text: &str) -> String {
    plain(&crate::text::snippet::folded(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_is_dropped() {
        assert_eq!(plain("a\u{200B}b\u{202E}c\r\n\u{E0041}d [3]\te"), "abc\nd (3)\te");
        assert_eq!(plain_line("Title\n>>> end [1]"), "Title >>> end (1)");
    }
}
