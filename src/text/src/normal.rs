//! Normal form of a text (NFKC), with a mapping back to the original bytes, and case folding.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use unicode_normalization::char::{compose, decompose_canonical};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};
use unicode_segmentation::UnicodeSegmentation;

use lodestone_types::script::is_ignorable;

/// Whether the text is known to be in NFKC; may be false for some texts that are.
fn is_normal(text: &str) -> bool {
    text.is_ascii() || is_nfkc_quick(text.chars()) == IsNormalized::Yes
}

/// Converts a text to Unicode NFKC; borrowed if it is already normal.
pub(super) fn nfkc(text: &str) -> Cow<'_, str> {
    if is_normal(text) { Cow::Borrowed(text) } else { Cow::Owned(text.nfkc().collect()) }
}

/// Maps byte ranges of `nfkc(original)`, in ascending order of their start, to byte ranges of
/// `original`, widened to whole grapheme clusters where normalisation changed the text.
pub(super) fn original_ranges(original: &str, ranges: &[Range<usize>]) -> Vec<Range<usize>> {
    if is_normal(original) {
        return ranges.to_vec();
    }
    let clusters = normalised_clusters(original);
    let cluster_at = |offset: usize| {
        let at = clusters.partition_point(|(end, _)| *end <= offset);
        clusters.get(at).map_or(original.len()..original.len(), |(_, range)| range.clone())
    };
    ranges
        .iter()
        .map(|range| cluster_at(range.start).start..cluster_at(range.end.max(1) - 1).end)
        .collect()
}

/// Returns the grapheme clusters of a text, each with the end of its normal form in the normalised
/// text. Characters of two clusters can compose if they are single Hangul letters, as in
/// \u{314B}\u{3160}; such clusters are merged.
fn normalised_clusters(original: &str) -> Vec<(usize, Range<usize>)> {
    let mut clusters: Vec<(usize, Range<usize>)> = Vec::new();
    let mut last = None;
    for (start, cluster) in original.grapheme_indices(true) {
        let mut range = start..start + cluster.len();
        if let Some((last, first)) = last.zip(cluster.nfkc().next())
            && compose(last, first).is_some()
            && let Some((_, before)) = clusters.pop()
        {
            range.start = before.start;
        }
        let mut end = clusters.last().map_or(0, |(end, _)| *end);
        for c in original[range.clone()].nfkc() {
            end += c.len_utf8();
            last = Some(c);
        }
        clusters.push((end, range));
    }
    clusters
}

/// Appends the folded form of a word in NFKC: case folded, without ignorable characters, and with a
/// single kind of apostrophe.
///
/// Folding takes the lower case of the upper case of the lower case, which turns both cases of
/// sharp s into "ss". It differs from Unicode's full case folding only where that distinguishes
/// letters that no reader would (dotless i), and needs no table.
pub(super) fn fold_into(word: &str, folded: &mut String) {
    let start = folded.len();
    if word.is_ascii() {
        folded.push_str(word);
        folded[start..].make_ascii_lowercase();
        return;
    }
    for c in word.chars() {
        match c {
            '\u{2018}' | '\u{2019}' => folded.push('\''),
            _ if c.is_ascii() => folded.push(c.to_ascii_lowercase()),
            _ if is_ignorable(c) => {}
            _ => {
                let upper = c.to_lowercase().flat_map(char::to_uppercase);
                folded.extend(upper.flat_map(char::to_lowercase));
            }
        }
    }
    if !is_normal(&folded[start..]) {
        let normal: String = folded[start..].nfkc().collect();
        folded.truncate(start);
        folded.push_str(&normal);
    }
}

/// Removes diacritics from a folded word: of Latin, Greek and Cyrillic letters, and the vowel
/// points of Hebrew and Arabic. Signs of other scripts are part of their words.
pub(super) fn fold_marks(word: &str) -> Cow<'_, str> {
    if word.is_ascii() {
        return Cow::Borrowed(word);
    }
    let mut plain = String::with_capacity(word.len());
    word.chars().for_each(|c| without_marks(c, |part| plain.push(part)));
    Cow::Owned(plain)
}

