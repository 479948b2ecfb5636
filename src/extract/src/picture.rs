//! Pages as pictures.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::pdf::draw_page;
use crate::{ExtractError, Format};
use lodestone_types::PageArea;

/// Pixels of a picture: a page of A4 at the greatest width has 5.9 million.
pub const PIXELS_MAX: usize = 8 << 20;

/// A page to be drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drawing {
    /// The page, from 1.
    pub page: u32,
    /// Pixels from left to right; the height follows.
    pub width: u16,
    /// Areas to be marked, in points of the page as shown.
    pub marks: Vec<PageArea>,
}

/// A drawn page.
#[derive(Clone, PartialEq)]
pub struct PagePicture {
    /// Pages of the document.
    pub pages: u32,
    /// Width and height of the page as shown, in points.
    pub size: (f32, f32),
    /// The picture, a PNG file.
    pub png: Vec<u8>,
}

impl fmt::Debug for PagePicture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pages, size, png } = self;
        write!(f, "PagePicture({size:?} of {pages} pages, {} bytes)", png.len())
    }
}

/// Draws a page of a document.
///
/// # Errors
/// The format has no pages; the document has no such page; it cannot be read or drawn.
pub fn draw(format: Format, bytes: &[u8], drawing: &Drawing) -> Result<PagePicture, ExtractError> {
    match format {
        Format::Pdf => draw_page(bytes, drawing),
        format => Err(ExtractError::NoPages { format: format.as_str() }),
    }
}
