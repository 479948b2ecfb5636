//! The verbs `lodestone backup` and `lodestone restore`.
//!
//! If a server is running on the data directory, it makes the backup, as far as its settings allow,
//! while this command waits for it (`there`). Otherwise the command opens the directory itself.

mod there;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use lodestone_catalog::{Catalog, CatalogOptions, Tenant};
use lodestone_engine::backup::{
    BackupManifest, BackupStore, Listed, Location, Opener, RestoreOptions, TakeOptions, TakeParts,
    Unpaced, check, list, prune, restore, take, wait,
};
use lodestone_engine::settings::BucketSettings;
use lodestone_engine::{CATALOG_NAME, EngineError, cached_store};
use lodestone_io::store::{BlobStore, HeldBlobs, LocalBlobs};
use lodestone_io::{DataDir, IoError, RealDisk};
use lodestone_storage::collection::Collection;
use lodestone_types::{Clock, RandomIds, SystemClock, TenantId};

use crate::cli::{authorities, counted};
use there::make_there;

/// The default data directory of `lodestone serve`.
const DATA_DIR: &str = "data";

/// Back up the data of a running or stopped server, or manage backups.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct BackupOptions {
    #[command(subcommand)]
    verb: Option<BackupVerb>,
    /// Folder for the backup, or s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX.
    /// Data that an earlier backup there contains is not copied again.
    #[arg(required = true, value_name = "TO", value_parser = Location::parse)]
    to: Option<Location>,
    /// Back up only this tenant.
    #[arg(long)]
    tenant: Option<String>,
    /// Include the names, scopes and hashes of API keys. Off by default, because restoring an old
    /// backup would bring back keys that have been revoked since.
    #[arg(long, conflicts_with = "tenant")]
    with_keys: bool,
    /// Copy everything, even what earlier backups contain.
    #[arg(long)]
    full: bool,
    /// Data directory [default: data, unless a server is given].
    #[arg(long, env = "LODESTONE_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Address of the server that makes the backup; it refuses if its data directory is not the one
    /// given [default: http://127.0.0.1:8080, if a server uses the data directory].
    #[arg(long, env = "LODESTONE_SERVER")]
    server: Option<String>,
    /// Whether the server was given as a flag.
    #[arg(skip)]
    is_server_meant: bool,
    /// Admin key for all tenants, for a running server [default: LODESTONE_API_KEY, then
    /// LODESTONE_API_KEY_FILE].
    #[arg(long, value_name = "KEY", conflicts_with = "api_key_file")]
    api_key: Option<String>,
    /// File containing the API key.
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<PathBuf>,
    #[command(flatten)]
    store: StoreOptions,
}

impl BackupOptions {
    /// Records which flags were given: a server named by its flag takes precedence over a data
    /// directory named by a variable.
    pub fn note_flags(&mut self, is_flag: impl Fn(&str) -> bool) {
        self.is_server_meant = is_flag("server");
        if self.is_server_meant && !is_flag("data_dir") {
            self.data_dir = None;
        }
    }
}

/// Access to a bucket.
#[derive(Debug, Args)]
pub(super) struct StoreOptions {
    /// Endpoint of the S3-compatible store of an s3:// bucket [default: as for the AWS tools].
    #[arg(long, env = "LODESTONE_S3_ENDPOINT", value_name = "URL", global = true)]
    s3_endpoint: Option<String>,
    /// Region of the bucket [default: as for the AWS tools].
    #[arg(long, env = "LODESTONE_S3_REGION", value_name = "REGION", global = true)]
    s3_region: Option<String>,
    /// Whether the bucket name is part of the path instead of the host name [default: true with an
    /// endpoint].
    #[arg(long, env = "LODESTONE_S3_PATH_STYLE", value_name = "BOOLEAN", global = true)]
    s3_path_style: Option<bool>,
    /// PEM file with the certificate authorities trusted for the server and the store [default:
    /// Mozilla's, which are built in].
    #[arg(long, env = "LODESTONE_CA_FILE", value_name = "FILE", global = true)]
    ca_file: Option<PathBuf>,
}

