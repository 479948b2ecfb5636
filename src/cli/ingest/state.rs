//! The state file, which lists the items that the server has accepted, one JSON line per file.
//!
//! ```text
//! {"path": "/home/me/docs/a.pdf", "bytes": 1234, "mtime_ns": 17..., "file_id": "docs:a.pdf",
//!  "metadata": "hash of the metadata sent with it", "source_time": "mtime"}
//! ```
//!
//! A line is appended in a single write after the server's 200 and before the next request of that
//! thread. It survives a crash of the process; a power cut costs no more than sending some files
//! again. The last line of an id wins, and torn or unknown lines are skipped. The file is locked,
//! so that only one process uses it at a time.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::maps::Maps;
use super::options::SourceTime;
use super::plan::{Item, Origin, Stamp};

/// Hexadecimal digits of a hash; 64 bits suffice to tell the tenants of one user apart.
const HASH_CHARS: usize = 16;
/// Longest line in bytes. Paths and ids are limited, so a longer line is not ours.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// Errors of the state file.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file cannot be read or created.
    #[error("state file {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Description of the error.
        source: io::Error,
    },
    /// Another run is using the file.
    #[error("state file {}: another run is using it", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// There is no directory to put it in.
    #[error("neither XDG_STATE_HOME nor HOME is set: use --state FILE or --no-state")]
    NoHome,
}

/// An item that the server accepted in some run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Absolute path.
    pub path: String,
    /// Size when it was sent.
    pub bytes: u64,
    /// Last modification when it was sent.
    pub mtime_ns: u64,
    /// Id of the source.
    pub file_id: String,
    /// Hash of the metadata sent with it.
    #[serde(default)]
    pub metadata: String,
    /// Origin of the date sent with it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_time: Option<SourceTime>,
    /// Whether the source has been deleted since.
    #[serde(default, skip_serializing_if = "is_false")]
    pub deleted: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Entry {
    /// Creates the entry of an accepted item; `None` for pages, which are fetched again in every
    /// run because they may have changed.
    pub fn of(item: &Item, stamp: Stamp, maps: &Maps) -> Option<Self> {
        let Origin::File(path) = &item.origin else { return None };
        Some(Self {
            path: path.to_string_lossy().into_owned(),
            bytes: stamp.bytes,
            mtime_ns: stamp.mtime_ns,
            file_id: item.id.clone(),
            metadata: maps.hash.clone(),
            source_time: maps.source_time,
            deleted: false,
        })
    }

    /// Whether a file is unchanged since it was accepted, and has the requested date, if any.
    pub fn is_of(&self, path: &Path, stamp: Stamp, source_time: Option<SourceTime>) -> bool {
        let then = Stamp { bytes: self.bytes, mtime_ns: self.mtime_ns };
        let has_date = source_time.is_none() || source_time == self.source_time;
        then == stamp && self.path == path.to_string_lossy() && has_date
    }
}

/// The open state file.
#[derive(Debug)]
pub struct State {
    file: Mutex<File>,
    path: PathBuf,
    entries: HashMap<String, Entry>,
}

impl State {
    /// Opens or creates the file, locks it and reads its entries.
    ///
    /// # Errors
    /// [`StateError`] if that fails or another run holds the lock.
    pub fn open(path: &Path) -> Result<Self, StateError> {
        let failed = |source| StateError::Io { path: path.into(), source };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let file = OpenOptions::new().read(true).append(true).create(true).open(path);
        let mut file = file.map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StateError::InUse { path: path.into() }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let entries = read(&file).map_err(failed)?;
        mend(&mut file).map_err(failed)?;
        Ok(Self { file: Mutex::new(file), path: path.into(), entries })
    }

    /// Returns the entry of an earlier run for an id.
    pub fn entry(&self, file_id: &str) -> Option<&Entry> {
        self.entries.get(file_id)
    }

    /// Returns the entries of earlier runs, by id.
    pub fn entries(&self) -> &HashMap<String, Entry> {
        &self.entries
    }

    /// Records what the server has accepted or deleted.
    ///
    /// # Errors
    /// [`StateError::Io`] if the file cannot be written.
    pub fn append(&self, entries: &[Entry]) -> Result<(), StateError> {
        let mut lines = String::new();
        for entry in entries {
            lines += &serde_json::to_string(entry).expect("texts and numbers always print");
            lines.push('\n');
        }
        let written = self.file.lock().write_all(lines.as_bytes());
        written.map_err(|source| StateError::Io { path: self.path.clone(), source })
    }
}

/// Reads the entries of a state file, by id, without locking or creating it.
///
/// # Errors
/// If the file exists and cannot be read.
pub fn peek(path: &Path) -> Result<HashMap<String, Entry>, StateError> {
    match File::open(path).and_then(|file| read(&file)) {
        Ok(entries) => Ok(entries),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(HashMap::new()),
        Err(source) => Err(StateError::Io { path: path.into(), source }),
    }
}

fn read(file: &File) -> io::Result<HashMap<String, Entry>> {
    let mut reader = BufReader::new(file);
    let (mut entries, mut line) = (HashMap::new(), Vec::new());
    while reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? > 0 {
        match serde_json::from_slice::<Entry>(&line) {
            Ok(entry) if entry.deleted => drop(entries.remove(&entry.file_id)),
            Ok(entry) => drop(entries.insert(entry.file_id.clone(), entry)),
            Err(_) => {}
        }
        line.clear();
    }
    Ok(entries)
}

