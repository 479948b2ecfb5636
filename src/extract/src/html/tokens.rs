//! Markup to tags and text, following the tokenizer of the HTML standard with three simplifications
//! that do not affect the text: a script ends at its first end tag, a document type or a malformed
//! comment ends at the next `>`, and repeated attributes are kept.
//!
//! Every byte is read a bounded number of times: attributes are not compared with earlier ones, and
//! states do not call each other. Tags with a million attributes exist.

use std::borrow::Cow;

use crate::html::entities;

/// A token of a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A start tag.
    Start(StartTag<'a>),
    /// An end tag, its name in lower case.
    End(String),
    /// Text, with references resolved.
    Text(Cow<'a, str>),
}

/// A start tag.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StartTag<'a> {
    /// The name in lower case.
    pub name: String,
    /// The attributes: the text between the name and the end.
    pub attributes: Attributes<'a>,
    /// Whether it ends with `/>`.
    pub is_self_closing: bool,
}

/// The attributes of one tag, parsed on demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attributes<'a> {
    source: &'a str,
}

impl<'a> Iterator for Attributes<'a> {
    /// A name as written, and a value with its references resolved.
    type Item = (&'a str, Cow<'a, str>);

    fn next(&mut self) -> Option<Self::Item> {
        let (attribute, rest) = next_attribute(self.source);
        self.source = rest;
        let (name, value) = attribute?;
        Some((name, entities::resolve(value, true)))
    }
}

/// The tokens of a page.
#[derive(Debug)]
pub(super) struct Tokens<'a> {
    rest: &'a str,
    /// The currently open element whose text is not markup, if any.
    raw: Option<String>,
    /// Whether any element may be self-closing.
    is_xml: bool,
}

impl<'a> Tokens<'a> {
    /// Tokenizes `text`; in XML any element may be self-closing.
    pub(super) fn new(text: &'a str, is_xml: bool) -> Self {
        Self { rest: text, raw: None, is_xml }
    }

    /// Consumes the first `length` bytes.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// Consumes the text up to the end tag of `name`, or to the end.
    fn raw_text(&mut self, name: &str) -> Option<Token<'a>> {
        let ends = self.rest.match_indices("</").find(|(at, _)| {
            let after = &self.rest.as_bytes()[at + 2..];
            let is_name =
                after.get(..name.len()).is_some_and(|n| n.eq_ignore_ascii_case(name.as_bytes()));
            is_name && after.get(name.len()).is_some_and(|&b| ends_name(b))
        });
        let text = self.take(ends.map_or(self.rest.len(), |(at, _)| at));
        if text.is_empty() {
            return None;
        }
        let has_references = matches!(name, "title" | "textarea");
        let text = if has_references { entities::resolve(text, false) } else { text.into() };
        Some(Token::Text(text))
    }

    /// Consumes a tag; `None` if the page ends inside it.
    fn tag(&mut self) -> Option<Token<'a>> {
        let is_end = self.rest.as_bytes()[1] == b'/';
        self.take(if is_end { 2 } else { 1 });
        let length = self.rest.bytes().take_while(|&b| !ends_name(b)).count();
        let name = self.take(length).to_ascii_lowercase();
        let source = self.rest;
        loop {
            let (attribute, rest) = next_attribute(self.rest);
            self.rest = rest;
            if attribute.is_none() {
                break;
            }
        }
        if self.rest.is_empty() {
            return None;
        }
        let source = &source[..source.len() - self.rest.len()];
        self.take(1);
        if is_end {
            return Some(Token::End(name));
        }
        let is_self_closing = source.ends_with('/');
        if is_raw(&name) && !(self.is_xml && is_self_closing) {
            self.raw = Some(name.clone());
        }
        Some(Token::Start(StartTag { name, attributes: Attributes { source }, is_self_closing }))
    }

    /// Skips a declaration or comment, which starts with `<!`, `<?` or `</`.
    fn skip_declaration(&mut self) {
        let Some(comment) = self.rest.strip_prefix("<!--") else {
            let end = self.rest.find('>').map_or(self.rest.len(), |at| at + 1);
            self.take(end);
            return;
        };
        let is_empty = comment.strip_prefix('>').or_else(|| comment.strip_prefix("->"));
        self.rest = is_empty.unwrap_or_else(|| after_comment(comment));
    }
}