impl StoreOptions {
    pub(super) fn opener(&self) -> Result<Opener, String> {
        let settings = BucketSettings {
            s3_endpoint: self.s3_endpoint.clone(),
            s3_region: self.s3_region.clone(),
            s3_path_style: self.s3_path_style,
        };
        Ok(Opener { settings, authorities: authorities(self.ca_file.as_deref())? })
    }

    fn open(&self, at: &Location) -> Result<Box<dyn BackupStore>, Box<dyn Error>> {
        Ok(self.opener()?.open(at, Box::new(wait))?)
    }

    fn create(&self, at: &Location) -> Result<Box<dyn BackupStore>, Box<dyn Error>> {
        Ok(self.opener()?.create(at, Box::new(wait))?)
    }
}

/// Operations on backups.
#[derive(Debug, Subcommand)]
pub enum BackupVerb {
    /// List backups, including interrupted and damaged ones.
    Ls {
        /// Folder or bucket URL.
        #[arg(value_parser = Location::parse)]
        to: Location,
    },
    /// Read every file of the backups and compare it with its hash.
    Verify {
        /// Folder or bucket URL.
        #[arg(value_parser = Location::parse)]
        to: Location,
        /// Verify only this backup.
        #[arg(long, value_name = "ID")]
        at: Option<String>,
    },
    /// Remove old backups, and the remains of interrupted ones.
    Prune {
        /// Folder or bucket URL.
        #[arg(value_parser = Location::parse)]
        to: Location,
        /// Number of complete backups to keep, the newest ones.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        keep: u32,
    },
}

/// Backup to restore, and the new data directory.
#[derive(Debug, Args)]
pub struct RestoreArguments {
    /// Folder of the backups, or a bucket URL.
    #[arg(value_parser = Location::parse)]
    from: Location,
    /// Data directory to create; it must not exist or be empty.
    #[arg(long, value_name = "NEW")]
    data_dir: PathBuf,
    /// Backup to restore, as named by `lodestone backup ls` [default: the newest of the whole
    /// server, or the newest that contains the tenant].
    #[arg(long, value_name = "ID")]
    at: Option<String>,
    /// Restore only this tenant.
    #[arg(long)]
    tenant: Option<String>,
    /// New name for the tenant.
    #[arg(long = "as", value_name = "NAME", requires = "tenant")]
    rename_to: Option<String>,
    #[command(flatten)]
    store: StoreOptions,
}

/// Makes a backup, or runs an operation on existing ones.
pub fn run(options: &BackupOptions) -> Result<(), Box<dyn Error>> {
    match (&options.verb, &options.to) {
        (Some(BackupVerb::Ls { to }), _) => list_all(&*options.store.open(to)?),
        (Some(BackupVerb::Verify { to, at }), _) => {
            verify(&*options.store.open(to)?, at.as_deref())
        }
        (Some(BackupVerb::Prune { to, keep }), _) => {
            let pruned = prune(&*options.store.create(to)?, *keep as usize, SystemClock.now())?;
            let (removed, files) = (pruned.removed.len() as u64, pruned.files);
            let (removed, files) = (counted(removed, "backup"), counted(files, "file"));
            println!("{removed} removed with {files}, {} kept", pruned.kept);
            Ok(())
        }
        (None, Some(to)) => make(options, to),
        (None, None) => Err("missing the folder or bucket for the backup".into()),
    }
}

