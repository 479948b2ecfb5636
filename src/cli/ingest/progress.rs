//! Progress of a run: a bar on a terminal, a line every few seconds elsewhere.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::send::Tally;
use crate::cli::bar::{Bar, picture, time_left};

/// Interval at which the server's queue is checked with a bar.
const TICK_OF_BAR: Duration = Duration::from_secs(1);
/// Interval at which the server's queue is checked if each check writes a log line.
const TICK_OF_LINES: Duration = Duration::from_secs(5);

/// Time for which an identical note is suppressed, because a full queue delays every request.
const NOTE_AGAIN: Duration = Duration::from_secs(30);

/// Displays the progress of a run.
#[derive(Debug)]
pub struct Progress {
    bar: Option<Bar>,
    to_send: usize,
    total: usize,
    is_waiting: bool,
    begun: Instant,
    noted: Mutex<Option<(String, Instant)>>,
}

impl Progress {
    /// Creates a display for `to_send` items to send, of `total` items to be accepted or, if
    /// `is_waiting`, processed.
    pub fn new(to_send: usize, total: usize, is_waiting: bool) -> Self {
        let bar = Bar::new();
        Self { bar, to_send, total, is_waiting, begun: Instant::now(), noted: Mutex::new(None) }
    }

    /// Returns the interval between calls of [`Self::show`].
    pub fn tick(&self) -> Duration {
        if self.bar.is_some() { TICK_OF_BAR } else { TICK_OF_LINES }
    }

    /// Shows the progress of the run.
    pub fn show(&self, tally: &Tally) {
        let (done, total) = (self.done(tally), self.total);
        let elapsed = self.begun.elapsed();
        let line = self.line(tally, elapsed);
        let left = match time_left(done as u64, total as u64, elapsed) {
            Some(left) => format!(", about {} s left", left.as_secs()),
            None => String::new(),
        };
        match &self.bar {
            Some(bar) => bar.show(|| {
                let picture = picture(done as u64, total as u64);
                format!("{picture} {done}/{total}  {line}, {} s elapsed{left}", elapsed.as_secs())
            }),
            None => eprintln!("{done} of {total}: {line}{left}"),
        }
    }

    /// Prints a note above the bar, unless the same note was just printed.
    pub fn note(&self, text: &str) {
        let mut noted = self.noted.lock();
        let is_old = |(last, at): &(String, Instant)| last == text && at.elapsed() < NOTE_AGAIN;
        if noted.as_ref().is_some_and(is_old) {
            return;
        }
        *noted = Some((text.to_owned(), Instant::now()));
        match &self.bar {
            Some(bar) => bar.print(text),
            None => eprintln!("{text}"),
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.clear();
        }
    }

    /// Returns the number of finished items.
    fn done(&self, tally: &Tally) -> usize {
        let decided = tally.decided.load(Ordering::Relaxed);
        let done = match self.is_waiting {
            false => decided,
            true => {
                let accepted = tally.accepted_count.load(Ordering::Relaxed);
                let failed = decided.saturating_sub(accepted);
                failed + tally.processed.load(Ordering::Relaxed)
            }
        };
        done.min(self.total)
    }

    fn line(&self, tally: &Tally, elapsed: Duration) -> String {
        let seconds = elapsed.as_secs_f64().max(0.001);
        let accepted = tally.accepted_count.load(Ordering::Relaxed);
        let mebibytes = tally.sent_bytes.load(Ordering::Relaxed) as f64 / f64::from(1 << 20);
        let mut line = format!("sent {accepted} ({mebibytes:.1} MiB)");
        if tally.decided.load(Ordering::Relaxed) < self.to_send {
            // Afterwards nothing is sent, and the rate would only appear to drop.
            line += &format!(" at {:.1} MiB/s", mebibytes / seconds);
        }
        if self.is_waiting {
            let processed = tally.processed.load(Ordering::Relaxed);
            line += &format!(", processed {processed}");
        }
        line += &format!(", {:.1} documents/s", self.done(tally) as f64 / seconds);
        match tally.failures.lock().len() {
            0 => line,
            failed => format!("{line}, failed {failed}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_items_need_nothing_more() {
        let tally = Tally::default();
        tally.decided.store(7, Ordering::Relaxed);
        tally.accepted_count.store(5, Ordering::Relaxed);
        tally.processed.store(3, Ordering::Relaxed);
        assert_eq!(Progress::new(10, 10, true).done(&tally), 5);
        assert_eq!(Progress::new(10, 10, false).done(&tally), 7);
        let line = Progress::new(10, 10, true).line(&tally, Duration::from_secs(5));
        assert_eq!(line, "sent 5 (0.0 MiB) at 0.0 MiB/s, processed 3, 1.0 documents/s");
    }
}
