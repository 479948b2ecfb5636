//! Progress in bytes: a bar on a terminal, an occasional line elsewhere.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use crate::cli::bar::{Bar, picture, time_left};

/// Minimum time between lines, for downloads and for work that may take hours.
const LINE_AFTER: Duration = Duration::from_secs(5);
const RARE_LINE_AFTER: Duration = Duration::from_secs(60);

/// Shows how many bytes of some work are done.
#[derive(Debug)]
pub struct Progress {
    bar: Option<Bar>,
    /// Minimum time between lines without a bar, and whether the end is always printed.
    line_after: Duration,
    tells_ends: bool,
    what: RefCell<String>,
    begun: Cell<Instant>,
    told: Cell<Instant>,
}

impl Progress {
    /// Creates a display on standard error.
    pub fn new() -> Self {
        Self::made(LINE_AFTER, true)
    }

    /// Creates a display on standard error that, without a bar, prints at most a line per minute.
    pub fn rare() -> Self {
        Self::made(RARE_LINE_AFTER, false)
    }

    fn made(line_after: Duration, tells_ends: bool) -> Self {
        let (bar, what, now) = (Bar::new(), RefCell::default(), Cell::new(Instant::now()));
        Self { bar, line_after, tells_ends, what, begun: now.clone(), told: now }
    }

    /// Shows that `bytes` of `of` are done, followed by the text returned by `more`.
    pub fn show(&self, what: &str, bytes: u64, of: u64, more: impl Fn() -> String) {
        if *self.what.borrow() != what {
            what.clone_into(&mut self.what.borrow_mut());
            self.begun.set(Instant::now());
        }
        let share = || format!("{:.1} of {:.1} MB", bytes as f64 / 1e6, of as f64 / 1e6);
        if let Some(bar) = &self.bar {
            let left = time_left(bytes, of, self.begun.get().elapsed());
            let left = left.map_or(String::new(), |left| format!(", {} s left", left.as_secs()));
            bar.show(|| format!("{what} {} {}{}{left}", picture(bytes, of), share(), more()));
        } else if bytes == of && self.tells_ends || self.told.get().elapsed() >= self.line_after {
            self.told.set(Instant::now());
            eprintln!("{what}: {}{}", share(), more());
        }
    }

    /// Removes the bar before other output.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.clear();
        }
    }

    /// Prints a line.
    pub fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.print(text),
            None => eprintln!("{text}"),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
