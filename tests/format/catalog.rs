//! The catalog of version 1.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use lodestone_catalog::descriptors::{self, Descriptor};
use lodestone_catalog::job::{ClaimLimits, Duty, MetadataChange, NewJob, Outcome, Settlement};
use lodestone_catalog::{Catalog, CatalogOptions, JobFilter, JobScope, Tenant, TenantLimits};
use lodestone_types::{
    CommitHead, JobErrorCode, JobStatus, ManualClock, SeededIds, Sequence, SessionId, SourceDetail,
    SourceId, SourceKind, SubTenantId, TenantId, TenantMode, Timestamp,
};
use uuid::Uuid;

use crate::are_written_now;
use crate::version_1::{TEXTS, copy, fixtures, parts, store};

const NOW: Timestamp = Timestamp(1_700_000_000_000);
const HEAD: CommitHead = CommitHead { version: 12, nonce: Uuid::from_u128(0xABCD) };

fn open(directory: &Path) -> Catalog {
    let path = directory.join("catalog.sqlite");
    let (clock, ids) = (Arc::new(ManualClock::new(NOW)), Arc::new(SeededIds::new(3)));
    Catalog::open(&path, CatalogOptions::default(), clock, ids).unwrap()
}

fn sub_tenant() -> SubTenantId {
    SubTenantId::parse("orchard").unwrap()
}

fn session() -> SessionId {
    SessionId::parse("talk").unwrap()
}

fn job(collection: lodestone_types::CollectionId, id: &str) -> NewJob {
    NewJob {
        collection,
        sub_tenant: sub_tenant(),
        source: SourceId::parse(id).unwrap(),
        kind: SourceKind::File,
        raw_key: format!("v1/raw/{collection}/{id}"),
        filename: format!("{id}.txt"),
        url: String::new(),
        content_type: "text/plain".into(),
        size_bytes: 10,
        content_hash: [7; 32],
        tenant_metadata: MetadataChange::Keep,
        document_metadata: MetadataChange::Keep,
        known_version: None,
        uploaded_at: NOW,
        origin_at: Some(Timestamp(5)),
        detail: SourceDetail::default(),
    }
}

/// Writes one tenant with a job in every state except running, a conversation, a head and a key.
pub fn write(directory: &Path) {
    let catalog = open(directory);
    let key = catalog.bootstrap_key().unwrap().expect("the first key");
    fs::write(directory.join("first-key"), key.expose()).unwrap();
    let name = TenantId::parse("acme").unwrap();
    let tenant = catalog.create_tenant(name, TenantMode::Standard, None).unwrap();
    let collection = tenant.collection;
    for id in ["done", "failed"] {
        catalog.submit(job(collection, id)).unwrap();
    }
    catalog.requeue_interrupted().unwrap();
    let claim =
        catalog.claim(Duty::Process, ClaimLimits { jobs: 10, bytes: u64::MAX }).unwrap().unwrap();
    let end = |sequence: Sequence, id: &str| match id {
        "done" => Settlement { sequence, outcome: Outcome::Published { chunks: 3 } },
        _ => {
            let message = "no text".to_owned();
            Settlement {
                sequence,
                outcome: Outcome::Rejected { error_code: JobErrorCode::NoText, message },
            }
        }
    };
    let ends = claim.jobs.iter().map(|job| end(job.sequence, job.source.as_str())).collect();
    catalog.settle(collection, ends, Some(HEAD)).unwrap();
    catalog.submit(job(collection, "waiting")).unwrap();
    catalog.fix_dimension(collection, 64).unwrap();
    let (question, answer) = ("Why?".to_owned(), "Because.".to_owned());
    catalog.append_turn(collection, &sub_tenant(), &session(), question, answer).unwrap();
}

fn copied() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::copy(fixtures().join("catalog.sqlite"), root.path().join("catalog.sqlite")).unwrap();
    root
}

