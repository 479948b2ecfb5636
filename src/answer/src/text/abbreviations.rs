//! Abbreviations defined in a text: "the standing committee on roads (SCR)".

/// Characters of an abbreviation.
const CHARS: std::ops::RangeInclusive<usize> = 2..=8;
/// Maximum number of words in a long form beyond one per letter, and of bytes in it; both bound the
/// search.
const MORE_WORDS_MAX: usize = 4;
const LONG_BYTES_MAX: usize = 200;

/// Finds abbreviations in parentheses after their long form, and returns both.
///
/// An abbreviation is matched backwards from its end, and its first letter must begin a word
/// (Schwartz and Hearst 2003, "A simple algorithm for identifying abbreviation definitions in
/// biomedical text").
pub(crate) fn abbreviations(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices('(').filter_map(|(at, _)| {
        let inside = &text[at + 1..];
        let mut ends = inside.char_indices().take(CHARS.end() + 1);
        let (end, _) = ends.find(|(_, c)| *c == ')')?;
        let short = Some(&inside[..end]).filter(|short| is_short(short))?;
        let long = long_form(short, text[..at].trim_end())?;
        Some((short, long))
    })
}

fn is_short(text: &str) -> bool {
    let is_capital = |c: char| c.is_uppercase() || c.is_ascii_digit();
    let letters = text.chars().filter(|c| c.is_uppercase()).count();
    CHARS.contains(&text.chars().count()) && text.chars().all(is_capital) && letters > 1
}

/// The long form of an abbreviation, at the end of the text before it.
fn long_form<'t>(short: &str, before: &'t str) -> Option<&'t str> {
    let words = short.chars().count() + MORE_WORDS_MAX;
    let near = &before[before.ceil_char_boundary(before.len().saturating_sub(LONG_BYTES_MAX))..];
    let mut spaces = near.match_indices(' ').rev();
    let from = spaces.nth(words - 1).map_or(0, |(at, _)| at + 1);
    let window = &near[from..];
    let mut rest = window.char_indices().rev().peekable();
    let mut begin = None;
    let mut wanted = short.chars().rev().peekable();
    while let Some(letter) = wanted.next() {
        let is_first = wanted.peek().is_none();
        begin = loop {
            let (at, c) = rest.next()?;
            let opens_word = rest.peek().is_none_or(|(_, before)| !before.is_alphanumeric());
            if c.to_lowercase().eq(letter.to_lowercase()) && (opens_word || !is_first) {
                break Some(at);
            }
        };
    }
    let long = &window[begin?..];
    // A long form does not span sentences.
    (long.contains(' ') && !long.contains(". ")).then_some(long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_the_parentheses_is_what_it_means() {
        let found = |text| -> Vec<(&str, &str)> { abbreviations(text).collect() };
        assert_eq!(
            found(
                "Ask the Standing Committee on Roads (SCR), or the data protection officer (DPO)."
            ),
            [("SCR", "Standing Committee on Roads"), ("DPO", "data protection officer")]
        );
        for text in [
            "It rained (SCR).", "The roads (see below) end (A) here.", "Roads. Committee (RC)",
            "The yard (2026) is shut", "((((", "Standing (SCR", "()",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
        let far = format!("Standing Committee on {} (SCR)", "R".repeat(LONG_BYTES_MAX));
        assert_eq!(found(&far), [], "it is bounded");
        assert_eq!(found("é Überland Ämter Rat (ÜÄR)"), [("ÜÄR", "Überland Ämter Rat")]);
    }
}
