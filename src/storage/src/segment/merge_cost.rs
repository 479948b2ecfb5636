//! Estimates of the memory and disk that a segment needs as input of a merge.
//!
//! While it writes, a merge holds one section at a time, and the details of all sources. A record
//! is decoded when it is needed, because decoded metadata may take many times their stored size:
//!
//! | section | bytes in memory |
//! |---|---|
//! | text index | 30 per row: numbers of old and new rows |
//! | texts | 8 per row: positions; the texts themselves are spooled to disk |
//! | lists, one-bit codes | 250 per row: twelve nearest groups, distances, the codes |
//! | graph | six times its size: a table of its names, and the section twice |
//! | sources | four times their size: what is stored of them, and the section twice as it grows |
//! | columns | eight times their size: a value that occurs in a single row takes two allocations |
//! | boxes, lines, contexts | twice their size |

use crate::segment::Segment;
use crate::segment::format::Section;

/// Bytes per row regardless of content: the row's origin, plus the widest of the per-row sections.
const ROW_BYTES: u64 = 320;
/// Fixed cost of a merge in bytes, mostly the searches that measure the effort of lists.
const MERGE_BYTES: u64 = 512 << 10;
/// Bytes per row that one-bit codes add, besides one bit per component.
const ONE_BIT_ROW_BYTES: u64 = 24;

impl Segment {
    /// Size of a section in bytes; 0 if it is absent.
    fn bytes_of(&self, section: Section) -> u64 {
        self.footer.entry(section).map_or(0, |entry| entry.bytes)
    }

    /// Upper bound on the bytes of memory that this segment adds to a merge with others.
    pub fn merge_memory_bytes(&self) -> u64 {
        let sources = self.bytes_of(Section::Sources) + self.bytes_of(Section::Details);
        let factors = [
            (Section::Columns, 8),
            (Section::Boxes, 2),
            (Section::Lines, 2),
            (Section::Contexts, 2),
            (Section::Graph, 6),
        ];
        let sizes = factors.into_iter().map(|(section, factor)| factor * self.bytes_of(section));
        let widest = sizes.max().unwrap_or(0);
        MERGE_BYTES + u64::from(self.row_count()) * ROW_BYTES + 4 * sources + widest
    }

    /// Upper bound on the disk bytes that its rows need in a merge beyond their size here: small
    /// segments have no one-bit codes yet, and the text index exists twice for a while.
    pub fn merge_growth_bytes(&self) -> u64 {
        let row_bytes = ONE_BIT_ROW_BYTES + u64::from(self.header.dimension) / 8;
        let one_bit = match self.bytes_of(Section::OneBit) {
            0 => u64::from(self.row_count()) * row_bytes,
            _ => 0,
        };
        one_bit + self.bytes_of(Section::TextIndex)
    }
}
