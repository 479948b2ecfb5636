//! Progress of downloads: a bar on a terminal, a line every few seconds elsewhere.

use std::cell::{Cell, RefCell};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const LINE_AFTER: Duration = Duration::from_secs(5);

/// Shows how much of a file has come.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    path: RefCell<String>,
    told: Cell<Instant>,
}

impl Progress {
    /// On standard error.
    pub fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let target = ProgressDrawTarget::stderr_with_hz(4);
            let bar = ProgressBar::with_draw_target(Some(0), target);
            let template = "{msg} [{bar:24}] {bytes} of {total_bytes}, {eta} left";
            let style = ProgressStyle::with_template(template).expect("a sound template");
            bar.set_style(style.progress_chars("=> "));
            bar
        });
        Self { bar, path: RefCell::default(), told: Cell::new(Instant::now()) }
    }

    /// So many bytes of a file are there.
    pub fn show(&self, path: &str, bytes: u64, of: u64) {
        let is_new = *self.path.borrow() != path;
        if is_new {
            path.clone_into(&mut self.path.borrow_mut());
        }
        if let Some(bar) = &self.bar {
            if is_new {
                bar.reset();
                bar.set_message(path.to_owned());
            }
            bar.set_length(of);
            bar.set_position(bytes);
        } else if bytes == of || self.told.get().elapsed() >= LINE_AFTER {
            self.told.set(Instant::now());
            eprintln!("{path}: {:.1} of {:.1} MB", bytes as f64 / 1e6, of as f64 / 1e6);
        }
    }

    /// Prints a line.
    pub fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => eprintln!("{text}"),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
