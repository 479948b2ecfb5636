//! Sizes at which the log is split, checkpointed and rebased.

/// Maximum bytes of the write-ahead log per entry. A larger commit takes several entries and counts
/// once the last of them is stored.
pub(super) const PIECE_BYTES_MAX: usize = 8 << 20;

/// Sizes at which the log is split, checkpointed and rebased.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogLimits {
    /// Maximum bytes of the write-ahead log in one entry.
    pub(super) piece_bytes: u64,
    /// Size of the write-ahead log that triggers a checkpoint; SQLite's own default.
    pub(super) checkpoint_bytes: u64,
    /// Bytes since the newest base that trigger another one, or the length of that base if it is
    /// larger, so that copies of the file cost no more than the frames themselves.
    pub(super) base_bytes: u64,
    /// Entries since the newest base that trigger another one, since a restore fetches each of
    /// them; see [`BYTES_PER_ENTRY`].
    pub(super) base_entries: u64,
}

/// Bytes that a restore fetches in the time one entry takes it, at the least: a file larger than
/// this times `base_entries` is copied less often.
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
