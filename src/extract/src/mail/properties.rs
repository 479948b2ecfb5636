//! The properties of an object in an Outlook message: streams named by tag and type, and a table of
//! fixed-size values.
//!
//! ```text
//! __substg1.0_TTTTKKKK      value of tag TTTT; type KKKK: 001F UTF-16, 001E code page, 0102 bytes
//! __properties_version1.0   header of 8, 24 or 32 bytes, then entries of 16: type, tag, flags,
//!                           value
//! ```

use std::collections::BTreeMap;

use crate::compound::Compound;
use crate::decode;

/// Bytes of an entry in the table of fixed-size values.
const ENTRY_BYTES: usize = 16;
/// Maximum number of entries read per table.
const ENTRIES_MAX: usize = 4096;

/// The properties of one object.
#[derive(Debug)]
pub(super) struct Properties {
    /// The path of its storage, with a trailing slash.
    storage: String,
    fixed: BTreeMap<u16, [u8; 8]>,
}

impl Properties {
    /// Reads the properties of a storage whose table has a header of `header_bytes`.
    pub(super) fn read(file: &mut Compound<'_>, storage: &str, header_bytes: usize) -> Self {
        let storage = format!("{}/", storage.trim_end_matches('/'));
        let table = file.read(&format!("{storage}__properties_version1.0")).unwrap_or_default();
        let entries = table.get(header_bytes..).unwrap_or_default();
        let mut fixed = BTreeMap::new();
        for entry in entries.chunks_exact(ENTRY_BYTES).take(ENTRIES_MAX) {
            let tag = u16::from_le_bytes([entry[2], entry[3]]);
            let mut value = [0; 8];
            value.copy_from_slice(&entry[8..]);
            fixed.insert(tag, value);
        }
        Self { storage, fixed }
    }

    /// A number.
    pub(super) fn number(&self, tag: u16) -> Option<u32> {
        let value = self.fixed.get(&tag)?;
        Some(u32::from_le_bytes([value[0], value[1], value[2], value[3]]))
    }

    /// A time, in units of 100 nanoseconds since 1601.
    pub(super) fn time(&self, tag: u16) -> Option<u64> {
        self.fixed.get(&tag).map(|value| u64::from_le_bytes(*value))
    }

    /// A text; `label` is the encoding of non-Unicode texts.
    pub(super) fn text(
        &self,
        file: &mut Compound<'_>,
        tag: u16,
        label: Option<&str>,
    ) -> Option<String> {
        let storage = &self.storage;
        let text = if let Some(wide) = file.read(&format!("{storage}__substg1.0_{tag:04X}001F")) {
            decode::labelled(&wide, Some("utf-16le"))
        } else {
            let narrow = file.read(&format!("{storage}__substg1.0_{tag:04X}001E"))?;
            decode::labelled(&narrow, label)
        };
        let text = text.trim_end_matches(['\u{FFFD}', '\0']).to_owned();
        (!text.trim().is_empty()).then_some(text)
    }

    /// Bytes.
    pub(super) fn bytes(&self, file: &mut Compound<'_>, tag: u16) -> Option<Vec<u8>> {
        file.read(&format!("{}__substg1.0_{tag:04X}0102", self.storage))
    }

    /// The path of an object that is the value of a tag.
    pub(super) fn object(&self, file: &Compound<'_>, tag: u16) -> Option<String> {
        let path = format!("{}__substg1.0_{tag:04X}000D", self.storage);
        file.has(&path).then_some(path)
    }
}
