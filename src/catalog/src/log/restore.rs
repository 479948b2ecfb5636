//! Rebuilding the catalog file from the log alone.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use sha2::{Digest, Sha256};

use super::entry::{Base, Frames, damaged};
use super::reader::{End, FETCHES, Plan, away};
use super::wal;
use crate::error::{CatalogError, Result};
use crate::{Catalog, migrations};
use lodestone_io::store::{BlobStore, Key};
use lodestone_types::ErrorKind;

/// The error for a local file operation.
pub(super) fn local(path: &Path) -> impl Fn(io::Error) -> CatalogError {
    move |error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => CatalogError::StorageFull,
        _ => CatalogError::corrupt(format!("{}: {error}", path.display())),
    }
}

/// Rebuilds the file at `path`, replacing one left by an earlier attempt. Durable on return.
pub(super) fn restore(store: &Arc<dyn BlobStore>, plan: &Plan, path: &Path) -> Result<End> {
    Catalog::remove_left_over(path)?;
    let restored = build(store, plan, path);
    if restored.is_err() {
        // The first error is the one to report.
        let _ = Catalog::remove_left_over(path);
    }
    restored
}

fn build(store: &Arc<dyn BlobStore>, plan: &Plan, path: &Path) -> Result<End> {
    fetch_base(&**store, &plan.base, path)?;
    let mut laps = Laps::new(path);
    let end = plan.read(store, FETCHES, &mut |place, bytes| laps.add(place, bytes))?;
    laps.apply()?;
    let connection = Connection::open(path)?;
    if migrations::format(&connection, path)? == 0 {
        return Err(CatalogError::corrupt("the log in the store contains an empty database"));
    }
    drop(connection);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    for synced in [path, folder.unwrap_or(Path::new("."))] {
        File::open(synced).and_then(|file| file.sync_all()).map_err(local(synced))?;
    }
    Ok(end)
}

/// A writer that forwards to a file while counting and hashing.
struct Checked<'a> {
    file: &'a File,
    hasher: Sha256,
    bytes: u64,
    bytes_max: u64,
}

impl Write for Checked<'_> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.bytes += piece.len() as u64;
        if self.bytes > self.bytes_max {
            return Err(io::Error::other("it is longer than its entry says"));
        }
        self.hasher.update(piece);
        self.file.write_all(piece).map(|()| piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Creates the file at `path` from the copy of the catalog in the store.
pub(super) fn fetch_base(store: &dyn BlobStore, base: &Base, path: &Path) -> Result<()> {
    let key = Key::parse(&base.blob).map_err(|error| CatalogError::corrupt(error.to_string()))?;
    match unpack(store, &key, base, path) {
        // Only this machine's cached copy may be damaged.
        Err(CatalogError::Corrupt { .. }) if store.forget_copy(&key) => {
            fs::remove_file(path).map_err(local(path))?;
            unpack(store, &key, base, path)
        }
        unpacked => unpacked,
    }
}

fn unpack(store: &dyn BlobStore, key: &Key, base: &Base, path: &Path) -> Result<()> {
    let blob = store.open(key).map_err(|error| match error.kind() {
        ErrorKind::NotFound => damaged(key, "this copy of the catalog is missing"),
        _ => away(error),
    })?;
    let file = File::create_new(path).map_err(local(path))?;
    let out = Checked { file: &file, hasher: Sha256::new(), bytes: 0, bytes_max: base.bytes };
    let broken = |error: io::Error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => CatalogError::StorageFull,
        _ => damaged(key, error),
    };
    let mut out = zstd::stream::write::Decoder::new(out).map_err(broken)?;
    let mut written = Ok(());
    let read = blob.pieces(|piece| {
        if written.is_ok() {
            written = out.write_all(piece);
        }
    });
    read.map_err(|error| away(error.into()))?;
    written.and_then(|()| out.flush()).map_err(broken)?;
    let Checked { hasher, bytes, .. } = out.into_inner();
    if bytes != base.bytes || hex::encode(hasher.finalize()) != base.sha256 {
        return Err(damaged(key, "it has another length or hash than its entry says"));
    }
    Ok(())
}

/// Applies laps of the write-ahead log to a file, one after the other.
struct Laps<'a> {
    path: &'a Path,
    wal: PathBuf,
    /// The lap being collected.
    file: Option<File>,
}

impl<'a> Laps<'a> {
    fn new(path: &'a Path) -> Self {
        let mut wal = path.as_os_str().to_owned();
        wal.push("-wal");
        Self { path, wal: wal.into(), file: None }
    }

    fn add(&mut self, place: Frames, bytes: &[u8]) -> Result<()> {
        if place.offset == 0 {
            self.apply()?;
            self.file = Some(File::create_new(&self.wal).map_err(local(&self.wal))?);
        }
        let file = self.file.as_ref().expect("a lap begins at 0, or the log is refused");
        file.write_all_at(bytes, place.offset).map_err(local(&self.wal))
    }

    /// Checkpoints the collected lap into the file. SQLite ignores frames from the first damaged
    /// one on; here either all of them arrive or the log is rejected. Only a commit that its
    /// process never finished, and so never acknowledged, is left out.
    fn apply(&mut self) -> Result<()> {
        if self.file.take().is_none() {
            return Ok(());
        }
        let expected = wal::committed_frames(&self.wal).map_err(local(&self.wal))? as i64;
        if expected == 0 {
            return fs::remove_file(&self.wal).map_err(local(&self.wal));
        }
        let connection = Connection::open(self.path)?;
        // The whole file is synced at the end.
        connection.pragma_update(None, "synchronous", "OFF")?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        let checkpoint = connection.query_row("PRAGMA wal_checkpoint(FULL)", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        })?;
        drop(connection);
        if checkpoint != (0, expected, expected) {
            let (_, found, _) = checkpoint;
            let what = format!("a lap of the log has {found} whole frames instead of {expected}");
            return Err(CatalogError::corrupt(what));
        }
        match fs::exists(&self.wal).map_err(local(&self.wal))? {
            false => Ok(()),
            true => Err(CatalogError::corrupt("checkpointing a lap of the log failed")),
        }
    }
}
