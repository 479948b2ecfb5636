//! Goal: every event is reported once it has happened and never before, in order per source, and a
//! failing receiver costs nobody else anything.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;
use serde_json::{Value, json};

use super::{Fixture, PUBLISHED, rejected, source, sub, tenant};
use crate::{Attempt, CatalogError, DueDelivery, NewWebhook, NextDelivery, Webhook};
use lodestone_types::{
    Clock, CollectionId, DeliveryState, EventKind, Grant, KeyScope, Role, SubTenantId, TenantGrant,
    Timestamp, WebUrl, WebhookState, limits,
};

const HOUR: u64 = 3_600_000;

fn grant(scope: KeyScope) -> Grant {
    Grant::new("key", Role::Admin, scope)
}

fn all() -> Grant {
    grant(KeyScope::AllTenants)
}

fn within(entries: &[(&str, Option<&str>)]) -> KeyScope {
    let entry = |(name, part): &(&str, Option<&str>)| TenantGrant {
        tenant: tenant(name),
        sub_tenants: part.map(|name| vec![sub(name)]),
    };
    KeyScope::Tenants(entries.iter().map(entry).collect())
}

fn ok() -> Attempt {
    Attempt { status: Some(200), problem: String::new(), jitter: 20 }
}

fn refused() -> Attempt {
    Attempt { status: Some(500), problem: "the server answered 500".into(), jitter: 20 }
}

impl Fixture {
    fn hook_for(&self, scope: KeyScope, kinds: &[EventKind]) -> Webhook {
        let url = WebUrl::parse("https://hooks.example/").unwrap();
        let new = NewWebhook { url, description: String::new(), kinds: kinds.to_vec(), scope };
        self.catalog.create_webhook(&all(), new).unwrap().0
    }

    fn hook(&self) -> Webhook {
        self.hook_for(KeyScope::AllTenants, &EventKind::ALL)
    }

    /// Runs a job of a source to its end.
    fn end(&self, collection: CollectionId, name: &str, outcome: crate::job::Outcome) {
        let sequence = self.submit(collection, name).sequence;
        self.claim().unwrap();
        self.settle(collection, sequence, outcome);
    }

    fn delete(&self, collection: CollectionId, name: &str) {
        let default = SubTenantId::default_name();
        self.catalog.cancel_sources(collection, &default, &[source(name)]).unwrap();
    }

    fn next(&self) -> NextDelivery {
        self.catalog.next_delivery("", &HashMap::new()).unwrap()
    }

    fn due(&self) -> Box<DueDelivery> {
        match self.next() {
            NextDelivery::Due(due) => due,
            wait => panic!("{wait:?}"),
        }
    }

    fn record(&self, id: u64, attempt: Attempt) -> DeliveryState {
        self.catalog.record_attempt(id, attempt).unwrap().unwrap()
    }

    /// Delivers everything that is due; returns kinds and sources in the order of arrival.
    fn deliver(&self) -> Vec<(String, String)> {
        let mut told = Vec::new();
        while let NextDelivery::Due(due) = self.next() {
            let body: Value = serde_json::from_str(&due.body).unwrap();
            let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
            told.push((text("type"), text("file_id")));
            assert_eq!(body["id"], due.event.as_str());
            assert_eq!(self.record(due.id, ok()), DeliveryState::Delivered);
        }
        told
    }

    fn hook_now(&self, id: &str) -> Webhook {
        self.catalog.webhook(&all(), id).unwrap().0
    }

    fn sql(&self, sql: &str) -> i64 {
        let connection = Connection::open(self.path()).unwrap();
        connection.execute_batch(sql).unwrap();
        connection.query_row("SELECT count(*) FROM deliveries", [], |row| row.get(0)).unwrap()
    }
}

fn told(events: &[(&str, &str)]) -> Vec<(String, String)> {
    events.iter().map(|(kind, name)| ((*kind).to_owned(), (*name).to_owned())).collect()
}

#[test]
fn nothing_is_written_where_nobody_listens() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("acme").collection;
    fixture.end(collection, "a", PUBLISHED);
    fixture.delete(collection, "a");
    assert_eq!(fixture.sql(""), 0);
    fixture.hook();
    assert_eq!(fixture.next(), NextDelivery::Wait(None), "what was before is not told");
}

