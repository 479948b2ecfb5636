//! Format detection: by content first, then by extension, then by media type.

use crate::{ExtractError, Format, TEXT_BYTES_MAX, container, decode, json, mail, outline};

/// Number of leading bytes examined.
const HEAD_BYTES: usize = 64 << 10;

/// The PDF header, and the range in which readers look for it.
const PDF_MARK: &[u8] = b"%PDF-";
const PDF_MARK_BYTES_MAX: usize = 1024;
/// The keyword at the end of each PDF object.
const OBJECT_END: &[u8] = b"endobj";

/// Name of binary data of unknown kind.
const UNKNOWN_BINARY: &str = "binary data";

/// Magic bytes and names of unsupported formats.
const MAGIC: [(&[u8], &str); 33] = [
    (b"%!PS", "PostScript"),
    (b"\x89PNG\r\n\x1A\n", "PNG image"),
    (b"\xFF\xD8\xFF", "JPEG image"),
    (b"GIF87a", "GIF image"),
    (b"GIF89a", "GIF image"),
    (b"II*\0", "TIFF image"),
    (b"MM\0*", "TIFF image"),
    (b"BM", "BMP image"),
    (b"\0\0\x01\0", "icon"),
    (b"8BPS", "Photoshop image"),
    (b"\x1F\x8B", "gzip archive"),
    (b"BZh", "bzip2 archive"),
    (b"\xFD7zXZ\0", "xz archive"),
    (b"\x28\xB5\x2F\xFD", "Zstandard archive"),
    (b"7z\xBC\xAF\x27\x1C", "7-Zip archive"),
    (b"Rar!\x1A\x07", "RAR archive"),
    (b"\x7FELF", "executable"),
    (b"MZ", "executable"),
    (b"\xCA\xFE\xBA\xBE", "Java class or executable"),
    (b"\xFE\xED\xFA", "executable"),
    (b"\xCF\xFA\xED\xFE", "executable"),
    (b"\0asm", "WebAssembly module"),
    (b"!<arch>\n", "library archive"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"PAR1", "Parquet file"),
    (b"OggS", "Ogg audio"),
    (b"fLaC", "FLAC audio"),
    (b"ID3", "MP3 audio"),
    (b"RIFF", "audio, video or WebP image"),
    (b"\x1A\x45\xDF\xA3", "Matroska video"),
    (b"FLV\x01", "Flash video"),
    (b"wOFF", "font"),
    (b"wOF2", "font"),
];

/// Magic bytes short enough for a text to start with them; they only count for binary data.
const WEAK_MAGIC: [&[u8]; 6] = [b"BM", b"MZ", b"BZh", b"ID3", b"RIFF", b"PAR1"];

/// Extensions of unsupported formats, some of which are text that would otherwise be indexed raw.
const REFUSED: [(&str, &str); 12] = [
    ("doc", "Word document"),
    ("xls", "Excel workbook"),
    ("ppt", "PowerPoint presentation"),
    ("xlsb", "binary Excel workbook"),
    ("zip", "ZIP archive"),
    ("mobi", "Mobipocket book"),
    ("mbox", "mailbox"),
    ("png", "PNG image"),
    ("jpg", "JPEG image"),
    ("jpeg", "JPEG image"),
    ("gif", "GIF image"),
    ("exe", "executable"),
];

/// Binary formats by extension: a file of this name with other content is damaged.
const BINARY: [(&str, Format); 18] = [
    ("docx", Format::Docx),
    ("docm", Format::Docx),
    ("dotx", Format::Docx),
    ("pptx", Format::Pptx),
    ("pptm", Format::Pptx),
    ("ppsx", Format::Pptx),
    ("xlsx", Format::Xlsx),
    ("xlsm", Format::Xlsx),
    ("xltx", Format::Xlsx),
    ("odt", Format::Odt),
    ("ott", Format::Odt),
    ("ods", Format::Ods),
    ("ots", Format::Ods),
    ("odp", Format::Odp),
    ("epub", Format::Epub),
    ("msg", Format::Msg),
    ("rtf", Format::Rtf),
    ("pdf", Format::Pdf),
];

