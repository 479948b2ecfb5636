//! Formats of containers: ZIP by its list of content types, compound files by their streams.
//!
//! In the server's process a container is never opened: names of its parts that stand in its bytes
//! give a first judgement, in one pass. The process that reads it opens it and judges exactly.

use crate::budget::Budget;
use crate::compound;
use crate::package::Package;
use crate::{ExtractError, Format, office};

/// The first bytes of a ZIP container, and of an empty one.
const ZIP_MAGIC: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];
/// Bytes of the part `mimetype` that are read.
const MIMETYPE_BYTES_MAX: usize = 200;
/// Bytes at both ends of a ZIP container in which names of parts are looked for: its first parts,
/// and its directory.
const ENDS_BYTES: usize = 64 << 10;

/// Names of parts by which ZIP containers are told apart; of several the first counts.
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

/// The name of a compound file of which no more is known.
const OFFICE_97: &str = "Microsoft Office 97-2003 document";

/// Streams by which compound files are told apart.
const STREAMS: [(&str, &str); 6] = [
    ("WordDocument", "Word 97-2003 document (save it as docx)"),
    ("Workbook", "Excel 97-2003 workbook (save it as xlsx)"),
    ("Book", "Excel 5.0 workbook (save it as xlsx)"),
    ("PowerPoint Document", "PowerPoint 97-2003 presentation (save it as pptx)"),
    ("VisioDocument", "Visio drawing"),
    ("FileHeader", "HWP document"),
];

/// Whether the bytes begin a ZIP container.
pub(super) fn is_zip(bytes: &[u8]) -> bool {
    ZIP_MAGIC.iter().any(|magic| bytes.starts_with(magic))
}

/// Whether the bytes begin a compound file.
pub(super) fn is_compound(bytes: &[u8]) -> bool {
    bytes.starts_with(compound::MAGIC)
}

/// The first judgement of a ZIP container. One that shows no known name has the format of its file
/// name, whose reader reports the damage.
pub(super) fn of_zip(bytes: &[u8], named: Option<Format>) -> Result<Format, ExtractError> {
    let ends =
        [&bytes[..bytes.len().min(ENDS_BYTES)], &bytes[bytes.len().saturating_sub(ENDS_BYTES)..]];
    let holds =
        |name: &[u8]| ends.iter().any(|end| end.windows(name.len()).any(|window| window == name));
    let found = PARTS.iter().find(|(name, _)| holds(name)).map(|(_, found)| *found);
    let found = found.unwrap_or(named.filter(|format| format.is_package()).ok_or(ZIP));
    found.map_err(|name| ExtractError::Unsupported { name: name.to_owned() })
}

/// The exact format of a ZIP container that was judged to be of `judged`; the same where it cannot
/// be opened. For the process that reads it.
pub(super) fn exact(judged: Format, bytes: &[u8], budget: &Budget) -> Result<Format, ExtractError> {
    if !judged.is_package() || !is_zip(bytes) {
        return Ok(judged);
    }
    let Ok(package) = Package::open(bytes, judged.as_str(), budget) else { return Ok(judged) };
    let found = mimetype(&package).or(office::format_of(&package)?);
    found.ok_or_else(|| ExtractError::Unsupported { name: zip_name(&package).to_owned() })
}

/// The format that the part `mimetype` names.
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

/// The format of a compound file. Entries of its directory begin at multiples of their size, with
/// their names in UTF-16.
pub(super) fn of_compound(bytes: &[u8], named: Option<Format>) -> Result<Format, ExtractError> {
    const ENTRY_BYTES: usize = 128;
    const MESSAGE: &str = "__properties_version1.0";
    let is_named = |entry: &[u8], name: &str| {
        let name = name.encode_utf16().chain([0]).flat_map(u16::to_le_bytes);
        entry.iter().copied().take(2 * ENTRY_BYTES / 4).zip(name).all(|(a, b)| a == b)
    };
    let (mut is_encrypted, mut stream) = (false, None);
    for entry in bytes.chunks_exact(ENTRY_BYTES) {
        // Most are no entries: names end within their first half, and begin with these letters.
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
        // The reader of the format that the file name says reports the damage.
        None => match named {
            Some(named) => return Ok(named),
            None => OFFICE_97,
        },
    };
    Err(ExtractError::Unsupported { name: name.to_owned() })
}

/// The name that messages give to a container that is not read.
fn zip_name(package: &Package<'_>) -> &'static str {
    match () {
        () if package.has("META-INF/MANIFEST.MF") => "Java archive",
        () if package.has("xl/workbook.bin") => BINARY_WORKBOOK,
        () if package.names().any(|name| name.ends_with(".iwa")) => "iWork document",
        () if package.has("mimetype") => "OpenDocument file of another kind",
        () => ZIP,
    }
}
