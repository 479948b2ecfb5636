//! Formats of containers: ZIP by its content types, compound files by their streams.
//!
//! The server's process never opens a container: a single pass over its bytes, looking for names of
//! parts, gives a first judgement. The process that reads it opens it and judges exactly.

use crate::budget::Budget;
use crate::compound;
use crate::package::Package;
use crate::{ExtractError, Format, office};

/// Magic bytes of a ZIP container, and of an empty one.
const ZIP_MAGIC: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];
/// Maximum bytes read of the part `mimetype`.
const MIMETYPE_BYTES_MAX: usize = 200;
/// Bytes at either end of a ZIP container that are searched for names of parts: they cover its
/// first parts and its directory.
const ENDS_BYTES: usize = 64 << 10;

/// Names of parts that identify the kind of a ZIP container; the first match wins.
const PARTS: [(&[u8], Result<Format, &str>); 14] = [
    (b"application/vnd.oasis.opendocument.text", Ok(Format::Odt)),
    (b"application/vnd.oasis.opendocument.spreadsheet", Ok(Format::Ods)),
    (b"application/vnd.oasis.opendocument.presentation", Ok(Format::Odp)),
    (b"application/vnd.oasis.opendocument", Err("OpenDocument file of another kind")),
    (b"application/epub+zip", Ok(Format::Epub)),
    (b"META-INF/container.xml", Ok(Format::Epub)),
    (b"word/document", Ok(Format::Docx)),
    (b"ppt/presentation", Ok(Format::Pptx)),
    (b"xl/workbook.bin", Err(BINARY_WORKBOOK)),
    (b"xl/workbook", Ok(Format::Xlsx)),
    (b"[Content_Types].xml", Ok(Format::Docx)),
    (b"META-INF/manifest.xml", Ok(Format::Odt)),
    (b".iwa", Err("iWork document")),
    (b"META-INF/MANIFEST.MF", Err("Java archive")),
];
const BINARY_WORKBOOK: &str = "binary Excel workbook (save it as xlsx)";
const ZIP: &str = "ZIP archive";

/// Name of a compound file of unknown kind.
const OFFICE_97: &str = "Microsoft Office 97-2003 document";

/// Streams that identify the kind of a compound file.
const STREAMS: [(&str, &str); 6] = [
    ("WordDocument", "Word 97-2003 document (save it as docx)"),
    ("Workbook", "Excel 97-2003 workbook (save it as xlsx)"),
    ("Book", "Excel 5.0 workbook (save it as xlsx)"),
    ("PowerPoint Document", "PowerPoint 97-2003 presentation (save it as pptx)"),
    ("VisioDocument", "Visio drawing"),
    ("FileHeader", "HWP document"),
];

/// Whether the bytes start a ZIP container.
pub(super) fn is_zip(bytes: &[u8]) -> bool {
    ZIP_MAGIC.iter().any(|magic| bytes.starts_with(magic))
}

/// Whether the bytes start a compound file.
pub(super) fn is_compound(bytes: &[u8]) -> bool {
    bytes.starts_with(compound::MAGIC)
}

/// Makes a first judgement of a ZIP container. If no known name is found, it is taken to have the
/// format of its file name, whose reader will report the damage.
pub(super) fn of_zip(bytes: &[u8], named: Option<Format>) -> Result<Format, ExtractError> {
    let ends =
        [&bytes[..bytes.len().min(ENDS_BYTES)], &bytes[bytes.len().saturating_sub(ENDS_BYTES)..]];
    let holds =
        |name: &[u8]| ends.iter().any(|end| end.windows(name.len()).any(|window| window == name));
    let found = PARTS.iter().find(|(name, _)| holds(name)).map(|(_, found)| *found);
    let found = found.unwrap_or(named.filter(|format| format.is_package()).ok_or(ZIP));
    found.map_err(|name| ExtractError::Unsupported { name: name.to_owned() })
}

/// Determines the exact format of a ZIP container first judged as `judged`; returns that if it
/// cannot be opened. For use in the process that reads it.
pub(super) fn exact(judged: Format, bytes: &[u8], budget: &Budget) -> Result<Format, ExtractError> {
    if !judged.is_package() || !is_zip(bytes) {
        return Ok(judged);
    }
    let Ok(package) = Package::open(bytes, judged.as_str(), budget) else { return Ok(judged) };
    let found = mimetype(&package).or(office::format_of(&package)?);
    found.ok_or_else(|| ExtractError::Unsupported { name: zip_name(&package).to_owned() })
}

/// The format named by the part `mimetype`.
fn mimetype(package: &Package<'_>) -> Option<Format> {
    let said = package.bytes("mimetype").ok().flatten().unwrap_or_default();
    let said = String::from_utf8_lossy(&said[..said.len().min(MIMETYPE_BYTES_MAX)]);
    let said = said.trim().trim_end_matches("-template").trim_end_matches("-master");
    match said {
        "application/vnd.oasis.opendocument.text" => Some(Format::Odt),
        "application/vnd.oasis.opendocument.spreadsheet" => Some(Format::Ods),
        "application/vnd.oasis.opendocument.presentation" => Some(Format::Odp),
        "application/epub+zip" => Some(Format::Epub),
        _ => package.has("META-INF/container.xml").then_some(Format::Epub),
    }
}

/// Determines the format of a compound file. Directory entries are at multiples of their size, with
/// names in UTF-16.
pub(super) fn of_compound(bytes: &[u8], named: Option<Format>) -> Result<Format, ExtractError> {
    const ENTRY_BYTES: usize = 128;
    const MESSAGE: &str = "__properties_version1.0";
    let is_named = |entry: &[u8], name: &str| {
        let name = name.encode_utf16().chain([0]).flat_map(u16::to_le_bytes);
        entry.iter().copied().take(2 * ENTRY_BYTES / 4).zip(name).all(|(a, b)| a == b)
    };
    let (mut is_encrypted, mut stream) = (false, None);
    for entry in bytes.chunks_exact(ENTRY_BYTES) {
        // A cheap filter for what is not an entry: names end within the first half, and start with
        // these letters.
        if entry[1] != 0 || entry[0] == 0 {
            continue;
        }
        if is_named(entry, MESSAGE) {
            return Ok(Format::Msg);
        }
        is_encrypted |= is_named(entry, "EncryptedPackage");
        let found = STREAMS.iter().position(|(stream, _)| is_named(entry, stream));
        stream = stream.into_iter().chain(found).min();
    }
    let name = match stream {
        _ if is_encrypted => {
            return Ok(named.filter(|format| *format != Format::Msg).unwrap_or(Format::Docx));
        }
        Some(stream) => STREAMS[stream].1,
        // The reader for the file name's format will report the damage.
        None => match named {
            Some(named) => return Ok(named),
            None => OFFICE_97,
        },
    };
    Err(ExtractError::Unsupported { name: name.to_owned() })
}

/// Name, for messages, of a container that is not supported.
fn zip_name(package: &Package<'_>) -> &'static str {
    match () {
        () if package.has("META-INF/MANIFEST.MF") => "Java archive",
        () if package.has("xl/workbook.bin") => BINARY_WORKBOOK,
        () if package.names().any(|name| name.ends_with(".iwa")) => "iWork document",
        () if package.has("mimetype") => "OpenDocument file of another kind",
        () => ZIP,
    }
}
