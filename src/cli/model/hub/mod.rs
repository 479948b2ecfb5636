//! Downloads models from a hub with the interface of the Hugging Face Hub.
//!
//! ```text
//! NAME, revision -> the hub's cache on this machine   its files as they are
//!                -> <endpoint>/api/models/NAME/revision/REVISION    commit, files, hashes
//!                   <endpoint>/NAME/resolve/COMMIT/FILE             bytes, from where they ended
//! ```
//! Files are downloaded into a directory beside the models, named for the commit. The directory
//! outlives a killed process, so that the next one can resume, and is removed once the model is
//! installed.
//!
//! - `known`: short names and prefixes; `place`: names, and the variables of the environment
//! - `cache`: the hub's cache; `client`: requests; `listing`: the files that are needed
//! - `download`: fetches and verifies one file

mod cache;
mod client;
mod download;
mod known;
mod listing;
mod place;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use lodestone_embed::ModelFiles;
use lodestone_fetch::Authorities;
use lodestone_io::{Disk, RealDisk};

use crate::cli::progress::Progress;
use crate::cli::transport::escaped;
use client::HubClient;
use download::{fetch, insist};
pub use known::{Known, of_weights};
use listing::{RemoteFile, Repository};
use place::HubPlace;

/// The branch used if no revision is given.
const REVISION: &str = "main";
/// Name of the file that a process locks while it downloads.
const LOCK: &str = "lock";
/// Name of the file that lists a model's modules, which refer to further files.
const MODULES: &str = "modules.json";
/// Free disk space to leave beside a download, in bytes.
const SPARE_BYTES: u64 = 64 << 20;

/// A model on a hub.
#[derive(Debug)]
pub struct HubModel {
    repository: String,
    revision: String,
    /// Its entry among the known models.
    pub known: Option<&'static Known>,
}

/// The files of a model on this machine.
#[derive(Debug)]
pub struct Fetched {
    /// Directory of the files.
    pub dir: PathBuf,
    /// Repository and commit: `OWNER/NAME@COMMIT`.
    pub origin: String,
    staging: Option<Staging>,
}

/// A download directory, locked by this process.
#[derive(Debug)]
struct Staging {
    dir: PathBuf,
    _lock: File,
}

impl HubModel {
    /// Parses a model name: a known short name, or OWNER/NAME.
    ///
    /// # Errors
    /// If the name is neither, or the revision is not valid.
    pub fn parse(name: &str, revision: Option<&str>) -> Result<Self, String> {
        let known = known::find(name);
        let repository = known.map_or(name, |known| known.repository);
        if !place::is_repository(repository) {
            return Err(format!(
                "{name}: neither a directory, nor a known model, nor OWNER/NAME on a model hub"
            ));
        }
        let pinned = known.and_then(|known| known.commit);
        let revision = revision.or(pinned).unwrap_or(REVISION);
        if !place::is_revision(revision) {
            return Err(format!("--revision {revision:?}: not a branch, a tag or a commit"));
        }
        Ok(Self { repository: repository.to_owned(), revision: revision.to_owned(), known })
    }

    /// Returns the name of the model's directory.
    pub fn name(&self) -> &str {
        self.repository.rsplit('/').next().unwrap_or_default()
    }

    /// Makes the files available on this machine, downloading missing ones into a directory in
    /// `beside`.
    ///
    /// # Errors
    /// One sentence that says what is missing, wrong or refused.
    pub fn fetch(&self, beside: &Path, authorities: &Authorities) -> Result<Fetched, String> {
        let place = HubPlace::of(|name| std::env::var_os(name))?;
        let Self { repository, revision, .. } = self;
        let cached = place.cache.as_deref().and_then(|at| cache::find(at, repository, revision));
        if let Some((dir, commit)) = cached {
            eprintln!("{repository} at {revision} is in the cache: {}", dir.display());
            let origin = format!("{repository}@{commit}");
            return Ok(Fetched { dir, origin, staging: None });
        }
        if place.is_offline {
            let cache = place.cache.unwrap_or_default();
            return Err(format!(
                "HF_HUB_OFFLINE is set, and {repository} at {revision} is not in {}",
                cache.display()
            ));
        }
        let client = HubClient::new(&place.endpoint, place.token, authorities);
        self.download(&client, beside)
            .map_err(|problem| format!("{repository} at {revision}: {problem}"))
    }

    fn download(&self, client: &HubClient, beside: &Path) -> Result<Fetched, String> {
        let Self { repository, revision, .. } = self;
        let progress = Progress::new();
        let list = format!("/api/models/{repository}/revision/{}?blobs=true", escaped(revision));
        let found = Repository::read(insist(&progress, || client.json(&list))?)?;
        let commit = &found.commit;
        progress.note(&format!("{repository} at {revision} is commit {commit}"));
        let staging = Staging::open(beside, &repository.replace('/', "--"), commit)?;
        let bring = |file: &RemoteFile| -> Result<PathBuf, String> {
            let path = staging.dir.join(&file.path);
            make_folder(&path)?;
            let address = format!("/{repository}/resolve/{commit}/{}", file.path);
            fetch(client, &address, file, &path, &progress)?;
            Ok(path)
        };
        let modules = match found.file(MODULES) {
            Some(file) => Some(read(&bring(file)?)?),
            None => None,
        };
        let router = modules.as_deref().and_then(ModelFiles::router_file);
        let router = match router.and_then(|name| found.file(name)) {
            Some(file) => Some(read(&bring(file)?)?),
            None => None,
        };
        let needed = found.needed(modules.as_deref(), router.as_deref())?;
        check_space(&staging.dir, &needed)?;
        for file in needed {
            bring(file)?;
        }
        let (dir, origin) = (staging.dir.clone(), format!("{repository}@{commit}"));
        Ok(Fetched { dir, origin, staging: Some(staging) })
    }
}

impl Fetched {
    /// Removes the downloaded files, once the model is installed.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn discard(self) -> Result<(), String> {
        let Some(Staging { dir, .. }) = self.staging else { return Ok(()) };
        std::fs::remove_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))
    }
}

impl Staging {
    fn open(beside: &Path, name: &str, commit: &str) -> Result<Self, String> {
        let dir = beside.join(format!(".{name}-{commit}"));
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", dir.display());
        std::fs::create_dir_all(&dir).map_err(|error| told(&error))?;
        let lock = File::create(dir.join(LOCK)).map_err(|error| told(&error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { dir, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(told(&"another process is downloading it")),
            Err(TryLockError::Error(error)) => Err(told(&error)),
        }
    }
}

/// Refuses a download that would fill the disk: both the remaining files and the installed copy
/// must fit.
fn check_space(dir: &Path, needed: &[&RemoteFile]) -> Result<(), String> {
    let all: u64 = needed.iter().filter_map(|file| file.size).sum();
    let here =
        |file: &&RemoteFile| std::fs::metadata(dir.join(&file.path)).map_or(0, |at| at.len());
    let here: u64 = needed.iter().map(here).sum();
    let wanted = all.saturating_sub(here).saturating_add(all).saturating_add(SPARE_BYTES);
    let free = RealDisk.free_bytes(dir).map_err(|error| error.to_string())?;
    match free < wanted {
        true => Err(format!(
            "{} has {free} bytes free, but {wanted} are needed for the download and the installed \
             copy",
            dir.display()
        )),
        false => Ok(()),
    }
}

fn make_folder(path: &Path) -> Result<(), String> {
    let folder = path.parent().expect("a file below a directory");
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}
