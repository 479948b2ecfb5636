//! Media types: those worth fetching, and their character encodings.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use lodestone_types::FetchProblem;

/// Maximum number of characters of a media type that are shown to users.
const SHOWN_CHARS_MAX: usize = 80;

/// Accepted types in addition to `text/*` and structured XML and JSON types.
const ACCEPTED: [&str; 23] = [
    "application/csv",
    "application/epub+zip",
    "application/json",
    "application/jsonl",
    "application/markdown",
    "application/msword",
    "application/pdf",
    "application/rtf",
    "application/vnd.ms-excel",
    "application/vnd.ms-outlook",
    "application/vnd.ms-powerpoint",
    "application/vnd.oasis.opendocument.presentation",
    "application/vnd.oasis.opendocument.spreadsheet",
    "application/vnd.oasis.opendocument.text",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/x-ndjson",
    "application/x-pdf",
    "application/xhtml+xml",
    "application/xml",
    "application/yaml",
    "message/rfc822",
];

/// The media type of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Media {
    /// Type and subtype in lower case.
    pub essence: String,
    charset: Option<&'static Encoding>,
}

impl Media {
    /// Parses a `Content-Type` header.
    pub(super) fn parse(content_type: &str) -> Result<Self, FetchProblem> {
        let mut parts = content_type.split(';');
        let essence = parts.next().unwrap_or("").trim().to_ascii_lowercase();
        let charset = parts.find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            let label = value.trim().trim_matches(['"', '\'']);
            name.trim()
                .eq_ignore_ascii_case("charset")
                .then(|| Encoding::for_label(label.as_bytes()))
        });
        if !is_accepted(&essence) {
            let is_shown = |c: &char| c.is_ascii_graphic();
            let media_type = essence.chars().filter(is_shown).take(SHOWN_CHARS_MAX).collect();
            return Err(FetchProblem::UnsupportedType { media_type });
        }
        Ok(Self { essence, charset: charset.flatten() })
    }

    /// Whether it is HTML.
    pub(super) fn is_html(&self) -> bool {
        matches!(self.essence.as_str(), "text/html" | "application/xhtml+xml")
    }

    /// Converts text to UTF-8 if only the header names its encoding, because the header is not
    /// stored. Parsers prefer UTF-8 to any encoding that the text itself declares.
    pub(super) fn to_known_encoding(&self, bytes: Vec<u8>) -> Vec<u8> {
        let is_text = self.essence.starts_with("text/") || self.essence.contains("xml");
        let Some(encoding) = self.charset.filter(|&encoding| is_text && encoding != UTF_8) else {
            return bytes;
        };
        let is_wide = encoding == UTF_16LE || encoding == UTF_16BE;
        let is_known = Encoding::for_bom(&bytes).is_some()
            || (!is_wide && std::str::from_utf8(&bytes).is_ok());
        if is_known {
            return bytes;
        }
        match encoding.decode_without_bom_handling_and_without_replacement(&bytes) {
            Some(text) => text.into_owned().into_bytes(),
            // The header is wrong; the text itself may declare another encoding.
            None => bytes,
        }
    }
}

fn is_accepted(essence: &str) -> bool {
    let is_structured = essence.starts_with("application/")
        && (essence.ends_with("+xml") || essence.ends_with("+json"));
    let is_text = essence.strip_prefix("text/").is_some_and(|subtype| !subtype.is_empty());
    is_text || is_structured || ACCEPTED.contains(&essence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_and_text_are_accepted_and_nothing_else() {
        for fine in [
            "text/html", "TEXT/HTML; charset=utf-8", "application/xhtml+xml", "text/plain",
            "application/ld+json", "application/atom+xml", " application/pdf ;x", "text/markdown",
        ] {
            assert!(Media::parse(fine).is_ok(), "{fine}");
        }
        for wrong in [
            "", "text/", "text", "image/png", "image/svg+xml", "application/octet-stream",
            "application/zip", "video/mp4", "multipart/mixed", "application/x-msdownload", "*/*",
        ] {
            assert!(Media::parse(wrong).is_err(), "{wrong}");
        }
        let long = format!("image/\u{7}{}", "x".repeat(1000));
        let FetchProblem::UnsupportedType { media_type } = Media::parse(&long).unwrap_err() else {
            panic!("another problem")
        };
        assert_eq!(media_type.len(), SHOWN_CHARS_MAX);
    }

    #[test]
    fn an_encoding_that_only_the_head_names_is_undone() {
        let media = Media::parse("text/html; charset=\"windows-1251\"").unwrap();
        let russian = || b"\xCF\xF0\xE8\xE2\xE5\xF2".to_vec();
        let as_utf_8 = "Привет".as_bytes().to_vec();
        assert_eq!(media.to_known_encoding(russian()), as_utf_8);
        assert_eq!(media.to_known_encoding(as_utf_8.clone()), as_utf_8);
        let other = Media::parse("application/pdf; charset=windows-1251").unwrap();
        assert_eq!(other.to_known_encoding(russian()), russian());
        let wide = Media::parse("text/plain; charset=utf-16le").unwrap();
        assert_eq!(wide.to_known_encoding(b"a\0b\0".to_vec()), b"ab");
        assert_eq!(
            Media::parse("text/html;charset=no").unwrap().to_known_encoding(russian()),
            russian()
        );
    }
}
