//! Headers and footers of a Word document.

use crate::ExtractError;
use crate::flow::Flow;
use crate::office::document::notes::Notes;
use crate::office::document::numbering::Numbering;
use crate::office::document::styles::Styles;
use crate::office::document::walker::Walker;
use crate::office::relations::Relations;
use crate::package::Package;

/// Maximum headers and footers per document: each section may have six.
const HEADERS_MAX: usize = 60;

/// Adds the headers and footers, which are written at the end of the document.
pub(super) fn headers_and_footers(
    package: &Package<'_>,
    relations: &Relations,
    styles: &Styles,
    flow: &mut Flow,
) -> Result<(), ExtractError> {
    let parts = relations.of_kind("header").chain(relations.of_kind("footer"));
    for name in parts.take(HEADERS_MAX) {
        let own = Relations::of(package, name)?;
        let (mut numbering, mut notes, mut inner) =
            (Numbering::default(), Notes::default(), Flow::default());
        Walker::new(package, &own, styles, &mut numbering, &mut notes, &mut inner)
            .without_page_numbers()
            .read(name)?;
        flow.margin(&inner.finish()?.text);
    }
    Ok(())
}
