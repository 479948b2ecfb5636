//! Tests of attempts whose outcome cannot be recorded at first, and of attempts that end during a
//! poll.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use super::*;
use lodestone_catalog::job::{MetadataChange, NewJob};
use lodestone_catalog::{CatalogLog, CatalogOptions, NewWebhook};
use lodestone_io::store::testing::{Fault, FaultyBlobs, MemoryBlobs};
use lodestone_types::{
    BlockedReason, EventKind, Grant, KeyScope, ManualClock, PostFailure, RandomIds, Role,
    SourceDetail, SourceId, SourceKind, SubTenantId, TenantId, TenantMode, Timestamp,
};

/// A receiver that accepts and counts everything.
#[derive(Debug, Default)]
struct Taking(AtomicUsize);

impl WebhookClient for Taking {
    fn permits(&self, _: &WebUrl) -> Result<(), BlockedReason> {
        Ok(())
    }

    fn post(&self, _: &WebPost<'_>) -> Result<u16, PostFailure> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(200)
    }
}

/// Makes the event of a deletion due.
fn delete_a_source(catalog: &Catalog, tenant: &str, at: Timestamp) {
    let id = TenantId::parse(tenant).unwrap();
    let collection = catalog.create_tenant(id, TenantMode::Standard, None).unwrap().collection;
    let (sub_tenant, source) = (SubTenantId::default_name(), SourceId::parse("doc").unwrap());
    let job = NewJob {
        collection,
        sub_tenant: sub_tenant.clone(),
        source: source.clone(),
        kind: SourceKind::Text,
        raw_key: "raw/doc".into(),
        filename: String::new(),
        url: String::new(),
        content_type: String::new(),
        size_bytes: 10,
        content_hash: [7; 32],
        tenant_metadata: MetadataChange::Keep,
        document_metadata: MetadataChange::Keep,
        known_version: None,
        uploaded_at: at,
        origin_at: None,
        detail: SourceDetail::default(),
    };
    catalog.submit(job).unwrap();
    catalog.cancel_sources(collection, &sub_tenant, &[source]).unwrap();
}

/// Goal: a message sent while the catalog could not be written is sent once, and nothing else is
/// sent meanwhile. Method: the store of the catalog's log is unavailable.
#[test]
fn an_end_that_cannot_be_recorded_is_kept_and_nothing_is_sent_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(FaultyBlobs::new(Arc::new(MemoryBlobs::default())));
    let manual = Arc::new(ManualClock::new(Timestamp(1_750_000_000_000)));
    let (clock, ids): (Arc<dyn Clock>, Arc<dyn IdSource>) = (manual.clone(), Arc::new(RandomIds));
    let log = CatalogLog::open(store.clone(), ids.clone()).unwrap();
    let (path, options) = (directory.path().join("catalog"), CatalogOptions::default());
    let catalog = Catalog::open_with_log(&path, options, clock.clone(), ids.clone(), log).unwrap();
    let client = Arc::<Taking>::default();
    let webhooks = Webhooks::new(&catalog, client.clone(), &clock, &ids);
    let admin = Grant::new("test", Role::Admin, KeyScope::AllTenants);
    let new = NewWebhook {
        url: WebUrl::parse("https://hooks.example/").unwrap(),
        description: String::new(),
        kinds: vec![EventKind::SourceDeleted],
        scope: KeyScope::AllTenants,
    };
    let hook = catalog.create_webhook(&admin, new).unwrap().0;
    delete_a_source(&catalog, "acme", manual.now());
    delete_a_source(&catalog, "other", manual.now());
    let next = || webhooks.next("", &HashMap::new());
    let due = || match next().unwrap() {
        NextDelivery::Due(due) => due,
        wait => panic!("{wait:?}"),
    };
    let first = due();
    store.set(|_, _| Fault::Before);
    let is_made =
        catalog.create_tenant(TenantId::parse("third").unwrap(), TenantMode::Standard, None);
    assert!(is_made.is_err(), "the store of the log is away");
    webhooks.attempt(&first);
    manual.advance_millis(60_000);
    assert!(next().is_err(), "neither this event nor another one is sent");
    store.set(|_, _| Fault::None);
    manual.advance_millis(60_000);
    let second = due();
    assert_ne!(second.id, first.id);
    webhooks.attempt(&second);
    assert!(matches!(next(), Ok(NextDelivery::Wait(_))));
    assert_eq!(client.0.load(Ordering::SeqCst), 2, "each is sent once");
    let (rows, _) = catalog.delivery_log(&admin, &hook.id, 10, None).unwrap();
    assert!(rows.len() == 2 && rows.iter().all(|row| row.state == DeliveryState::Delivered));
}

/// A clock that runs a callback before its next reading.
#[derive(Default)]
struct Hooked(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl fmt::Debug for Hooked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hooked")
    }
}

impl Clock for Hooked {
    fn now(&self) -> Timestamp {
        let act = self.0.lock().take();
        act.into_iter().for_each(|act| act());
        Timestamp(1_750_000_000_000)
    }
}

/// Goal: an attempt that ends while the dispatcher asks for the next event does not leave it
/// asleep.
/// Method: the catalog reads the clock after the dispatcher has read the attempts in flight, and
/// before the catalog counts the wake-ups that it has seen.
#[test]
fn an_end_during_a_look_is_not_slept_over() {
    let directory = tempfile::tempdir().unwrap();
    let hooked = Arc::<Hooked>::default();
    let (clock, ids): (Arc<dyn Clock>, Arc<dyn IdSource>) = (hooked.clone(), Arc::new(RandomIds));
    let (path, options) = (directory.path().join("catalog"), CatalogOptions::default());
    let catalog = Catalog::open(&path, options, clock.clone(), ids.clone()).unwrap();
    let webhooks = Webhooks::new(&catalog, Arc::<Taking>::default(), &clock, &ids);
    let (watched, (ask, asked)) = (Arc::downgrade(&webhooks), channel());
    *hooked.0.lock() = Some(Box::new(move || {
        ask.send(()).unwrap();
        while watched.upgrade().is_some_and(|it| !it.senders.lock().is_stopping) {
            std::thread::yield_now();
        }
    }));
    webhooks.start();
    asked.recv().unwrap();
    let begun = Instant::now();
    webhooks.stop();
    assert!(begun.elapsed() < IDLE / 2, "{:?}", begun.elapsed());
    // The end of an attempt does the same.
    let sending = webhooks.senders.lock().sending.clone();
    webhooks.senders.lock().is_stopping = false;
    assert!(!webhooks.has_changed_since(&sending));
    webhooks.senders.lock().sending.insert("hook".to_owned(), vec![1]);
    assert!(webhooks.has_changed_since(&sending));
}
