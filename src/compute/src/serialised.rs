//! Parses the portable serialised form of a roaring bitmap in place: the only way that the
//! `roaring` crate offers to view its dense chunks as words.
//!
//! ```text
//! u32 12346, u32 chunks (n)              no chunk consists of runs
//! u16 12347, u16 n - 1, n bits           a set bit for each chunk of runs
//! n x { u16 key, u16 rows - 1 }
//! n x u32 offset                         absent after the second cookie if n < 4
//! n chunks: up to 4,096 rows  u16 each;  more  1024 x u64;  runs  u16 count, { u16, u16 } each
//! ```
//! Source: RoaringFormatSpec, <https://github.com/RoaringBitmap/RoaringFormatSpec>.

/// Number of rows that share a key.
pub(super) const CHUNK_ROWS: usize = 1 << 16;
const COOKIE_WITHOUT_RUNS: u32 = 12346;
/// Number of chunks from which on offsets are always present.
const OFFSETS_FROM: usize = 4;
/// Maximum number of rows that a chunk lists individually.
const LISTED_ROWS_MAX: usize = 4096;
const WORDS_BYTES: usize = CHUNK_ROWS / 8;

/// The rows of one key.
pub(super) struct Chunk<'a> {
    /// Upper 16 bits of the row ids.
    pub(super) key: usize,
    /// Lower 16 bits of the row ids.
    pub(super) rows: ChunkRows<'a>,
}

/// Lower 16 bits of row ids, little-endian.
pub(super) enum ChunkRows<'a> {
    /// u16 each.
    Listed(&'a [u8]),
    /// 1024 x u64.
    Words(&'a [u8]),
    /// First row and number of further rows, u16 each.
    Runs(&'a [u8]),
}

/// Iterates over the chunks of a bitmap that this process serialised.
///
/// # Panics
/// If the bytes are malformed.
pub(super) fn chunks(bytes: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    let u16_at = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let cookie = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let has_runs = cookie != COOKIE_WITHOUT_RUNS;
    let (count, flags) = match has_runs {
        true => (u16_at(2) + 1, 4),
        false => (u16_at(4) | u16_at(6) << 16, 8),
    };
    let keys = flags + if has_runs { count.div_ceil(8) } else { 0 };
    let offsets = if !has_runs || count >= OFFSETS_FROM { count * 4 } else { 0 };
    let mut at = keys + count * 4 + offsets;
    (0..count).map(move |chunk| {
        let (key, rows) = (u16_at(keys + chunk * 4), u16_at(keys + chunk * 4 + 2) + 1);
        let is_runs = has_runs && bytes[flags + chunk / 8] >> (chunk % 8) & 1 == 1;
        let (begin, length) = match () {
            () if is_runs => (at + 2, u16_at(at) * 4),
            () if rows <= LISTED_ROWS_MAX => (at, rows * 2),
            () => (at, WORDS_BYTES),
        };
        at = begin + length;
        let halves = &bytes[begin..at];
        let rows = match () {
            () if is_runs => ChunkRows::Runs(halves),
            () if rows <= LISTED_ROWS_MAX => ChunkRows::Listed(halves),
            () => ChunkRows::Words(halves),
        };
        Chunk { key, rows }
    })
}
