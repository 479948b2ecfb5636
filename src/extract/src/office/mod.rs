//! Office Open XML: documents, presentations and workbooks in a ZIP container.
//!
//! ```text
//! _rels/.rels -> main part -> its relationships -> styles, notes, slides, sheets, ...
//! ```
//! Parts are found by relationships, not by name. External targets are never followed. Embedded
//! files, such as a workbook in a letter, are not read.
//!
//! - `relations`: links between parts
//! - `document`: Word; `slides`: PowerPoint; `workbook`: Excel
//! - `chart`: charts and diagrams as text; `comments`: comments on cells and slides;
//!   `equation`: equations as text

mod chart;
mod comments;
pub(super) mod document;
mod equation;
mod relations;
pub(super) mod slides;
pub(super) mod workbook;

pub(super) use relations::resolve;

use crate::package::Package;
use crate::{ExtractError, Format};

/// The part with the document properties.
const PROPERTIES: &str = "docProps/core.xml";
/// Maximum bytes read from the list of content types.
const TYPES_BYTES_MAX: usize = 4 << 20;

/// Detects the format of a container from its content types, then from the names of its parts.
pub(super) fn format_of(package: &Package<'_>) -> Result<Option<Format>, ExtractError> {
    let types = package.bytes("[Content_Types].xml").ok().flatten().unwrap_or_default();
    let types = &types[..types.len().min(TYPES_BYTES_MAX)];
    let types = String::from_utf8_lossy(types).to_ascii_lowercase();
    // Only main parts are considered: a letter also lists the types of embedded workbooks.
    let mut main = types.match_indices("main+xml").map(|(at, _)| {
        let start = types[..at].rfind(['"', '\'']).map_or(0, |quote| quote + 1);
        &types[start..at]
    });
    let is_family = |names: [&'static str; 2]| {
        move |name: &str| names.iter().any(|family| name.contains(family))
    };
    let word = is_family(["wordprocessingml", "ms-word"]);
    let slides = is_family(["presentationml", "ms-powerpoint"]);
    let sheets = is_family(["spreadsheetml", "ms-excel"]);
    let by_type = main.find_map(|name| match () {
        () if word(name) => Some(Format::Docx),
        () if slides(name) => Some(Format::Pptx),
        () if sheets(name) => Some(Format::Xlsx),
        () => None,
    });
    let by_part = || match () {
        () if package.has("word/document.xml") => Some(Format::Docx),
        () if package.has("ppt/presentation.xml") => Some(Format::Pptx),
        () if package.has("xl/workbook.xml") => Some(Format::Xlsx),
        () => None,
    };
    Ok(by_type.or_else(by_part))
}
