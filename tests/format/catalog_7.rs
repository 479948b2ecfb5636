//! Catalog format 7: limits of vectors, requests and workers, and embedding models of tenants.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lodestone_catalog::{Catalog, CatalogOptions, TenantLimits};
use lodestone_types::{ManualClock, SeededIds, TenantId, TenantMode, Timestamp};

use crate::are_written_now;

const NOW: Timestamp = Timestamp(1_700_000_000_000);
const LIMITS: TenantLimits = TenantLimits {
    sources: Some(1),
    bytes: None,
    vectors: Some(3),
    requests_per_minute: Some(4),
    ingest_workers: Some(5),
};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format/catalog-7")
}

fn open(directory: &Path) -> Catalog {
    let path = directory.join("catalog.sqlite");
    let (clock, ids) = (Arc::new(ManualClock::new(NOW)), Arc::new(SeededIds::new(7)));
    Catalog::open(&path, CatalogOptions::default(), clock, ids).unwrap()
}

/// Writes a tenant with limits and a model, and one without.
fn write(directory: &Path) {
    let catalog = open(directory);
    let create = |name| {
        let name = TenantId::parse(name).unwrap();
        catalog.create_tenant(name, TenantMode::Standard, None).unwrap().collection
    };
    let limited = create("limited");
    create("plain");
    catalog.set_tenant_limits(limited, LIMITS).unwrap();
    catalog.set_embedding_model(limited, Some("wide".to_owned())).unwrap();
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
fn limits_and_models_are_as_they_were_set() {
    let root = tempfile::tempdir().unwrap();
    fs::copy(fixture().join("catalog.sqlite"), root.path().join("catalog.sqlite")).unwrap();
    let tenants = open(root.path()).tenants().unwrap();
    let [limited, plain] = &tenants[..] else { panic!("two tenants: {tenants:?}") };
    assert_eq!((limited.limits, limited.embedding_model.as_deref()), (LIMITS, Some("wide")));
    assert_eq!((plain.limits, &plain.embedding_model), (TenantLimits::default(), &None));
}
