//! Lower priority for background threads, and the number of files that the process may open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Steps of niceness. With ten a thread gets about a tenth of what a thread of the usual priority
/// gets on a core where both want to run (Linux, `sched_prio_to_weight`), and is preempted as soon
/// as such a thread wakes: merging can then neither delay searches nor be starved by them.
const BACKGROUND_STEPS: i32 = 10;

/// Lowers the priority of the calling thread for good; niceness is a thread's own on Linux, which
/// this crate needs. A refusal is not an error: everything works, only less smoothly.
pub fn run_in_background() {
    if let Err(error) = rustix::process::nice(BACKGROUND_STEPS) {
        tracing::debug!(%error, "background work keeps the usual priority");
    }
}

/// Raises the number of files that this process may have open to the most that the system allows
/// it. The usual first limit, 1,024, is as many as there may be connections: then nothing would be
/// left for the data. A refusal leaves it as it was.
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

    /// Goal: a thread of the background gives way to all others, which keep their priority.
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
