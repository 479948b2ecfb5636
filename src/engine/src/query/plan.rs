//! Decisions before a search: the share of meaning, and the number of candidates.

use crate::query::request::{Alpha, Mode};
use lodestone_embed::Embedder;
use lodestone_storage::segment::flat::Thoroughness;
use lodestone_types::limits;

/// The best single share over the judged collections (RETRIEVAL 1.1), and so the one for queries
/// that give no reason for another.
const ALPHA_QUESTION: f32 = 0.8;
const ALPHA_PLAIN: f32 = 0.75;
const ALPHA_MIXED: f32 = 0.7;
const ALPHA_SHORT: f32 = 0.6;
const ALPHA_LITERAL: f32 = 0.35;
/// A script that the model cannot read tells chunks apart by chance.
const ALPHA_UNREAD: f32 = 0.5;
/// Tokens per letter from which a query counts as unread: a model knows its own languages by words
/// and pieces of words (about .25 tokens a letter), and spells what it does not know (1).
const UNREAD_TOKENS_PER_LETTER: f32 = 0.7;
/// Words from which a query is a sentence, with or without a question mark.
const SENTENCE_WORDS: usize = 8;

/// The share to use and, for `auto`, the rule that chose it.
pub(super) fn alpha(
    wanted: Alpha,
    query: &str,
    embedder: &dyn Embedder,
) -> (f32, Option<&'static str>) {
    match wanted {
        Alpha::Fixed(alpha) => (alpha, None),
        Alpha::Auto => {
            let (alpha, reason) = auto(query, |query| embedder.count_tokens(query));
            (alpha, Some(reason))
        }
    }
}

/// A rule on the query's form. Words that must occur as they stand (quoted phrases, codes,
/// identifiers) speak for the keyword leg, as the model has seen few of them; so does a script
/// that the model spells letter by letter. Sentences speak for the semantic leg; one or two plain
/// words carry little meaning to compare.
fn auto(query: &str, count_tokens: impl Fn(&str) -> usize) -> (f32, &'static str) {
    let words: Vec<&str> = query.split_whitespace().collect();
    let quotes = query.matches(['"', '\u{201c}', '\u{201d}', '\u{ab}', '\u{bb}']).count();
    let literal = words.iter().filter(|word| is_literal(word)).count();
    if quotes >= 2 {
        return (ALPHA_LITERAL, "quoted phrase");
    }
    if literal > 0 && literal * 2 >= words.len() {
        return (ALPHA_LITERAL, "codes or identifiers");
    }
    let letters = query.chars().filter(|c| c.is_alphabetic()).count();
    if letters > 0 && count_tokens(query) as f32 > UNREAD_TOKENS_PER_LETTER * letters as f32 {
        return (ALPHA_UNREAD, "a script that the embedding model cannot read");
    }
    if literal > 0 {
        return (ALPHA_MIXED, "a code or identifier among words");
    }
    let is_spaced = query.chars().filter(|c| c.is_alphabetic()).all(|c| (c as u32) < 0x2e80);
    if is_spaced && words.len() <= 2 {
        return (ALPHA_SHORT, "very short query");
    }
    if query.trim_end().ends_with(['?', '\u{ff1f}']) || words.len() >= SENTENCE_WORDS {
        return (ALPHA_QUESTION, "natural-language question");
    }
    (ALPHA_PLAIN, "plain query")
}

/// Codes and identifiers: digits beside letters, snake_case, camelCase, paths, calls.
fn is_literal(word: &str) -> bool {
    let word = word.trim_matches(|c: char| c.is_ascii_punctuation() && c != '_');
    if word.chars().count() < 2 {
        return false;
    }
    let has_digit = word.chars().any(|c| c.is_ascii_digit());
    let has_letter = word.chars().any(char::is_alphabetic);
    let is_camel =
        word.chars().zip(word.chars().skip(1)).any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    let is_joined = word.contains('_') || word.contains("::") || word.contains("()");
    let is_number_of_digits = has_digit && word.chars().filter(char::is_ascii_digit).count() >= 5;
    (has_digit && has_letter) || is_camel || is_joined || is_number_of_digits
}

/// Candidates per leg: as many as can be returned, and at least a hundred, which is as good as a
/// thousand where the union gets true scores (RETRIEVAL 1.2).
pub(super) fn pool(mode: Mode, max_chunks: usize) -> usize {
    let pool = max_chunks.max(limits::CANDIDATES_MIN);
    match mode {
        Mode::Fast => pool,
        Mode::Accurate => pool * 3,
    }
}

/// `accurate` searches exactly.
pub(super) fn thoroughness(mode: Mode) -> Thoroughness {
    match mode {
        Mode::Fast => Thoroughness::Probing,
        Mode::Accurate => Thoroughness::Exact,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodestone_embed::HashEmbedder;

    /// A token for four letters of Latin script, one for every other letter.
    fn pieces(query: &str) -> usize {
        query.chars().filter(|c| !c.is_ascii()).count() + query.len() / 4
    }

    #[test]
    fn the_form_of_the_query_decides() {
        let auto = |query| auto(query, pieces).0;
        let literal = ["\"exact words\"", "ERR_CONN_4012", "getUserName", "SKU-99812 x7"];
        for query in literal {
            assert_eq!(auto(query), ALPHA_LITERAL, "{query}");
        }
        assert_eq!(auto("what is wing flutter?"), ALPHA_QUESTION);
        assert_eq!(auto("wing"), ALPHA_SHORT);
        assert_eq!(auto("supersonic flow over blunt bodies"), ALPHA_PLAIN);
        assert_eq!(auto("where is parse_config called in the code"), ALPHA_MIXED);
        let (chinese, russian) = ("最高的山", "где");
        assert_eq!((auto(chinese), auto(russian)), (ALPHA_UNREAD, ALPHA_UNREAD));
        assert_eq!(alpha(Alpha::Fixed(0.3), "x", &HashEmbedder), (0.3, None));
    }

    #[test]
    fn a_pool_is_never_smaller_than_the_result() {
        assert_eq!(pool(Mode::Fast, 10), 100);
        assert_eq!(pool(Mode::Fast, 1001), 1001);
        assert!(pool(Mode::Accurate, 1001) >= 1001);
    }
}
