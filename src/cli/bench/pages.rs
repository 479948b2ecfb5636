//! Pages of memory-mapped segments touched by searches, as counted by the kernel.

use std::io;

/// Resets the kernel's record of touched pages, so that [`touched_bytes`] starts at zero.
pub fn forget() -> io::Result<()> {
    std::fs::write("/proc/self/clear_refs", "3")
}

/// Returns the approximate size of the segment pages touched since [`forget`]. Pages still cached
/// in the processor's TLB are missed. `None` if the kernel does not report it.
pub fn touched_bytes() -> Option<u64> {
    let maps = std::fs::read_to_string("/proc/self/smaps").ok()?;
    let (mut is_segment, mut kibibytes) = (false, None);
    for line in maps.lines() {
        let first = line.split_whitespace().next().unwrap_or_default();
        match first.strip_suffix(':') {
            Some("Referenced") if is_segment => {
                let count = line.split_whitespace().nth(1)?.parse::<u64>().ok()?;
                *kibibytes.get_or_insert(0) += count;
            }
            Some(_) => {}
            None => is_segment = line.ends_with(".seg"),
        }
    }
    kibibytes.map(|kibibytes| kibibytes << 10)
}
