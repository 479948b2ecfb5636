//! Headers: encoded words (RFC 2047) and parameters (RFC 2045, RFC 2231).

use percent_encoding::percent_decode_str;

use crate::decode;
use crate::mail::transfer;

/// Maximum bytes read of one header.
const HEADER_BYTES_MAX: usize = 64 << 10;

/// Decodes the text of a header: resolves encoded words and unfolds lines.
pub(super) fn text(raw: &[u8]) -> String {
    let raw = &raw[..raw.len().min(HEADER_BYTES_MAX)];
    let raw = decode::text(raw);
    let mut plain = String::with_capacity(raw.len());
    let mut rest = raw.as_str();
    // Bytes of adjacent words in the same encoding are joined before decoding: a character may be
    // split across two words.
    let mut pending: Option<(String, Vec<u8>)> = None;
    while let Some(at) = rest.find("=?") {
        let between = &rest[..at];
        let Some((word, after)) = encoded_word(&rest[at..]) else {
            flush(&mut pending, &mut plain);
            plain.push_str(&rest[..at + 2]);
            rest = &rest[at + 2..];
            continue;
        };
        if !between.trim().is_empty() || pending.is_none() {
            flush(&mut pending, &mut plain);
            plain.push_str(between);
        }
        match &mut pending {
            Some((charset, bytes)) if charset.eq_ignore_ascii_case(&word.0) => {
                bytes.extend_from_slice(&word.1);
            }
            _ => {
                flush(&mut pending, &mut plain);
                pending = Some(word);
            }
        }
        rest = after;
    }
    flush(&mut pending, &mut plain);
    plain.push_str(rest);
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn flush(pending: &mut Option<(String, Vec<u8>)>, plain: &mut String) {
    if let Some((charset, bytes)) = pending.take() {
        plain.push_str(&decode::labelled(&bytes, Some(&charset)));
    }
}

/// Parses `=?charset?B?...?=` at the start; returns the charset and the bytes, and the rest.
fn encoded_word(source: &str) -> Option<((String, Vec<u8>), &str)> {
    let inside = source.strip_prefix("=?")?;
    let (charset, rest) = inside.split_once('?')?;
    let (method, rest) = rest.split_once('?')?;
    let (encoded, after) = rest.split_once("?=")?;
    let is_sound = charset.len() <= 40 && method.len() == 1 && !charset.contains([' ', '\n']);
    if !is_sound {
        return None;
    }
    let bytes = match method {
        "B" | "b" => transfer::base64(encoded.as_bytes()),
        "Q" | "q" => transfer::quoted_printable(encoded.as_bytes(), true),
        _ => return None,
    };
    // A language may follow the charset after an asterisk.
    let charset = charset.split('*').next().unwrap_or("").to_owned();
    Some(((charset, bytes), after))
}

/// A header with a value and parameters, such as a content type.
#[derive(Debug, Default)]
pub(super) struct Structured {
    /// The value, in lower case.
    pub value: String,
    parameters: Vec<(String, String)>,
}

impl Structured {
    /// Parses a header.
    pub(super) fn of(raw: &[u8]) -> Self {
        let raw = String::from_utf8_lossy(&raw[..raw.len().min(HEADER_BYTES_MAX)]);
        let mut pieces = pieces_of(&raw);
        let value = pieces.next().unwrap_or_default().trim().to_ascii_lowercase();
        let parameters = pieces.filter_map(|piece| {
            let (name, value) = piece.split_once('=')?;
            let value = value.trim();
            let value = value.strip_prefix('"').map_or(value, |value| value.trim_end_matches('"'));
            Some((name.trim().to_ascii_lowercase(), value.replace("\\\"", "\"")))
        });
        let parameters = parameters.take(100).collect();
        Self { value, parameters }
    }

    /// The parameter as written.
    pub(super) fn raw(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The decoded parameter, which may be split into several pieces and encoded.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        if let Some(plain) = self.raw(name) {
            return Some(text(plain.as_bytes()));
        }
        let mut charset = None;
        let mut bytes = Vec::new();
        let mut add = |key: &str, is_first: bool| {
            let encoded = self.raw(&format!("{key}*"));
            let Some(value) = encoded.or_else(|| self.raw(key)) else { return false };
            let mut value = value;
            if encoded.is_some() && is_first {
                let mut parts = value.splitn(3, '\'');
                if let (Some(label), Some(_), Some(rest)) =
                    (parts.next(), parts.next(), parts.next())
                {
                    charset = Some(label.to_owned());
                    value = rest;
                }
            }
            match encoded {
                Some(_) => bytes.extend(percent_decode_str(value)),
                None => bytes.extend_from_slice(value.as_bytes()),
            }
            true
        };
        if !add(name, true) {
            let mut number = 0;
            while number < 100 && add(&format!("{name}*{number}"), number == 0) {
                number += 1;
            }
        }
        (!bytes.is_empty()).then(|| decode::labelled(&bytes, charset.as_deref()))
    }
}

/// Splits at semicolons, except inside quotes.
fn pieces_of(raw: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    raw.split(move |c| {
        match c {
            '"' if !is_escaped => is_quoted = !is_quoted,
            '\\' if !is_escaped => {
                is_escaped = true;
                return false;
            }
            _ => {}
        }
        is_escaped = false;
        c == ';' && !is_quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_in_any_encoding() {
        assert_eq!(
            text(b"=?utf-8?q?Gr=C3=BC=C3=9Fe?= aus =?ISO-8859-1?Q?K=F6ln?="),
            "Grüße aus Köln"
        );
        // A character split across two words.
        assert_eq!(text(b"=?utf-8?B?4pg=?=\r\n =?utf-8?B?uA==?="), "\u{2638}");
        assert_eq!(text(b"a =?broken b =?x?y"), "a =?broken b =?x?y");
        assert_eq!(text(b"one\r\n two"), "one two");
    }

    #[test]
    fn parameters_come_in_pieces() {
        let header = Structured::of(
            b"Attachment; a=\"x;y\"; filename*0*=UTF-8''%e2%82%ac; filename*1=\".txt\"",
        );
        assert_eq!(header.value, "attachment");
        assert_eq!(header.raw("a"), Some("x;y"));
        assert_eq!(header.text("filename").as_deref(), Some("€.txt"));
        let header = Structured::of(b"text/plain; name==?utf-8?B?4pi4?=");
        assert_eq!(header.text("name").as_deref(), Some("\u{2638}"));
        assert_eq!(header.text("other"), None);
    }
}
