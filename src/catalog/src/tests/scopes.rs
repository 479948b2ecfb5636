//! Tenants and sub-tenants.

use super::*;
use crate::{CatalogError, JobScope, RestoredTenant, Retry, TenantLimits};
use lodestone_types::{CommitHead, Scope};
use lodestone_types::{ErrorKind, FieldType, SchemaField, TenantSchema};

fn schema() -> TenantSchema {
    let field_type = FieldType::Number;
    let field = SchemaField { key: "n".into(), field_type, searchable: false, filterable: true };
    TenantSchema { fields: vec![field] }
}

#[test]
fn a_tenant_is_created_once() {
    let fixture = Fixture::new();
    let created =
        fixture.catalog.create_tenant(tenant("a"), TenantMode::EMBEDDINGS, Some(schema())).unwrap();
    let again = fixture.catalog.create_tenant(tenant("a"), TenantMode::Standard, None);
    assert_eq!(again.unwrap_err().kind(), ErrorKind::Conflict);
    fixture.tenant("B");
    let fixture = fixture.reopen();
    let found = fixture.catalog.tenant(&tenant("a")).unwrap().unwrap();
    assert_eq!(found, created);
    assert_eq!(found.schema, Some(schema()));
    let names: Vec<_> = fixture.catalog.tenants().unwrap().into_iter().map(|t| t.id).collect();
    assert_eq!(names, [tenant("B"), tenant("a")]);
    assert_eq!(fixture.catalog.tenant(&tenant("c")).unwrap(), None);
}

#[test]
fn of_racing_creators_one_wins() {
    let fixture = Fixture::new();
    let created: usize = std::thread::scope(|scope| {
        let create = || fixture.catalog.create_tenant(tenant("a"), TenantMode::Standard, None);
        let callers: Vec<_> = (0..8).map(|_| scope.spawn(create)).collect();
        callers.into_iter().map(|caller| usize::from(caller.join().unwrap().is_ok())).sum()
    });
    assert_eq!(created, 1);
}

#[test]
fn the_first_dimension_holds() {
    let fixture = Fixture::new();
    let a = fixture.tenant("a").collection;
    assert_eq!(fixture.catalog.tenant(&tenant("a")).unwrap().unwrap().dimension, None);
    assert_eq!(fixture.catalog.fix_dimension(a, 8).unwrap(), 8);
    assert_eq!(fixture.catalog.fix_dimension(a, 9).unwrap(), 8);
    assert_eq!(fixture.catalog.tenant(&tenant("a")).unwrap().unwrap().dimension, Some(8));
}

#[test]
fn a_deleted_tenant_is_invisible_and_its_name_is_free() {
    let fixture = Fixture::new();
    let old = fixture.tenant("a").collection;
    let job = fixture.submit(old, "running");
    fixture.claim().unwrap();
    fixture.submit(old, "waiting");
    fixture.catalog.reserve_sequence(old, &sub("x"), &source("v"), None).unwrap();
    assert_eq!(fixture.catalog.begin_delete_tenant(&tenant("a")).unwrap(), old);
    let again = fixture.catalog.begin_delete_tenant(&tenant("a")).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::NotFound);

    assert_eq!(fixture.catalog.tenant(&tenant("a")).unwrap(), None);
    assert_eq!(fixture.status(old, "running"), None);
    assert!(fixture.catalog.live(&[job.sequence]).unwrap().is_empty());
    assert_eq!(fixture.claim(), None);
    let late = fixture.catalog.submit(fixture.job(old, "late")).unwrap_err();
    assert!(matches!(late, CatalogError::CollectionUnknown { .. }));

    let new = fixture.tenant("a").collection;
    assert_ne!(new, old);
    let fixture = fixture.reopen();
    assert!(fixture.catalog.interrupted().unwrap().is_empty());
    fixture.catalog.requeue_interrupted().unwrap();
    assert_eq!(fixture.catalog.collections_pending_delete().unwrap(), [old]);
    let in_use = fixture.catalog.finish_delete_collection(new).unwrap_err();
    assert!(matches!(in_use, CatalogError::CollectionInUse { .. }));
    fixture.catalog.finish_delete_collection(old).unwrap();
    assert!(fixture.catalog.collections_pending_delete().unwrap().is_empty());
    assert_eq!(fixture.catalog.sub_tenants(old).unwrap(), [sub("default")]);
}

#[test]
fn sub_tenants_come_with_the_first_write() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("a").collection;
    assert!(fixture.catalog.sub_tenant_exists(collection, &sub("default")).unwrap());
    assert!(!fixture.catalog.sub_tenant_exists(collection, &sub("x")).unwrap());
    let mut job = fixture.job(collection, "s");
    job.sub_tenant = sub("x");
    fixture.catalog.submit(job).unwrap();
    fixture.catalog.reserve_sequence(collection, &sub("b"), &source("v"), None).unwrap();
    fixture.catalog.reserve_sequence(collection, &sub("c"), &source("v"), None).unwrap();
    let names = fixture.catalog.sub_tenants(collection).unwrap();
    assert_eq!(names, ["default", "b", "c", "x"].map(sub));
}