#[test]
fn messages_say_what_became_of_a_source() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("acme").collection;
    fixture.hook();
    let job = fixture.submit(collection, "a");
    fixture.claim().unwrap();
    fixture.settle(collection, job.sequence, PUBLISHED);
    let due = fixture.due();
    let body: Value = serde_json::from_str(&due.body).unwrap();
    let expected = json!({
        "id": due.event, "type": "source.success", "created_at": "1000.000", "tenant_id": "acme",
        "sub_tenant_id": "default", "file_id": "a", "job_id": job.job_id, "chunk_count": 3,
    });
    assert_eq!(body, expected);
    fixture.deliver();
    fixture.end(collection, "b", rejected());
    let body: Value = serde_json::from_str(&fixture.due().body).unwrap();
    assert_eq!((&body["type"], &body["file_id"]), (&json!("source.errored"), &json!("b")));
    assert_eq!((&body["error_code"], &body["message"]), (&json!("NO_TEXT"), &json!("no text")));
}

#[test]
fn a_queue_is_drained_when_its_last_job_ends_or_is_deleted() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("acme").collection;
    fixture.hook_for(KeyScope::AllTenants, &[EventKind::JobsDrained]);
    let (a, b) = (fixture.submit(collection, "a"), fixture.submit(collection, "b"));
    fixture.claim().unwrap();
    fixture.settle(collection, a.sequence, PUBLISHED);
    assert_eq!(fixture.deliver(), []);
    fixture.settle(collection, b.sequence, rejected());
    assert_eq!(fixture.deliver(), told(&[("jobs.drained", "")]));
    fixture.delete(collection, "a");
    assert_eq!(fixture.deliver(), [], "no job has ended");
    fixture.submit(collection, "c");
    fixture.delete(collection, "c");
    assert_eq!(fixture.deliver(), told(&[("jobs.drained", "")]));
    // A failure that is retried is not an end.
    let d = fixture.submit(collection, "d");
    fixture.claim().unwrap();
    fixture.settle(collection, d.sequence, super::faulted());
    assert_eq!(fixture.deliver(), []);
}

#[test]
fn events_of_a_source_keep_their_order_and_delay_no_other() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("acme").collection;
    fixture.hook_for(KeyScope::AllTenants, &[EventKind::SourceSuccess, EventKind::SourceDeleted]);
    fixture.end(collection, "a", PUBLISHED);
    let first = fixture.due();
    assert_eq!(fixture.record(first.id, refused()), DeliveryState::Pending);
    fixture.delete(collection, "a");
    fixture.end(collection, "a", PUBLISHED);
    fixture.end(collection, "b", PUBLISHED);
    assert_eq!(fixture.deliver(), told(&[("source.success", "b")]), "a waits");
    // A restart in between changes nothing.
    let fixture = fixture.reopen();
    assert_eq!(fixture.deliver(), []);
    fixture.clock.advance_millis(5_000);
    let expected = [("source.success", "a"), ("source.deleted", "a"), ("source.success", "a")];
    assert_eq!(fixture.due().event, first.event, "the same event again");
    assert_eq!(fixture.deliver(), told(&expected));
}

#[test]
fn an_event_under_way_keeps_its_source_and_a_second_one_goes_beside_it() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("acme").collection;
    let hook = fixture.hook_for(KeyScope::AllTenants, &[EventKind::SourceSuccess]);
    ["a", "b", "c"].iter().for_each(|name| fixture.end(collection, name, PUBLISHED));
    fixture.end(collection, "a", PUBLISHED);
    let mut sending = HashMap::new();
    let mut ids = Vec::new();
    for _ in 0..limits::WEBHOOK_SENDERS_EACH {
        let NextDelivery::Due(due) = fixture.catalog.next_delivery(&hook.id, &sending).unwrap()
        else {
            panic!("nothing is due")
        };
        ids.push(due.id);
        sending.insert(hook.id.clone(), ids.clone());
    }
    ids.dedup();
    assert_eq!(ids.len(), limits::WEBHOOK_SENDERS_EACH);
    let next = fixture.catalog.next_delivery(&hook.id, &sending).unwrap();
    assert_eq!(next, NextDelivery::Wait(None), "no more at once");
    fixture.record(ids[0], refused());
    sending.insert(hook.id.clone(), vec![ids[1]]);
    let next = fixture.catalog.next_delivery(&hook.id, &sending).unwrap();
    assert_eq!(next, NextDelivery::Wait(None), "one at a time while it fails");
}