/// Detects the format of a file. `filename` may include a path; `content_type` is what the client
/// sent.
///
/// Parses nothing, as this runs in the server's process. An archive is judged by the names of its
/// parts; its reader will judge it exactly.
///
/// # Errors
/// [`ExtractError::EmptyFile`]; [`ExtractError::Unsupported`] with the name of the format;
/// [`ExtractError::BeyondLimit`] for a file whose text would be too long.
pub fn detect(
    filename: &str,
    content_type: Option<&str>,
    bytes: &[u8],
) -> Result<Format, ExtractError> {
    if bytes.is_empty() {
        return Err(ExtractError::EmptyFile);
    }
    let format = format_of(filename, content_type, bytes)?;
    match format.is_plain() && bytes.len() > text_bytes_max(bytes) {
        true => Err(outline::too_long()),
        false => Ok(format),
    }
}

/// Maximum bytes of a plain text. Two bytes of UTF-16 count as one byte of Latin text.
fn text_bytes_max(bytes: &[u8]) -> usize {
    match decode::marked(bytes) {
        Some(encoding) if encoding != encoding_rs::UTF_8 => 2 * TEXT_BYTES_MAX,
        _ => TEXT_BYTES_MAX,
    }
}

fn format_of(
    filename: &str,
    content_type: Option<&str>,
    bytes: &[u8],
) -> Result<Format, ExtractError> {
    let extension = extension_of(filename);
    if container::is_zip(bytes) {
        return container::of_zip(bytes, of_binary_extension(&extension));
    }
    if container::is_compound(bytes) {
        return container::of_compound(bytes, of_binary_extension(&extension));
    }
    if bytes.starts_with(b"{\\rtf") {
        return Ok(Format::Rtf);
    }
    if is_pdf(bytes) {
        return Ok(Format::Pdf);
    }
    if let Some(name) = binary_name(bytes, &extension) {
        // Unknown bytes may be a document whose beginning is missing.
        let format = of_binary_extension(&extension).filter(|_| name == UNKNOWN_BINARY);
        return format.ok_or(ExtractError::Unsupported { name });
    }
    let head = decode::text(&bytes[..bytes.len().min(HEAD_BYTES)]);
    let start = head.trim_start();
    if let Some(format) = marked_format(start) {
        return Ok(format);
    }
    if let Some(name) = refused_name(&extension) {
        return Err(ExtractError::Unsupported { name: name.to_owned() });
    }
    if let Some(format) = of_binary_extension(&extension) {
        return Ok(format);
    }
    let by_media_type = || content_type.and_then(of_media_type);
    if let Some(format) = of_extension(&extension).or_else(by_media_type) {
        return Ok(format);
    }
    Ok(match () {
        () if is_json(start, bytes) => Format::Json,
        () if mail::is_message(start.as_bytes()) => Format::Eml,
        () => Format::Txt,
    })
}

/// Whether a PDF header is where readers look for it: some programs write data before it. A text
/// that merely mentions the header does not contain binary data.
fn is_pdf(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(PDF_MARK_BYTES_MAX)];
    let mark = head.windows(PDF_MARK.len()).position(|window| window == PDF_MARK);
    mark.is_some_and(|at| at == 0 || has_binary(bytes) || holds_objects(&bytes[at..]))
}

/// Whether PDF objects follow the header.
fn holds_objects(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    head.windows(OBJECT_END.len()).any(|window| window == OBJECT_END)
}

fn extension_of(filename: &str) -> String {
    let name = filename.rsplit(['/', '\\']).next().unwrap_or("");
    name.rsplit_once('.').map_or_else(String::new, |(_, extension)| extension.to_ascii_lowercase())
}

/// The name of a format that is not text, if the bytes are in one.
fn binary_name(bytes: &[u8], extension: &str) -> Option<String> {
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    let looks_binary = decode::marked(bytes).is_none() && has_binary(bytes);
    let mark = MAGIC.iter().find(|(magic, _)| head.starts_with(magic));
    if let Some((magic, name)) = mark
        && (looks_binary || !WEAK_MAGIC.contains(magic))
    {
        return Some((*name).to_owned());
    }
    if head.get(4..8) == Some(b"ftyp") {
        return Some("MPEG-4 audio or video".to_owned());
    }
    // UTF-32 starts like UTF-16, with two more zero bytes.
    let is_wide = bytes.starts_with(b"\xFF\xFE\0\0") || bytes.starts_with(b"\0\0\xFE\xFF");
    if is_wide {
        return Some("text in UTF-32 (save it as UTF-8)".to_owned());
    }
    if !looks_binary {
        return None;
    }
    Some(refused_name(extension).unwrap_or(UNKNOWN_BINARY).to_owned())
}

