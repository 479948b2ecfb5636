//! Compound files (OLE): storages and streams in one file, as Outlook writes messages and as Office
//! hides encrypted documents.

use std::io::{Cursor, Read};

use cfb::CompoundFile;

use crate::{ExtractError, TEXT_BYTES_MAX};

/// The first bytes of a compound file.
pub(super) const MAGIC: &[u8] = b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1";
/// Entries of one file that are listed.
const ENTRIES_MAX: usize = 20_000;

/// A compound file.
#[derive(Debug)]
pub(super) struct Compound<'a> {
    file: CompoundFile<Cursor<&'a [u8]>>,
    /// Bytes that may still be read: streams may share their sectors.
    left: usize,
}

impl<'a> Compound<'a> {
    /// Reads the directory.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, ExtractError> {
        let file = CompoundFile::open(Cursor::new(bytes)).map_err(|failure| {
            let problem = failure.to_string();
            ExtractError::Broken { format: "compound file", problem }
        })?;
        Ok(Self { file, left: bytes.len().saturating_mul(2).min(TEXT_BYTES_MAX * 4) })
    }

    /// Whether there is an entry at this path.
    pub(super) fn has(&self, path: &str) -> bool {
        self.file.exists(path)
    }

    /// The names of the storages in the storage at this path, in order.
    pub(super) fn storages(&self, path: &str) -> Vec<String> {
        let Ok(entries) = self.file.read_storage(path) else { return Vec::new() };
        let storages = entries.take(ENTRIES_MAX).filter(cfb::Entry::is_storage);
        storages.map(|entry| entry.name().to_owned()).collect()
    }

    /// The bytes of the stream at this path, as far as they can be read.
    pub(super) fn read(&mut self, path: &str) -> Option<Vec<u8>> {
        // Opening a stream walks all its sectors, so that too ends with the bytes.
        if self.left == 0 || !self.file.is_stream(path) {
            return None;
        }
        let stream = self.file.open_stream(path).ok()?;
        let mut bytes = Vec::new();
        // The end of a stream may be lost; what is there counts.
        let _ = stream.take(self.left as u64).read_to_end(&mut bytes);
        self.left -= bytes.len().min(self.left);
        Some(bytes)
    }
}

/// Whether the bytes are an Office document that was encrypted with a password.
pub(super) fn is_encrypted(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
        && Compound::open(bytes).is_ok_and(|file| {
            file.has("EncryptedPackage")
                || file.has("\u{6}DataSpaces")
                || file.has("EncryptionInfo")
        })
}
