//! Warnings about parts of a document that could not be read, although the rest was.

use serde::{Deserialize, Serialize};

/// Maximum number of pages listed in one warning; its message counts all of them.
const PAGES_MAX: usize = 100;

/// A part of a document that was not read, or was read differently from what its format calls for.
/// Stored with the source, and shown in listings and by `verify_processing`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// A stable code for programs. Not an enum, because stored sources outlive the release that
    /// read them.
    pub code: String,
    /// A message for people.
    pub message: String,
    /// The affected pages, from 1; empty if the warning is not about pages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pages: Vec<u32>,
}

impl Warning {
    /// Text on these pages could not be read, because the fonts do not map glyphs to letters.
    pub fn unreadable_pages(pages: &[u32]) -> Self {
        Self::about_pages(
            "unreadable_pages",
            "text could not be read, because its fonts do not map glyphs to letters,",
            pages,
        )
    }

    /// These pages contain pictures but no text.
    pub fn pages_without_text(pages: &[u32]) -> Self {
        Self::about_pages("pages_without_text", "there are only pictures and no text", pages)
    }

    /// A text violates its format and was read as plain text instead.
    pub fn read_as_text(problem: &str) -> Self {
        let message = format!("it was read as plain text: {problem}");
        Self { code: "read_as_text".to_owned(), message, pages: Vec::new() }
    }

    /// The file is truncated; the missing end was not read.
    pub fn cut_off() -> Self {
        let message = "the end of the file is missing and was not read".to_owned();
        Self { code: "cut_off".to_owned(), message, pages: Vec::new() }
    }

    /// A file attached to the document was not read.
    pub fn attachment_not_read(name: &str, problem: &str) -> Self {
        let message = format!("the attachment {name} was not read: {problem}");
        Self { code: "attachment_not_read".to_owned(), message, pages: Vec::new() }
    }

    /// `count` formulas have no cached value, because the program that wrote the workbook does not
    /// calculate.
    pub fn formulas_without_values(count: usize) -> Self {
        let noun = if count == 1 { "formula has" } else { "formulas have" };
        let message = format!(
            "{count} {noun} no stored value: open the workbook in a spreadsheet program, \
             save it there and upload it again"
        );
        Self { code: "formulas_without_values".to_owned(), message, pages: Vec::new() }
    }

    fn about_pages(code: &str, problem: &str, pages: &[u32]) -> Self {
        let listed = &pages[..pages.len().min(PAGES_MAX)];
        let shown: Vec<String> = listed.iter().take(10).map(u32::to_string).collect();
        let more = match pages.len().checked_sub(shown.len()) {
            Some(more) if more > 0 => format!(" and {more} more"),
            _ => String::new(),
        };
        let noun = if pages.len() == 1 { "page" } else { "pages" };
        let message = format!("{problem} on {noun} {}{more}", shown.join(", "));
        Self { code: code.to_owned(), message, pages: listed.to_vec() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_named_up_to_a_bound_and_counted_beyond() {
        let one = Warning::pages_without_text(&[3]);
        assert_eq!(one.message, "there are only pictures and no text on page 3");
        assert_eq!(one.pages, [3]);
        let all: Vec<u32> = (1..=5000).collect();
        let many = Warning::pages_without_text(&all);
        assert!(many.message.ends_with("on pages 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 4990 more"));
        assert_eq!(many.pages, all[..PAGES_MAX]);
    }
}