/// Whether bytes without a byte order mark contain what text does not: more than one control
/// character per two hundred bytes at the start, or more than one zero byte per thousand anywhere.
/// A single one is a glitch of the program that wrote the text.
fn has_binary(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    let is_control = |b: &&u8| **b < 0x20 && !matches!(**b, b'\t' | b'\n' | b'\r' | 0x0C | 0x1B);
    let is_many = |count: usize, share: usize, of: &[u8]| count > 1 && count * share > of.len();
    is_many(head.iter().filter(is_control).count(), 200, head)
        || is_many(bytes.iter().filter(|b| **b == 0).count(), 1000, bytes)
}

/// The format of a text that declares it by a document type, a root element or an XML declaration,
/// after any comments.
fn marked_format(start: &str) -> Option<Format> {
    let mut rest = start;
    let mut is_xml = false;
    for _ in 0..16 {
        let lower = rest.as_bytes()[..rest.len().min(16)].to_ascii_lowercase();
        if lower.starts_with(b"<!doctype html") || lower.starts_with(b"<html") {
            return Some(Format::Html);
        }
        if lower.starts_with(b"<!doctype") {
            return Some(Format::Xml);
        }
        is_xml |= lower.starts_with(b"<?xml");
        let end = match () {
            () if lower.starts_with(b"<?xml") => "?>",
            () if lower.starts_with(b"<!--") => "-->",
            () => break,
        };
        let Some((_, after)) = rest.split_once(end) else { break };
        rest = after.trim_start();
    }
    is_xml.then_some(Format::Xml)
}

fn of_extension(extension: &str) -> Option<Format> {
    match extension {
        "md" | "markdown" | "mdown" | "mkd" | "mdx" => Some(Format::Md),
        "html" | "htm" | "xhtml" => Some(Format::Html),
        "json" | "jsonl" | "ndjson" | "ipynb" | "geojson" => Some(Format::Json),
        "csv" => Some(Format::Csv),
        "tsv" | "tab" => Some(Format::Tsv),
        "xml" | "nxml" | "rss" | "atom" | "svg" | "xsd" => Some(Format::Xml),
        "txt" | "text" | "log" | "rst" => Some(Format::Txt),
        "eml" | "mht" | "mhtml" => Some(Format::Eml),
        _ => None,
    }
}

/// The format of a file with this extension, if it cannot be text.
fn of_binary_extension(extension: &str) -> Option<Format> {
    BINARY.iter().find(|(known, _)| *known == extension).map(|(_, format)| *format)
}

fn refused_name(extension: &str) -> Option<&'static str> {
    REFUSED.iter().find(|(refused, _)| *refused == extension).map(|(_, name)| *name)
}

fn of_media_type(content_type: &str) -> Option<Format> {
    let essence = content_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    match essence.as_str() {
        "text/markdown" | "text/x-markdown" => Some(Format::Md),
        "text/html" | "application/xhtml+xml" => Some(Format::Html),
        "application/json" | "application/x-ndjson" | "application/jsonl" | "text/json" => {
            Some(Format::Json)
        }
        "message/rfc822" | "multipart/related" => Some(Format::Eml),
        "text/csv" | "application/csv" => Some(Format::Csv),
        "text/tab-separated-values" => Some(Format::Tsv),
        "application/xml" | "text/xml" => Some(Format::Xml),
        _ if essence.ends_with("+json") => Some(Format::Json),
        _ if essence.ends_with("+xml") => Some(Format::Xml),
        _ => None,
    }
}

/// Whether a text without other indications is JSON: an object or an array, valid to the end. A
/// text that will be refused for its length is not copied first.
fn is_json(start: &str, bytes: &[u8]) -> bool {
    start.starts_with(['{', '['])
        && bytes.len() <= text_bytes_max(bytes)
        && json::is_valid(&decode::borrowed(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_beyond_the_limit_is_not_read_to_see_whether_it_is_json() {
        let long = format!("[{}1]", " ".repeat(TEXT_BYTES_MAX));
        assert!(!is_json("[", long.as_bytes()));
        assert!(is_json("[", long[3..].replacen(' ', "[", 1).as_bytes()));
        let wide: Vec<u8> = "[1, 2, 3, 4, 5]".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert!(is_json("[", &wide));
    }
}
