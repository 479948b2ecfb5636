//! Lower priority for background threads, and the process's limit on open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Niceness steps. With ten, a thread gets about a tenth of the share of a normal thread when both
/// want the same core (Linux, `sched_prio_to_weight`), and is preempted as soon as a normal thread
/// wakes: merging can then neither delay searches nor be starved by them.
const BACKGROUND_STEPS: i32 = 10;

/// Permanently lowers the priority of the calling thread; relies on Linux, where niceness is per
/// thread. A refusal is not an error: everything still works, only less smoothly.
pub fn run_in_background() {
    if let Err(error) = rustix::process::nice(BACKGROUND_STEPS) {
        tracing::debug!(%error, "background work keeps the usual priority");
    }
}

/// Raises the limit on open files to the hard limit. The usual soft limit, 1,024, equals the number
/// of connections the server may hold, which would leave nothing for data files. If refused, the
/// limit stays as it is.
pub fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(%error, "the number of open files keeps its limit");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpriority_process;

    /// Goal: a background thread yields to all others, which keep their priority.
    #[test]
    fn background_work_lowers_its_own_priority_alone() {
        let niceness: fn() -> i32 = || getpriority_process(None).unwrap();
        let before = niceness();
        let background = move || {
            run_in_background();
            niceness()
        };
        let lowered = std::thread::spawn(background).join().unwrap();
        assert_eq!(lowered, (before + BACKGROUND_STEPS).min(19), "19 is the lowest");
        assert_eq!(niceness(), before);
    }
}