#[test]
fn a_receiver_that_is_down_is_asked_ever_less_and_given_up_after_days() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("acme").collection;
    let hook = fixture.hook_for(KeyScope::AllTenants, &[EventKind::SourceSuccess]);
    fixture.end(collection, "a", PUBLISHED);
    let begun = fixture.clock.now().0;
    let mut attempts = 0;
    let mut last_pause = 0;
    loop {
        let due = fixture.due();
        attempts += 1;
        if fixture.record(due.id, refused()) == DeliveryState::GivenUp {
            break;
        }
        let NextDelivery::Wait(Some(at)) = fixture.next() else { panic!("due at once") };
        let pause = at.0 - fixture.clock.now().0;
        assert!(pause >= last_pause && pause <= 6 * HOUR, "{pause} after {last_pause}");
        last_pause = pause;
        fixture.clock.advance_millis(pause - 1);
        assert!(matches!(fixture.next(), NextDelivery::Wait(_)));
        fixture.clock.advance_millis(1);
    }
    assert!((18..=26).contains(&attempts), "{attempts} attempts");
    let hours = (fixture.clock.now().0 - begun) / HOUR;
    assert!((60..=72).contains(&hours), "given up after {hours} hours");
    let now = fixture.hook_now(&hook.id);
    assert_eq!((now.state, now.failing_since), (WebhookState::Disabled, Some(Timestamp(begun))));
    fixture.end(collection, "b", PUBLISHED);
    let now = fixture.hook_now(&hook.id);
    assert_eq!((now.pending, now.dropped), (0, 1), "counted, not kept");
    let active = fixture.catalog.set_webhook_state(&all(), &hook.id, WebhookState::Active);
    assert_eq!(active.unwrap().failing_since, None);
    fixture.end(collection, "c", PUBLISHED);
    assert_eq!(fixture.deliver(), told(&[("source.success", "c")]));
    let (log, _) = fixture.catalog.delivery_log(&all(), &hook.id, 10, None).unwrap();
    let states: Vec<_> = log.iter().map(|row| (row.state, row.attempts, row.status)).collect();
    let given_up = (DeliveryState::GivenUp, attempts, Some(500));
    assert_eq!(states, [(DeliveryState::Delivered, 1, Some(200)), given_up]);
    assert_eq!(log[1].problem, "the server answered 500");
}

#[test]
fn a_down_receiver_is_not_asked_once_for_each_event() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("acme").collection;
    let hook = fixture.hook_for(KeyScope::AllTenants, &[EventKind::SourceSuccess]);
    (0..6).for_each(|n| fixture.end(collection, &format!("s{n}"), PUBLISHED));
    let mut pauses = Vec::new();
    for _ in 0..3 {
        let due = fixture.due();
        fixture.record(due.id, refused());
        pauses.push(fixture.next());
    }
    let is_due = |next: &NextDelivery| matches!(next, NextDelivery::Due(_));
    assert_eq!(pauses.iter().map(is_due).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(pauses[2], NextDelivery::Wait(Some(Timestamp(fixture.clock.now().0 + 5_000))));
    // Activated by hand, it is tried at once, and one success ends the caution.
    fixture.catalog.set_webhook_state(&all(), &hook.id, WebhookState::Active).unwrap();
    assert_eq!(fixture.deliver().len(), 6);
    assert_eq!(fixture.hook_now(&hook.id).failing_since, None);
}

#[test]
fn one_event_that_is_refused_for_days_delays_no_other() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("acme").collection;
    fixture.hook_for(KeyScope::AllTenants, &[EventKind::SourceSuccess]);
    fixture.end(collection, "poison", PUBLISHED);
    for n in 0..8 {
        let due = fixture.due();
        fixture.record(due.id, refused());
        let NextDelivery::Wait(Some(at)) = fixture.next() else { panic!("due at once") };
        let name = format!("s{n}");
        if n % 2 == 0 {
            fixture.end(collection, &name, PUBLISHED);
            assert_eq!(fixture.deliver(), told(&[("source.success", &name)]));
        }
        fixture.clock.advance_millis(at.0 - fixture.clock.now().0);
    }
}

#[test]
fn a_receiver_that_is_gone_is_disabled() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("acme").collection;
    let hook = fixture.hook();
    fixture.end(collection, "a", PUBLISHED);
    let gone = Attempt { status: Some(410), ..refused() };
    assert_eq!(fixture.record(fixture.due().id, gone), DeliveryState::GivenUp);
    assert_eq!(fixture.hook_now(&hook.id).state, WebhookState::Disabled);
    assert_eq!(fixture.next(), NextDelivery::Wait(None));
}