fn make(options: &BackupOptions, to: &Location) -> Result<(), Box<dyn Error>> {
    let tenant = options.tenant.as_deref().map(TenantId::parse).transpose()?;
    let choices = TakeOptions { tenant, with_keys: options.with_keys, is_full: options.full };
    let data_dir = match (&options.data_dir, &options.server) {
        (Some(data_dir), _) => data_dir.as_path(),
        (None, None) => Path::new(DATA_DIR),
        // The server may run on another machine or in a container.
        (None, Some(_)) => return make_there(options, to, None, &choices),
    };
    if !data_dir.join(CATALOG_NAME).exists() {
        let dir = data_dir.display();
        return Err(format!(
            "{dir} contains no {CATALOG_NAME}: choose another with --data-dir, or a running server \
             with --server"
        )
        .into());
    }
    if options.is_server_meant {
        return make_there(options, to, Some(&DataDir::identity(data_dir)?), &choices);
    }
    match DataDir::open(data_dir, Arc::new(RealDisk)) {
        Ok(_) if cached_store(data_dir)?.is_some() => {
            let dir = data_dir.display();
            Err(format!(
                "{dir} is the cache of a bucket: start its server with --backup-to instead"
            )
            .into())
        }
        Ok(data) => {
            let made = make_here(data, &*options.store.create(to)?, &choices)?;
            let bytes = made.tenants.iter().map(|tenant| tenant.bytes).sum();
            made.damage.iter().for_each(|damage| println!("{damage}"));
            told(&made.id, made.tenants.len(), bytes, made.new_bytes, made.new_files);
            let left_out = made.left_out.iter().map(|one| (&*one.tenant, &*one.reason));
            refuse_lacking(left_out, made.missing_originals())
        }
        Err(IoError::InUse { .. }) => {
            let of = DataDir::identity(data_dir)?;
            make_there(options, to, Some(&of), &choices)
        }
        Err(error) => Err(error.into()),
    }
}

fn told(id: &str, tenants: usize, bytes: u64, new_bytes: u64, new_files: u64) {
    let (tenants, files) = (counted(tenants as u64, "tenant"), counted(new_files, "file"));
    println!("{id}: {tenants}, {bytes} bytes; {files} and {new_bytes} bytes are new");
}

/// Prints the tenants that are not in a backup and those without all originals; an error if there
/// are any.
fn refuse_lacking<'a>(
    left_out: impl Iterator<Item = (&'a str, &'a str)>,
    missing_originals: impl Iterator<Item = (&'a str, u64)>,
) -> Result<(), Box<dyn Error>> {
    let (mut tenants, mut originals) = (0, 0);
    for (tenant, reason) in left_out {
        println!("{tenant}: not in this backup: {reason}");
        tenants += 1;
    }
    for (tenant, count) in missing_originals {
        println!("{tenant}: not in this backup: {}", counted(count, "original"));
        originals += count;
    }
    match lacking(tenants, originals) {
        None => Ok(()),
        Some(lacking) => Err(format!("the backup lacks {lacking}").into()),
    }
}

/// Names what a backup lacks; `None` if nothing.
fn lacking(tenants: u64, originals: u64) -> Option<String> {
    let counts = [(tenants, "tenant"), (originals, "original")];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let lacking: Vec<String> = counts.map(|(count, thing)| counted(count, thing)).collect();
    (!lacking.is_empty()).then(|| lacking.join(" and "))
}

/// Backs up a data directory that no server is using.
fn make_here(
    data: DataDir,
    backups: &dyn BackupStore,
    choices: &TakeOptions,
) -> Result<BackupManifest, Box<dyn Error>> {
    let path = data.root().join(CATALOG_NAME);
    let local: Arc<dyn BlobStore> = Arc::new(LocalBlobs::new(Arc::new(data)));
    let held = Arc::new(HeldBlobs::new(local));
    let store: Arc<dyn BlobStore> = Arc::clone(&held) as _;
    let (clock, ids) = (Arc::new(SystemClock), Arc::new(RandomIds));
    let options = CatalogOptions::default();
    let catalog = Catalog::open(&path, options, Arc::clone(&clock) as _, ids)?;
    let open = |tenant: &Tenant| -> Result<Arc<Collection>, EngineError> {
        let (id, ids) = (tenant.collection, Arc::new(RandomIds));
        let expected = catalog.head(id)?;
        Ok(Arc::new(Collection::open(id, Arc::clone(&store), ids, 0, expected)?))
    };
    let parts =
        TakeParts { catalog: &catalog, open: &open, store: &held, clock: &*clock, pace: &Unpaced };
    Ok(take(&parts, backups, choices)?)
}