/// The rest after the end of a comment: `-->` or `--!>`.
fn after_comment(comment: &str) -> &str {
    let mut rest = comment;
    while let Some(at) = rest.find("--") {
        let after = &rest[at + 2..];
        if let Some(after) = after.strip_prefix('>').or_else(|| after.strip_prefix("!>")) {
            return after;
        }
        rest = &rest[at + 1..];
    }
    ""
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        if let Some(name) = self.raw.take()
            && let Some(text) = self.raw_text(&name)
        {
            return Some(text);
        }
        while !self.rest.is_empty() {
            let bytes = self.rest.as_bytes();
            let second = bytes.get(1).copied().unwrap_or(0);
            let third = bytes.get(2).copied().unwrap_or(0);
            match (bytes[0], second) {
                (b'<', b'/') if third.is_ascii_alphabetic() => return self.tag(),
                (b'<', b'/') if bytes.len() > 2 => self.skip_declaration(),
                (b'<', b'!' | b'?') => self.skip_declaration(),
                (b'<', letter) if letter.is_ascii_alphabetic() => return self.tag(),
                _ => {
                    let next = bytes[1..].iter().position(|&b| b == b'<');
                    let length = next.map_or(bytes.len(), |at| at + 1);
                    return Some(Token::Text(entities::resolve(self.take(length), false)));
                }
            }
        }
        None
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0C)
}

fn ends_name(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b'/' | b'>')
}

/// Whether the element's content is text up to its end tag.
fn is_raw(name: &str) -> bool {
    matches!(
        name,
        "title"
            | "textarea"
            | "script"
            | "style"
            | "iframe"
            | "xmp"
            | "noembed"
            | "noframes"
            | "noscript"
            | "plaintext"
    )
}

/// Parses the first attribute of `source`, with name and value as written; returns it and the rest.
/// If there is no attribute, the rest is the `>` of the tag, or empty.
fn next_attribute(source: &str) -> (Option<(&str, &str)>, &str) {
    let start = source.bytes().take_while(|&b| is_space(b) || b == b'/').count();
    let source = &source[start..];
    if source.is_empty() || source.starts_with('>') {
        return (None, source);
    }
    // A leading equals sign belongs to the name.
    let is_name = |(at, b): (usize, u8)| !ends_name(b) && (b != b'=' || at == 0);
    let length = source.bytes().enumerate().take_while(|&pair| is_name(pair)).count();
    let (name, rest) = source.split_at(length);
    let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{0C}']);
    let Some(value) = trimmed.strip_prefix('=') else {
        return (Some((name, "")), rest);
    };
    let value = value.trim_start_matches([' ', '\t', '\n', '\r', '\u{0C}']);
    if let Some(quote) = value.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let (value, rest) = value[1..].split_once(quote).unwrap_or((&value[1..], ""));
        return (Some((name, value)), rest);
    }
    let length = value.bytes().take_while(|&b| !is_space(b) && b != b'>').count();
    let (value, rest) = value.split_at(length);
    (Some((name, value)), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(markup: &str) -> String {
        let mut words = String::new();
        for token in Tokens::new(markup, false) {
            match token {
                Token::Start(tag) => {
                    words.push_str(&format!("<{}", tag.name));
                    let mut seen = Vec::new();
                    for (name, value) in tag.attributes {
                        let name = name.to_ascii_lowercase();
                        if !seen.contains(&name) {
                            words.push_str(&format!(" {name}={:?}", value.to_string()));
                            seen.push(name);
                        }
                    }
                    words.push('>');
                }
                Token::End(name) => words.push_str(&format!("</{name}>")),
                Token::Text(text) => words.push_str(&text),
            }
        }
        words
    }

    /// Method: compare with a recording of html5ever 0.39 on random markup of tags, attributes,
    /// references and comments; each line holds the markup and its tokens as text.
    #[test]
    fn tokens_are_those_of_html5ever() {
        for line in include_str!("tokens.jsonl").lines() {
            let (markup, expected): (String, String) = serde_json::from_str(line).unwrap();
            assert_eq!(words(&markup), expected, "{markup}");
        }
    }
}
