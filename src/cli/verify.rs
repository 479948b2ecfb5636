//! `lodestone verify`: reads everything in a data directory and checks it.

use std::error::Error;
use std::sync::Arc;

use lodestone_catalog::{Catalog, CatalogOptions, JobFilter, JobScope, descriptors};
use lodestone_io::store::{BlobStore, LocalBlobs};
use lodestone_io::{DataDir, RealDisk};
use lodestone_storage::collection::{Collection, uploads};
use lodestone_storage::segment;
use lodestone_types::{CollectionId, JobStatus, RandomIds, SystemClock};

use crate::cli::arguments::VerifyOptions;
use crate::cli::counted;

/// Checks every tenant. Nothing is changed but what a start would clean up.
pub fn run(options: &VerifyOptions) -> Result<(), Box<dyn Error>> {
    if !options.data_dir.join("catalog.sqlite").exists() {
        return Err(format!("{} holds no catalog", options.data_dir.display()).into());
    }
    let data = Arc::new(DataDir::open(&options.data_dir, Arc::new(RealDisk))?);
    let path = data.root().join("catalog.sqlite");
    let (clock, ids) = (Arc::new(SystemClock), Arc::new(RandomIds));
    let catalog = Catalog::open(&path, CatalogOptions::default(), clock, ids)?;
    let store: Arc<dyn BlobStore> = Arc::new(LocalBlobs::new(data));
    let mut problems = 0;
    for tenant in catalog.tenants()? {
        let expected = catalog.head(tenant.collection)?;
        if let Err(error) = descriptors::read(&*store, tenant.collection) {
            problems += 1;
            println!("{}: {error}", tenant.id);
            continue;
        }
        let checked = verify_tenant(&store, tenant.collection, expected)
            .and_then(|found| Ok((found, verify_waiting(&catalog, &*store, tenant.collection)?)));
        match checked {
            Ok((found, 0)) => println!("{}: {found}", tenant.id),
            Ok((found, waiting)) => {
                let waiting = counted(waiting as u64, "original");
                println!("{}: {found}; {waiting} of unfinished jobs too", tenant.id);
            }
            Err(error) => {
                problems += 1;
                println!("{}: {error}", tenant.id);
            }
        }
    }
    match problems {
        0 => Ok(()),
        1 => Err("1 tenant has damage".into()),
        _ => Err(format!("{problems} tenants have damage").into()),
    }
}

fn verify_tenant(
    store: &Arc<dyn BlobStore>,
    id: CollectionId,
    expected: Option<lodestone_types::CommitHead>,
) -> Result<String, Box<dyn Error>> {
    let collection = Collection::open(id, Arc::clone(store), Arc::new(RandomIds), 0, expected)?;
    let snapshot = collection.snapshot();
    if let Some(damaged) = snapshot.damaged.first() {
        return Err(format!("segment {} is damaged", damaged.id()).into());
    }
    let without_list = collection.verify_source_lists()?;
    let mut originals = 0;
    for live in &snapshot.segments {
        segment::verify(&live.segment)?;
    }
    for found in snapshot.all_sources() {
        let record = found.record()?;
        if !record.raw_key.is_empty() {
            uploads::get(&**store, &record.raw_key)?;
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
    let found = [(segments as u64, "segment"), (rows, "row"), (originals, "original")];
    let found = found.map(|(count, thing)| counted(count, thing)).join(", ");
    Ok(format!("{found}: all sound{note}"))
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
