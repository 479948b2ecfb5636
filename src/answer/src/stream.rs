//! Cuts a finished answer into the deltas of a stream.

/// Maximum characters per word; only text without spaces reaches it.
const WORD_CHARS_MAX: usize = 32;

/// Maximum number of deltas per answer.
pub const DELTAS_MAX: usize = 48;

/// Splits an answer into deltas: words with their trailing white space, adjacent words joined so
/// that there are at most [`DELTAS_MAX`]. Concatenated, the deltas are the text, byte for byte;
/// none is empty.
pub fn deltas(text: &str) -> Vec<String> {
    let words: Vec<&str> = words(text).collect();
    let joined = words.len().div_ceil(DELTAS_MAX).max(1);
    words.chunks(joined).map(|run| run.concat()).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(char::is_whitespace).flat_map(bounded)
}

fn bounded(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(WORD_CHARS_MAX).map_or(rest.len(), |(at, _)| at);
        let (head, tail) = rest.split_at(end);
        rest = tail;
        (!head.is_empty()).then_some(head)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_keep_their_spaces() {
        assert_eq!(deltas("Yes, it is. [1]"), ["Yes, ", "it ", "is. ", "[1]"]);
        assert_eq!(deltas("").len(), 0);
        assert_eq!(deltas(&"塔".repeat(65)).len(), 3);
    }

    proptest! {
        #[test]
        fn joined_deltas_are_the_text(text in "[\\PC \n]{0,200}") {
            let deltas = deltas(&text);
            prop_assert_eq!(deltas.concat(), text);
            prop_assert!(deltas.len() <= DELTAS_MAX && deltas.iter().all(|one| !one.is_empty()));
        }
    }
}
