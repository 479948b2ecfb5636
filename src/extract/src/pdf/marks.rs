//! Bullets and numbers of list items.

/// Characters used only as bullets.
const BULLETS: &str = "\u{2022}\u{2023}\u{25CF}\u{25CB}\u{25E6}\u{25AA}\u{25AB}\u{25A0}\u{25A1}\
     \u{2043}\u{2219}\u{F0B7}\u{F0A7}\u{F0D8}\u{F076}\u{2713}\u{2714}\u{27A2}\u{2756}\u{25B6}\
     \u{25BA}\u{2794}\u{B7}";
/// Characters that are also used elsewhere: bullets only if followed by a space.
const DASHES: &str = "-\u{2013}\u{2014}*+";

/// Splits a list item into its marker in Markdown and its text.
pub(super) fn split(line: &str) -> Option<(String, &str)> {
    let first = line.chars().next()?;
    let rest = &line[first.len_utf8()..];
    if BULLETS.contains(first) {
        return Some(("-".to_owned(), rest.trim_start())).filter(|(_, rest)| !rest.is_empty());
    }
    if DASHES.contains(first) {
        let is_item = rest.starts_with(' ') && !rest.trim().is_empty();
        return is_item.then(|| ("-".to_owned(), rest.trim_start()));
    }
    let end = line.find(' ')?;
    let (mark, rest) = line.split_at(end);
    is_number(mark).then(|| (mark.to_owned(), rest.trim_start()))
}

/// Whether a line starts with a character used only as a bullet.
pub(super) fn has_bullet(line: &str) -> bool {
    line.starts_with(|c| BULLETS.contains(c))
}

/// Whether a text is only a list marker.
pub(super) fn is_only_mark(text: &str) -> bool {
    let is_sign = text.chars().all(|c| BULLETS.contains(c) || DASHES.contains(c));
    (is_sign && text.chars().count() == 1) || is_number(text)
}

/// `1.`, `2)`, `(3)`, `a.`, `(b)`, `iv)`; not a year followed by a full stop.
fn is_number(mark: &str) -> bool {
    let open = mark.strip_prefix('(');
    let Some(inner) = open.unwrap_or(mark).strip_suffix([')', '.']) else { return false };
    if open.is_some() && !mark.ends_with(')') {
        return false;
    }
    let is_digits = inner.len() <= 2 && inner.bytes().all(|b| b.is_ascii_digit());
    let is_letter = inner.len() == 1 && inner.bytes().all(|b| b.is_ascii_lowercase());
    let is_roman = inner.len() <= 4 && inner.bytes().all(|b| matches!(b, b'i' | b'v' | b'x'));
    !inner.is_empty() && (is_digits || is_letter || is_roman)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_told_from_text() {
        let mark = |line| split(line).map(|(mark, rest)| (mark, rest.to_owned()));
        let item = |mark: &str, rest: &str| Some((mark.to_owned(), rest.to_owned()));
        assert_eq!(mark("•one"), item("-", "one"));
        assert_eq!(mark("– two"), item("-", "two"));
        assert_eq!(mark("12. three"), item("12.", "three"));
        assert_eq!(mark("(b) four"), item("(b)", "four"));
        assert_eq!(mark("iv) five"), item("iv)", "five"));
        for none in ["-5 degrees", "1984. It was", "A. Smith", "(see", "1.2 Title", "\u{2022}", ""]
        {
            assert_eq!(mark(none), None, "{none}");
        }
        assert!(is_only_mark("\u{2022}") && is_only_mark("3.") && !is_only_mark("3"));
    }
}
