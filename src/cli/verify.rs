//! `lodestone verify`: reads and checks everything in a data directory or a bucket.
//!
//! A server may keep writing to the bucket meanwhile. Before anything is reported as missing or
//! damaged, it is looked up again in the newest version of its collection or of the catalog.

use std::error::Error;
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lodestone_catalog::{
    Catalog, CatalogOptions, FilePage, JobFilter, JobScope, Tenant, descriptors,
};
use lodestone_embed::{Embedder, Model, ModelFiles};
use lodestone_engine::backup::wait;
use lodestone_engine::{CATALOG_NAME, EngineError, cached_store, read_store};
use lodestone_fetch::bucket::BucketUrl;
use lodestone_io::store::{BlobStore, LocalBlobs};
use lodestone_io::{DataDir, RealDisk};
use lodestone_storage::collection::{Collection, CollectionCensus, VerifyEvent, uploads};
use lodestone_types::{ErrorKind, JobStatus, RandomIds, SystemClock};

use crate::cli::arguments::VerifyOptions;
use crate::cli::counted;
use crate::cli::progress::Progress;
use crate::cli::scratch::Scratch;

/// Number of attempts to find the catalog row of a tenant whose descriptor was just written, and
/// the time between them.
const LOOKS: usize = 5;
const LOOK: Duration = Duration::from_secs(1);
/// States of jobs that a server would resume when it starts.
const WAITING: [JobStatus; 2] = [JobStatus::Queued, JobStatus::InProgress];
/// Number of catalog rows read at a time.
const PAGE: usize = 1000;

/// Checks the catalog and every tenant. A data directory is changed only as opening its catalog
/// would; a bucket is not changed at all.
pub fn run(options: &VerifyOptions) -> Result<(), Box<dyn Error>> {
    match &options.store {
        None => in_directory(options),
        Some(url) => {
            let scratch = Scratch::new()?;
            in_bucket(options, url, scratch.path())
        }
    }
}

fn in_directory(options: &VerifyOptions) -> Result<(), Box<dyn Error>> {
    let dir = options.data_dir.display();
    let path = options.data_dir.join(CATALOG_NAME);
    if !options.data_dir.exists() {
        return Err(format!("the data directory {dir} does not exist").into());
    }
    if let Some(store) = cached_store(&options.data_dir)? {
        let problem = format!("{dir} is the cache of {store}: set that bucket with --store");
        return Err(problem.into());
    }
    if !path.exists() {
        return Err(format!("{dir} contains no {CATALOG_NAME}").into());
    }
    let data = Arc::new(DataDir::open(&options.data_dir, Arc::new(RealDisk))?);
    let store: Arc<dyn BlobStore> = Arc::new(LocalBlobs::new(data));
    Catalog::exists(&path, &*store)?;
    let (clock, ids) = (Arc::new(SystemClock), Arc::new(RandomIds));
    let catalog = Catalog::open(&path, CatalogOptions::default(), clock, ids)?;
    Verification::new(options, store, catalog)?.run()
}

fn in_bucket(
    options: &VerifyOptions,
    url: &BucketUrl,
    scratch: &Path,
) -> Result<(), Box<dyn Error>> {
    let (store, log) = read_store(url, &options.s3.opener()?, scratch)?;
    let entries = log.verify()?;
    let (clock, ids) = (Arc::new(SystemClock), Arc::new(RandomIds));
    let path = scratch.join(CATALOG_NAME);
    let catalog = Catalog::follow(&path, CatalogOptions::default(), clock, ids, &log)?;
    println!("v1/catalog: {entries} entries, none missing: all sound");
    Verification::new(options, store, catalog)?.run()
}

struct Verification {
    store: Arc<dyn BlobStore>,
    catalog: Catalog,
    /// Fingerprint of the server's model.
    loaded: Option<String>,
    report: Report,
}

/// Prints the report for the operator.
struct Report {
    catalog: Catalog,
    progress: Progress,
    problems: u64,
}

impl Report {
    fn line(&self, about: &str, text: &dyn Display) {
        self.progress.clear();
        println!("{about}: {text}");
    }

    fn problem(&mut self, about: &str, problem: &dyn Display) {
        self.problems += 1;
        self.line(about, problem);
    }

