//! The text that a model reads for a chunk: context first, then the chunk's own text.

/// Context of a chunk that is not part of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Surroundings<'a> {
    /// Title of the source; empty if it is merely the id.
    pub title: &'a str,
    /// Searchable values of the source, one per line.
    pub searchable: &'a str,
    /// Headings and header row above the chunk (see [`contexts`](crate::chunk::contexts)).
    pub context: &'a str,
}

/// Joins title, searchable values, headings and text. A title that the text starts with is not
/// repeated.
pub fn passage(around: Surroundings<'_>, text: &str) -> String {
    let Surroundings { title, searchable, context } = around;
    let is_repeated = text.trim_start_matches(['#', ' ']).starts_with(title);
    let title = if is_repeated { "" } else { title };
    let parts = [title, searchable, context, text];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_that_the_text_begins_with_is_not_repeated() {
        let passage = |title, searchable, context, text| {
            passage(Surroundings { title, searchable, context }, text)
        };
        assert_eq!(passage("Wings", "", "", "Wings\n\nlift"), "Wings\n\nlift");
        assert_eq!(passage("Wings", "", "", "# Wings\nlift"), "# Wings\nlift");
        assert_eq!(passage("Wings", "blue", "", "lift"), "Wings\nblue\nlift");
        assert_eq!(
            passage("Wings", "", "Flaps\n| a | b |", "lift"),
            "Wings\nFlaps\n| a | b |\nlift"
        );
        assert_eq!(passage("", "", "", "lift"), "lift");
    }
}
