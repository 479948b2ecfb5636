//! Sources whose files are gone, which are found in the records of earlier runs and deleted from
//! the server.
//!
//! A file counts as gone only if it was sent from one of the named folders, no longer exists and is
//! not part of this run; a file that is excluded by a pattern or unreadable does not. If a folder
//! contains no file at all, a disk may not be mounted, so the user is asked first.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::options::IngestOptions;
use super::plan::Item;
use super::send::SendError;
use super::server::Server;
use super::state::{Entry, State};
use super::summary::Deleted;
use crate::cli::client::failure::Failure;
use crate::cli::client::screen;
use crate::cli::counted;

/// Number of ids per request, which are sent in its URL.
const IDS_MAX: usize = 20;

/// Returns the entries of earlier runs whose files are gone, sorted by path.
pub fn gone(entries: &HashMap<String, Entry>, inputs: &[PathBuf], items: &[Item]) -> Vec<Entry> {
    let folders = inputs.iter().filter(|input| input.is_dir());
    let folders: Vec<PathBuf> =
        folders.filter_map(|folder| std::path::absolute(folder).ok()).collect();
    let planned: HashSet<&str> = items.iter().map(|item| item.id.as_str()).collect();
    let is_gone = |entry: &&Entry| {
        let path = Path::new(&entry.path);
        folders.iter().any(|folder| path.starts_with(folder))
            && !planned.contains(entry.file_id.as_str())
            // A name that is not UTF-8 was recorded with replacement characters.
            && !entry.path.contains(char::REPLACEMENT_CHARACTER)
            && is_absent(path)
    };
    let mut gone: Vec<Entry> = entries.values().filter(is_gone).cloned().collect();
    gone.sort_by(|one, other| one.path.cmp(&other.path));
    gone
}

/// As [`gone`], after asking the user if one of the folders concerned contains no file at all.
///
/// # Errors
/// [`Failure`] if the answer is no, or nobody can be asked.
pub fn confirmed(
    entries: &HashMap<String, Entry>,
    options: &IngestOptions,
    items: &[Item],
) -> Result<Vec<Entry>, Failure> {
    let gone = gone(entries, &options.inputs, items);
    for folder in options.inputs.iter().filter(|input| input.is_dir() && is_bare(input)) {
        let Ok(below) = std::path::absolute(folder) else { continue };
        let count = gone.iter().filter(|entry| Path::new(&entry.path).starts_with(&below)).count();
        if count > 0 {
            let (count, folder) = (counted(count as u64, "source"), folder.display());
            let what = format!("{folder} contains no files (is it mounted?): delete its {count}");
            screen::confirm(&what, options.yes)?;
        }
    }
    Ok(gone)
}

/// Whether a directory contains nothing but directories.
fn is_bare(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return true };
    entries
        .flatten()
        .all(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()) && is_bare(&entry.path()))
}

fn is_absent(path: &Path) -> bool {
    fs::symlink_metadata(path)
        .is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}

/// Deletes the sources of the entries, records that, and adds them to `deleted`.
///
/// # Errors
/// [`SendError`]; deletions made before it are recorded.
pub fn delete(
    server: &Server<'_>,
    state: &State,
    gone: &[Entry],
    deleted: &mut Vec<Deleted>,
) -> Result<(), SendError> {
    for entries in gone.chunks(IDS_MAX) {
        let ids: Vec<&str> = entries.iter().map(|entry| entry.file_id.as_str()).collect();
        server.delete(&ids)?;
        let forgotten = entries.iter().map(|entry| Entry { deleted: true, ..entry.clone() });
        state.append(&forgotten.collect::<Vec<_>>())?;
        let named = entries.iter().map(|Entry { path, file_id, .. }| Deleted {
            name: path.clone(),
            file_id: file_id.clone(),
        });
        deleted.extend(named);
    }
    Ok(())
}
