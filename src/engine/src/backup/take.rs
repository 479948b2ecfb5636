//! Takes a backup.
//!
//! ```text
//! started/<id> -> hold deletions -> each tenant: writer's lock { moment of the catalog, snapshot }
//!   -> lists and new files, copied without the lock -> release deletions -> sync -> backups/<id>
//! ```
//! The lock is only held while one read transaction is opened. A tenant's rows and its manifest are
//! of the same moment, which is after the backup began, so they contain everything acknowledged
//! before. Files never change: one whose name is in an earlier finished backup is not read again.
//! Instead, the object stored there is checked (`earlier`). Manifests are the exception: after a
//! rollback their numbers come back with other contents. All other names contain random ids. An
//! original that the server has lost is taken over from an earlier backup, or counted as missing.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::earlier::Earlier;
use super::format::{BACKUPS, FileEntry, ListWriter, STARTED, id_of};
use super::originals::Originals;
use super::store::{BackupStore, Object, ReadAt};
use super::{BackupError, BackupManifest, LeftOut, Pace, TakeOptions, TenantEntry};
use crate::EngineError;
use lodestone_catalog::{Catalog, Moment, Tenant};
use lodestone_io::FileSlice;
use lodestone_io::store::{BlobStore, HeldBlobs, Key};
use lodestone_storage::collection::{Collection, CollectionError, Manifest, Snapshot, uploads};
use lodestone_storage::segment::Segment;
use lodestone_types::{Clock, ErrorKind};

/// Opens the collection of a tenant.
pub type OpenCollection<'a> = dyn Fn(&Tenant) -> Result<Arc<Collection>, EngineError> + Sync + 'a;

/// The parts of a server, or of a data directory without one, that a backup reads.
pub struct TakeParts<'a> {
    /// The catalog.
    pub catalog: &'a Catalog,
    /// Opens collections.
    pub open: &'a OpenCollection<'a>,
    /// The blob store.
    pub store: &'a Arc<HeldBlobs>,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// Limits the rate, and can end a backup early.
    pub pace: &'a dyn Pace,
}

/// Takes a backup; returns its manifest. Tenants that cannot be read are skipped and listed there.
///
/// # Errors
/// Errors of the store and of the catalog; [`BackupError::GivenUp`]. The location then holds a
/// backup that was begun and not finished.
pub fn take(
    parts: &TakeParts<'_>,
    backups: &dyn BackupStore,
    options: &TakeOptions,
) -> Result<BackupManifest, BackupError> {
    let started_at = parts.clock.now();
    let id = id_of(started_at);
    let mut tenants = parts.catalog.tenants()?;
    if let Some(only) = &options.tenant {
        tenants.retain(|tenant| tenant.id == *only);
        if tenants.is_empty() {
            return Err(BackupError::TenantUnknown { tenant: only.clone() });
        }
    }
    let earlier = Earlier::read(backups, &id, options.is_full)?;
    let mut run = Run { parts, backups, earlier, new_bytes: 0, new_files: 0 };
    backups.put(STARTED, &id, b"")?;
    let mut taken = Vec::with_capacity(tenants.len());
    let mut left_out = Vec::new();
    let hold = parts.store.hold();
    for tenant in tenants {
        match run.tenant(&tenant) {
            Ok(entry) => taken.extend(entry),
            Err(error) if is_of_tenant(&error) => {
                let collection = tenant.collection;
                tracing::error!(%collection, %error, "tenant left out of the backup");
                let reason = error.to_string();
                left_out.push(LeftOut { tenant: tenant.id.to_string(), reason });
            }
            Err(error) => return Err(error),
        }
    }
    drop(hold);
    let keys = match options.with_keys {
        true => Some(run.rows(&parts.catalog.moment()?, None)?.unwrap_or_default()),
        false => None,
    };
    let manifest = BackupManifest {
        id: id.clone(),
        started_at: started_at.0,
        release: env!("CARGO_PKG_VERSION").to_owned(),
        catalog_format: Catalog::format(),
        is_whole: options.tenant.is_none(),
        tenants: taken,
        keys,
        left_out,
        newest_sequence: parts.catalog.newest_sequence()?.0,
        new_bytes: run.new_bytes,
        new_files: run.new_files,
        damage: run.earlier.damage(),
    };
    backups.sync()?;
    backups.put(BACKUPS, &id, &manifest.encode())?;
    backups.remove(STARTED, &id)?;
    Ok(manifest)
}