#[test]
fn the_catalog_lists_what_it_was_given() {
    let root = copied();
    let catalog = open(root.path());
    let tenants = catalog.tenants().unwrap();
    let [tenant] = &tenants[..] else { panic!("one tenant: {tenants:?}") };
    assert_eq!((tenant.id.as_str(), tenant.mode), ("acme", TenantMode::Standard));
    assert_eq!((tenant.dimension, tenant.created_at), (Some(64), NOW));
    let collection = tenant.collection;
    assert_eq!(catalog.head(collection).unwrap(), Some(HEAD));
    let sub_tenants = catalog.sub_tenants(collection).unwrap();
    assert_eq!(sub_tenants, [SubTenantId::default_name(), sub_tenant()]);

    let scope = JobScope::Everywhere;
    let filter = JobFilter { scope, status: None, limit: 10, before: None };
    let jobs = catalog.list_jobs(&filter).unwrap().jobs;
    let listed: Vec<_> = jobs.iter().map(|row| (row.job.source.as_str(), row.status)).collect();
    let expected = [
        ("waiting", JobStatus::Queued),
        ("failed", JobStatus::Errored),
        ("done", JobStatus::Success),
    ];
    assert_eq!(listed, expected);
    assert_eq!(
        (jobs[1].error_code, jobs[1].message.as_str()),
        (Some(JobErrorCode::NoText), "no text")
    );
    assert_eq!(jobs[2].chunks, Some(3));
    assert_eq!(jobs[0].job.detail.title, "A title");

    let done = SourceId::parse("done").unwrap();
    let known = catalog.scopes_of(&done, &JobScope::Everywhere, None).unwrap();
    assert_eq!((known.len(), &known[0].sub_tenant), (1, &sub_tenant()));
    assert_eq!(catalog.tenants_not_known().unwrap(), std::slice::from_ref(&tenant.id));

    let turns = catalog.turns(collection, &sub_tenant(), &session(), 10).unwrap();
    let [turn] = &turns[..] else { panic!("one turn: {turns:?}") };
    assert_eq!((turn.question.as_str(), turn.answer.as_str()), ("Why?", "Because."));
    let key = fs::read_to_string(fixtures().join("first-key")).unwrap();
    assert!(catalog.authenticate(&key).is_ok());
    assert!(catalog.authenticate(&format!("{key}x")).is_err());
}

#[test]
fn the_catalog_goes_on_where_it_stopped() {
    let root = copied();
    let catalog = open(root.path());
    assert_eq!(catalog.requeue_interrupted().unwrap(), 0);
    let claim =
        catalog.claim(Duty::Process, ClaimLimits { jobs: 10, bytes: u64::MAX }).unwrap().unwrap();
    let ids: Vec<_> = claim.jobs.iter().map(|job| job.source.as_str()).collect();
    assert_eq!(ids, ["waiting"]);
    let newest = catalog.submit(job(claim.collection, "another")).unwrap();
    assert!(newest.sequence > claim.jobs[0].sequence, "sequences rise across versions");
}

/// A tenant as in its descriptor.
fn described() -> Descriptor {
    let tenant = Tenant {
        id: TenantId::parse("acme").unwrap(),
        mode: TenantMode::EMBEDDINGS,
        schema: None,
        collection: TEXTS,
        dimension: None,
        created_at: NOW,
        embedding_model: None,
        limits: TenantLimits::default(),
    };
    Descriptor { tenant, is_deleted: false }
}

/// Writes the fixture on request; see `main.rs`.
#[test]
fn write_descriptor_fixture() {
    let written = parts().join("v1");
    if !are_written_now(&written) {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    descriptors::write(&*store(root.path()), &described()).unwrap();
    copy(&root.path().join("v1"), &written);
}

#[test]
fn a_descriptor_is_read_as_it_was_written() {
    let root = tempfile::tempdir().unwrap();
    copy(&parts().join("v1"), &root.path().join("v1"));
    let store = store(root.path());
    assert_eq!(descriptors::collections(&*store).unwrap(), [TEXTS]);
    assert_eq!(descriptors::read(&*store, TEXTS).unwrap(), Some(described()));
}