#[test]
fn a_paused_webhook_keeps_its_events_up_to_a_bound() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("acme").collection;
    let hook = fixture.hook_for(KeyScope::AllTenants, &[EventKind::SourceSuccess]);
    fixture.catalog.set_webhook_state(&all(), &hook.id, WebhookState::Paused).unwrap();
    fixture.end(collection, "a", PUBLISHED);
    assert_eq!(fixture.next(), NextDelivery::Wait(None));
    let full = limits::WEBHOOK_BACKLOG_MAX;
    fixture.sql(&format!("UPDATE webhooks SET pending = {full}"));
    fixture.end(collection, "b", PUBLISHED);
    assert_eq!(fixture.hook_now(&hook.id).dropped, 1);
    fixture.sql("UPDATE webhooks SET pending = 1");
    fixture.catalog.set_webhook_state(&all(), &hook.id, WebhookState::Active).unwrap();
    assert_eq!(fixture.deliver(), told(&[("source.success", "a")]));
    assert_eq!(fixture.hook_now(&hook.id).pending, 0, "counted by triggers");
}

#[test]
fn a_webhook_gets_its_tenants_and_kinds_alone() {
    let fixture = Fixture::new();
    let (acme, other) = (fixture.tenant("acme").collection, fixture.tenant("other").collection);
    let whole = fixture.hook_for(within(&[("acme", None)]), &EventKind::ALL);
    let part = fixture.hook_for(within(&[("acme", Some("x"))]), &EventKind::ALL);
    let failures = fixture.hook_for(KeyScope::AllTenants, &[EventKind::SourceErrored]);
    fixture.end(other, "theirs", PUBLISHED);
    fixture.end(acme, "ours", PUBLISHED);
    let mut job = fixture.job(acme, "in-x");
    job.sub_tenant = sub("x");
    let sequence = fixture.catalog.submit(job).unwrap().sequence;
    fixture.claim().unwrap();
    fixture.settle(acme, sequence, rejected());
    let kinds_of = |hook: &Webhook| -> Vec<_> {
        let (log, _) = fixture.catalog.delivery_log(&all(), &hook.id, 10, None).unwrap();
        log.into_iter().rev().map(|row| (row.kind, row.source)).collect()
    };
    let drained = (EventKind::JobsDrained, String::new());
    let errored = (EventKind::SourceErrored, "in-x".to_owned());
    let ours = (EventKind::SourceSuccess, "ours".to_owned());
    assert_eq!(kinds_of(&whole), [ours, drained.clone(), errored.clone(), drained]);
    assert_eq!(
        kinds_of(&part),
        std::slice::from_ref(&errored),
        "the queue of the tenant is not its own"
    );
    assert_eq!(kinds_of(&failures), [errored]);

    fixture.catalog.delete_sub_tenant(acme, &sub("x")).unwrap();
    assert_eq!(kinds_of(&failures), [], "events of a deleted sub-tenant are gone");
    fixture.catalog.begin_delete_tenant(&tenant("acme")).unwrap();
    assert_eq!(fixture.deliver(), [], "nothing is told of a deleted tenant");
    fixture.catalog.finish_delete_collection(acme).unwrap();
    let left: Vec<_> = fixture.catalog.webhooks(&all()).unwrap();
    assert_eq!(left.iter().map(|hook| &hook.id).collect::<Vec<_>>(), [&failures.id]);
    assert_eq!(fixture.sql(""), 0);
}

