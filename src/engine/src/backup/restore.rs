//! Restores a backup into a new data directory.
//!
//! Everything is written to a directory beside the target and compared with its hashes, and the
//! manifest of each tenant with its catalog row; only when it is complete is the directory renamed
//! to the target, in one step.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::format::{FileEntry, read_files, read_list};
use super::originals::Originals;
use super::store::BackupStore;
use super::{BackupError, BackupManifest, TenantEntry};
use crate::CATALOG_NAME;
use lodestone_catalog::descriptors::{self, Descriptor};
use lodestone_catalog::{Catalog, CatalogOptions, Import};
use lodestone_io::store::{BlobStore, Key, LocalBlobs};
use lodestone_io::{DataDir, Disk, RealDisk};
use lodestone_storage::collection::{Collection, CommitLog, uploads};
use lodestone_types::{CollectionId, RandomIds, Sequence, SystemClock, TenantId};
use uuid::Uuid;

/// Selects what to restore.
#[derive(Debug, Clone, Default)]
pub struct RestoreOptions {
    /// Id of the backup; `None` takes the newest one of the whole server, or the newest one that
    /// contains the tenant.
    pub at: Option<String>,
    /// Only this tenant.
    pub tenant: Option<TenantId>,
    /// New id of that tenant.
    pub rename_to: Option<TenantId>,
}

/// Restores into `data_dir`, which must be missing or empty; returns the manifest of the backup and
/// the names of the restored tenants. Missing originals are counted anew: manifests of earlier
/// releases do not count them.
///
/// # Errors
/// [`BackupError::Damaged`], which names the file; [`BackupError::Refused`] for a directory in use.
/// Nothing is left behind then.
pub fn restore(
    backups: &dyn BackupStore,
    options: &RestoreOptions,
    data_dir: &Path,
) -> Result<(BackupManifest, Vec<String>), BackupError> {
    let mut manifest = chosen(backups, options)?;
    let is_wanted = |entry: &&TenantEntry| {
        options.tenant.as_ref().is_none_or(|tenant| tenant.as_str() == entry.name)
    };
    let tenants: Vec<&TenantEntry> = manifest.tenants.iter().filter(is_wanted).collect();
    if let Some(tenant) = options.tenant.as_ref().filter(|_| tenants.is_empty()) {
        return Err(BackupError::NoTenant { id: manifest.id.clone(), tenant: tenant.clone() });
    }
    let staging = staging_beside(data_dir)?;
    let restored = fill(backups, &manifest, &tenants, options, &staging)
        .and_then(|missing| take_name(&staging, data_dir).map(|()| missing));
    if restored.is_err() {
        // The next restore removes what could not be removed now.
        let _ = fs::remove_dir_all(&staging);
    }
    let missing = restored?;
    let names = match &options.rename_to {
        Some(name) => vec![name.to_string()],
        None => tenants.iter().map(|tenant| tenant.name.clone()).collect(),
    };
    for tenant in &mut manifest.tenants {
        if let Some(missing) = missing.get(&tenant.collection) {
            tenant.missing_originals = Some(*missing);
        }
    }
    Ok((manifest, names))
}

/// Reads the manifest of the selected backup. A backup of one tenant never stands in for the
/// server.
pub(super) fn chosen(
    backups: &dyn BackupStore,
    options: &RestoreOptions,
) -> Result<BackupManifest, BackupError> {
    if let Some(id) = &options.at {
        return BackupManifest::read(backups, id);
    }
    let newest = BackupManifest::newest(backups, |_| true)?;
    let is_wanted = |made: &BackupManifest| match &options.tenant {
        Some(tenant) => made.tenants.iter().any(|entry| entry.name == tenant.as_str()),
        None => made.is_whole,
    };
    BackupManifest::newest(backups, is_wanted).map_err(|error| match (error, &options.tenant) {
        (BackupError::Empty { place }, Some(tenant)) => BackupError::Refused {
            problem: format!("no backup in {place} contains tenant {tenant}"),
        },
        (BackupError::Empty { place }, None) => BackupError::Refused {
            problem: format!(
                "{place} contains only backups of single tenants, the newest is {}: choose one \
                 with --at, or a tenant with --tenant",
                newest.id
            ),
        },
        (error, _) => error,
    })
}

