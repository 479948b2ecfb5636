//! Decisions made before a search: the weight of vectors against words (alpha), and the number of
//! candidates.

use crate::query::request::{Alpha, Mode, RetrieveRequest};
use lodestone_embed::Embedder;
use lodestone_storage::segment::flat::Thoroughness;
use lodestone_types::limits;

/// The best single weight of vectors over the judged collections, used for queries that give no
/// reason for another.
const ALPHA_DEFAULT: f32 = 0.8;
const ALPHA_MIXED: f32 = 0.7;
const ALPHA_LITERAL: f32 = 0.35;
/// Weight of vectors if the model cannot read the script of the query: its cosines are close to
/// random then, so words decide, and vectors only break ties among them.
const ALPHA_UNREAD: f32 = 0.2;
/// Weight of the sparse leg, equal to that of the words beside it. Not fitted to judged
/// collections.
pub(super) const SPARSE_SHARE: f32 = 0.2;
/// Share of a query's letters from which it counts as unreadable by the model.
const UNREAD_SHARE: f32 = 0.5;
/// Maximum letters of an ordinal, unit or decade suffix after a number: 19th, 10km, 1990s.
const UNIT_LETTERS_MAX: usize = 3;
/// Number of digits from which a number counts as a code; a year has four.
const CODE_DIGITS: usize = 5;

/// Chooses the weight of vectors; also returns the rule that chose it, if one did.
pub(super) fn alpha(
    wanted: Alpha,
    query: &str,
    embedder: &dyn Embedder,
) -> (f32, Option<&'static str>) {
    let is_unread = || is_unread(query, embedder);
    match wanted {
        Alpha::Fixed(alpha) => (alpha, None),
        Alpha::Default | Alpha::Auto if is_unread() => {
            (ALPHA_UNREAD, Some("a script that the embedding model cannot read"))
        }
        Alpha::Default => (ALPHA_DEFAULT, None),
        Alpha::Auto => {
            let (alpha, reason) = by_form(query);
            (alpha, Some(reason))
        }
    }
}

/// Chooses by the form of the query. Words that must occur literally (codes, identifiers) favor the
/// keyword leg, because the model has seen few of them. Quotes, question marks and the number of
/// words are ignored: rules on them cost nDCG@10 on every judged collection that has such queries.
fn by_form(query: &str) -> (f32, &'static str) {
    let words: Vec<&str> = query.split_whitespace().collect();
    let literal = words.iter().filter(|word| is_literal(word)).count();
    if literal > 0 && literal * 2 >= words.len() {
        return (ALPHA_LITERAL, "codes or identifiers");
    }
    if literal > 0 {
        return (ALPHA_MIXED, "a code or identifier among words");
    }
    (ALPHA_DEFAULT, "no code or identifier")
}

/// Whether the model cannot read the script of a query.
pub(super) fn is_unread(query: &str, embedder: &dyn Embedder) -> bool {
    embedder.unread_share(query) > UNREAD_SHARE
}

/// Whether a word is a code or identifier: digits next to letters, snake_case, camelCase, paths,
/// calls. A number with a unit (19th, 10km) or a name with a year (FY2018, 1990s) is not.
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
    let is_number_of_digits =
        has_digit && word.chars().filter(char::is_ascii_digit).count() >= CODE_DIGITS;
    let is_code = has_digit && has_letter && !is_quantity(word) && !is_dated(word);
    is_code || is_camel || is_joined || is_number_of_digits
}

/// Whether a word is a number with a short unit or suffix.
fn is_quantity(word: &str) -> bool {
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ',');
    unit.len() < word.len()
        && unit.chars().all(char::is_alphabetic)
        && unit.chars().count() <= UNIT_LETTERS_MAX
}

/// Whether a word is letters followed by a four-digit year.
fn is_dated(word: &str) -> bool {
    let year = word.trim_start_matches(|c: char| c.is_alphabetic() || c == '-' || c == '\'');
    let is_year = year.len() == 4 && (year.starts_with("19") || year.starts_with("20"));
    is_year && year.len() < word.len() && year.bytes().all(|b| b.is_ascii_digit())
}

/// Candidates per leg: as many as can be returned, and at least a hundred, which is as good as a
/// thousand if every candidate of either leg gets the true scores of both.
pub(super) fn pool(mode: Mode, max_chunks: usize) -> usize {
    let pool = max_chunks.max(limits::CANDIDATES_MIN);
    match mode {
        Mode::Fast => pool,
        Mode::Accurate => pool * 3,
    }
}

/// Thoroughness of a vector search: exact in `accurate` mode.
pub(super) fn thoroughness(request: &RetrieveRequest) -> Thoroughness {
    match request.mode {
        Mode::Fast => Thoroughness::Probing(request.recall),
        Mode::Accurate => Thoroughness::Exact,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodestone_embed::HashEmbedder;

    #[test]
    fn the_form_of_the_query_decides() {
        let auto = |query| alpha(Alpha::Auto, query, &HashEmbedder).0;
        for literal in ["ERR_CONN_4012", "getUserName", "SKU-99812 x7", "std::mem", "A4-17b"] {
            assert_eq!(auto(literal), ALPHA_LITERAL, "{literal}");
        }
        assert_eq!(auto("where is parse_config called in the code"), ALPHA_MIXED);
        let plain = [
            "what is wing flutter?", "wing", "\"exact words\"", "supersonic flow over bodies",
            "revenue FY2018", "19th century", "10km", "the 1990s", "x y z",
        ];
        for plain in plain {
            assert_eq!(auto(plain), ALPHA_DEFAULT, "{plain}");
        }
    }

    #[test]
    fn words_decide_where_the_model_cannot_read() {
        let (chinese, mixed) = ("最高的山是什么", "the mountain 山 in the far north");
        for wanted in [Alpha::Auto, Alpha::Default] {
            assert_eq!(alpha(wanted, chinese, &HashEmbedder).0, ALPHA_UNREAD);
            assert!(alpha(wanted, chinese, &HashEmbedder).1.is_some());
            assert_eq!(alpha(wanted, mixed, &HashEmbedder).0, ALPHA_DEFAULT);
        }
        assert_eq!(alpha(Alpha::Fixed(0.3), chinese, &HashEmbedder), (0.3, None));
        assert_eq!(alpha(Alpha::Default, "x", &HashEmbedder), (ALPHA_DEFAULT, None));
    }

    #[test]
    fn a_pool_is_never_smaller_than_the_result() {
        assert_eq!(pool(Mode::Fast, 10), 100);
        assert_eq!(pool(Mode::Fast, 1001), 1001);
        assert!(pool(Mode::Accurate, 1001) >= 1001);
    }
}
