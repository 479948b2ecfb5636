//! Sizes of a segment as the input of a merge.
//!
//! While a merge writes, it holds the records of all sources, and one section at a time:
//!
//! | section | bytes in memory |
//! |---|---|
//! | text index | 30 a row: numbers of old and new rows |
//! | texts | 8 a row: positions; the texts themselves wait on disk |
//! | lists, one-bit codes | 250 a row: twelve nearest groups, distances, the codes |
//! | graph | six times its size: a table of its names, and the section twice |
//! | sources | four times their size: records, their stored form, the section twice |
//! | columns | eight times their size: a value that one row alone has takes two allocations |
//! | boxes, lines, contexts | their size twice |

use crate::segment::Segment;
use crate::segment::format::Section;

/// Bytes a row whatever it holds: its origin, and the widest of the sections by row.
const ROW_BYTES: u64 = 320;
/// Bytes of a merge however small it is: what its searches for a measure hold is most of them.
const MERGE_BYTES: u64 = 512 << 10;
/// Bytes a row that a segment gains with its one-bit codes, apart from one bit a component.
const ONE_BIT_ROW_BYTES: u64 = 24;

impl Segment {
    /// Bytes of a section; 0 where it is absent.
    fn bytes_of(&self, section: Section) -> u64 {
        self.footer.entry(section).map_or(0, |entry| entry.bytes)
    }

    /// Bytes of memory that merging this segment with others takes at most for its share.
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

    /// Bytes of disk that its rows may take in a merge beyond those that they take here: small
    /// segments have no one-bit codes, and the text index lies there twice for a while.
    pub fn merge_growth_bytes(&self) -> u64 {
        let row_bytes = ONE_BIT_ROW_BYTES + u64::from(self.header.dimension) / 8;
        let one_bit = match self.bytes_of(Section::OneBit) {
            0 => u64::from(self.row_count()) * row_bytes,
            _ => 0,
        };
        one_bit + self.bytes_of(Section::TextIndex)
    }
}
