//! Pages of a mapped segment that searches touch, as the system counts them.

use std::io;

/// Forgets which pages of mapped files were touched, so that [`touched_bytes`] counts anew.
pub fn forget() -> io::Result<()> {
    std::fs::write("/proc/self/clear_refs", "3")
}

/// Bytes of the pages of mapped segments that were touched since [`forget`], about: a page that the
/// processor still remembers from before is not counted. `None` where the system does not tell.
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
