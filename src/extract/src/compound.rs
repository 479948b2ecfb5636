//! Compound files (OLE): storages and streams in one file, used for Outlook messages and for
//! encrypted Office documents.

use std::io::{Cursor, Read};

use cfb::CompoundFile;

use crate::{ExtractError, TEXT_BYTES_MAX};

/// Magic bytes of a compound file.
pub(super) const MAGIC: &[u8] = b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1";
/// Maximum number of entries listed per storage.
const ENTRIES_MAX: usize = 20_000;

/// A compound file.
#[derive(Debug)]
pub(super) struct Compound<'a> {
    file: CompoundFile<Cursor<&'a [u8]>>,
    /// Bytes that may still be read; limited because streams may share sectors.
    left: usize,
}

impl<'a> Compound<'a> {
    /// Opens a compound file and reads its directory.
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

    /// Names of the storages inside the storage at this path, in order.
    pub(super) fn storages(&self, path: &str) -> Vec<String> {
        let Ok(entries) = self.file.read_storage(path) else { return Vec::new() };
        let storages = entries.take(ENTRIES_MAX).filter(cfb::Entry::is_storage);
        storages.map(|entry| entry.name().to_owned()).collect()
    }

    /// Reads the stream at this path, as far as it is readable.
    pub(super) fn read(&mut self, path: &str) -> Option<Vec<u8>> {
        // Opening a stream walks all its sectors, so that stops at the limit too.
        if self.left == 0 || !self.file.is_stream(path) {
            return None;
        }
        let stream = self.file.open_stream(path).ok()?;
        let mut bytes = Vec::new();
        // The end of the stream may be missing; keep what is there.
        let _ = stream.take(self.left as u64).read_to_end(&mut bytes);
        self.left -= bytes.len().min(self.left);
        Some(bytes)
    }
}

/// Whether the bytes are a password-protected Office document.
pub(super) fn is_encrypted(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
        && Compound::open(bytes).is_ok_and(|file| {
            file.has("EncryptedPackage")
                || file.has("\u{6}DataSpaces")
                || file.has("EncryptionInfo")
        })
}
