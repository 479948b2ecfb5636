//! Plain text of documents for prompts, without hidden characters or apparent citations.

use lodestone_types::quoted::visible;

/// Removes characters that hide or reorder others, and replaces brackets that look like citations.
pub(super) fn plain(text: &str) -> String {
    crate::text::shown::unmarked(&visible(text))
}

/// Like [`plain`], but on one line, for titles.
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
