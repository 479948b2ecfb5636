//! A section whose blocks are verified when they are first read.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use lodestone_io::{BlockFile, IoError, StableBytes};
use lodestone_text::{BundleBytes, OwnedBytes};

/// The bytes of one section. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct LazySection {
    file: Arc<BlockFile>,
    place: Range<usize>,
}

impl LazySection {
    /// Wraps the section at `place` of `file`; verifies nothing yet.
    ///
    /// # Errors
    /// [`IoError::CorruptFile`] if `place` lies outside the file's data.
    pub(super) fn new(file: &Arc<BlockFile>, place: Range<usize>) -> Result<Self, IoError> {
        file.unverified(place.clone())?;
        Ok(Self { file: Arc::clone(file), place })
    }

    /// Length of the section in bytes.
    pub(super) fn len(&self) -> usize {
        self.place.len()
    }

    /// Returns a range of the section after verifying its blocks.
    ///
    /// # Errors
    /// Damage of a block; [`IoError::CorruptFile`] for a range outside the section. The latter is
    /// an error rather than a panic because ranges come from files.
    pub(super) fn read(&self, range: Range<usize>) -> Result<&[u8], IoError> {
        let range = self.verified(range)?;
        Ok(&self.file.mapped()[range])
    }

    /// Returns a verified range together with the owner that keeps it mapped.
    fn bytes(&self, range: Range<usize>) -> Result<Bytes, IoError> {
        let range = self.verified(range)?;
        Ok(self.file.mapped().bytes(range))
    }

    /// Verifies a range of the section and translates it to positions in the file.
    fn verified(&self, range: Range<usize>) -> Result<Range<usize>, IoError> {
        if range.start > range.end || range.end > self.len() {
            let problem = format!("range {range:?} lies outside of a section of {}", self.len());
            let path = self.file.mapped().path().to_path_buf();
            return Err(IoError::CorruptFile { path, problem });
        }
        let range = self.place.start + range.start..self.place.start + range.end;
        self.file.verify(range.clone())?;
        Ok(range)
    }

    /// Creates a section in a temporary file of its own.
    #[cfg(test)]
    pub(super) fn of(bytes: &[u8]) -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let mapped = lodestone_io::MappedFile::open(file.path()).unwrap();
        let blocks = BlockFile::open(mapped, bytes.len(), lodestone_io::checksums(bytes)).unwrap();
        Self::new(&Arc::new(blocks), 0..bytes.len()).unwrap()
    }
}

impl BundleBytes for LazySection {
    fn byte_count(&self) -> usize {
        self.len()
    }

    /// Returns the range in place, without copying.
    fn read(&self, range: Range<usize>) -> std::io::Result<OwnedBytes> {
        let bytes = self.bytes(range).map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(OwnedBytes::new(StableBytes::from(bytes)))
    }
}
