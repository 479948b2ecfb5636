//! OpenDocument: texts, presentations and spreadsheets in a ZIP container.
//!
//! ```text
//! META-INF/manifest.xml: encrypted?   meta.xml: title
//! content.xml -> walker (texts, slides) -> flow
//!             -> cells (spreadsheets) -> sheet -> flow
//! ```
//! Deleted text is stored separately in such files and is skipped, as are comments. Whether a list
//! is numbered or bulleted is determined by its style.
//!
//! - `walker`: texts and slides; `styles`: lists and titles; `cells`: spreadsheets

mod cells;
mod styles;
mod walker;

use crate::ExtractError;
use crate::budget::Budget;
use crate::flow::Flow;
use crate::odf::styles::Styles;
use crate::package::Package;
use crate::title::title;
use lodestone_types::Extracted;

/// The name of the part with the content.
const CONTENT: &str = "content.xml";

/// Reads a text or a presentation.
pub(super) fn read_text(bytes: &[u8], budget: &Budget) -> Result<Extracted, ExtractError> {
    let package = open(bytes, budget)?;
    let mut flow = begin(&package);
    let mut styles = Styles::default();
    styles.read(&package, "styles.xml")?;
    styles.read(&package, CONTENT)?;
    walker::read(&package, &styles, &mut flow)?;
    flow.finish()
}

/// Reads a spreadsheet.
pub(super) fn read_sheets(bytes: &[u8], budget: &Budget) -> Result<Extracted, ExtractError> {
    let package = open(bytes, budget)?;
    let mut flow = begin(&package);
    cells::read(&package, &mut flow)?;
    flow.finish()
}

fn open<'a>(bytes: &'a [u8], budget: &'a Budget) -> Result<Package<'a>, ExtractError> {
    let package = Package::open(bytes, "OpenDocument file", budget)?;
    let manifest = package.bytes("META-INF/manifest.xml")?.unwrap_or_default();
    let is_encrypted = String::from_utf8_lossy(&manifest).contains("encryption-data");
    if is_encrypted || package.has("encrypted-package") {
        return Err(ExtractError::Encrypted { format: "OpenDocument file" });
    }
    if !package.has(CONTENT) {
        let problem = format!("there is no part '{CONTENT}'");
        return Err(ExtractError::Broken { format: "OpenDocument file", problem });
    }
    Ok(package)
}

fn begin(package: &Package<'_>) -> Flow {
    let mut flow = Flow::default();
    if let Some(title) = title(package, "meta.xml") {
        flow.set_title(&title);
    }
    flow
}
