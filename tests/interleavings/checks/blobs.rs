//! Deletions that a hold defers, and local copies of blobs.

extern crate interleavings as parking_lot;
extern crate interleavings as std;
extern crate self as lodestone_io;

#[path = "../../../src/io/src/store/blob.rs"]
mod blob;
#[path = "../../../src/bucket/src/cache.rs"]
mod cache;
#[path = "../../../src/io/src/store/held.rs"]
mod held;
#[path = "../../../src/io/src/store/key.rs"]
mod key;

mod store {
    pub use crate::blob::{BlobStore, WriteBlob};
    pub use crate::key::Key;
    pub use crate::{Created, StoreError};
}

mod error {
    pub use crate::TransferError;
}

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Weak};
use std::thread;

use blob::{BlobStore, WriteBlob};
use cache::Cache;
use held::HeldBlobs;
use interleavings::{Check, Mutex, explore, is_chosen};
use key::Key;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{key} {problem}")]
    InvalidKey { key: String, problem: &'static str },
    #[error("{0} is missing")]
    Missing(Key),
}

#[derive(Debug, Clone, Copy)]
pub enum Operation {
    CreateDirectory,
    List,
    Rename,
}

#[derive(Debug, thiserror::Error)]
pub enum IoError {
    #[error("{path:?} is missing")]
    NotFound { path: PathBuf },
    #[error("{0}")]
    Other(std::io::Error),
}

impl IoError {
    pub fn new(_: Operation, path: &Path, error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound => Self::NotFound { path: path.to_owned() },
            _ => Self::Other(error),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error(transparent)]
    Io(#[from] IoError),
    #[error("there is no blob {0}")]
    Missing(Key),
}

#[derive(Debug)]
pub enum Created {
    Won,
}

#[derive(Debug)]
pub struct FileSlice;

impl FileSlice {
    pub fn open(_: &Path) -> Result<Self, IoError> {
        Ok(Self)
    }
}

#[derive(Debug)]
pub struct MappedFile(Arc<File>);

impl MappedFile {
    pub fn open(path: &Path) -> Result<Self, IoError> {
        let opened = File::open(path).map_err(|error| IoError::new(Operation::List, path, error));
        Ok(Self(Arc::new(opened?)))
    }

    pub fn holders(&self) -> Weak<File> {
        Arc::downgrade(&self.0)
    }
}

/// The names of blobs, as in a bucket.
#[derive(Debug, Default)]
struct Names(Mutex<BTreeSet<Key>>);

impl BlobStore for Names {
    fn is_shared(&self) -> bool {
        true
    }

    fn put_with(&self, key: &Key, _: &mut WriteBlob<'_>) -> Result<u64, StoreError> {
        self.0.lock().insert(key.clone());
        Ok(0)
    }

    fn scratch(&self) -> Result<File, StoreError> {
        unreachable!("no check uses it")
    }

    fn put_many(&self, _: &[(Key, &[u8])]) -> Result<(), StoreError> {
        unreachable!("no check uses it")
    }

    fn put_create(&self, _: &Key, _: &[u8]) -> Result<Created, StoreError> {
        unreachable!("no check uses it")
    }

    fn get(&self, key: &Key) -> Result<Vec<u8>, StoreError> {
        let is_there = self.0.lock().contains(key);
        is_there.then(Vec::new).ok_or_else(|| StoreError::Missing(key.clone()))
    }

    fn open(&self, _: &Key) -> Result<FileSlice, StoreError> {
        unreachable!("no check uses it")
    }

    fn map(&self, _: &Key) -> Result<MappedFile, StoreError> {
        unreachable!("no check uses it")
    }

    fn len(&self, _: &Key) -> Result<u64, StoreError> {
        unreachable!("no check uses it")
    }

    fn list(&self, prefix: &Key) -> Result<Vec<Key>, StoreError> {
        Ok(self.0.lock().iter().filter(|key| key.begins_with(prefix)).cloned().collect())
    }

    fn delete_many(&self, keys: &[Key]) -> Result<(), StoreError> {
        keys.iter().for_each(|key| _ = self.0.lock().remove(key));
        Ok(())
    }