/// Terminates a torn last line, so that the next one starts on a line of its own.
fn mend(file: &mut File) -> io::Result<()> {
    let mut last = [b'\n'];
    if file.seek(SeekFrom::End(0))? > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    if last != *b"\n" {
        file.write_all(b"\n")?;
    }
    Ok(())
}

/// Returns the default path of the state file for one server, tenant and sub-tenant; `variable`
/// looks up environment variables.
///
/// # Errors
/// [`StateError::NoHome`] if neither variable is set.
pub fn default_path(
    variable: impl Fn(&str) -> Option<PathBuf>,
    scope: [&str; 3],
) -> Result<PathBuf, StateError> {
    // The XDG base directory specification says that relative paths must be ignored.
    let named = variable("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let home = || variable("HOME").map(|home| home.join(".local/state"));
    let folder = named.or_else(home).ok_or(StateError::NoHome)?;
    // Addresses and ids contain no line breaks, so the joined text is unambiguous.
    Ok(folder.join("lodestone/ingest").join(format!("{}.jsonl", hash(&scope.join("\n")))))
}

/// Returns a short hash in hexadecimal.
pub fn hash(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))[..HASH_CHARS].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, bytes: u64) -> Entry {
        let (path, metadata) = (format!("/x/{id}"), "m".to_owned());
        let (file_id, source_time) = (id.into(), None);
        Entry { path, bytes, mtime_ns: 5, file_id, metadata, source_time, deleted: false }
    }

    #[test]
    fn the_last_line_of_an_id_wins_and_torn_lines_are_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/state.jsonl");
        let state = State::open(&path).unwrap();
        assert!(state.entry("a").is_none());
        state.append(&[entry("a", 1), entry("b", 2)]).unwrap();
        state.append(&[entry("a", 3)]).unwrap();
        drop(state);
        let whole = fs::read(&path).unwrap();
        let mut torn = whole.clone();
        torn.truncate(whole.len() - 4);
        fs::write(&path, &torn).unwrap();

        let state = State::open(&path).unwrap();
        assert_eq!(state.entry("a"), Some(&entry("a", 1)));
        state.append(&[entry("c", 4)]).unwrap();
        drop(state);
        let known = peek(&path).unwrap();
        assert_eq!(known["c"], entry("c", 4), "a line after a torn one stands alone");
        assert_eq!(known.len(), 3);
    }

    #[test]
    fn every_cut_of_the_file_leaves_whole_lines_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        State::open(&path).unwrap().append(&[entry("a", 1), entry("b", 2)]).unwrap();
        let whole = fs::read(&path).unwrap();
        let first = whole.iter().position(|byte| *byte == b'\n').unwrap();
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let known = peek(&path).unwrap();
            // The last byte of a line is its line break, which JSON does not need.
            let expected = usize::from(cut >= first) + usize::from(cut + 1 >= whole.len());
            assert_eq!(known.len(), expected, "cut at {cut}");
        }
    }

    #[test]
    fn one_run_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let first = State::open(&path).unwrap();
        assert!(matches!(State::open(&path), Err(StateError::InUse { .. })));
        drop(first);
        State::open(&path).unwrap();
    }

    #[test]
    fn a_file_is_the_same_by_path_size_time_and_date() {
        let known = entry("a", 1);
        let (stamp, mtime) = (Stamp { bytes: 1, mtime_ns: 5 }, Some(SourceTime::Mtime));
        assert!(known.is_of(Path::new("/x/a"), stamp, None));
        assert!(!known.is_of(Path::new("/y/a"), stamp, None));
        assert!(!known.is_of(Path::new("/x/a"), Stamp { bytes: 2, ..stamp }, None));
        assert!(!known.is_of(Path::new("/x/a"), Stamp { mtime_ns: 6, ..stamp }, None));
        assert!(!known.is_of(Path::new("/x/a"), stamp, mtime));
        let dated = Entry { source_time: mtime, ..known };
        assert!(dated.is_of(Path::new("/x/a"), stamp, mtime));
        assert!(dated.is_of(Path::new("/x/a"), stamp, None), "what is not asked for stays");
        let line = serde_json::to_string(&dated).unwrap();
        assert!(line.contains(r#""source_time":"mtime""#), "{line}");
    }

    #[test]
    fn the_default_place_tells_scopes_apart() {
        let home = |name: &str| (name == "HOME").then(|| PathBuf::from("/home/me"));
        let of = |scope| default_path(home, scope).unwrap();
        let path = of(["http://a", "t", "s"]);
        assert!(path.starts_with("/home/me/.local/state/lodestone/ingest"), "{}", path.display());
        assert_ne!(path, of(["http://a", "ts", ""]));
        let xdg = |name: &str| Some(PathBuf::from(if name == "HOME" { "/h" } else { "/xdg" }));
        assert!(default_path(xdg, ["a", "b", "c"]).unwrap().starts_with("/xdg/lodestone/ingest"));
        assert!(matches!(default_path(|_| None, ["a", "b", "c"]), Err(StateError::NoHome)));
    }
}
