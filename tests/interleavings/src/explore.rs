//! Runs checks many times, each time with another interleaving.

use std::cell::Cell;
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::time::Instant;

use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

/// Number of times that the second scheduler switches threads against its own priorities.
const CHANGES_MAX: usize = 3;
/// Number of steps above which an execution is considered not to terminate.
const STEPS_MAX: usize = 100_000;
/// Default number of schedules per check.
const SCHEDULES: usize = 10_000;

std::thread_local! {
    static TIMEOUTS: Cell<Timeouts> = const { Cell::new(Timeouts::Never) };
}

/// Possible ends of waits with a time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timeouts {
    /// Waits never time out: they end when notified, so that a lost wake-up is a deadlock.
    Never,
    /// Waits may time out at any moment, early or late.
    Any,
}

/// A check.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// The name of the check.
    pub name: &'static str,
    /// The possible ends of its waits.
    pub timeouts: Timeouts,
    /// Runs one execution; panics if something is wrong.
    pub run: fn(),
}

/// The possible ends of this execution's waits.
pub(crate) fn timeouts() -> Timeouts {
    TIMEOUTS.get()
}

/// A random choice made by the scheduler.
pub fn is_chosen() -> bool {
    thread_rng().gen_bool(0.5)
}

impl Check {
    /// Creates a check of code that must make progress without timeouts.
    pub const fn patient(name: &'static str, run: fn()) -> Self {
        Self { name, timeouts: Timeouts::Never, run }
    }

    /// Creates a check of code whose waits may time out at any moment.
    pub const fn hasty(name: &'static str, run: fn()) -> Self {
        Self { name, timeouts: Timeouts::Any, run }
    }

    fn execute(self) {
        TIMEOUTS.set(self.timeouts);
        crate::time::reset();
        (self.run)();
    }

    fn explore(self, scheduler: impl Scheduler + 'static) -> usize {
        let mut config = Config::new();
        config.failure_persistence = FailurePersistence::Print;
        config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
        config.silence_warnings = true;
        Runner::new(scheduler, config).run(move || self.execute())
    }
}

/// Runs checks as specified by the program's arguments:
/// `[--schedules N] [--seed S] [--replay SCHEDULE] [NAME...]`.
pub fn explore(checks: &[Check]) -> ExitCode {
    let (mut schedules, mut seed, mut replay, mut names) = (SCHEDULES, 1, None, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok());
        match argument.as_str() {
            "--schedules" => schedules = number().expect("--schedules needs a number"),
            "--seed" => seed = number().expect("--seed needs a number") as u64,
            "--replay" => replay = arguments.next(),
            _ => names.push(argument),
        }
    }
    let mut has_failed = false;
    let is_meant = |check: &&Check| names.is_empty() || names.iter().any(|one| one == check.name);
    for check in checks.iter().filter(is_meant).copied() {
        let begun = Instant::now();
        let outcome = catch_unwind(|| match &replay {
            Some(schedule) => {
                shuttle::replay(move || check.execute(), schedule);
                1
            }
            None => {
                let random = RandomScheduler::new_from_seed(seed, schedules / 2);
                let by_priority = PctScheduler::new_from_seed(seed, CHANGES_MAX, schedules / 2);
                check.explore(random) + check.explore(by_priority)
            }
        });
        let told = match outcome {
            Ok(count) => format!("{count} schedules, {:.1} s", begun.elapsed().as_secs_f64()),
            Err(_) => "FAILED".to_owned(),
        };
        has_failed |= outcome.is_err();
        println!("{:<64} {told}", check.name);
    }
    ExitCode::from(u8::from(has_failed))
}
