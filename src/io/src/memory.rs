//! Private memory of this process, and the memory available to it.

use std::fmt;
use std::path::{Path, PathBuf};

/// Measures the private memory of the process.
pub trait MemoryGauge: Send + Sync + fmt::Debug {
    /// Resident bytes that belong to this process alone: heap and stacks. Mapped files are
    /// excluded, as the kernel reclaims those when memory is short. `None` if the system does not
    /// report it.
    fn own_bytes(&self) -> Option<u64>;
}

/// The kernel's count: `RssAnon` of `/proc/self/status`. Takes about ten microseconds.
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

/// Bytes of memory available to this process: the machine's total, or the limit of an enclosing
/// control group, such as a container's. `None` if the system does not report it.
pub fn memory_of_machine() -> Option<u64> {
    let of_machine = total_bytes_in(&std::fs::read_to_string("/proc/meminfo").ok()?)?;
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = limit_files(&groups).into_iter();
    let limits = limits.filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse().ok());
    Some(limits.fold(of_machine, u64::min))
}

fn total_bytes_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Paths that may hold a memory limit, in both versions of control groups, for the group of this
/// process and all its ancestors. Inside a container, its own group appears as the root.
fn limit_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
        let (root, name) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|controller| controller == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let group = Path::new(group.trim_start_matches('/'));
        files.extend(group.ancestors().map(|group| Path::new(root).join(group).join(name)));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_containers_are_found() {
        let files = limit_files("4:cpu,memory:/docker/x\n2:cpu:/y\n0::/a\n");
        let expected = [
            "/sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/a/memory.max",
            "/sys/fs/cgroup/memory.max",
        ];
        assert!(files.iter().eq(expected.map(Path::new)), "{files:?}");
        let other = limit_files("no group\n5:\n1:name=systemd:/a\n0::/\n");
        assert_eq!(other, [Path::new("/sys/fs/cgroup/memory.max")], "lines of another form");
        assert_eq!(total_bytes_in("MemTotal:       24684508 kB\n"), Some(24_684_508 << 10));
        let bytes = memory_of_machine().expect("Linux says");
        assert!((1 << 26..1 << 50).contains(&bytes), "{bytes}");
    }

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
