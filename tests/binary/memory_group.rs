//! The memory of a process and its children: measured, and limited by a Linux control group.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A control group with a memory limit: the kernel kills a process in it that exceeds the limit.
/// Removed on drop.
#[derive(Debug)]
pub struct MemoryGroup {
    dir: PathBuf,
}

impl MemoryGroup {
    /// Creates a group limited to `bytes`, or returns `None` if this process is not permitted to.
    pub fn new(bytes: u64) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let path_of = |controller: &str| {
            own.lines().find_map(|line| {
                let mut parts = line.splitn(3, ':').skip(1);
                (parts.next()? == controller).then(|| parts.next())?
            })
        };
        let kinds = [
            ("/sys/fs/cgroup", path_of(""), "memory.max"),
            ("/sys/fs/cgroup/memory", path_of("memory"), "memory.limit_in_bytes"),
        ];
        let name = format!("lodestone-test-{}", std::process::id());
        for (root, own, limit) in kinds {
            // In a container, this process's group may appear as the root.
            for parent in [own.unwrap_or("/").trim_start_matches('/'), ""] {
                let dir = Path::new(root).join(parent).join(&name);
                if fs::create_dir(&dir).is_err() {
                    continue;
                }
                let group = Self { dir };
                let limit = group.dir.join(limit);
                if limit.exists() && fs::write(limit, bytes.to_string()).is_ok() {
                    return Some(group);
                }
            }
        }
        None
    }

    /// Wraps a command so that it runs in the group.
    pub fn around(&self, command: &Command) -> Command {
        let mut inside = Command::new("sh");
        inside.arg("-c").arg("echo 0 > \"$0\" && exec \"$@\"").arg(self.dir.join("cgroup.procs"));
        inside.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside.stdin(Stdio::null()).stderr(Stdio::piped());
        inside
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.dir);
    }
}

/// Private memory of a process and all its descendants, in bytes. A child that has been forked but
/// has not yet executed another program shares its parent's memory and is left out.
pub fn own_bytes_of_tree(process: u32) -> u64 {
    let arguments = |process: u32| fs::read(format!("/proc/{process}/cmdline")).ok();
    let of = |process: u32, name: &str| -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches("kB").trim().parse().ok()
    };
    let entries = fs::read_dir("/proc").expect("Linux lists processes");
    let names = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let children = names.filter(|child| of(*child, "PPid:") == Some(u64::from(process)));
    let parent = arguments(process);
    let children = children.filter(|child| arguments(*child) != parent);
    let own = of(process, "RssAnon:").unwrap_or(0) * 1024;
    own + children.map(own_bytes_of_tree).sum::<u64>()
}