fn list_all(backups: &dyn BackupStore) -> Result<(), Box<dyn Error>> {
    for listed in list(backups)? {
        match listed {
            Listed::Finished(made) => {
                let sum = |of: fn(&lodestone_engine::backup::TenantEntry) -> u64| {
                    made.tenants.iter().map(of).sum::<u64>()
                };
                let tenants = counted(made.tenants.len() as u64, "tenant");
                let sources = counted(sum(|tenant| tenant.sources), "source");
                let chunks = counted(sum(|tenant| tenant.chunks), "chunk");
                let (bytes, new_bytes) = (sum(|tenant| tenant.bytes), made.new_bytes);
                let keys = if made.keys.is_some() { ", keys" } else { "" };
                let originals: u64 = made.missing_originals().map(|(_, count)| count).sum();
                let part = match (lacking(made.left_out.len() as u64, originals), made.is_whole) {
                    (Some(lacking), _) => format!("; lacks {lacking}"),
                    (None, false) => "; single tenant".to_owned(),
                    (None, true) => String::new(),
                };
                println!(
                    "{}  {tenants}, {sources}, {chunks}{keys}, {bytes} bytes, {new_bytes} of them \
                     new{part}",
                    made.id
                );
            }
            Listed::CutOff(id) => println!("{id}  incomplete or in progress: cannot be restored"),
            Listed::Damaged(id, error) => println!("{id}  damaged: {error}"),
        }
    }
    Ok(())
}

fn verify(backups: &dyn BackupStore, at: Option<&str>) -> Result<(), Box<dyn Error>> {
    let checked = check(backups, at)?;
    for problem in &checked.problems {
        println!("{problem}");
    }
    for (id, tenants, originals) in &checked.lacking {
        let lacking = lacking(*tenants, *originals).unwrap_or_default();
        println!("{id} lacks {lacking}, which were lost or damaged when it was made");
    }
    for id in &checked.uncounted {
        println!(
            "{id} was made by an earlier release, which did not count missing originals: restoring \
             it counts them"
        );
    }
    let (backups, files) = (counted(checked.backups, "backup"), counted(checked.files, "file"));
    match checked.problems.len() as u64 {
        0 => {
            println!("{backups}, {files}, {} bytes: all sound", checked.bytes);
            Ok(())
        }
        problems => Err(counted(problems, "problem").into()),
    }
}

/// Restores a backup into a new data directory.
pub fn run_restore(arguments: &RestoreArguments) -> Result<(), Box<dyn Error>> {
    let options = RestoreOptions {
        at: arguments.at.clone(),
        tenant: arguments.tenant.as_deref().map(TenantId::parse).transpose()?,
        rename_to: arguments.rename_to.as_deref().map(TenantId::parse).transpose()?,
    };
    let data_dir = std::path::absolute(&arguments.data_dir)?;
    let (manifest, tenants) =
        restore(&*arguments.store.open(&arguments.from)?, &options, &data_dir)?;
    let count = counted(tenants.len() as u64, "tenant");
    println!("{}: {count} restored to {}", manifest.id, data_dir.display());
    if manifest.keys.is_none() || options.tenant.is_some() {
        println!("API keys were not restored: the next start creates an admin key");
    }
    let is_wanted = |name: &str| options.tenant.as_ref().is_none_or(|one| one.as_str() == name);
    let left_out = manifest.left_out.iter().map(|one| (&*one.tenant, &*one.reason));
    refuse_lacking(
        left_out.filter(|(name, _)| is_wanted(name)),
        manifest.missing_originals().filter(|(name, _)| is_wanted(name)),
    )
}