/// Calls `each` with the letters that [`fold_marks`] substitutes for one letter.
pub(super) fn without_marks(c: char, mut each: impl FnMut(char)) {
    let is_marked = matches!(c as u32, 0xC0..=0x24F | 0x370..=0x52F | 0x1E00..=0x1FFF);
    match c {
        'ø' => each('o'),
        'ł' => each('l'),
        'đ' | 'ð' => each('d'),
        'ħ' => each('h'),
        'ı' => each('i'),
        'æ' => "ae".chars().for_each(each),
        'œ' => "oe".chars().for_each(each),
        'þ' => "th".chars().for_each(each),
        _ if is_mark(c) => {}
        _ if is_marked => match base_of(c) {
            Some(base) => each(base),
            None => decompose_canonical(c, |part| {
                if !is_mark(part) {
                    each(part);
                }
            }),
        },
        _ => each(c),
    }
}

/// The base letters of Latin, Greek and Cyrillic letters from U+00C0 on, where removing the marks
/// leaves a single letter; zero elsewhere. Decomposing takes as long as a dozen look-ups.
static BASES: LazyLock<[char; 0x530 - 0xC0]> = LazyLock::new(|| {
    std::array::from_fn(|at| {
        let mut parts = Vec::new();
        let letter = char::from_u32(0xC0 + at as u32).unwrap_or_default();
        decompose_canonical(letter, |part| parts.extend((!is_mark(part)).then_some(part)));
        if let [base] = parts[..] { base } else { '\0' }
    })
});

fn base_of(c: char) -> Option<char> {
    let at = (c as usize).checked_sub(0xC0)?;
    BASES.get(at).copied().filter(|base| *base != '\0')
}

fn is_mark(c: char) -> bool {
    matches!(c as u32, 0x300..=0x36F | 0x591..=0x5BD | 0x5BF..=0x5C7 | 0x64B..=0x65F | 0x670)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fold(word: &str) -> String {
        let mut folded = String::new();
        fold_into(&nfkc(word), &mut folded);
        folded
    }

    #[test]
    fn case_and_form_do_not_matter() {
        for (a, b) in [
            ("STRASSE", "straße"),
            ("MU\u{308}LLER", "müller"),
            ("Σίσυφος", "σίσυφοσ"),
            ("\u{FB01}ne", "FINE"),
            ("\u{FF28}\u{FF49}", "hi"),
            ("co\u{AD}operate", "cooperate"),
            ("don’t", "DON'T"),
            ("ᾳ", "ᾼ"),
            ("STRAẞE", "Straße"),
        ] {
            assert_eq!(fold(a), fold(b), "{a} {b}");
        }
        assert_ne!(fold("müller"), fold("muller"));
    }

    #[test]
    fn ranges_lead_back_to_the_original() {
        let original = "\u{FB01}ne \u{FF28}\u{FF49}, e\u{301}te\u{301}";
        let normal = nfkc(original);
        let word = normal.find("Hi").unwrap();
        let summer = normal.find("ét").unwrap();
        let ranges = original_ranges(original, &[0..4, word..word + 2, summer..normal.len()]);
        let pieces: Vec<_> = ranges.iter().map(|r| &original[r.clone()]).collect();
        assert_eq!(pieces, ["\u{FB01}ne", "\u{FF28}\u{FF49}", "e\u{301}te\u{301}"]);
    }

    #[test]
    fn folding_of_every_character_is_stable() {
        for c in '\u{80}'..=char::MAX {
            let once = fold(&c.to_string());
            assert_eq!(fold(&once), once, "{c:?}");
        }
    }

    /// Hangul and Katakana letters in all their forms, and some others.
    const LETTERS_THAT_COMPOSE: &str = "[a\u{301}\u{1100}\u{1161}\u{11A8}\u{3131}-\u{318E}\
        \u{AC00}\u{FB01}\u{FF76}\u{FF9E}\u{FFA1}-\u{FFDC} \r\n]{0,12}";

    proptest! {
        #[test]
        fn any_range_leads_to_a_valid_one(text in "\\PC{0,40}") {
            let normal = nfkc(&text);
            let starts: Vec<usize> = normal.char_indices().map(|(at, _)| at).collect();
            let ranges: Vec<_> = starts.iter().map(|&at| at..normal.len()).collect();
            for range in original_ranges(&text, &ranges) {
                prop_assert!(text.get(range).is_some());
            }
        }

        #[test]
        fn clusters_end_where_the_normal_form_does(text in LETTERS_THAT_COMPOSE) {
            let clusters = normalised_clusters(&text);
            prop_assert_eq!(clusters.last().map_or(0, |(end, _)| *end), nfkc(&text).len());
        }

        #[test]
        fn folding_is_stable(text in "\\PC{0,20}") {
            let once = fold(&text);
            prop_assert_eq!(fold(&once), once);
        }
    }
}