    /// Reports a problem of a tenant, unless the tenant is being deleted: its files disappear in
    /// any order.
    fn problem_of(&mut self, tenant: &Tenant, problem: &dyn Display) {
        let now = self.catalog.catch_up().and_then(|_| self.catalog.tenant_of(tenant.collection));
        if !matches!(now, Ok(None)) {
            self.problem(tenant.id.as_str(), problem);
        }
    }

    /// Reports a damaged file by its key, unless the problem names it already.
    fn damage(&mut self, tenant: &Tenant, key: &str, problem: &dyn Display) {
        match problem.to_string() {
            named if named.contains(key) => self.problem_of(tenant, &named),
            bare => self.problem_of(tenant, &format!("{key}: {bare}")),
        }
    }
}

impl Verification {
    fn new(
        options: &VerifyOptions,
        store: Arc<dyn BlobStore>,
        catalog: Catalog,
    ) -> Result<Self, Box<dyn Error>> {
        let loaded = options.model_dir.as_deref().map(fingerprint).transpose()?;
        let report = Report { catalog: catalog.clone(), progress: Progress::rare(), problems: 0 };
        Ok(Self { store, catalog, loaded, report })
    }

    fn run(mut self) -> Result<(), Box<dyn Error>> {
        if let Err(error) = self.catalog.verify() {
            self.report.problem(CATALOG_NAME, &error);
        }
        for tenant in self.catalog.tenants()? {
            let before = self.report.problems;
            match self.verify_tenant(&tenant) {
                Ok(found) if self.report.problems == before => {
                    self.report.line(tenant.id.as_str(), &found);
                }
                Ok(_) => {}
                // Every further request would time out on the store as well.
                Err(error) if self.is_away(&error) => return Err(error.into()),
                Err(error) => self.report.problem_of(&tenant, &error),
            }
        }
        self.verify_descriptors()?;
        self.report.progress.clear();
        match self.report.problems {
            0 => Ok(()),
            problems => Err(counted(problems, "problem").into()),
        }
    }

    /// Whether the error means that the bucket does not respond.
    fn is_away(&self, error: &EngineError) -> bool {
        self.store.is_shared() && error.kind() == ErrorKind::Unavailable
    }

    /// Checks one tenant, the originals of its unfinished jobs, and its files. Returns a summary.
    fn verify_tenant(&mut self, tenant: &Tenant) -> Result<String, EngineError> {
        let id = tenant.collection;
        let expected = self.catalog.head(id)?;
        descriptors::read(&*self.store, id)?;
        let (store, ids, report) = (Arc::clone(&self.store), Arc::new(RandomIds), &mut self.report);
        let verified = Collection::verify(id, store, ids, expected, &mut |seen| match seen {
            VerifyEvent::Damage { key, problem } => report.damage(tenant, key, problem),
            VerifyEvent::Progress(CollectionCensus { bytes, bytes_total, originals, .. }) => {
                let more = || format!(", {}", counted(*originals, "original"));
                report.progress.show(tenant.id.as_str(), *bytes, *bytes_total, more);
            }
        })?;
        let mut known = self.catalog.newest_sequence()?;
        if known < verified.newest_sequence && self.catalog.catch_up()? {
            known = self.catalog.newest_sequence()?;
        }
        if known < verified.newest_sequence {
            let problem = "catalog.sqlite is older than its segments, as after a restore: repeat \
                the uploads that were waiting since then";
            self.report.problem_of(tenant, &problem);
        }
        let waiting = match self.verify_waiting(tenant)? {
            0 => String::new(),
            waiting => format!("; also {} of unfinished jobs", counted(waiting, "original")),
        };
        let files = match self.verify_files(tenant)? {
            0 => String::new(),
            files => format!("; also {}", counted(files, "uploaded file")),
        };
        let loaded = self.loaded.as_deref();
        let made_by = loaded.and_then(|loaded| verified.manifest.foreign_model(loaded));
        let model = made_by.map_or_else(String::new, |made_by| {
            let so = "keyword search only, no uploads";
            format!("; made by another model ({made_by}): {so}")
        });
        Ok(format!("{}{waiting}{files}{model}", found(&verified.census)))
    }

