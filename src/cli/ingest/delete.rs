//! Sources whose files are gone: found in the record of earlier runs, deleted from the server.
//!
//! Only a file that was sent from one of the named folders, and that is neither there nor part of
//! this run, counts as gone: one that a pattern leaves out, or that cannot be read, does not. Where
//! a folder holds no file at all, the disk that is mounted there may be missing: people are asked.

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

/// Ids of one request; they stand in its address.
const IDS_MAX: usize = 20;

/// Entries of earlier runs whose files are gone, by path.
pub fn gone(entries: &HashMap<String, Entry>, inputs: &[PathBuf], items: &[Item]) -> Vec<Entry> {
    let folders = inputs.iter().filter(|input| input.is_dir());
    let folders: Vec<PathBuf> =
        folders.filter_map(|folder| std::path::absolute(folder).ok()).collect();
    let planned: HashSet<&str> = items.iter().map(|item| item.id.as_str()).collect();
    let is_gone = |entry: &&Entry| {
        let path = Path::new(&entry.path);
        folders.iter().any(|folder| path.starts_with(folder))
            && !planned.contains(entry.file_id.as_str())
            // A name that is not UTF-8 was recorded in another form.
            && !entry.path.contains(char::REPLACEMENT_CHARACTER)
            && is_absent(path)
    };
    let mut gone: Vec<Entry> = entries.values().filter(is_gone).cloned().collect();
    gone.sort_by(|one, other| one.path.cmp(&other.path));
    gone
}

/// As [`gone`], after asking where a folder of them is without a single file.
///
/// # Errors
/// [`Failure`] where the answer is no, or nobody can be asked.
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
            let what = format!("{folder} holds no file (is it mounted?): delete {count} of it");
            screen::confirm(&what, options.yes)?;
        }
    }
    Ok(gone)
}

/// Whether there is nothing but directories in a directory.
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

/// Deletes their sources, forgets them and adds them to `deleted`.
///
/// # Errors
/// [`SendError`]; what was deleted before it is forgotten.
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