/// Whether an error concerns the data of one tenant, so that the others can still be backed up.
fn is_of_tenant(error: &BackupError) -> bool {
    match error {
        BackupError::Collection(_) | BackupError::Damaged { .. } => true,
        BackupError::Io(error) => matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::NotFound),
        BackupError::Store(error) => {
            matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::NotFound)
        }
        _ => false,
    }
}

/// A backup in progress.
struct Run<'a> {
    parts: &'a TakeParts<'a>,
    backups: &'a dyn BackupStore,
    earlier: Earlier<'a>,
    new_bytes: u64,
    new_files: u64,
}

impl Run<'_> {
    /// Backs up a tenant; `None` if it was deleted in the meantime.
    fn tenant(&mut self, tenant: &Tenant) -> Result<Option<TenantEntry>, BackupError> {
        let id = tenant.collection;
        let collection = match (self.parts.open)(tenant) {
            Ok(collection) => collection,
            Err(error) => {
                return match self.parts.catalog.tenant_of(id)? {
                    None => Ok(None),
                    Some(_) => Err(BackupError::Damaged {
                        file: format!("v1/c/{id}"),
                        problem: error.to_string(),
                    }),
                };
            }
        };
        // Writers only wait for this; everything else works on what these two have pinned.
        let (moment, snapshot) = {
            let writer = collection.writer()?;
            (self.parts.catalog.moment()?, writer.base())
        };
        if let Some(damaged) = snapshot.damaged.first() {
            let problem = "the segment is damaged and not yet rebuilt".to_owned();
            return Err(BackupError::Damaged { file: damaged.id().to_string(), problem });
        }
        let listing = self.parts.store.list(&uploads::prefix(id))?;
        let mut originals = Originals::new(&listing);
        let Some(rows) = self.rows(&moment, Some((tenant, &mut originals)))? else {
            return Ok(None);
        };
        originals.see_unfinished(&moment, id)?;
        drop(moment);
        let sources = originals.see_sources(&snapshot)?;
        let Originals { wanted, lost, .. } = originals;
        let mut keys = snapshot.manifest.files();
        keys.extend(wanted.into_iter().cloned());
        let (files, bytes, missing_originals) = self.files(tenant, &snapshot, &keys, lost)?;
        Ok(Some(TenantEntry {
            name: tenant.id.to_string(),
            collection: id.0,
            version: snapshot.manifest.version,
            sources,
            chunks: snapshot.rows(),
            bytes,
            rows,
            files,
            missing_originals: Some(missing_originals),
        }))
    }

    /// Stores the rows of a tenant, or of the API keys; `None` if there is no such tenant.
    fn rows(
        &mut self,
        moment: &Moment,
        mut of: Option<(&Tenant, &mut Originals<'_>)>,
    ) -> Result<Option<Vec<Object>>, BackupError> {
        let collection = of.as_ref().map(|(tenant, _)| tenant.collection);
        let mut put = |bytes: &[u8]| self.put_list(bytes);
        let mut list = ListWriter::new(&mut put);
        let mut see = |row: serde_json::Value| {
            if let Some((_, originals)) = &mut of {
                originals.see_row(&row);
            }
            list.add(&row)
        };
        let is_there = match collection {
            Some(collection) => moment.tenant(collection, &mut see)?,
            None => moment.keys(&mut see).map(|()| true)?,
        };
        let list = list.finish()?;
        Ok(is_there.then_some(list))
    }

    /// Stores a part of a list, unless an earlier backup has it.
    fn put_list(&mut self, bytes: &[u8]) -> Result<Object, BackupError> {
        let object = Object::of(bytes);
        match self.earlier.has_list(&object)? {
            true => Ok(object),
            false => self.put_bytes(bytes),
        }
    }

    /// Stores a manifest, unless `earlier`, the object of its name in an earlier backup, is equal.
    fn put_manifest(
        &mut self,
        manifest: &Manifest,
        earlier: Option<Object>,
    ) -> Result<Object, BackupError> {
        let bytes = manifest.encode();
        match earlier.filter(|earlier| *earlier == Object::of(&bytes)) {
            Some(object) if self.earlier.has_file(&object)? => Ok(object),
            _ => self.put_bytes(&bytes),
        }
    }

    fn put_bytes(&mut self, bytes: &[u8]) -> Result<Object, BackupError> {
        self.put(&mut |at, buffer| {
            let mut rest = bytes.get(at as usize..).unwrap_or_default();
            Ok(std::io::Read::read(&mut rest, buffer).unwrap_or(0))
        })
    }

    fn put(&mut self, read: &mut ReadAt<'_>) -> Result<Object, BackupError> {
        let (pace, mut furthest) = (self.parts.pace, 0);
        let object = self.backups.put_object(&mut |at, buffer| {
            let length = read(at, buffer)?;
            // Bytes read a second time come from the page cache and do not count.
            let end = at + length as u64;
            pace.spend(end.saturating_sub(furthest))?;
            furthest = furthest.max(end);
            Ok(length)
        })?;
        self.new_bytes += object.bytes;
        self.new_files += 1;
        self.earlier.wrote(&object);
        Ok(object)
    }

    /// Copies the files that no earlier backup has; returns the list of all files, their total
    /// bytes, and how many of the `lost` originals no earlier backup has either.
    fn files(
        &mut self,
        tenant: &Tenant,
        snapshot: &Snapshot,
        keys: &[Key],
        lost: BTreeSet<String>,
    ) -> Result<(Vec<Object>, u64, u64), BackupError> {
        let mut known = self.earlier.files(tenant.collection.0)?;
        let (manifest, mut entries) = (snapshot.manifest.key(), Vec::with_capacity(keys.len()));
        for key in keys {
            let earlier = known.remove(key.as_str());
            let object = match earlier {
                earlier if *key == manifest => {
                    Some(self.put_manifest(&snapshot.manifest, earlier)?)
                }
                Some(object) if self.earlier.has_file(&object)? => Some(object),
                _ => {
                    let mut segments = snapshot.segments.iter().map(|live| &live.segment);
                    let name = key.last().strip_suffix(".seg");
                    let of_key = |one: &&Arc<Segment>| name == Some(one.id().to_string().as_str());
                    // A segment that is damaged now must not replace a sound copy in earlier
                    // backups.
                    if let Some(segment) = segments.find(of_key) {
                        segment.verify_blocks().map_err(CollectionError::from)?;
                    }
                    self.copy(key)?
                }
            };
            entries.extend(object.map(|object| FileEntry(key.as_str().to_owned(), object)));
        }
        let count = lost.len();
        let found = self.earlier.find_lost(tenant.collection.0, known, lost)?;
        let missing = (count - found.len()) as u64;
        if count > 0 {
            tracing::error!(collection = %tenant.collection, lost = count, missing, "originals are \
                lost: the backup has those of earlier ones, and the others are missing");
        }
        entries.extend(found);
        let bytes = entries.iter().map(|entry| entry.1.bytes).sum();
        let mut put = |bytes: &[u8]| self.put_list(bytes);
        let mut list = ListWriter::new(&mut put);
        for entry in &entries {
            list.add(entry)?;
        }
        Ok((list.finish()?, bytes, missing))
    }

    /// Copies a file; `None` for a list of sources that an older release did not write. If the
    /// cached copy of an original is damaged, the one in the bucket is copied.
    fn copy(&mut self, key: &Key) -> Result<Option<Object>, BackupError> {
        match self.copy_once(key) {
            Err(BackupError::Damaged { .. }) if self.parts.store.forget_copy(key) => {
                self.copy_once(key)
            }
            copied => copied,
        }
    }

    fn copy_once(&mut self, key: &Key) -> Result<Option<Object>, BackupError> {
        let file: FileSlice = match self.parts.store.open(key) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound && key.as_str().contains("/r/") => {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let object = self.put(&mut |at, buffer| Ok(file.read_at(at, buffer)?))?;
        // The name of an original ends with the beginning of its hash.
        let hash = key.last().rsplit_once('-').map(|(_, hash)| hash);
        match hash {
            Some(hash)
                if key.as_str().starts_with("v1/raw/") && !object.sha256.starts_with(hash) =>
            {
                let problem = "its content does not match the hash in its name".to_owned();
                Err(BackupError::Damaged { file: key.as_str().to_owned(), problem })
            }
            _ => Ok(Some(object)),
        }
    }
}