    /// Checks the originals of jobs that a server would resume; returns the number of sound ones.
    fn verify_waiting(&mut self, tenant: &Tenant) -> Result<u64, EngineError> {
        let mut sound = 0;
        for status in WAITING {
            let mut before = None;
            loop {
                let scope = JobScope::Within(vec![(tenant.collection, None)]);
                let filter = JobFilter { scope, status: Some(status), limit: PAGE, before };
                let mut page = self.catalog.list_jobs(&filter)?;
                page.jobs.retain(|row| !row.job.raw_key.is_empty());
                let keys: Vec<&str> = page.jobs.iter().map(|row| &*row.job.raw_key).collect();
                let failed = uploads::verify_all(&*self.store, &keys)?;
                sound += (keys.len() - failed.len()) as u64;
                for (at, error) in failed {
                    let job = &page.jobs[at].job;
                    self.catalog.catch_up()?;
                    let now = self.catalog.job(&job.job_id)?;
                    if now.is_some_and(|now| {
                        WAITING.contains(&now.status) && now.job.raw_key == job.raw_key
                    }) {
                        let source = &job.source;
                        let problem = format!("the waiting original of {source}: {error}");
                        self.report.problem_of(tenant, &problem);
                    }
                }
                before = page.next;
                if before.is_none() {
                    break;
                }
            }
        }
        Ok(sound)
    }

    /// Checks the uploaded files that are not sources; returns the number of sound ones.
    fn verify_files(&mut self, tenant: &Tenant) -> Result<u64, EngineError> {
        let (id, mut sound, mut after) = (tenant.collection, 0, None);
        loop {
            let (sub_tenants, purpose) = (None, None);
            let page = FilePage { sub_tenants, purpose, after, is_ascending: true, limit: PAGE };
            let files = self.catalog.files(id, &page)?;
            let Some(last) = files.last() else { return Ok(sound) };
            after = Some(last.id.clone());
            let keys: Vec<&str> = files.iter().map(|file| &*file.raw_key).collect();
            let failed = uploads::verify_all(&*self.store, &keys)?;
            sound += (keys.len() - failed.len()) as u64;
            for (at, error) in failed {
                let file = &files[at];
                self.catalog.catch_up()?;
                let now = self.catalog.file(id, &file.id)?;
                if now.is_some_and(|now| now.raw_key == file.raw_key) {
                    let problem = format!("the uploaded file {}: {error}", file.id);
                    self.report.problem_of(tenant, &problem);
                }
            }
        }
    }

    /// Looks for tenants that have a descriptor but are not in the catalog. A server writes the
    /// descriptor first.
    fn verify_descriptors(&mut self) -> Result<(), EngineError> {
        let mut unknown = descriptors::collections(&*self.store)?;
        for look in 1.. {
            let known = self.catalog.collections()?;
            unknown.retain(|collection| !known.contains(collection));
            if unknown.is_empty() || look == LOOKS || !self.store.is_shared() {
                break;
            }
            wait(LOOK);
            self.catalog.catch_up()?;
        }
        for collection in unknown {
            match descriptors::read(&*self.store, collection) {
                Ok(Some(descriptors::Descriptor { tenant, is_deleted: false })) => {
                    let problem = format!(
                        "has a descriptor v1/t/{collection} but is not in catalog.sqlite, which is \
                         older: the next start adds it"
                    );
                    self.report.problem(tenant.id.as_str(), &problem);
                }
                Ok(_) => {}
                Err(error) => self.report.problem(&collection.to_string(), &error),
            }
        }
        Ok(())
    }
}

/// Summarizes the counts of a sound collection.
fn found(census: &CollectionCensus) -> String {
    let CollectionCensus { segments, without_list, rows, sources, originals, .. } = *census;
    let note = match without_list {
        0 => String::new(),
        // Older releases wrote none; the server adds them when it first uses the tenant.
        missing => format!(" ({} without a source list yet)", counted(missing, "segment")),
    };
    let counts =
        [(segments, "segment"), (rows, "row"), (sources, "source"), (originals, "original")];
    let counts = counts.map(|(count, thing)| counted(count, thing)).join(", ");
    // Client-supplied vectors have no originals; they are stored only in segments.
    let without = match sources.saturating_sub(originals) {
        0 => String::new(),
        without => format!(" ({without} without: client vectors)"),
    };
    format!("{counts}{without}: all sound{note}")
}

/// Computes the fingerprint of the model in a directory.
fn fingerprint(dir: &Path) -> Result<String, Box<dyn Error>> {
    let model = ModelFiles::read(dir, &|path| std::fs::read(path))
        .and_then(|files| Model::load(&files, 1))
        .map_err(|error| format!("the model in {}: {error}", dir.display()))?;
    model.close();
    Ok(model.fingerprint().to_owned())
}
