//! The title in the document information, and the decoding of text strings.

use hayro_syntax::Pdf;

/// Maximum bytes of a title.
const TITLE_BYTES_MAX: usize = 1_000;
/// Starts of generated titles, in lowercase.
const NO_TITLES: [&str; 5] =
    ["untitled", "microsoft word - ", "microsoft powerpoint - ", "powerpoint ", "slide 1"];
/// File extensions: a file name is not a title either.
const ENDINGS: [&str; 9] =
    [".pdf", ".doc", ".docx", ".dvi", ".tex", ".ps", ".indd", ".ppt", ".pptx"];

/// The title of a document, unless it was generated.
pub(super) fn title(pdf: &Pdf) -> Option<String> {
    let title = text(pdf.metadata().title.as_deref()?, TITLE_BYTES_MAX);
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    let lower = title.to_lowercase();
    let is_made_up = NO_TITLES.iter().any(|start| lower.starts_with(start))
        || ENDINGS.iter().any(|end| lower.ends_with(end))
        || !title.contains(char::is_alphabetic);
    (!is_made_up).then_some(title)
}

/// Decodes a text string: UTF-16 or UTF-8 with a byte order mark, else Windows-1252.
pub(super) fn text(bytes: &[u8], bytes_max: usize) -> String {
    let bytes = &bytes[..bytes.len().min(bytes_max)];
    if let Some(wide) = bytes.strip_prefix(b"\xFE\xFF") {
        let units: Vec<u16> =
            wide.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
        return String::from_utf16_lossy(&units);
    }
    if let Some(utf8) = bytes.strip_prefix(b"\xEF\xBB\xBF") {
        return String::from_utf8_lossy(utf8).into_owned();
    }
    encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned()
}
