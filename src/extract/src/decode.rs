//! Character encodings: by byte order mark, then if valid UTF-8, then as declared by the document,
//! then by a statistical guess.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Bytes at the start of an HTML or XML document that are searched for an encoding declaration.
const DECLARATION_BYTES: usize = 1024;
/// Minimum number of leading letters to recognise UTF-16 without a byte order mark.
const WIDE_LETTERS_MIN: usize = 8;
/// Number of non-ASCII letters per invalid byte from which on a text still counts as UTF-8.
const LETTERS_PER_WRONG_BYTE: usize = 8;
/// The escape character, and the maximum parameter bytes of a terminal command.
const ESCAPE: u8 = 0x1B;
const COMMAND_BYTES_MAX: usize = 32;
/// Number of bytes used to guess an encoding, and of ASCII bytes among them before the first other.
const GUESS_BYTES: usize = 256 << 10;
const GUESS_CONTEXT_BYTES: usize = 2;

/// Decodes text of any origin.
pub(super) fn text(bytes: &[u8]) -> String {
    borrowed(bytes).into_owned()
}

/// Decodes text of any origin, copying only if it differs from the bytes.
pub(super) fn borrowed(bytes: &[u8]) -> Cow<'_, str> {
    decode(bytes, None)
}

/// Decodes HTML; `<meta charset>` counts if there is no byte order mark.
pub(super) fn html(bytes: &[u8]) -> String {
    decode(bytes, declared(bytes, b"charset")).into_owned()
}

/// Decodes XML; the XML declaration counts if there is no byte order mark.
pub(super) fn xml(bytes: &[u8]) -> String {
    decode(bytes, declared(bytes, b"encoding")).into_owned()
}

/// Decodes text in the labelled encoding, if there is a label that is known and fits.
pub(super) fn labelled(bytes: &[u8], label: Option<&str>) -> String {
    let label = label.map(|label| label.trim().trim_matches(['"', '\'']));
    // Mail that is labelled ASCII but is not is in whatever encoding its author's machine used.
    let is_ascii = label.is_some_and(|label| label.eq_ignore_ascii_case("us-ascii"));
    let label = label.filter(|_| !is_ascii);
    let encoding = label.and_then(|label| Encoding::for_label_no_replacement(label.as_bytes()));
    match encoding {
        // A declared multi-byte encoding is meant, even if the bytes are ASCII.
        Some(encoding) if encoding != UTF_8 && marked(bytes).is_none() => {
            normalise(encoding.decode_without_bom_handling(bytes).0).into_owned()
        }
        _ => text(bytes),
    }
}

/// The Unicode encoding indicated by a byte order mark at the start of `bytes`, or UTF-16 without
/// one if they start with Latin text.
pub(super) fn marked(bytes: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_bom(bytes).map(|(encoding, _)| encoding).or_else(|| wide(bytes))
}

/// Detects UTF-16 without a byte order mark: nearly every other byte is zero and the others are
/// ASCII.
fn wide(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = &bytes[..bytes.len().min(DECLARATION_BYTES)];
    let pairs = || head.chunks_exact(2);
    let is_text = |b: u8| matches!(b, b'\t' | b'\r' | b'\n' | b' '..=b'~');
    let little = pairs().filter(|pair| pair[1] == 0 && is_text(pair[0])).count();
    let big = pairs().filter(|pair| pair[0] == 0 && is_text(pair[1])).count();
    let is_most = |count: usize| count >= WIDE_LETTERS_MIN && count * 10 >= pairs().count() * 9;
    match () {
        () if is_most(little) => Some(UTF_16LE),
        () if is_most(big) => Some(UTF_16BE),
        () => None,
    }
}

fn decode<'a>(bytes: &'a [u8], declared: Option<&'static Encoding>) -> Cow<'a, str> {
    let decoded = if let Some(encoding) = marked(bytes) {
        // This also drops the mark.
        encoding.decode(bytes).0
    } else if let Ok(text) = std::str::from_utf8(bytes) {
        Cow::Borrowed(text)
    } else if let Some(text) = mended(bytes) {
        Cow::Owned(text)
    } else {
        let by_declaration = declared.and_then(|encoding| {
            encoding.decode_without_bom_handling_and_without_replacement(bytes)
        });
        by_declaration.unwrap_or_else(|| guess(bytes).decode_without_bom_handling(bytes).0)
    };
    normalise(decoded)
}

/// Decodes UTF-8 with a few invalid bytes, as when files of two encodings were joined or a file was
/// truncated: an invalid byte is taken as Windows-1252. Text in other encodings hardly contains any
/// valid UTF-8 sequences.
fn mended(bytes: &[u8]) -> Option<String> {
    let (mut letters, mut wrong) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        letters += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        wrong += chunk.invalid().len();
    }
    if letters < wrong.saturating_mul(LETTERS_PER_WRONG_BYTE) {
        return None;
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        match chunk.invalid() {
            [] => {}
            [_] => text.push_str(&WINDOWS_1252.decode_without_bom_handling(chunk.invalid()).0),
            _ => text.push('\u{FFFD}'),
        }
    }
    Some(text)
}

/// Guesses the encoding of bytes that are not UTF-8, from the first ones that are not ASCII.
fn guess(bytes: &[u8]) -> &'static Encoding {
    let start = Encoding::ascii_valid_up_to(bytes).saturating_sub(GUESS_CONTEXT_BYTES);
    let rest = &bytes[start..];
    let mut detector = chardetng::EncodingDetector::new();
    detector.feed(&rest[..rest.len().min(GUESS_BYTES)], rest.len() <= GUESS_BYTES);
    detector.guess(None, false)
}