#[test]
fn webhooks_are_managed_within_a_scope() {
    let fixture = Fixture::new();
    let wide = fixture.hook();
    let mine = fixture.hook_for(within(&[("acme", None)]), &EventKind::ALL);
    let admin = grant(within(&[("acme", None)]));
    let listed = fixture.catalog.webhooks(&admin).unwrap();
    assert_eq!(listed.iter().map(|hook| &hook.id).collect::<Vec<_>>(), [&mine.id]);
    let unknown = |result: Result<(), CatalogError>| {
        assert!(matches!(result, Err(CatalogError::WebhookUnknown { .. })));
    };
    unknown(fixture.catalog.webhook(&admin, &wide.id).map(drop));
    unknown(fixture.catalog.delete_webhook(&admin, &wide.id));
    unknown(fixture.catalog.set_webhook_state(&admin, &wide.id, WebhookState::Paused).map(drop));
    unknown(fixture.catalog.delivery_log(&admin, &wide.id, 1, None).map(drop));
    let new = |scope| {
        let url = WebUrl::parse("https://hooks.example/").unwrap();
        NewWebhook { url, description: String::new(), kinds: EventKind::ALL.to_vec(), scope }
    };
    let made = fixture.catalog.create_webhook(&admin, new(KeyScope::AllTenants));
    assert!(matches!(made, Err(CatalogError::ScopeTooWide)));
    for _ in 1..limits::WEBHOOKS_MAX {
        fixture.catalog.create_webhook(&admin, new(within(&[("acme", None)]))).unwrap();
    }
    let made = fixture.catalog.create_webhook(&admin, new(within(&[("acme", Some("x"))])));
    assert!(matches!(made, Err(CatalogError::WebhookLimit { .. })));
    let (_, secret) = fixture.catalog.webhook(&admin, &mine.id).unwrap();
    assert!(!format!("{secret:?}").contains(&format!("{:?}", secret.expose())[..20]));
    fixture.catalog.delete_webhook(&admin, &mine.id).unwrap();
    unknown(fixture.catalog.webhook(&all(), &mine.id).map(drop));
}

#[test]
fn the_log_is_bounded_and_comes_in_pages() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("acme").collection;
    let hook = fixture.hook_for(KeyScope::AllTenants, &[EventKind::SourceSuccess]);
    fixture.end(collection, "a", PUBLISHED);
    fixture.deliver();
    let more = limits::WEBHOOK_LOG_MAX + 50;
    fixture.sql(&format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {more})
         INSERT INTO deliveries (webhook, event, kind, collection, sub_tenant, source, body,
            created_at, state)
         SELECT webhook, event || i, kind, collection, sub_tenant, source, '', created_at, state
         FROM deliveries, n"
    ));
    fixture.end(collection, "b", PUBLISHED);
    fixture.deliver();
    assert_eq!(fixture.sql(""), limits::WEBHOOK_LOG_MAX as i64);
    let (page, next) = fixture.catalog.delivery_log(&all(), &hook.id, 2, None).unwrap();
    assert_eq!((page.len(), page[0].source.as_str(), next), (2, "b", Some(page[1].id)));
    let (rest, _) = fixture.catalog.delivery_log(&all(), &hook.id, 1, next).unwrap();
    assert!(rest[0].id < page[1].id);
}

#[test]
fn a_webhook_with_events_is_deleted_whole() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("acme").collection;
    let (hook, other) = (fixture.hook(), fixture.hook());
    fixture.end(collection, "a", PUBLISHED);
    fixture.catalog.delete_webhook(&all(), &hook.id).unwrap();
    assert_eq!(fixture.sql(""), 2, "those of the other");
    assert_eq!(fixture.hook_now(&other.id).pending, 2);
    fixture.end(collection, "b", PUBLISHED);
    assert_eq!(fixture.hook_now(&other.id).pending, 4);
}

