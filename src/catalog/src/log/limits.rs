//! Sizes at which the log is cut, folded and made anew.

/// Bytes of the write-ahead log in one entry at most. A larger commit takes several entries, and
/// counts once the last of them is there.
pub(super) const PIECE_BYTES_MAX: usize = 8 << 20;

/// Sizes at which the log is cut, folded and made anew.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogLimits {
    /// Bytes of the write-ahead log in one entry.
    pub(super) piece_bytes: u64,
    /// Bytes of the write-ahead log at which it is folded into the file; SQLite's own limit.
    pub(super) checkpoint_bytes: u64,
    /// Bytes since the newest base at which another one is made, or its own length if that is
    /// more: so copies of the file cost no more than the frames themselves.
    pub(super) base_bytes: u64,
    /// Entries since the newest base at which another one is made: a restore has to fetch each;
    /// see [`BYTES_PER_ENTRY`].
    pub(super) base_entries: u64,
}

/// A restore fetches that many bytes in the time that an entry takes it at least: a file of this
/// many times `base_entries` is copied less often.
pub(super) const BYTES_PER_ENTRY: u64 = 64 << 10;

impl Default for LogLimits {
    fn default() -> Self {
        Self {
            piece_bytes: PIECE_BYTES_MAX as u64,
            checkpoint_bytes: 4 << 20,
            base_bytes: 16 << 20,
            base_entries: 1000,
        }
    }
}
