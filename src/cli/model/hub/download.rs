//! Downloads one file from a hub, resuming an interrupted download, and verifies it.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::client::{FileResponse, HubClient, Refusal};
use super::listing::RemoteFile;
use crate::cli::ingest::stop::{Pause, Stop};
use crate::cli::progress::Progress;

/// Maximum number of consecutive attempts without progress.
const ATTEMPTS_MAX: u32 = 7;
const PAUSE_MIN: Duration = Duration::from_millis(250);
/// Longest pause that a busy hub may request.
const PAUSE_MAX: Duration = Duration::from_secs(300);
const PIECE_BYTES: usize = 256 << 10;

/// The reason why a file could not be downloaded.
enum Problem {
    Final(String),
    Later(String, Option<Duration>),
}

/// Retries with growing pauses until there is a response.
///
/// # Errors
/// The problem of the last attempt.
pub fn insist<T>(
    progress: &Progress,
    mut ask: impl FnMut() -> Result<T, Refusal>,
) -> Result<T, String> {
    let mut failures = 0;
    loop {
        match ask() {
            Ok(answer) => return Ok(answer),
            Err(refusal) => wait(progress, &mut failures, problem(refusal))?,
        }
    }
}

/// Downloads the file at `address`, a path on the hub, to `place`. An existing file is taken as its
/// beginning.
///
/// # Errors
/// A refusal of the hub, repeated connection failures or a full disk, all of which keep what has
/// been downloaded; or a hash mismatch, after which the file is removed.
pub fn fetch(
    client: &HubClient,
    address: &str,
    file: &RemoteFile,
    place: &Path,
    progress: &Progress,
) -> Result<(), String> {
    let mut known = file.clone();
    let mut failures = 0;
    loop {
        let before = length(place)?;
        if known.size.is_some_and(|size| before > size) {
            remove(place)?;
        } else if known.size == Some(before) {
            if known.is_weights() && known.sha256.is_none() {
                progress.note(&format!("{}: the hub gives no SHA-256 for it", file.path));
            }
            return check(place, &known);
        }
        let Err(problem) = attempt(client, address, &mut known, place, progress) else { continue };
        if length(place)? > before {
            failures = 0;
        }
        wait(progress, &mut failures, problem)
            .map_err(|problem| format!("{}: {problem}", file.path))?;
    }
}

/// Sends one request and appends its body to the file. On success, the size of the file is known.
fn attempt(
    client: &HubClient,
    address: &str,
    known: &mut RemoteFile,
    place: &Path,
    progress: &Progress,
) -> Result<(), Problem> {
    let begun = length(place).map_err(Problem::Final)?;
    let found = match client.get(address, begun) {
        Err(Refusal::BadRange) if begun > 0 => {
            remove(place).map_err(Problem::Final)?;
            return Err(Problem::Later("the hub sent a different part".to_owned(), None));
        }
        found => found.map_err(problem)?,
    };
    let FileResponse { from, body_bytes, sha256, body } = found;
    known.sha256 = known.sha256.take().or(sha256);
    let told = body_bytes.map(|bytes| from.saturating_add(bytes));
    let Some(size) = known.size.or(told) else {
        return Err(Problem::Final("the hub does not report its size".to_owned()));
    };
    if size > known.bytes_max() || told.is_some_and(|told| told != size) {
        let told = told.unwrap_or(size);
        return Err(Problem::Final(format!("{told} bytes instead of {size}")));
    }
    known.size = Some(size);
    let unwritable = |error: std::io::Error| Problem::Final(told_of(place, &error));
    let output = OpenOptions::new().append(true).create(true).open(place);
    let mut output = output.map_err(unwritable)?;
    // Truncates the file if the server sent all of it instead of the requested range.
    output.set_len(from).map_err(unwritable)?;
    let mut input = body.into_with_config().limit(size - from + 1).reader();
    let mut piece = vec![0; PIECE_BYTES];
    let mut at = from;
    while at < size {
        let read = match input.read(&mut piece) {
            Ok(0) => return Err(Problem::Later("the connection closed".to_owned(), None)),
            Ok(read) => read.min((size - at) as usize),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(Problem::Later(error.to_string(), None)),
        };
        output.write_all(&piece[..read]).map_err(unwritable)?;
        at += read as u64;
        progress.show(&known.path, at, size, String::new);
    }
    output.sync_data().map_err(unwritable)
}

/// Compares the complete file with the hash stated by the hub.
fn check(place: &Path, known: &RemoteFile) -> Result<(), String> {
    let Some(wanted) = &known.sha256 else { return Ok(()) };
    let read = || -> std::io::Result<String> {
        let (mut file, mut hash) = (File::open(place)?, Sha256::new());
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match file.read(&mut piece)? {
                0 => return Ok(hex::encode(hash.finalize())),
                read => hash.update(&piece[..read]),
            }
        }
    };
    let found = read().map_err(|error| told_of(place, &error))?;
    if found == *wanted {
        return Ok(());
    }
    remove(place)?;
    Err(format!(
        "{}: the download has the SHA-256 {found}, not {wanted} as on the hub; it was removed",
        known.path
    ))
}

/// Pauses before another attempt, as long as the hub requests or twice as long as before.
fn wait(progress: &Progress, failures: &mut u32, problem: Problem) -> Result<(), String> {
    let (problem, asked) = match problem {
        Problem::Final(problem) => return Err(problem),
        Problem::Later(problem, pause) => (problem, pause),
    };
    *failures += 1;
    if *failures >= ATTEMPTS_MAX {
        return Err(format!("{problem}; {ATTEMPTS_MAX} attempts"));
    }
    let pause = asked.unwrap_or(PAUSE_MIN * (1 << (*failures - 1)));
    if pause > PAUSE_MAX {
        return Err(format!("{problem}; it requests a wait of {} s", pause.as_secs()));
    }
    progress.note(&format!("{problem}; trying again in {:.1} s", pause.as_secs_f64()));
    Stop::default().pause(pause);
    Ok(())
}

fn problem(refusal: Refusal) -> Problem {
    match refusal {
        Refusal::Final(problem) => Problem::Final(problem),
        Refusal::BadRange => Problem::Final("the hub cannot send this part".to_owned()),
        Refusal::Later { problem, pause } => Problem::Later(problem, pause),
    }
}

/// Returns the length of a file; 0 if it does not exist.
fn length(place: &Path) -> Result<u64, String> {
    match std::fs::metadata(place) {
        Ok(found) => Ok(found.len()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
        Err(error) => Err(told_of(place, &error)),
    }
}

fn remove(place: &Path) -> Result<(), String> {
    std::fs::remove_file(place).map_err(|error| told_of(place, &error))
}

fn told_of(place: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", place.display())
}
