//! Reads Word documents: paragraphs, headings, lists, tables, notes and text boxes, in reading
//! order.
//!
//! ```text
//! styles, numbering, notes -> walker over the body -> flow
//! ```
//! The text is that of the printed page: inserted text is kept, deleted and hidden text is dropped.
//! A text box comes before its paragraph, a note or comment after the paragraph that refers to it.
//! Headers and footers are written once, at the end, because often only the letterhead has the
//! address. Page numbers are left out.
//!
//! - `properties`, `styles`, `numbering`: kinds of paragraphs
//! - `walker`: the body; `paragraph`: one paragraph; `notes`: notes and comments;
//!   `margins`: headers and footers

mod margins;
mod notes;
mod numbering;
mod paragraph;
mod properties;
mod styles;
mod walker;

use crate::ExtractError;
use crate::budget::Budget;
use crate::flow::Flow;
use crate::office::document::notes::Notes;
use crate::office::document::numbering::Numbering;
use crate::office::document::styles::Styles;
use crate::office::document::walker::Walker;
use crate::office::{PROPERTIES, relations};
use crate::package::Package;
use crate::title::title;
use lodestone_types::Extracted;

/// Reads a Word document.
pub(crate) fn read(bytes: &[u8], budget: &Budget) -> Result<Extracted, ExtractError> {
    let package = Package::open(bytes, "Word document", budget)?;
    let (main, relations) = relations::main_part(&package, "word/document.xml")?;
    let named = |kind: &str, usual: &str| relations.first(kind).unwrap_or(usual).to_owned();
    let styles = Styles::read(&package, &named("styles", "word/styles.xml"))?;
    let mut numbering = Numbering::read(&package, &named("numbering", "word/numbering.xml"))?;
    let mut notes = Notes::default();
    for kind in ["footnotes", "endnotes", "comments"] {
        if let Some(name) = relations.first(kind) {
            notes.read(&package, name)?;
        }
    }
    let mut flow = Flow::default();
    if let Some(title) = title(&package, PROPERTIES) {
        flow.set_title(&title);
    }
    let mut walker =
        Walker::new(&package, &relations, &styles, &mut numbering, &mut notes, &mut flow);
    walker.read(&main)?;
    margins::headers_and_footers(&package, &relations, &styles, &mut flow)?;
    flow.finish()
}