/// Chooses a directory beside `data_dir`, on the same file system, and removes its old content.
fn staging_beside(data_dir: &Path) -> Result<PathBuf, BackupError> {
    let refused = |problem: String| BackupError::Refused { problem };
    let shown = data_dir.display();
    match fs::read_dir(data_dir).map(Iterator::count) {
        Ok(0) => {}
        Ok(_) => return Err(refused(format!("{shown} is not empty: choose a new data directory"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(BackupError::file(data_dir)(error)),
    }
    let Some(name) = data_dir.file_name() else {
        return Err(refused(format!("{shown} must end in a directory name")));
    };
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(".restoring");
    let parent = data_dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(BackupError::file(parent))?;
    let staging = parent.join(hidden);
    if staging.exists() {
        // Left by a restore that was killed; a running one would hold the lock.
        DataDir::check_free(&staging)?;
        fs::remove_dir_all(&staging).map_err(BackupError::file(&staging))?;
    }
    Ok(staging)
}

/// Writes the directory; returns the number of originals that each restored collection lacks.
fn fill(
    backups: &dyn BackupStore,
    manifest: &BackupManifest,
    tenants: &[&TenantEntry],
    options: &RestoreOptions,
    staging: &Path,
) -> Result<HashMap<Uuid, u64>, BackupError> {
    let data = Arc::new(DataDir::open(staging, Arc::new(RealDisk))?);
    let catalog_path = staging.join(CATALOG_NAME);
    let import = Import::create(&catalog_path, manifest.catalog_format)?;
    for tenant in tenants {
        read_list(backups, &tenant.rows, |row| Ok(import.add(&row)?))?;
        read_files(backups, &tenant.files, |entry| write_file(backups, tenant, &entry, staging))?;
    }
    if options.tenant.is_none() {
        read_list(backups, manifest.keys.as_deref().unwrap_or_default(), |row| {
            Ok(import.add(&row)?)
        })?;
    }
    if let (Some(from), Some(to)) = (&options.tenant, &options.rename_to) {
        import.rename(from, to)?;
    }
    import.finish(Sequence(manifest.newest_sequence))?;
    let (clock, ids) = (Arc::new(SystemClock), Arc::new(RandomIds));
    let catalog = Catalog::open(&catalog_path, CatalogOptions::default(), clock, ids)?;
    catalog.verify()?;
    let store: Arc<dyn BlobStore> = Arc::new(LocalBlobs::new(Arc::clone(&data)));
    let log = CommitLog::new(Arc::clone(&store));
    let mut missing = HashMap::new();
    for tenant in catalog.tenants()? {
        // Backups by earlier releases may contain the manifest of a history that was rolled back.
        let head = log.checked_head(tenant.collection, catalog.head(tenant.collection)?);
        head.map_err(|error| BackupError::Damaged {
            file: format!("{}: tenant {} in backup {}", backups.name(), tenant.id, manifest.id),
            problem: error.to_string(),
        })?;
        let collection = tenant.collection;
        descriptors::write(&*store, &Descriptor { tenant, is_deleted: false })?;
        match missing_originals(&catalog, &store, collection) {
            Ok(count) => drop(missing.insert(collection.0, count)),
            // A start reports it too, and reads the other tenants.
            Err(error) => tracing::warn!(%collection, %error, "originals were not counted"),
        }
    }
    drop((catalog, log, store, data));
    RealDisk.sync_file_system(staging)?;
    Ok(missing)
}

/// Counts the originals that a restored collection needs and lacks.
fn missing_originals(
    catalog: &Catalog,
    store: &Arc<dyn BlobStore>,
    of: CollectionId,
) -> Result<u64, BackupError> {
    let expected = catalog.head(of)?;
    let collection = Collection::open(of, Arc::clone(store), Arc::new(RandomIds), 0, expected)?;
    let listing = store.list(&uploads::prefix(of))?;
    let mut originals = Originals::new(&listing);
    originals.see_unfinished(&catalog.moment()?, of)?;
    originals.see_sources(&collection.snapshot())?;
    Ok(originals.lost.len() as u64)
}

/// Restores one file of a tenant. Its name must be in the tenant's collection.
fn write_file(
    backups: &dyn BackupStore,
    tenant: &TenantEntry,
    entry: &FileEntry,
    staging: &Path,
) -> Result<(), BackupError> {
    let FileEntry(name, object) = entry;
    let id = CollectionId(tenant.collection);
    let is_own = ["c", "raw"].iter().any(|kind| name.starts_with(&format!("v1/{kind}/{id}/")));
    let key = Key::parse(name).ok().filter(|_| is_own).ok_or_else(|| BackupError::Damaged {
        file: format!("{}: list of files of tenant {}", backups.name(), tenant.name),
        problem: format!("{name:?} is not a file of this tenant"),
    })?;
    let path = staging.join(key.as_str());
    let parent = path.parent().unwrap_or(staging);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(parent);
    made.map_err(BackupError::file(parent))?;
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let mut file = file.map_err(BackupError::file(&path))?;
    backups
        .read_object(object, &mut |piece| file.write_all(piece).map_err(BackupError::file(&path)))
}

/// Renames the complete directory to its final name.
fn take_name(staging: &Path, data_dir: &Path) -> Result<(), BackupError> {
    // Replaces an empty directory, but nothing else.
    fs::rename(staging, data_dir).map_err(BackupError::file(data_dir))?;
    let parent = staging.parent().unwrap_or(Path::new("."));
    File::open(parent).and_then(|parent| parent.sync_all()).map_err(BackupError::file(parent))
}