/// Goal: a memory with the same id as a document is a separate source for retries, look-ups and
/// deletions, also when found in the segments of a rebuilt catalog.
#[test]
fn memories_are_known_apart_from_documents() {
    let fixture = Fixture::new();
    let (catalog, of) = (&fixture.catalog, fixture.tenant("a").collection);
    let (name, memories) = (sub("x"), sub("x").of_memories());
    let known = |id: &str| catalog.scopes_of(&source(id), &JobScope::Everywhere, None).unwrap();
    catalog.reserve_sequence(of, &memories, &source("s"), None).unwrap();
    catalog.add_known(of, vec![(memories.clone(), source("m"), Sequence(1), None)]).unwrap();
    assert_eq!((known("s"), known("m")), (Vec::new(), Vec::new()));
    assert!(!catalog.is_empty(of).unwrap() && catalog.sub_tenant_exists(of, &name).unwrap());

    let job = NewJob { sub_tenant: name.clone(), ..fixture.job(of, "s") };
    let job = catalog.submit(job).unwrap().sequence;
    fixture.claim().unwrap();
    let (error_code, message) = (JobErrorCode::CorruptFile, String::new());
    fixture.settle(of, job, Outcome::Rejected { error_code, message });
    catalog.reserve_sequence(of, &memories, &source("s"), None).unwrap();
    assert_eq!(catalog.retry(job).unwrap(), Retry::Open, "no later upload has replaced it");
    catalog.cancel_sources(of, &memories, &[source("s"), source("m")]).unwrap();
    assert_eq!(known("s"), [Scope { tenant: tenant("a"), sub_tenant: name.clone() }]);
    catalog.reserve_sequence(of, &memories, &source("s"), None).unwrap();
    catalog.delete_sub_tenant(of, &name).unwrap();
    assert!(catalog.is_empty(of).unwrap());
}

#[test]
fn a_sub_tenant_goes_with_its_jobs_and_no_others() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("a").collection;
    for name in ["x", "default"] {
        for n in 0..3 {
            let mut job = fixture.job(collection, &format!("s{n}"));
            job.sub_tenant = sub(name);
            fixture.catalog.submit(job).unwrap();
        }
    }
    let canceled = fixture.catalog.delete_sub_tenant(collection, &sub("x")).unwrap();
    assert_eq!((canceled.sequences.len(), canceled.raw_keys.len()), (3, 3));
    assert!(!fixture.catalog.sub_tenant_exists(collection, &sub("x")).unwrap());
    let again = fixture.catalog.delete_sub_tenant(collection, &sub("x")).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::NotFound);
    let default = fixture.catalog.delete_sub_tenant(collection, &sub("default")).unwrap_err();
    assert_eq!(default.kind(), ErrorKind::Invalid);
    assert_eq!(fixture.claim().unwrap().jobs.len(), 3);
}

#[test]
fn reserved_sequences_and_jobs_share_one_order() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("a").collection;
    let mut last = Sequence(0);
    for n in 0..6 {
        let next = match n % 2 {
            0 => {
                let name = sub("default");
                fixture.catalog.reserve_sequence(collection, &name, &source("v"), None).unwrap()
            }
            _ => fixture.submit(collection, "s").sequence,
        };
        assert!(next > last, "{next:?} {last:?}");
        last = next;
    }
    fixture.catalog.cancel_sources(collection, &sub("default"), &[source("s")]).unwrap();
    let fixture = fixture.reopen();
    assert!(fixture.submit(collection, "s").sequence > last, "not even after a deletion");
}

#[test]
fn a_lost_catalog_is_rebuilt() {
    let fixture = Fixture::new();
    let head = CommitHead { version: 12, nonce: uuid::Uuid::from_bytes([3; 16]) };
    let lost = Tenant {
        id: tenant("a"),
        collection: CollectionId(uuid::Uuid::from_bytes([5; 16])),
        mode: TenantMode::EMBEDDINGS,
        schema: Some(schema()),
        dimension: Some(16),
        created_at: Timestamp(77),
        embedding_model: Some("other".to_owned()),
        limits: TenantLimits { ingest_workers: Some(2), ..TenantLimits::default() },
    };
    let restored = RestoredTenant {
        tenant: lost.clone(),
        head: Some(head),
        sub_tenants: vec![sub("default"), sub("x")],
        newest_sequence: Sequence(500),
    };
    fixture.catalog.restore_tenant(restored.clone()).unwrap();
    let mut again = restored;
    let error = fixture.catalog.restore_tenant(again.clone()).unwrap_err();
    assert!(matches!(error, CatalogError::TenantExists { .. }), "{error}");
    again.tenant.id = tenant("b");
    let error = fixture.catalog.restore_tenant(again).unwrap_err();
    assert!(matches!(error, CatalogError::CollectionExists { .. }), "{error}");
    assert_eq!(*fixture.catalog.tenant(&lost.id).unwrap().unwrap(), lost);
    assert_eq!(fixture.catalog.head(lost.collection).unwrap(), Some(head));
    assert_eq!(fixture.catalog.sub_tenants(lost.collection).unwrap().len(), 2);
    assert_eq!(fixture.submit(lost.collection, "s").sequence, Sequence(501));
}
