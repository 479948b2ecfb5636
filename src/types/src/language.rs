//! Language tags (BCP 47, the syntax of RFC 5646).

use crate::limits::LANGUAGE_CHARS_MAX;

/// Normalises a well-formed tag to the letter case recommended by RFC 5646 2.1.1: `pt-BR`,
/// `zh-Hant-TW`. Returns `None` for anything else. Does not check that subtags are registered.
pub fn canonical(tag: &str) -> Option<String> {
    let subtags: Vec<&str> = tag.split('-').collect();
    let is_subtag = |subtag: &&str| {
        (1..=8).contains(&subtag.len()) && subtag.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    if tag.len() > LANGUAGE_CHARS_MAX || !subtags.iter().all(is_subtag) {
        return None;
    }
    let mut written = Vec::with_capacity(subtags.len());
    let mut last = Part::Start;
    for (at, subtag) in subtags.iter().enumerate() {
        last = last.next(subtag, at)?;
        if last == Part::Extended && subtags[0].len() > 3 {
            return None;
        }
        written.push(match last {
            Part::Script => titled(subtag),
            Part::Region => subtag.to_ascii_uppercase(),
            _ => subtag.to_ascii_lowercase(),
        });
    }
    // A singleton must be followed by at least one subtag.
    (!matches!(last, Part::Start | Part::Singleton | Part::PrivateSingleton))
        .then(|| written.join("-"))
}

/// The parts of a tag, in the order in which they may occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Start,
    Language,
    Extended,
    Script,
    Region,
    Variant,
    Singleton,
    Extension,
    PrivateSingleton,
    Private,
}

impl Part {
    /// Classifies `subtag`, at position `at` of the tag, given that it follows this part.
    fn next(self, subtag: &str, at: usize) -> Option<Self> {
        let length = subtag.len();
        let is_word = subtag.bytes().all(|b| b.is_ascii_alphabetic());
        let begins_with_digit = subtag.as_bytes()[0].is_ascii_digit();
        match self {
            Self::PrivateSingleton | Self::Private => Some(Self::Private),
            _ if subtag.eq_ignore_ascii_case("x") && self != Self::Singleton => {
                Some(Self::PrivateSingleton)
            }
            Self::Start => (is_word && length >= 2).then_some(Self::Language),
            Self::Singleton => (length >= 2).then_some(Self::Extension),
            _ if length == 1 => Some(Self::Singleton),
            Self::Extension => Some(Self::Extension),
            // Up to three extended language subtags, after a language of two or three letters.
            _ if self <= Self::Extended && is_word && length == 3 && at <= 3 => {
                Some(Self::Extended)
            }
            _ if self < Self::Script && is_word && length == 4 => Some(Self::Script),
            _ if self < Self::Region && is_region(subtag, is_word) => Some(Self::Region),
            _ if length >= 5 || (length == 4 && begins_with_digit) => Some(Self::Variant),
            _ => None,
        }
    }
}

fn is_region(subtag: &str, is_word: bool) -> bool {
    let is_number = subtag.bytes().all(|b| b.is_ascii_digit());
    (subtag.len() == 2 && is_word) || (subtag.len() == 3 && is_number)
}

fn titled(subtag: &str) -> String {
    let mut titled = subtag.to_ascii_lowercase();
    titled[..1].make_ascii_uppercase();
    titled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_the_standard_are_read() {
        for (tag, expected) in [
            ("en", "en"),
            ("DE", "de"),
            ("pt-br", "pt-BR"),
            ("zh-hant-tw", "zh-Hant-TW"),
            ("es-419", "es-419"),
            ("sl-rozaj-biske-1994", "sl-rozaj-biske-1994"),
            ("zh-cmn-Hans-CN", "zh-cmn-Hans-CN"),
            ("de-CH-1901", "de-CH-1901"),
            ("en-US-u-islamcal", "en-US-u-islamcal"),
            ("x-whatever", "x-whatever"),
            ("de-a-value-x-own-1", "de-a-value-x-own-1"),
            ("haw", "haw"),
        ] {
            assert_eq!(canonical(tag).as_deref(), Some(expected), "{tag}");
        }
    }

    #[test]
    fn what_is_no_tag_is_refused() {
        for bad in [
            "", "e", "1", "en_US", "en-", "-en", "english!", "en--US", "deutsch-und-so", "x",
            "en-x", "en-u", "de-DE-AT", "en-abcdefghi", "日本", "en US", "12", "en-419-Latn",
            "en-abcdefgh-abcdefgh-abcdefgh-abcdefgh",
        ] {
            assert_eq!(canonical(bad), None, "{bad}");
        }
    }
}
