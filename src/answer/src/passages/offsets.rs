//! Character offsets of a text that is read by bytes.

use std::ops::Range;

/// Index that converts byte offsets to character offsets.
pub(crate) struct CharOffsets(Vec<usize>);

impl CharOffsets {
    /// Bytes between remembered offsets.
    const STEP: usize = 256;

    /// Creates the index of a text.
    pub(crate) fn new(text: &str) -> Self {
        let mut counts = Vec::with_capacity(text.len() / Self::STEP + 1);
        let mut chars = 0;
        for (at, byte) in text.bytes().enumerate() {
            if at % Self::STEP == 0 {
                counts.push(chars);
            }
            // Continuation bytes of UTF-8 begin no character.
            chars += usize::from(byte & 0xC0 != 0x80);
        }
        Self(counts)
    }

    /// The range of characters of a range of bytes in the text.
    pub(crate) fn chars(&self, text: &str, bytes: &Range<usize>) -> Range<usize> {
        let count = |at: usize| {
            let from = (at / Self::STEP).min(self.0.len().saturating_sub(1));
            let before = self.0.get(from).copied().unwrap_or(0);
            let begins = |byte: &&u8| **byte & 0xC0 != 0x80;
            before + text.as_bytes()[from * Self::STEP..at].iter().filter(begins).count()
        };
        count(bytes.start)..count(bytes.end)
    }
}
