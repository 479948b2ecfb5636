//! Runs targets in child processes: when one dies, this is counted and another continues.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::runner::{self, Target};

/// The variable that marks a child process.
const CHILD: &str = "LODESTONE_FUZZ_CHILD";

/// Runs a target like [`runner::run`], but in child processes of this test.
pub fn run(target: Target) {
    let name = target.name;
    let is_single = runner::is_replay();
    if is_single || std::env::var_os(CHILD).is_some() {
        return runner::run(target);
    }
    let (seed, time) = (runner::seed(), runner::time());
    let begun = Instant::now();
    let mut deaths = 0;
    loop {
        let left = time.saturating_sub(begun.elapsed());
        if left < Duration::from_millis(100) {
            break;
        }
        let output = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", &format!("documents::{name}"), "--nocapture"])
            .env(CHILD, "1")
            .env(runner::SEED, (seed + deaths).to_string())
            .env(runner::SECONDS, left.as_secs_f64().to_string())
            .stdin(Stdio::null())
            .output()
            .expect("a child");
        print!("{}", String::from_utf8_lossy(&output.stdout));
        if output.status.success() {
            break;
        }
        let said = String::from_utf8_lossy(&output.stderr);
        // A regular exit means that the test failed, with findings in our own code.
        assert!(output.status.code().is_none(), "{said}");
        println!("contained: the process ended by {}: {}", output.status, said.trim());
        deaths += 1;
    }
    println!("fuzz {name}: {deaths} processes ended before their time");
}
