//! Character encodings: a byte order mark, then valid UTF-8, then what the document declares, then
//! a guess by frequency.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Bytes at the head of an HTML or XML document in which its encoding is looked for.
const DECLARATION_BYTES: usize = 1024;
/// Letters at the head of UTF-16 without a byte order mark.
const WIDE_LETTERS_MIN: usize = 8;
/// Letters outside ASCII for each wrong byte from which a text is UTF-8 all the same.
const LETTERS_PER_WRONG_BYTE: usize = 8;
/// The escape character, and the bytes of numbers in a command to a terminal.
const ESCAPE: u8 = 0x1B;
const COMMAND_BYTES_MAX: usize = 32;
/// Bytes that are enough to guess an encoding by.
const GUESS_BYTES: usize = 256 << 10;

/// Text of any origin.
pub(super) fn text(bytes: &[u8]) -> String {
    borrowed(bytes).into_owned()
}

/// Text of any origin, copied only where it differs from the bytes.
pub(super) fn borrowed(bytes: &[u8]) -> Cow<'_, str> {
    decode(bytes, None)
}

/// HTML: `<meta charset>` counts where there is no mark.
pub(super) fn html(bytes: &[u8]) -> String {
    decode(bytes, declared(bytes, b"charset")).into_owned()
}

/// XML: the declaration counts where there is no mark.
pub(super) fn xml(bytes: &[u8]) -> String {
    decode(bytes, declared(bytes, b"encoding")).into_owned()
}

/// Text in the encoding of this label, where that is given and known and fits.
pub(super) fn labelled(bytes: &[u8], label: Option<&str>) -> String {
    let label = label.map(|label| label.trim().trim_matches(['"', '\'']));
    // Mail that says ASCII and is not is in whatever its author's machine used.
    let is_ascii = label.is_some_and(|label| label.eq_ignore_ascii_case("us-ascii"));
    let encoding = label.filter(|_| !is_ascii).and_then(|l| Encoding::for_label(l.as_bytes()));
    match encoding {
        // A multibyte encoding that is declared is meant, also where the bytes are ASCII.
        Some(encoding) if encoding != UTF_8 && marked(bytes).is_none() => {
            normalise(encoding.decode_without_bom_handling(bytes).0).into_owned()
        }
        _ => text(bytes),
    }
}

/// The Unicode encoding whose byte order mark `bytes` begin with, or UTF-16 that has none and
/// begins with Latin text.
pub(super) fn marked(bytes: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_bom(bytes).map(|(encoding, _)| encoding).or_else(|| wide(bytes))
}

/// UTF-16 without a byte order mark: nearly every other byte is zero, the others are ASCII.
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
        // Also drops the mark.
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

/// UTF-8 in which a few bytes are wrong, as where files of two encodings were joined or a file was
/// cut off: a wrong byte is a letter of Windows-1252. Of other encodings hardly a pair of bytes is
/// valid UTF-8.
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

fn guess(bytes: &[u8]) -> &'static Encoding {
    let mut detector = chardetng::EncodingDetector::new();
    detector.feed(&bytes[..bytes.len().min(GUESS_BYTES)], bytes.len() <= GUESS_BYTES);
    detector.guess(None, true)
}

/// LF line ends, U+FFFD for U+0000, and no colours of a terminal, which would stand in the words.
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

/// The length of a command to a terminal behind its escape character: a bracket, numbers and a
/// letter (ECMA-48, 5.4).
fn terminal_command(after: &str) -> Option<usize> {
    let numbers = after.strip_prefix('[')?.bytes();
    let count = numbers.take_while(|b| (b' '..=b'?').contains(b)).take(COMMAND_BYTES_MAX).count();
    let end = after.as_bytes().get(count + 1)?;
    (b'@'..=b'~').contains(end).then_some(count + 2)
}

/// The encoding that follows `keyword` and an equals sign in the head of the document. UTF-16 is
/// not believed: bytes in which the declaration can be read are not in it.
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
}
