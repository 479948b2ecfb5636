//! Cuts a finished answer into the pieces of a stream.

/// Characters of a delta at most; only text without spaces needs the limit.
const DELTA_CHARS_MAX: usize = 32;

/// The deltas of an answer, one word with the white space behind it each. Joined they are the
/// text, byte for byte; none is empty.
pub fn deltas(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(char::is_whitespace).flat_map(bounded)
}

fn bounded(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(DELTA_CHARS_MAX).map_or(rest.len(), |(at, _)| at);
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
        assert_eq!(deltas("Yes, it is. [1]").collect::<Vec<_>>(), ["Yes, ", "it ", "is. ", "[1]"]);
        assert_eq!(deltas("").count(), 0);
        assert_eq!(deltas(&"塔".repeat(65)).count(), 3);
    }

    proptest! {
        #[test]
        fn joined_deltas_are_the_text(text in "[\\PC \n]{0,200}") {
            prop_assert_eq!(deltas(&text).collect::<String>(), text.clone());
            for delta in deltas(&text) {
                prop_assert!((1..=DELTA_CHARS_MAX).contains(&delta.chars().count()));
            }
        }
    }
}
