//! Private memory of this process.

use std::fmt;

/// A source of that number.
pub trait MemoryGauge: Send + Sync + fmt::Debug {
    /// Bytes that belong to this process alone and are in memory: heap and stacks. Mapped files are
    /// not among them: the system takes those back when it needs memory. `None` where the system
    /// does not report it.
    fn own_bytes(&self) -> Option<u64>;
}

/// Linux's own count, `RssAnon` of `/proc/self/status`. Costs about ten microseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessMemory;

impl MemoryGauge for ProcessMemory {
    fn own_bytes(&self) -> Option<u64> {
        own_bytes_in(&std::fs::read_to_string("/proc/self/status").ok()?)
    }
}

fn own_bytes_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_of_the_system_is_read() {
        let status = "Name:\tx\nVmRSS:\t  900 kB\nRssAnon:\t     128 kB\nRssFile:\t 7 kB\n";
        assert_eq!(own_bytes_in(status), Some(128 << 10));
        assert_eq!(own_bytes_in("Name:\tx\n"), None);
        assert_eq!(own_bytes_in("RssAnon:\t12 MB\n"), None);
        let own = ProcessMemory.own_bytes().expect("Linux says");
        assert!((1 << 12..1 << 40).contains(&own), "{own}");
    }
}
