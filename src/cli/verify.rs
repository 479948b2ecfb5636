//! `lodestone verify`: reads everything in a data directory and checks it.

use std::error::Error;
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use lodestone_catalog::{
    Catalog, CatalogOptions, FilePage, JobFilter, JobScope, Tenant, descriptors,
};
use lodestone_embed::{Embedder, Model, ModelFiles};
use lodestone_engine::{CATALOG_NAME, cached_store};
use lodestone_io::store::{BlobStore, LocalBlobs};
use lodestone_io::{DataDir, RealDisk};
use lodestone_storage::collection::{Collection, uploads};
use lodestone_storage::segment;
use lodestone_types::{CollectionId, JobStatus, RandomIds, SystemClock};

use crate::cli::arguments::VerifyOptions;
use crate::cli::counted;

/// Checks the catalog and every tenant. Nothing is changed but what a start would clean up.
pub fn run(options: &VerifyOptions) -> Result<(), Box<dyn Error>> {
    let dir = options.data_dir.display();
    let path = options.data_dir.join(CATALOG_NAME);
    if !options.data_dir.exists() {
        return Err(format!("the data directory {dir} does not exist").into());
    }
    if let Some(store) = cached_store(&options.data_dir)? {
        return Err(
            format!("{dir} is the cache of {store}, which lodestone store copy copies").into()
        );
    }
    if !path.exists() {
        return Err(format!("{dir} holds no {CATALOG_NAME}").into());
    }
    let data = Arc::new(DataDir::open(&options.data_dir, Arc::new(RealDisk))?);
    let store: Arc<dyn BlobStore> = Arc::new(LocalBlobs::new(data));
    Catalog::exists(&path, &*store)?;
    let (clock, ids) = (Arc::new(SystemClock), Arc::new(RandomIds));
    let catalog = Catalog::open(&path, CatalogOptions::default(), clock, ids)?;
    let loaded = options.model_dir.as_deref().map(fingerprint).transpose()?;
    let mut problems = 0;
    let mut tell = |about: &str, problem: &dyn Display| {
        problems += 1;
        println!("{about}: {problem}");
    };
    if let Err(error) = catalog.verify() {
        tell(CATALOG_NAME, &error);
    }
    for tenant in catalog.tenants()? {
        match verify_tenant(&catalog, &store, &tenant, loaded.as_deref()) {
            Ok(found) => println!("{}: {found}", tenant.id),
            Err(error) => tell(tenant.id.as_str(), &error),
        }
    }
    let known = catalog.collections()?;
    let described = descriptors::collections(&*store)?;
    for collection in described.into_iter().filter(|collection| !known.contains(collection)) {
        match descriptors::read(&*store, collection) {
            Ok(Some(found)) if !found.is_deleted => tell(
                found.tenant.id.as_str(),
                &format!(
                    "described in v1/t/{collection} and not in catalog.sqlite, which is older: \
                     the next start takes it up"
                ),
            ),
            Ok(_) => {}
            Err(error) => tell(&collection.to_string(), &error),
        }
    }
    match problems {
        0 => Ok(()),
        _ => Err(counted(problems, "problem").into()),
    }
}

/// Checks one tenant, the originals of its unfinished jobs, and its files.
fn verify_tenant(
    catalog: &Catalog,
    store: &Arc<dyn BlobStore>,
    tenant: &Tenant,
    loaded: Option<&str>,
) -> Result<String, Box<dyn Error>> {
    let id = tenant.collection;
    let expected = catalog.head(id)?;
    descriptors::read(&**store, id)?;
    let collection = Collection::open(id, Arc::clone(store), Arc::new(RandomIds), 0, expected)?;
    let found = verify_collection(&**store, &collection)?;
    if collection.snapshot().newest_sequence() > catalog.newest_sequence()? {
        let problem = "catalog.sqlite is older than its segments, as a backup is: uploads that \
            waited since then have to be repeated";
        return Err(problem.into());
    }
    let waiting = match verify_waiting(catalog, &**store, id)? {
        0 => String::new(),
        waiting => format!("; {} of unfinished jobs too", counted(waiting as u64, "original")),
    };
    let files = match verify_files(catalog, &**store, id)? {
        0 => String::new(),
        files => format!("; {} too", counted(files as u64, "uploaded file")),
    };
    let snapshot = collection.snapshot();
    let made_by = loaded.and_then(|loaded| snapshot.manifest.foreign_model(loaded));
    let model = made_by.map_or_else(String::new, |made_by| {
        format!("; made by another model ({made_by}): searched by words only, takes no uploads")
    });
    Ok(format!("{found}{waiting}{files}{model}"))
}

