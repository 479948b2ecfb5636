//! Renders pages of sources as images, and caches recent ones.
//!
//! An image is cached under the key of its original, which no other upload shares, and the source
//! is looked up each time. A replaced source thus yields images of its new version, a deleted one
//! none.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::ingest::drawing_bytes;
use crate::{Engine, EngineError, IoError, Original, TenantAccess};
use lodestone_extract::sandbox::Parser;
use lodestone_extract::{Drawing, ExtractError, Format, PagePicture};
use lodestone_types::{ErrorKind, SourceId, SourceKind};

/// Maximum bytes of cached images: a few hundred pages of text.
const KEPT_BYTES_MAX: usize = 16 << 20;
/// Bytes of an original that are read to detect its format. The header of a PDF is within the first
/// kilobyte.
const HEAD_BYTES: usize = 4 << 10;
/// Maximum time that rendering waits for memory.
const MEMORY_WAIT: Duration = Duration::from_secs(10);

/// The reason why there is no image of a page.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// The format of the source has no pages to render.
    #[error("source {source_id} has no pages that can be rendered: only PDFs have")]
    NoPages {
        /// The source.
        source_id: SourceId,
    },
    /// The document has no such page, or rendering failed.
    #[error(transparent)]
    Document(#[from] ExtractError),
    /// Not enough memory is available.
    #[error("not enough memory to render a page; try again later")]
    NoMemory,
}

impl PictureError {
    /// Classifies the error by what the caller should do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoPages { .. } => ErrorKind::Invalid,
            Self::Document(error) => error.kind(),
            Self::NoMemory => ErrorKind::Overloaded,
        }
    }
}

/// The renderer and the cache of recent images.
#[derive(Debug)]
pub(crate) struct Pictures {
    parser: Arc<dyn Parser>,
    /// Cached images, least recently used first.
    recent: Mutex<VecDeque<Kept>>,
}

#[derive(Debug)]
struct Kept {
    raw_key: String,
    drawing: Drawing,
    picture: Arc<PagePicture>,
}

impl Pictures {
    pub(crate) fn new(parser: Arc<dyn Parser>) -> Self {
        Self { parser, recent: Mutex::default() }
    }

    fn recent(&self, raw_key: &str, drawing: &Drawing) -> Option<Arc<PagePicture>> {
        let mut recent = self.recent.lock();
        let is_it = |kept: &Kept| kept.raw_key == raw_key && kept.drawing == *drawing;
        let at = recent.iter().position(is_it)?;
        let kept = recent.remove(at)?;
        let picture = Arc::clone(&kept.picture);
        recent.push_back(kept);
        Some(picture)
    }

    fn keep(&self, kept: Kept) {
        let mut recent = self.recent.lock();
        recent.push_back(kept);
        let mut bytes: usize = recent.iter().map(|kept| kept.picture.png.len()).sum();
        while bytes > KEPT_BYTES_MAX
            && let Some(oldest) = recent.pop_front()
        {
            bytes -= oldest.picture.png.len();
        }
    }
}

impl Engine {
    /// Opens the original of a source whose pages can be rendered.
    ///
    /// # Errors
    /// See [`Self::original`]; [`PictureError::NoPages`].
    pub fn original_with_pages(
        &self,
        access: &TenantAccess,
        id: &SourceId,
    ) -> Result<Original, EngineError> {
        let original = self.original(access, id)?;
        match is_pdf(&original)? {
            true => Ok(original),
            false => Err(PictureError::NoPages { source_id: id.clone() }.into()),
        }
    }

    /// The image of a page, if it is cached.
    pub fn recent_picture(
        &self,
        original: &Original,
        drawing: &Drawing,
    ) -> Option<Arc<PagePicture>> {
        self.pictures.recent(&original.record.raw_key, drawing)
    }

    /// Renders a page of an original from [`Self::original_with_pages`]. Takes up to ten seconds.
    ///
    /// # Errors
    /// [`PictureError`]; damaged data.
    pub fn draw(
        &self,
        original: &mut Original,
        drawing: &Drawing,
    ) -> Result<Arc<PagePicture>, EngineError> {
        let memory = self.memory.take(drawing_bytes(original.len()), MEMORY_WAIT);
        let _memory = memory.ok_or(PictureError::NoMemory)?;
        let len = original.len() as usize;
        let bytes = self.read_original(original, |bytes: &mut Vec<u8>, piece| {
            bytes.reserve_exact(len.saturating_sub(bytes.len()));
            bytes.extend_from_slice(piece);
        })?;
        let drawn = self.pictures.parser.draw(Format::Pdf, &bytes, drawing);
        let picture = Arc::new(drawn.map_err(PictureError::from)?);
        self.pictures.keep(Kept {
            raw_key: original.record.raw_key.clone(),
            drawing: drawing.clone(),
            picture: Arc::clone(&picture),
        });
        Ok(picture)
    }
}

fn is_pdf(original: &Original) -> Result<bool, IoError> {
    let record = &original.record;
    let Some(content) = original.content() else { return Ok(false) };
    if !matches!(record.kind, SourceKind::File | SourceKind::Webpage) {
        return Ok(false);
    }
    let mut head = vec![0; HEAD_BYTES];
    let read = content.read_at(0, &mut head)?;
    head.truncate(read);
    let media_type = Some(record.content_type.as_str()).filter(|word| !word.is_empty());
    let format = lodestone_extract::detect(&record.filename, media_type, &head);
    Ok(matches!(format, Ok(Format::Pdf)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodestone_extract::sandbox::InProcess;

    #[test]
    fn pictures_are_kept_up_to_a_bound() {
        let pictures = Pictures::new(Arc::new(InProcess));
        let drawing = |page| Drawing { page, width: 64, marks: Vec::new() };
        let keep = |raw_key: &str, page, bytes| {
            let picture = PagePicture { pages: 9, size: (1.0, 1.0), png: vec![0; bytes] };
            let (raw_key, drawing) = (raw_key.to_owned(), drawing(page));
            pictures.keep(Kept { raw_key, drawing, picture: Arc::new(picture) });
        };
        let has = |raw_key, page| pictures.recent(raw_key, &drawing(page)).is_some();
        keep("a", 1, KEPT_BYTES_MAX / 2);
        keep("a", 2, KEPT_BYTES_MAX / 4);
        assert!(has("a", 1) && !has("b", 1) && !has("a", 3));
        // The first was used last, so the second goes.
        keep("b", 1, KEPT_BYTES_MAX / 2);
        assert!(has("a", 1) && has("b", 1) && !has("a", 2));
        keep("c", 1, KEPT_BYTES_MAX + 1);
        assert!(!has("a", 1) && !has("b", 1) && !has("c", 1));
    }
}