/// Converts line endings to LF and U+0000 to U+FFFD, and removes terminal colour commands, which
/// would end up inside words.
fn normalise(text: Cow<'_, str>) -> Cow<'_, str> {
    if !text.bytes().any(|b| matches!(b, b'\r' | 0 | ESCAPE)) {
        return text;
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        rest = after;
        match c {
            '\r' if after.starts_with('\n') => {}
            '\r' => plain.push('\n'),
            '\0' => plain.push('\u{FFFD}'),
            '\x1B' => match terminal_command(after) {
                Some(length) => rest = &after[length..],
                None => plain.push(c),
            },
            other => plain.push(other),
        }
    }
    plain.into()
}

/// Length of a terminal command after its escape character: a bracket, numbers and a letter
/// (ECMA-48, 5.4).
fn terminal_command(after: &str) -> Option<usize> {
    let numbers = after.strip_prefix('[')?.bytes();
    let count = numbers.take_while(|b| (b' '..=b'?').contains(b)).take(COMMAND_BYTES_MAX).count();
    let end = after.as_bytes().get(count + 1)?;
    (b'@'..=b'~').contains(end).then_some(count + 2)
}

/// Finds the encoding that follows `keyword` and an equals sign at the start of the document.
/// UTF-16 is ignored: if the declaration can be read, the bytes are not UTF-16.
fn declared(bytes: &[u8], keyword: &[u8]) -> Option<&'static Encoding> {
    let head = &bytes[..bytes.len().min(DECLARATION_BYTES)];
    let found = head.windows(keyword.len()).position(|word| word.eq_ignore_ascii_case(keyword))?;
    let is_filler = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'=' | b'"' | b'\'');
    let rest = &head[found + keyword.len()..];
    let start = rest.iter().position(|b| !is_filler(b))?;
    let is_label = |b: &u8| b.is_ascii_alphanumeric() || b"-_:".contains(b);
    let length = rest[start..].iter().take_while(|b| is_label(b)).count();
    let encoding = Encoding::for_label(&rest[start..start + length])?;
    (encoding != UTF_16LE && encoding != UTF_16BE).then_some(encoding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_win_and_are_dropped() {
        assert_eq!(text(b"\xEF\xBB\xBFa\r\nb\rc\0"), "a\nb\nc\u{FFFD}");
        assert_eq!(text(b"\xFF\xFEh\0\xE9\0"), "hé");
        assert_eq!(text(b"\xFE\xFF\0h\0\xE9"), "hé");
        let wide: Vec<u8> =
            "Subject: caf\u{E9}".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(text(&wide), "Subject: café");
        assert_eq!(marked(b"a\0b\0"), None);
    }

    #[test]
    fn colours_of_a_terminal_go() {
        let log = b"\x1B[31mERROR\x1B[0m no\x1B[1;38;5;9m room\x1B[K\x1B[\r\n\x1B$B";
        assert_eq!(text(log), "ERROR no room\x1B[\n\x1B$B");
    }

    #[test]
    fn only_what_changes_is_copied() {
        assert!(matches!(borrowed("{\"é\": 1}\n".as_bytes()), Cow::Borrowed(_)));
        assert!(matches!(borrowed(b"\xEF\xBB\xBF{}"), Cow::Borrowed("{}")));
        assert!(matches!(borrowed(b"{}\r\n"), Cow::Owned(text) if text == "{}\n"));
    }

    #[test]
    fn declarations_count_where_utf_8_fails() {
        let page = b"<meta charset=\"windows-1251\"><p>\xCF\xF0\xE8\xE2\xE5\xF2</p>";
        assert!(html(page).contains("Привет"));
        let document = b"<?xml version='1.0' encoding='iso-8859-1'?><a>caf\xE9</a>";
        assert!(xml(document).contains("café"));
        assert!(html("<meta charset=latin1>é".as_bytes()).ends_with('é'));
    }

    /// The web standard maps their labels to an encoding of which nothing can be decoded.
    #[test]
    fn encodings_without_a_decoder_keep_their_ascii() {
        for label in ["iso-2022-kr", "hz-gb-2312"] {
            assert_eq!(labelled(b"Order 4711", Some(label)), "Order 4711", "{label}");
        }
    }

    /// "This is a text", twice.
    const JAPANESE: &str = "これは文章です。\
        これは文章です。\n";

    #[test]
    fn a_wrong_byte_in_utf_8_spoils_no_other_letter() {
        let lines = "Grüße aus Köln, schöne Äpfel\n".repeat(4);
        let joined = [lines.as_bytes(), b"Stra\xDFe\n", lines.as_bytes(), b"\xE2\x82"].concat();
        assert_eq!(text(&joined), format!("{lines}Straße\n{lines}\u{FFFD}"));
    }

    #[test]
    fn undeclared_encodings_are_guessed() {
        let (bytes, _, _) = encoding_rs::SHIFT_JIS.encode(JAPANESE);
        assert_eq!(text(&bytes), JAPANESE);
        assert_eq!(text(b"na\xEFve caf\xE9 \x96 d\xE9j\xE0 vu"), "naïve café – déjà vu");
    }

    #[test]
    fn an_encoding_is_guessed_wherever_its_first_letter_is() {
        let plain = "plain line\n".repeat(30_000);
        let late = [plain.as_bytes(), b"na\xEFve caf\xE9 \x96 d\xE9j\xE0 vu"].concat();
        assert_eq!(text(&late), plain.clone() + "naïve café – déjà vu");
        // UTF-8 fails only beyond the bytes used to guess.
        let late = ["é\n".as_bytes(), plain.as_bytes(), b"na\xEFve caf\xE9"].concat();
        assert!(text(&late).ends_with("naïve café"));
    }
}
