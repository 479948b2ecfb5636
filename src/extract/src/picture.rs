//! Renders pages as images.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::pdf::draw_page;
use crate::{ExtractError, Format};
use lodestone_types::PageArea;

/// Maximum pixels of an image: an A4 page at the maximum width has 5.9 million.
pub const PIXELS_MAX: usize = 8 << 20;

/// A request to render a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drawing {
    /// The page number, from 1.
    pub page: u32,
    /// Width in pixels; the height follows from the page.
    pub width: u16,
    /// Areas to highlight, in points on the page as displayed.
    pub marks: Vec<PageArea>,
}

/// A rendered page.
#[derive(Clone, PartialEq)]
pub struct PagePicture {
    /// Pages in the document.
    pub pages: u32,
    /// Width and height of the page as displayed, in points.
    pub size: (f32, f32),
    /// The image as PNG.
    pub png: Vec<u8>,
}

impl fmt::Debug for PagePicture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pages, size, png } = self;
        write!(f, "PagePicture({size:?} of {pages} pages, {} bytes)", png.len())
    }
}

/// Renders a page of a document.
///
/// # Errors
/// The format has no pages; the document has no such page; it cannot be read or drawn.
pub fn draw(format: Format, bytes: &[u8], drawing: &Drawing) -> Result<PagePicture, ExtractError> {
    match format {
        Format::Pdf => draw_page(bytes, drawing),
        format => Err(ExtractError::NoPages { format: format.as_str() }),
    }
}
