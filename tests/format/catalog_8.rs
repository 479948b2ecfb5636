//! Catalog format 8: sums of waiting jobs, of bytes and of sessions.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lodestone_catalog::job::{MetadataChange, NewJob, QueueLimits};
use lodestone_catalog::{Catalog, CatalogError, CatalogOptions, JobScope};
use lodestone_types::{
    CollectionId, ManualClock, SeededIds, SessionId, SourceDetail, SourceId, SourceKind,
    SubTenantId, TenantId, TenantMode, Timestamp,
};

use crate::are_written_now;

const NOW: Timestamp = Timestamp(1_700_000_000_000);

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format/catalog-8")
}

fn open(directory: &Path, options: CatalogOptions) -> Catalog {
    let path = directory.join("catalog.sqlite");
    let (clock, ids) = (Arc::new(ManualClock::new(NOW)), Arc::new(SeededIds::new(8)));
    Catalog::open(&path, options, clock, ids).unwrap()
}

fn job(collection: CollectionId, sub_tenant: &str, id: &str, size_bytes: u64) -> NewJob {
    NewJob {
        collection,
        sub_tenant: SubTenantId::parse(sub_tenant).unwrap(),
        source: SourceId::parse(id).unwrap(),
        kind: SourceKind::File,
        raw_key: format!("v1/raw/{collection}/{id}"),
        filename: format!("{id}.txt"),
        url: String::new(),
        content_type: "text/plain".into(),
        size_bytes,
        content_hash: [7; 32],
        tenant_metadata: MetadataChange::Keep,
        document_metadata: MetadataChange::Keep,
        known_version: None,
        uploaded_at: NOW,
        origin_at: None,
        detail: SourceDetail::default(),
    }
}

/// Writes three waiting jobs in two sub-tenants, and a conversation.
fn write(directory: &Path) {
    let catalog = open(directory, CatalogOptions::default());
    let name = TenantId::parse("a").unwrap();
    let a = catalog.create_tenant(name, TenantMode::Standard, None).unwrap().collection;
    for (sub_tenant, id, bytes) in [("north", "n1", 10), ("north", "n2", 20), ("south", "s", 5)] {
        catalog.submit(job(a, sub_tenant, id, bytes)).unwrap();
    }
    let (north, talk) = (SubTenantId::parse("north").unwrap(), SessionId::parse("talk").unwrap());
    catalog.append_turn(a, &north, &talk, "why?".into(), "because".into()).unwrap();
}

/// Writes the fixture on request; see `main.rs`.
#[test]
fn write_fixtures() {
    if !are_written_now(&fixture()) {
        return;
    }
    fs::create_dir(fixture()).unwrap();
    write(&fixture());
}

#[test]
fn sums_are_those_of_the_rows() {
    let root = tempfile::tempdir().unwrap();
    fs::copy(fixture().join("catalog.sqlite"), root.path().join("catalog.sqlite")).unwrap();
    let queue = QueueLimits { collection_jobs_max: 4, ..QueueLimits::default() };
    let catalog = open(root.path(), CatalogOptions { queue, ..CatalogOptions::default() });
    let a = catalog.tenants().unwrap()[0].collection;
    let bytes = |name| catalog.stored_bytes(a, &SubTenantId::parse(name).unwrap()).unwrap();
    assert_eq!((bytes("north"), bytes("south"), bytes("default")), (30, 5, 0));
    catalog.submit(job(a, "south", "s2", 1)).unwrap();
    let refused = catalog.submit(job(a, "south", "s3", 1)).unwrap_err();
    assert!(matches!(refused, CatalogError::QueueFull { .. }), "{refused}");
    assert_eq!(catalog.job_counts(&JobScope::Everywhere).unwrap().queued, 4);
    let (north, talk) = (SubTenantId::parse("north").unwrap(), SessionId::parse("talk").unwrap());
    assert_eq!(catalog.turns(a, &north, &talk, 9).unwrap().len(), 1);
}
