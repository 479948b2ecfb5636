//! The text that a model reads for a chunk: the words of its source before its own.

/// Joins title, searchable values and text; a title that the text begins with is not repeated.
pub fn passage(title: &str, searchable: &str, text: &str) -> String {
    let is_repeated = text.trim_start_matches(['#', ' ']).starts_with(title);
    let title = if is_repeated { "" } else { title };
    let parts = [title, searchable, text];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_that_the_text_begins_with_is_not_repeated() {
        assert_eq!(passage("Wings", "", "Wings\n\nlift"), "Wings\n\nlift");
        assert_eq!(passage("Wings", "", "# Wings\nlift"), "# Wings\nlift");
        assert_eq!(passage("Wings", "blue", "lift"), "Wings\nblue\nlift");
        assert_eq!(passage("", "", "lift"), "lift");
    }
}
