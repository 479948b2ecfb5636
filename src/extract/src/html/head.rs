//! The head of a page: its title and its canonical URL.

use crate::html::tokens::{Attributes, Token, Tokens};

/// Maximum characters kept of a title.
const TITLE_CHARS_MAX: usize = 1000;
/// Maximum characters of a URL.
const ADDRESS_CHARS_MAX: usize = 2048;

/// Title and canonical URL from the head of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HtmlHead {
    /// The title, with white space collapsed.
    pub title: Option<String>,
    /// The URL in `<link rel=canonical>`, as written.
    pub canonical: Option<String>,
}

/// Reads the head. It ends where the body starts, whether or not that is marked up: the rest may
/// have been written by visitors of the page.
pub(super) fn read(text: &str) -> HtmlHead {
    let mut head = HtmlHead::default();
    let mut element = String::new();
    let mut templates = 0_usize;
    for token in Tokens::new(text, false) {
        match token {
            Token::Start(tag) if tag.name == "template" => templates += 1,
            Token::End(name) if name == "template" => templates = templates.saturating_sub(1),
            _ if templates > 0 => {}
            Token::Start(tag) => {
                match tag.name.as_str() {
                    "link" if head.canonical.is_none() => {
                        head.canonical = canonical(tag.attributes)
                    }
                    "html" | "head" | "link" | "meta" | "base" | "script" | "style"
                    | "noscript" | "title" | "basefont" | "bgsound" => {}
                    _ => break,
                }
                element = tag.name;
            }
            Token::End(name) if name == "head" => break,
            Token::End(_) => element.clear(),
            Token::Text(text) if element == "title" && head.title.is_none() => {
                let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let title: String = words.chars().take(TITLE_CHARS_MAX).collect();
                head.title = Some(title).filter(|title| !title.is_empty());
            }
            Token::Text(_) => {}
        }
    }
    head
}

fn canonical(attributes: Attributes<'_>) -> Option<String> {
    let mut is_canonical = false;
    let mut address = None;
    for (name, value) in attributes {
        if name.eq_ignore_ascii_case("rel") {
            is_canonical |=
                value.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case("canonical"));
        } else if name.eq_ignore_ascii_case("href") && address.is_none() {
            address = Some(value.trim().to_owned());
        }
    }
    let fits = |address: &String| {
        !address.is_empty()
            && address.chars().take(ADDRESS_CHARS_MAX + 1).count() <= ADDRESS_CHARS_MAX
    };
    address.filter(|address| is_canonical && fits(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(markup: &str) -> (Option<String>, Option<String>) {
        let HtmlHead { title, canonical } = read(markup);
        (title, canonical)
    }

    #[test]
    fn titles_and_addresses_are_read_from_the_head_alone() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            head(
                "<!doctype html><html><head><meta charset=utf-8><title> A &amp;\n B </title>\
                 <script>'<link rel=canonical href=/no>'</script><!-- <link rel=canonical href=/no>\
                 --><LINK Rel='x CANONICAL' HREF=' /a?b&amp;c '><link rel=canonical href=/late>"
            ),
            (some("A & B"), some("/a?b&c"))
        );
        for body in [
            "<body><link rel=canonical href=/x>",
            "</head><link rel=canonical href=/x><title>T</title>",
            "<p><link rel=canonical href=/x>",
            "<template><link rel=canonical href=/x></template>",
            "<noscript><link rel=canonical href=/x></noscript>",
            "<svg><title>T</title></svg>",
            "<link rel=alternate href=/x>",
            "<link rel=canonical href=''>",
            "<title> </title>",
        ] {
            assert_eq!(head(body), (None, None), "{body}");
        }
        let long = format!("<link rel=canonical href=/{}>", "x".repeat(ADDRESS_CHARS_MAX));
        assert_eq!(head(&long), (None, None));
    }
}
