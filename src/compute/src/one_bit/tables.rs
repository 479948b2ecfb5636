//! Sizes of a query's tables, and detection of processors that use the wide ones.

/// Components per group; a table has one entry for each pattern of their signs.
pub(super) const GROUP: usize = 4;

/// Entries per table.
pub(super) const TABLE: usize = 1 << GROUP;

/// Entries per wide table.
pub(super) const WIDE_TABLE: usize = 64;

/// A table over six components, which fits a register.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(align(64))]
pub(super) struct WideTable(pub [u8; WIDE_TABLE]);

/// Whether the processor can look up 64 bytes in a table of 64 at once (Ice Lake, Zen 4 and later).
#[cfg(target_arch = "x86_64")]
pub(super) fn has_wide_tables() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi")
}

/// Whether the kernel chosen for this processor reads wide tables.
pub(super) fn takes_wide_tables() -> bool {
    #[cfg(target_arch = "x86_64")]
    return has_wide_tables();
    #[cfg(not(target_arch = "x86_64"))]
    false
}
