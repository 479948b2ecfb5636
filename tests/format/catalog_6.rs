//! Catalog format 6: webhooks, and the events that wait for them.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lodestone_catalog::job::{ClaimLimits, Duty, MetadataChange, NewJob, Outcome, Settlement};
use lodestone_catalog::{Attempt, Catalog, CatalogOptions, NewWebhook, NextDelivery};
use lodestone_types::{
    DeliveryState, EventKind, KeyScope, ManualClock, SeededIds, SourceDetail, SourceId, SourceKind,
    SubTenantId, TenantGrant, TenantId, TenantMode, Timestamp, WebUrl, WebhookState,
};

use crate::are_written_now;

const NOW: Timestamp = Timestamp(1_700_000_000_000);
const URL: &str = "https://hooks.example/lodestone";

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format/catalog-6")
}

fn open(directory: &Path, now: Timestamp) -> Catalog {
    let path = directory.join("catalog.sqlite");
    let (clock, ids) = (Arc::new(ManualClock::new(now)), Arc::new(SeededIds::new(5)));
    Catalog::open(&path, CatalogOptions::default(), clock, ids).unwrap()
}

fn job(collection: lodestone_types::CollectionId, id: &str) -> NewJob {
    NewJob {
        collection,
        sub_tenant: SubTenantId::default_name(),
        source: SourceId::parse(id).unwrap(),
        kind: SourceKind::Text,
        raw_key: format!("v1/raw/{collection}/{id}"),
        filename: String::new(),
        url: String::new(),
        content_type: "text/plain".into(),
        size_bytes: 10,
        content_hash: [7; 32],
        tenant_metadata: MetadataChange::Keep,
        document_metadata: MetadataChange::Keep,
        known_version: None,
        uploaded_at: NOW,
        origin_at: None,
        detail: SourceDetail::default(),
    }
}

/// Writes a webhook that accepted one event, rejected one and has one pending, and a paused
/// webhook.
fn write(directory: &Path) {
    let catalog = open(directory, NOW);
    let operator = Catalog::operator_grant();
    let name = TenantId::parse("acme").unwrap();
    let collection = catalog.create_tenant(name.clone(), TenantMode::Standard, None).unwrap();
    let collection = collection.collection;
    let new = |scope| NewWebhook {
        url: WebUrl::parse(URL).unwrap(),
        description: "a search page".to_owned(),
        kinds: vec![EventKind::SourceSuccess, EventKind::SourceDeleted],
        scope,
    };
    let acme = KeyScope::Tenants(vec![TenantGrant { tenant: name, sub_tenants: None }]);
    catalog.create_webhook(&operator, new(acme)).unwrap();
    for id in ["taken", "refused"] {
        let sequence = catalog.submit(job(collection, id)).unwrap().sequence;
        let limits = ClaimLimits { jobs: 1, bytes: u64::MAX };
        catalog.claim(Duty::Process, limits).unwrap().unwrap();
        let outcome = Outcome::Published { chunks: 3 };
        catalog.settle(collection, vec![Settlement { sequence, outcome }], None).unwrap();
    }
    for (status, problem) in [(200, ""), (500, "the server answered 500")] {
        let next = catalog.next_delivery("", &HashMap::new()).unwrap();
        let NextDelivery::Due(due) = next else { panic!("nothing is due") };
        let attempt = Attempt { status: Some(status), problem: problem.into(), jitter: 20 };
        catalog.record_attempt(due.id, attempt).unwrap();
    }
    let refused = [SourceId::parse("refused").unwrap()];
    catalog.cancel_sources(collection, &SubTenantId::default_name(), &refused).unwrap();
    let (paused, _) = catalog.create_webhook(&operator, new(KeyScope::AllTenants)).unwrap();
    catalog.set_webhook_state(&operator, &paused.id, WebhookState::Paused).unwrap();
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
fn webhooks_and_their_events_go_on_where_they_stopped() {
    let root = tempfile::tempdir().unwrap();
    fs::copy(fixture().join("catalog.sqlite"), root.path().join("catalog.sqlite")).unwrap();
    let catalog = open(root.path(), NOW.plus_millis(60_000));
    let operator = Catalog::operator_grant();
    let mut webhooks = catalog.webhooks(&operator).unwrap();
    webhooks.sort_by_key(|webhook| webhook.scope.is_all_tenants());
    let [scoped, paused] = &webhooks[..] else { panic!("two webhooks: {webhooks:?}") };
    assert_eq!((scoped.url.as_str(), scoped.description.as_str()), (URL, "a search page"));
    assert_eq!(scoped.kinds, [EventKind::SourceSuccess, EventKind::SourceDeleted]);
    assert_eq!((scoped.pending, scoped.failing_since), (2, Some(NOW)));
    let acme = TenantId::parse("acme").unwrap();
    assert!(scoped.scope.allows_whole_tenant(&acme) && !scoped.scope.is_all_tenants());
    assert_eq!((paused.state, paused.scope.is_all_tenants()), (WebhookState::Paused, true));

    let (log, _) = catalog.delivery_log(&operator, &scoped.id, 10, None).unwrap();
    let log: Vec<_> = log.iter().map(|one| (one.kind, one.state, one.attempts)).collect();
    let expected = [
        (EventKind::SourceDeleted, DeliveryState::Pending, 0),
        (EventKind::SourceSuccess, DeliveryState::Pending, 1),
        (EventKind::SourceSuccess, DeliveryState::Delivered, 1),
    ];
    assert_eq!(log, expected);
    for kind in ["source.success", "source.deleted"] {
        let next = catalog.next_delivery("", &HashMap::new()).unwrap();
        let NextDelivery::Due(due) = next else { panic!("{kind} is due") };
        assert!(due.body.contains(kind) && due.body.contains("\"refused\""), "{}", due.body);
        assert_ne!(due.secret.expose(), &[0; 32]);
        let attempt = Attempt { status: Some(200), problem: String::new(), jitter: 0 };
        catalog.record_attempt(due.id, attempt).unwrap();
    }
}