#[test]
fn a_watcher_is_woken_by_its_own_job() {
    let fixture = Fixture::new();
    let collection = fixture.tenant("acme").collection;
    let (a, b) = (fixture.submit(collection, "a"), fixture.submit(collection, "b"));
    let row = fixture.catalog.job(&a.job_id).unwrap().unwrap();
    assert_eq!(row.job.sequence, a.sequence);
    assert!(fixture.catalog.job("job_unknown").unwrap().is_none());
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    let wake: crate::Wake = Arc::new(move || {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    let watch = fixture.catalog.watch_job(a.sequence, wake);
    let woken = || count.swap(0, Ordering::SeqCst);
    fixture.claim().unwrap();
    assert_eq!(woken(), 1, "claimed");
    fixture.catalog.set_stage(&[b.sequence], lodestone_types::Stage::Parsing);
    fixture.catalog.set_progress(b.sequence, 1, 2);
    fixture.settle(collection, b.sequence, PUBLISHED);
    assert_eq!(woken(), 0, "the other");
    fixture.catalog.set_stage(&[a.sequence], lodestone_types::Stage::Parsing);
    fixture.catalog.set_progress(a.sequence, 1, 2);
    assert_eq!(woken(), 2);
    fixture.settle(collection, a.sequence, PUBLISHED);
    assert_eq!(woken(), 1);
    fixture.delete(collection, "a");
    assert_eq!(woken(), 1);
    drop(watch);
    let c = fixture.submit(collection, "c");
    let counted = Arc::clone(&count);
    let wake: crate::Wake = Arc::new(move || {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    let _watch = fixture.catalog.watch_job(c.sequence, wake);
    fixture.submit(collection, "c");
    assert_eq!(woken(), 1, "superseded");
}

/// Goal: two watchers of one job are independent, and one of a job that is gone does no harm.
#[test]
fn watchers_of_one_job_end_apart() {
    let fixture = Fixture::new();
    let of = fixture.tenant("acme").collection;
    let job = fixture.submit(of, "a").sequence;
    let counts = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    let [first, second] = counts.clone().map(|count| {
        let wake: crate::Wake = Arc::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
        });
        fixture.catalog.watch_job(job, wake)
    });
    assert!(format!("{first:?}").contains(&format!("{job:?}")));
    fixture.claim().unwrap();
    drop(first);
    fixture.settle(of, job, PUBLISHED);
    let woken = counts.map(|count| count.load(Ordering::SeqCst));
    assert_eq!(woken, [1, 2]);
    drop(second);
    fixture.delete(of, "a");
    assert_eq!(woken, [1, 2]);
}

/// Goal: an attempt whose event is gone is ignored, and a waiting sender is woken.
#[test]
fn an_attempt_of_a_deleted_webhook_is_passed_over() {
    let fixture = Fixture::new();
    let of = fixture.tenant("acme").collection;
    let hook = fixture.hook();
    fixture.end(of, "a", PUBLISHED);
    let due = fixture.due();
    fixture.catalog.delete_webhook(&all(), &hook.id).unwrap();
    assert_eq!(fixture.catalog.record_attempt(due.id, ok()).unwrap(), None);
    assert_eq!(fixture.sql(""), 0);
    assert_eq!(fixture.next(), NextDelivery::Wait(None));
    let long = std::time::Duration::from_secs(600);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| fixture.catalog.wait_for_deliveries(long));
        fixture.catalog.wake_senders();
        waiting.join().unwrap();
    });
}

/// Goal: sending while webhooks come and go causes no errors.
#[test]
fn webhooks_may_go_while_the_next_event_is_looked_for() {
    let fixture = Fixture::new();
    let of = fixture.tenant("acme").collection;
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                fixture.next();
            }
        });
        for n in 0..80 {
            fixture.hook();
            fixture.end(of, &format!("s{n}"), PUBLISHED);
            // In one step, as with the last tenant of its scope.
            fixture.sql("PRAGMA foreign_keys = ON; DELETE FROM webhooks");
        }
        is_over.store(true, Ordering::SeqCst);
        sender.join().unwrap();
    });
}

/// Goal: a webhook of one tenant with many events is removed in steps, completely.
#[test]
fn a_long_log_is_removed_in_steps() {
    let fixture = Fixture::new();
    let of = fixture.tenant("acme").collection;
    let hook = fixture.hook_for(within(&[("acme", None)]), &EventKind::ALL);
    fixture.end(of, "a", PUBLISHED);
    let more = 2 * crate::steps::ROWS_PER_STEP + 5;
    let fill = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {more})
         INSERT INTO deliveries (webhook, event, kind, collection, sub_tenant, source, body,
            created_at, state)
         SELECT webhook, event || i, kind, collection, sub_tenant, source, '', created_at, state
         FROM (SELECT * FROM deliveries LIMIT 1), n"
    );
    assert!(fixture.sql(&fill) > more);
    fixture.catalog.delete_webhook(&all(), &hook.id).unwrap();
    assert_eq!(fixture.sql(""), 0);
    let unknown = fixture.catalog.delivery_log(&all(), &hook.id, 9, None).unwrap_err();
    assert!(matches!(unknown, CatalogError::WebhookUnknown { .. }), "{unknown}");

    // A webhook that lost its tenant gets nothing of a later tenant of that name, and is removed
    // with it.
    let hook = fixture.hook_for(within(&[("acme", None)]), &EventKind::ALL);
    fixture.end(of, "b", PUBLISHED);
    fixture.sql(&fill);
    fixture.catalog.begin_delete_tenant(&tenant("acme")).unwrap();
    assert_eq!(fixture.next(), NextDelivery::Wait(None), "its events are not told");
    let new = fixture.tenant("acme").collection;
    fixture.end(new, "c", PUBLISHED);
    assert_eq!(fixture.next(), NextDelivery::Wait(None));
    fixture.catalog.finish_delete_collection(of).unwrap();
    assert_eq!(fixture.sql(""), 0);
    assert!(fixture.catalog.webhook(&all(), &hook.id).is_err());
}
