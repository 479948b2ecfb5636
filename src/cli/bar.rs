//! A line of a terminal that is drawn over itself, to show how far work is.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::client::screen::{columns, cut, one_line};

/// Least time between two drawings.
const DRAWN_EVERY: Duration = Duration::from_millis(250);
/// Columns between the brackets.
const WIDTH: u64 = 24;
/// To the first column, and what stands from there on removed.
const CLEAR: &str = "\r\x1b[K";

/// The line, on standard error.
#[derive(Debug, Default)]
pub struct Bar(Mutex<Drawn>);

#[derive(Debug, Default)]
struct Drawn {
    line: String,
    at: Option<Instant>,
}

impl Bar {
    /// The line of this process; none where standard error is no terminal.
    pub fn new() -> Option<Self> {
        std::io::stderr().is_terminal().then(Self::default)
    }

    /// Draws what `line` makes, unless something was drawn just before.
    pub fn show(&self, line: impl FnOnce() -> String) {
        let mut drawn = self.0.lock();
        if drawn.at.is_none_or(|at| at.elapsed() >= DRAWN_EVERY) {
            let stderr = std::io::stderr();
            // In the last column some terminals begin a new line.
            drawn.line = cut(&one_line(&line()), columns(&stderr).saturating_sub(1));
            drawn.at = Some(Instant::now());
            write(&format!("{CLEAR}{}", drawn.line));
        }
    }

    /// Prints a line above.
    pub fn print(&self, text: &str) {
        let drawn = self.0.lock();
        write(&format!("{CLEAR}{text}\n{}", drawn.line));
    }

    /// Removes the line.
    pub fn clear(&self) {
        *self.0.lock() = Drawn::default();
        write(CLEAR);
    }
}

/// A terminal that is gone needs no news.
fn write(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// The part that is done, as a picture.
pub fn picture(done: u64, total: u64) -> String {
    let columns = (WIDTH * done.min(total)).checked_div(total).unwrap_or(0) as usize;
    let head = if done < total { ">" } else { "" };
    let filled = format!("{}{head}", "=".repeat(columns));
    format!("[{filled:<width$}]", width = WIDTH as usize)
}

/// Remaining time at the rate so far; `None` before there is one.
pub fn time_left(done: u64, total: u64, elapsed: Duration) -> Option<Duration> {
    if done == 0 {
        return None;
    }
    let seconds = elapsed.as_secs_f64() * total.saturating_sub(done) as f64 / done as f64;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_is_full_at_the_end_only() {
        assert_eq!(picture(0, 0), format!("[{}]", " ".repeat(24)));
        assert_eq!(picture(0, 9), format!("[>{}]", " ".repeat(23)));
        assert_eq!(picture(8, 9), format!("[{}>  ]", "=".repeat(21)));
        assert_eq!(picture(9, 9), format!("[{}]", "=".repeat(24)));
    }

    #[test]
    fn the_time_left_follows_the_rate() {
        let ten = Duration::from_secs(10);
        assert_eq!(time_left(0, 100, ten), None);
        assert_eq!(time_left(25, 100, ten), Some(Duration::from_secs(30)));
        assert_eq!(time_left(100, 100, ten), Some(Duration::ZERO));
    }
}
