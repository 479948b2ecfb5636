//! A terminal line that is redrawn in place to show progress.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::client::screen::{columns, cut, one_line};

/// Minimum time between redraws.
const DRAWN_EVERY: Duration = Duration::from_millis(250);
/// Columns between the brackets.
const WIDTH: u64 = 24;
/// Escape sequence that moves to the first column and clears the line.
const CLEAR: &str = "\r\x1b[K";

/// The progress line on standard error.
#[derive(Debug, Default)]
pub struct Bar(Mutex<Drawn>);

#[derive(Debug, Default)]
struct Drawn {
    line: String,
    at: Option<Instant>,
}

impl Bar {
    /// Returns the progress line of this process; `None` if standard error is not a terminal.
    pub fn new() -> Option<Self> {
        std::io::stderr().is_terminal().then(Self::default)
    }

    /// Draws the text returned by `line`, unless the line was drawn very recently.
    pub fn show(&self, line: impl FnOnce() -> String) {
        let mut drawn = self.0.lock();
        if drawn.at.is_none_or(|at| at.elapsed() >= DRAWN_EVERY) {
            let stderr = std::io::stderr();
            // Some terminals wrap when the last column is used.
            drawn.line = cut(&one_line(&line()), columns(&stderr).saturating_sub(1));
            drawn.at = Some(Instant::now());
            write(&format!("{CLEAR}{}", drawn.line));
        }
    }

    /// Prints a line above the progress line.
    pub fn print(&self, text: &str) {
        let drawn = self.0.lock();
        write(&format!("{CLEAR}{text}\n{}", drawn.line));
    }

    /// Removes the progress line.
    pub fn clear(&self) {
        *self.0.lock() = Drawn::default();
        write(CLEAR);
    }
}

/// Writes to the terminal; errors are ignored because a closed terminal needs no output.
fn write(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Formats the completed part as a bar.
pub fn picture(done: u64, total: u64) -> String {
    let columns = (WIDTH * done.min(total)).checked_div(total).unwrap_or(0) as usize;
    let head = if done < total { ">" } else { "" };
    let filled = format!("{}{head}", "=".repeat(columns));
    format!("[{filled:<width$}]", width = WIDTH as usize)
}

/// Estimates the remaining time from the average rate; `None` before any progress.
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