/// The fingerprint of the model in a directory.
fn fingerprint(dir: &Path) -> Result<String, Box<dyn Error>> {
    let model = ModelFiles::read(dir, &|path| std::fs::read(path))
        .and_then(|files| Model::load(&files, 1))
        .map_err(|error| format!("the model in {}: {error}", dir.display()))?;
    model.close();
    Ok(model.fingerprint().to_owned())
}

fn verify_collection(
    store: &dyn BlobStore,
    collection: &Collection,
) -> Result<String, Box<dyn Error>> {
    let snapshot = collection.snapshot();
    if let Some(damaged) = snapshot.damaged.first() {
        return Err(format!("segment {} is damaged", damaged.id()).into());
    }
    let without_list = collection.verify_source_lists()?;
    let (mut sources, mut originals) = (0, 0);
    for live in &snapshot.segments {
        segment::verify(&live.segment)?;
    }
    for found in snapshot.all_sources() {
        let record = found.record()?;
        sources += 1;
        if !record.raw_key.is_empty() {
            uploads::get(store, &record.raw_key)?;
            originals += 1;
        }
    }
    let segments = snapshot.segments.len();
    let rows = snapshot.rows();
    let note = match without_list {
        0 => String::new(),
        // Older releases wrote none; the server writes them when it first uses the tenant.
        missing => format!(" ({} without a source list yet)", counted(missing as u64, "segment")),
    };
    let found =
        [(segments as u64, "segment"), (rows, "row"), (sources, "source"), (originals, "original")];
    let found = found.map(|(count, thing)| counted(count, thing)).join(", ");
    // Vectors that clients sent are all in the segments.
    let without = match sources - originals {
        0 => String::new(),
        without => format!(" ({without} without: vectors of clients)"),
    };
    Ok(format!("{found}{without}: all sound{note}"))
}

/// Checks the originals of jobs that a start would go on with; returns how many there are.
fn verify_waiting(
    catalog: &Catalog,
    store: &dyn BlobStore,
    id: CollectionId,
) -> Result<usize, Box<dyn Error>> {
    let mut checked = 0;
    for status in [JobStatus::Queued, JobStatus::InProgress] {
        let mut before = None;
        loop {
            let scope = JobScope::Within(vec![(id, None)]);
            let filter = JobFilter { scope, status: Some(status), limit: 1000, before };
            let page = catalog.list_jobs(&filter)?;
            for row in page.jobs.iter().filter(|row| !row.job.raw_key.is_empty()) {
                let source = &row.job.source;
                uploads::get(store, &row.job.raw_key)
                    .map_err(|error| format!("the original of {source} that waits: {error}"))?;
                checked += 1;
            }
            before = page.next;
            if before.is_none() {
                break;
            }
        }
    }
    Ok(checked)
}

/// Checks the files that are no sources; returns how many there are.
fn verify_files(
    catalog: &Catalog,
    store: &dyn BlobStore,
    id: CollectionId,
) -> Result<usize, Box<dyn Error>> {
    let (mut checked, mut after) = (0, None);
    loop {
        let (sub_tenants, purpose) = (None, None);
        let page = FilePage { sub_tenants, purpose, after, is_ascending: true, limit: 1000 };
        let files = catalog.files(id, &page)?;
        let Some(last) = files.last() else { return Ok(checked) };
        after = Some(last.id.clone());
        for file in &files {
            uploads::get(store, &file.raw_key)
                .map_err(|error| format!("the uploaded file {}: {error}", file.id))?;
            checked += 1;
        }
    }
}
