//! Formats of containers: ZIP by its list of content types, compound files by their streams.

use crate::budget::Budget;
use crate::compound::{self, Compound};
use crate::package::Package;
use crate::{ExtractError, Format, office};

/// The first bytes of a ZIP container, and of an empty one.
const ZIP_MAGIC: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];
/// Bytes of the part `mimetype` that are read.
const MIMETYPE_BYTES_MAX: usize = 200;

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

/// The format of a ZIP container. A damaged one has the format of its file name, so that its reader
/// reports the damage.
pub(super) fn of_zip(bytes: &[u8], named: Option<Format>) -> Result<Format, ExtractError> {
    let budget = Budget::default();
    let opened = Package::open(bytes, "ZIP archive", &budget);
    let found = match &opened {
        Ok(package) => mimetype(package).or(office::format_of(package)?),
        Err(_) => named.or_else(|| by_bytes(bytes)),
    };
    let unsupported = || ExtractError::Unsupported { name: zip_name(&opened).to_owned() };
    found.ok_or_else(unsupported)
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

/// The format of a compound file.
pub(super) fn of_compound(bytes: &[u8], named: Option<Format>) -> Result<Format, ExtractError> {
    let Ok(file) = Compound::open(bytes) else {
        // The reader of the format that the file name says reports the damage.
        return named.ok_or(ExtractError::Unsupported { name: OFFICE_97.to_owned() });
    };
    if file.has("__properties_version1.0") {
        return Ok(Format::Msg);
    }
    if compound::is_encrypted(bytes) {
        return Ok(named.filter(|format| *format != Format::Msg).unwrap_or(Format::Docx));
    }
    let name = STREAMS.iter().find(|(stream, _)| file.has(stream));
    Err(ExtractError::Unsupported { name: name.map_or(OFFICE_97, |(_, name)| name).to_owned() })
}

/// The format by the names at the head of a damaged container.
fn by_bytes(bytes: &[u8]) -> Option<Format> {
    const PARTS: [(&[u8], Format); 7] = [
        (b"word/", Format::Docx),
        (b"ppt/", Format::Pptx),
        (b"xl/", Format::Xlsx),
        (b"application/vnd.oasis.opendocument.text", Format::Odt),
        (b"application/vnd.oasis.opendocument.spreadsheet", Format::Ods),
        (b"application/vnd.oasis.opendocument.presentation", Format::Odp),
        (b"application/epub+zip", Format::Epub),
    ];
    let head = &bytes[..bytes.len().min(64 << 10)];
    let holds = |part: &[u8]| head.windows(part.len()).any(|window| window == part);
    PARTS.iter().find(|(part, _)| holds(part)).map(|(_, format)| *format)
}

/// The name that messages give to a container that is not read.
fn zip_name(opened: &Result<Package<'_>, ExtractError>) -> &'static str {
    let Ok(package) = opened else { return "ZIP archive" };
    match () {
        () if package.has("META-INF/MANIFEST.MF") => "Java archive",
        () if package.has("xl/workbook.bin") => "binary Excel workbook (save it as xlsx)",
        () if package.names().any(|name| name.ends_with(".iwa")) => "iWork document",
        () if package.has("mimetype") => "OpenDocument file of another kind",
        () => "ZIP archive",
    }
}
