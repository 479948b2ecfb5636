//! Summary of a run: counts, and every failure with its reason.

use std::fmt::{self, Display};

use parking_lot::Mutex;
use serde::Serialize;

use super::failure::Failure;
use super::plan::LeftOut;

/// A document that was processed, but only in part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReadInPart {
    /// Path or address.
    pub name: String,
    /// Id of the source.
    pub file_id: String,
    /// The server's message about the part that was not read.
    pub message: String,
}

/// A source that was deleted because its file is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Deleted {
    /// Path of the file.
    pub name: String,
    /// Id of the source.
    pub file_id: String,
}

/// The result of a run.
#[derive(Debug, Default, Serialize)]
pub struct Summary {
    /// Number of files and pages that the arguments name.
    pub found: usize,
    /// Number of items that the server accepted.
    pub sent: usize,
    /// Their size in bytes.
    pub sent_bytes: u64,
    /// Number of items whose metadata alone was updated.
    pub metadata_updated: usize,
    /// Number of items accepted by an earlier run, unchanged since, and still on the server.
    pub skipped_unchanged: usize,
    /// Counts of skipped files.
    pub left_out: LeftOut,
    /// Number of items processed successfully, including items of earlier runs that were still in
    /// progress; null if the run did not wait.
    pub processed: Option<usize>,
    /// Number of sources that were deleted because their files are gone.
    pub deleted: usize,
    /// Sources that were deleted because their files are gone.
    pub deleted_sources: Vec<Deleted>,
    /// Number of items neither accepted nor refused before the run ended.
    pub not_sent: usize,
    /// Documents that were not read completely, one entry per warning.
    pub warnings: Vec<ReadInPart>,
    /// Items that failed.
    pub failed: Vec<Failure>,
    /// Error that ended the run early; null otherwise.
    pub ended_by: Option<String>,
    /// Whether Ctrl-C ended the run.
    pub interrupted: bool,
    /// Duration in seconds.
    pub seconds: f64,
}

/// Takes everything that was collected, sorted by name.
pub fn sorted<T>(collected: &Mutex<Vec<T>>, name: impl Fn(&T) -> &String) -> Vec<T> {
    let mut collected = std::mem::take(&mut *collected.lock());
    collected.sort_by(|one, other| name(one).cmp(name(other)));
    collected
}

impl Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Deleted { name, file_id } in &self.deleted_sources {
            writeln!(f, "deleted  {file_id}: {name} no longer exists")?;
        }
        for ReadInPart { name, message, .. } in &self.warnings {
            writeln!(f, "warning  {name}: {message}")?;
        }
        for failure in &self.failed {
            writeln!(f, "failed  {failure}")?;
        }
        let mebibytes = self.sent_bytes as f64 / f64::from(1 << 20);
        write!(f, "sent {} ({mebibytes:.1} MiB)", self.sent)?;
        if let Some(processed) = self.processed {
            write!(f, ", processed {processed}")?;
        }
        if self.metadata_updated > 0 {
            write!(f, ", metadata of {}", self.metadata_updated)?;
        }
        write!(f, ", unchanged {}, failed {}", self.skipped_unchanged, self.failed.len())?;
        if self.deleted > 0 {
            write!(f, ", deleted {}", self.deleted)?;
        }
        if self.not_sent > 0 {
            write!(f, ", not sent {}", self.not_sent)?;
        }
        writeln!(f, " of {} in {:.1} s", self.found, self.seconds)?;
        let LeftOut { hidden, loops, filtered, special } = self.left_out;
        let words = [
            (hidden, "hidden"),
            (loops, "circular links"),
            (filtered, "filtered"),
            (special, "not regular files"),
        ];
        let words = words.iter().filter(|(count, _)| *count > 0);
        let words: Vec<String> = words.map(|(count, word)| format!("{count} {word}")).collect();
        match words.is_empty() {
            true => Ok(()),
            false => writeln!(f, "left out: {}", words.join(", ")),
        }
    }
}