    fn delete_prefix(&self, prefix: &Key) -> Result<(), StoreError> {
        self.delete_many(&self.list(prefix)?)
    }
}

fn key(name: &str) -> Key {
    Key::parse(&format!("v1/{name}")).unwrap()
}

/// Two backups, one after the other or concurrently, while the blobs they list are deleted, and
/// another attempt at deferred deletions.
fn a_hold_finds_what_it_has_listed() {
    let names = Arc::new(Names::default());
    let store = Arc::new(HeldBlobs::new(Arc::clone(&names) as Arc<dyn BlobStore>));
    ["a/1", "a/2", "b/1"].iter().for_each(|name| store.put(&key(name), b"").unwrap());
    let backups = [0, 1].map(|number| {
        let store = Arc::clone(&store);
        thread::spawn(move || {
            let hold = match number {
                0 => store.hold(),
                _ => store.hold_below(vec![key("a")]),
            };
            for listed in store.list(&key("a")).unwrap() {
                assert!(store.get(&listed).is_ok(), "{listed} is gone");
            }
            drop(hold);
        })
    });
    store.delete(&key("b/1")).unwrap();
    store.delete(&key("a/2")).unwrap();
    store.delete_prefix(&key("a")).unwrap();
    store.delete_deferred();
    backups.into_iter().for_each(|backup| backup.join().unwrap());
    assert_eq!((store.waiting(), names.0.lock().len()), (0, 0), "something is left");
}

/// A folder for a single execution.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: ::std::sync::atomic::AtomicUsize = ::std::sync::atomic::AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, SeqCst);
        let name = format!("interleavings-{}-{number}", std::process::id());
        // In memory if the system has such a folder.
        let folder = Some(PathBuf::from("/dev/shm")).filter(|path| path.is_dir());
        let path = folder.unwrap_or_else(std::env::temp_dir).join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Fetches blobs of 100 bytes.
#[derive(Debug, Default)]
struct Fetches {
    under_way: [AtomicUsize; 2],
    count: AtomicUsize,
}

impl Fetches {
    fn fetch(&self, folder: &Path, blob: usize) -> Result<(PathBuf, u64), TransferError> {
        assert_eq!(self.under_way[blob].fetch_add(1, SeqCst), 0, "fetched twice at once");
        let path = folder.join(self.count.fetch_add(1, SeqCst).to_string());
        fs::write(&path, [0; 100]).unwrap();
        self.under_way[blob].fetch_sub(1, SeqCst);
        Ok((path, 100))
    }
}

/// Two blobs compete for room for one, and one of them is forgotten now and then.
fn callers_of_a_blob_share_one_fetch() {
    let folder = Folder::new();
    let cache = Arc::new(Cache::open(folder.0.join("blobs"), |_| Ok(100)).unwrap());
    let fetches = Arc::new(Fetches::default());
    let threads = [0, 0, 1, 1].map(|blob| {
        let (cache, fetches) = (Arc::clone(&cache), Arc::clone(&fetches));
        let folder = folder.0.clone();
        thread::spawn(move || {
            let name = key(["a", "b"][blob]);
            let mapped = cache.map(&name, || match is_chosen() {
                true => fetches.fetch(&folder, blob),
                false => Err(TransferError::Missing(name.clone())),
            });
            drop(mapped);
            cache.forget(&key("a"));
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let (counts, files) = (cache.counts(), fs::read_dir(folder.0.join("blobs/v1")));
    let files = files.map_or(0, |files| files.count() as u64);
    assert_eq!((counts.bytes, counts.copies), (100 * files, files), "a copy is not counted");
    assert!(counts.copies <= 1, "it is above its budget and nothing is mapped");
}

fn a_fetch_that_panics_ends_nobody_else() {
    let folder = Folder::new();
    let cache = Arc::new(Cache::open(folder.0.join("blobs"), |_| Ok(1000)).unwrap());
    let fetches = Arc::new(Fetches::default());
    let threads = [true, false, false].map(|panics| {
        let (cache, fetches) = (Arc::clone(&cache), Arc::clone(&fetches));
        let folder = folder.0.clone();
        thread::spawn(move || {
            let fetch = || match panics {
                true => resume_unwind(Box::new("on purpose")),
                false => fetches.fetch(&folder, 0),
            };
            let mapped = catch_unwind(AssertUnwindSafe(|| cache.map(&key("a"), fetch)));
            assert!(panics || mapped.is_ok_and(|mapped| mapped.is_ok()));
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

fn main() -> ExitCode {
    explore(&[
        Check::patient("holds: a hold finds what it has listed", a_hold_finds_what_it_has_listed),
        Check::patient("copies: callers share one fetch", callers_of_a_blob_share_one_fetch),
        Check::patient("copies: a fetch that panics", a_fetch_that_panics_ends_nobody_else),
    ])
}
