//! Progress of downloads: a bar on a terminal, a line every few seconds elsewhere.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use crate::cli::bar::{Bar, picture, time_left};

const LINE_AFTER: Duration = Duration::from_secs(5);

/// Shows how much of a file has come.
#[derive(Debug)]
pub struct Progress {
    bar: Option<Bar>,
    path: RefCell<String>,
    begun: Cell<Instant>,
    told: Cell<Instant>,
}

impl Progress {
    /// On standard error.
    pub fn new() -> Self {
        let now = Cell::new(Instant::now());
        Self { bar: Bar::new(), path: RefCell::default(), begun: now.clone(), told: now }
    }

    /// So many bytes of a file are there.
    pub fn show(&self, path: &str, bytes: u64, of: u64) {
        if *self.path.borrow() != path {
            path.clone_into(&mut self.path.borrow_mut());
            self.begun.set(Instant::now());
        }
        let share = || format!("{:.1} of {:.1} MB", bytes as f64 / 1e6, of as f64 / 1e6);
        if let Some(bar) = &self.bar {
            let left = time_left(bytes, of, self.begun.get().elapsed());
            let left = left.map_or(String::new(), |left| format!(", {} s left", left.as_secs()));
            bar.show(|| format!("{path} {} {}{left}", picture(bytes, of), share()));
        } else if bytes == of || self.told.get().elapsed() >= LINE_AFTER {
            self.told.set(Instant::now());
            eprintln!("{path}: {}", share());
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
        if let Some(bar) = &self.bar {
            bar.clear();
        }
    }
}
