//! Conversations and idempotent requests.

use super::*;
use crate::{CatalogError, IDEMPOTENCY_MILLIS, RequestStart};
use lodestone_types::SessionId;
use lodestone_types::limits::{
    IDEMPOTENCY_BYTES_MAX, SESSION_BYTES_MAX, SESSION_TURNS, SESSIONS_BYTES_MAX, SESSIONS_KEPT,
};

fn session(name: &str) -> SessionId {
    SessionId::parse(name).unwrap()
}

fn ask(fixture: &Fixture, collection: CollectionId, place: (&str, &str), question: &str) {
    let (sub_tenant, name) = (sub(place.0), session(place.1));
    let (question, answer) = (question.to_owned(), format!("re {question}"));
    fixture.catalog.append_turn(collection, &sub_tenant, &name, question, answer).unwrap();
}

fn questions(fixture: &Fixture, collection: CollectionId, place: (&str, &str)) -> Vec<String> {
    let turns = fixture.catalog.turns(collection, &sub(place.0), &session(place.1), 99).unwrap();
    turns.into_iter().map(|turn| turn.question).collect()
}

/// Begins the request `v` of a key, on behalf of an owner of the same name.
fn begin_as(fixture: &Fixture, key: &str, hash: u8) -> Result<RequestStart, CatalogError> {
    fixture.catalog.begin_request((key, &key.into()), "/p", "v", [hash; 32], false)
}

fn count(fixture: &Fixture, sql: &'static str) -> i64 {
    let count = |connection: &Connection| Ok(connection.query_row(sql, [], |row| row.get(0))?);
    fixture.catalog.write(count).unwrap()
}

#[test]
fn a_session_remembers_the_last_turns_of_its_own_scope() {
    let fixture = Fixture::new();
    let (a, b) = (fixture.tenant("a").collection, fixture.tenant("b").collection);
    for n in 0..SESSION_TURNS + 3 {
        ask(&fixture, a, ("default", "s"), &format!("q{n}"));
    }
    let fixture = fixture.reopen();
    let seen = questions(&fixture, a, ("default", "s"));
    assert_eq!(seen.len(), SESSION_TURNS);
    assert_eq!((seen[0].as_str(), seen[9].as_str()), ("q3", "q12"));
    let last = fixture.catalog.turns(a, &sub("default"), &session("s"), 1).unwrap();
    assert_eq!(last[0].answer, "re q12");
    for (collection, place) in [(b, ("default", "s")), (a, ("x", "s")), (a, ("default", "t"))] {
        assert!(questions(&fixture, collection, place).is_empty());
    }
}

#[test]
fn an_idle_session_is_over() {
    let options = CatalogOptions { session_idle_millis: 1000, ..CatalogOptions::default() };
    let fixture = Fixture::with(options);
    let a = fixture.tenant("a").collection;
    ask(&fixture, a, ("default", "s"), "old");
    fixture.clock.advance_millis(999);
    ask(&fixture, a, ("default", "s"), "newer");
    fixture.clock.advance_millis(999);
    assert_eq!(questions(&fixture, a, ("default", "s")).len(), 2);
    fixture.clock.advance_millis(1);
    assert!(questions(&fixture, a, ("default", "s")).is_empty());
    ask(&fixture, a, ("default", "s"), "fresh");
    assert_eq!(questions(&fixture, a, ("default", "s")), ["fresh"]);
}

#[test]
fn sessions_go_with_their_sub_tenant_and_tenant() {
    let fixture = Fixture::new();
    let a = fixture.tenant("a").collection;
    fixture.catalog.reserve_sequence(a, &sub("x"), &source("v"), None).unwrap();
    ask(&fixture, a, ("x", "s"), "q");
    ask(&fixture, a, ("default", "s"), "q");
    fixture.catalog.delete_sub_tenant(a, &sub("x")).unwrap();
    ask(&fixture, a, ("x", "s"), "answered after the deletion");
    fixture.catalog.reserve_sequence(a, &sub("x"), &source("v"), None).unwrap();
    assert!(questions(&fixture, a, ("x", "s")).is_empty());
    assert_eq!(questions(&fixture, a, ("default", "s")).len(), 1);
    fixture.catalog.begin_delete_tenant(&tenant("a")).unwrap();
    fixture.catalog.finish_delete_collection(a).unwrap();
    assert!(questions(&fixture, a, ("default", "s")).is_empty());
}

#[test]
fn a_repeated_request_gets_the_first_response() {
    let fixture = Fixture::new();
    let begin = |f: &Fixture, hash| begin_as(f, "k", hash).unwrap();
    let RequestStart::Fresh(guard) = begin(&fixture, 1) else { panic!("fresh") };
    assert!(matches!(begin(&fixture, 1), RequestStart::InFlight));
    fixture.catalog.finish_request(guard, 200, b"done").unwrap();
    let fixture = fixture.reopen();
    for _ in 0..2 {
        let RequestStart::Replay { status, body } = begin(&fixture, 1) else { panic!("replay") };
        assert_eq!((status, body.as_slice()), (200, b"done".as_slice()));
    }
    assert!(matches!(begin(&fixture, 2), RequestStart::Mismatch));
    let other = begin_as(&fixture, "k2", 1).unwrap();
    assert!(matches!(other, RequestStart::Fresh(_)), "another key has names of its own");
    fixture.clock.advance_millis(IDEMPOTENCY_MILLIS);
    assert!(matches!(begin(&fixture, 2), RequestStart::Fresh(_)));
}

#[test]
fn a_request_that_was_cut_off_generates_the_same_ids_again() {
    let fixture = Fixture::new();
    let begin = |f: &Fixture| begin_as(f, "k", 1).unwrap();
    let RequestStart::Fresh(guard) = begin(&fixture) else { panic!("fresh") };
    let nonce = guard.nonce();
    drop(guard);
    let fixture = fixture.reopen();
    let RequestStart::Fresh(guard) = begin(&fixture) else { panic!("fresh") };
    assert_eq!(guard.nonce(), nonce);
}

/// Goal: a session in use does not expire, and reading an expired one does not revive it.
#[test]
fn a_session_in_use_goes_on() {
    let options = CatalogOptions { session_idle_millis: 1000, ..CatalogOptions::default() };
    let fixture = Fixture::with(options);
    let a = fixture.tenant("a").collection;
    let touch = || fixture.catalog.touch_session(a, &sub("default"), &session("s")).unwrap();
    touch();
    ask(&fixture, a, ("default", "s"), "q");
    for _ in 0..3 {
        fixture.clock.advance_millis(999);
        touch();
    }
    assert_eq!(questions(&fixture, a, ("default", "s")), ["q"]);
    fixture.clock.advance_millis(1000);
    touch();
    assert!(questions(&fixture, a, ("default", "s")).is_empty());
    // Without a limit, sessions do not expire.
    let fixture = Fixture::with(CatalogOptions { session_idle_millis: 0, ..options });
    let a = fixture.tenant("a").collection;
    ask(&fixture, a, ("default", "s"), "q");
    fixture.clock.advance_millis(1 << 50);
    ask(&fixture, a, ("default", "t"), "q");
    assert_eq!(questions(&fixture, a, ("default", "s")), ["q"]);
}

/// Goal: a response that is too long is refused with both sizes, and the request can be repeated
/// with the same ids.
#[test]
fn a_response_that_is_too_long_is_not_kept() {
    let fixture = Fixture::new();
    let begin = || begin_as(&fixture, "k", 1).unwrap();
    let RequestStart::Fresh(guard) = begin() else { panic!("fresh") };
    assert!(!format!("{guard:?}").contains("nonce"), "ids derive from it");
    let (nonce, begun_at) = (guard.nonce(), guard.begun_at());
    assert_eq!(begun_at, fixture.clock.now());
    let error = fixture.catalog.finish_request(guard, 200, &[0; (1 << 20) + 1]).unwrap_err();
    let words = "a response of 1048577 bytes exceeds the 1048576 bytes that can be stored";
    assert_eq!(error.to_string(), words);
    fixture.clock.advance_millis(1000);
    let RequestStart::Fresh(guard) = begin() else { panic!("fresh") };
    assert_eq!((guard.nonce(), guard.begun_at()), (nonce, begun_at), "of the first try");
    fixture.catalog.finish_request(guard, 200, &[7; 1 << 20]).unwrap();
    let RequestStart::Replay { body, .. } = begin() else { panic!("replay") };
    assert_eq!(body.len(), 1 << 20);
}

/// Goal: what a tenant asks takes a bounded number of sessions and bytes; the sessions used last
/// stay, and those of other tenants.
#[test]
fn a_tenant_keeps_the_sessions_used_last() {
    let fixture = Fixture::new();
    let (a, b) = (fixture.tenant("a").collection, fixture.tenant("b").collection);
    let fill = move |connection: &Connection| {
        let sql = "INSERT INTO sessions (collection, sub_tenant, name, last_at)
            WITH RECURSIVE numbers(at) AS
                (SELECT 1 UNION ALL SELECT at + 1 FROM numbers WHERE at < ?2)
            SELECT ?1, 'default', 'old-' || at, at FROM numbers";
        for collection in [a, b] {
            let collection = collection.0.as_bytes().as_slice();
            connection.execute(sql, rusqlite::params![collection, SESSIONS_KEPT as i64])?;
        }
        Ok(())
    };
    fixture.catalog.write(fill).unwrap();
    fixture.catalog.touch_session(a, &sub("default"), &session("old-1")).unwrap();
    let all = "SELECT count(*) FROM sessions";
    ask(&fixture, a, ("default", "old-2"), "q");
    assert_eq!(count(&fixture, all), 2 * SESSIONS_KEPT as i64, "known ones need no room");
    ask(&fixture, a, ("default", "new"), "q");
    let left = count(&fixture, all);
    assert!((1..2 * SESSIONS_KEPT as i64).contains(&left), "{left}");
    for name in ["old-2", "new"] {
        assert_eq!(questions(&fixture, a, ("default", name)), ["q"], "{name}");
    }
    let old = "SELECT count(*) FROM sessions WHERE name IN ('old-1', 'old-3')";
    assert_eq!(count(&fixture, old), 3, "one of the tenant, two of the other");
    fixture.assert_sums_are_exact();
    // As if the turns of the others had that many bytes.
    let swell = move |connection: &Connection| {
        let sql = "UPDATE sessions SET bytes = ?2 WHERE collection = ?1 AND name = 'old-99'";
        let values = rusqlite::params![a.0.as_bytes().as_slice(), SESSIONS_BYTES_MAX as i64];
        Ok(connection.execute(sql, values)?)
    };
    fixture.catalog.write(swell).unwrap();
    let before = count(&fixture, all);
    ask(&fixture, a, ("default", "new"), "q");
    assert!(count(&fixture, all) < before, "too many bytes");
    assert_eq!(questions(&fixture, a, ("default", "new")), ["q", "q"]);
}

#[test]
fn a_session_keeps_a_bounded_number_of_bytes() {
    let fixture = Fixture::new();
    let a = fixture.tenant("a").collection;
    let long = "x".repeat(SESSION_BYTES_MAX / 4);
    for n in 0..5 {
        ask(&fixture, a, ("default", "s"), &format!("{n}{long}"));
    }
    let kept = questions(&fixture, a, ("default", "s"));
    assert_eq!(
        kept.iter().map(|text| &text[..1]).collect::<String>(),
        "4",
        "twice with its answer"
    );
    ask(&fixture, a, ("default", "s"), "short");
    assert_eq!(questions(&fixture, a, ("default", "s")).len(), 2);
    ask(&fixture, a, ("default", "s"), &long.repeat(4));
    assert_eq!(questions(&fixture, a, ("default", "s")).len(), 1, "the newest stays");
}

/// Goal: what has expired goes without another request.
#[test]
fn what_has_expired_is_purged() {
    let options = CatalogOptions { session_idle_millis: 1000, ..CatalogOptions::default() };
    let fixture = Fixture::with(options);
    let a = fixture.tenant("a").collection;
    ask(&fixture, a, ("default", "s"), "q");
    let RequestStart::Fresh(guard) = begin_as(&fixture, "k", 1).unwrap() else { panic!("fresh") };
    fixture.catalog.finish_request(guard, 200, b"done").unwrap();
    let rows = "SELECT (SELECT count(*) FROM sessions) + (SELECT count(*) FROM turns)
        + (SELECT count(*) FROM idempotency)";
    let purge = || {
        assert!(!fixture.catalog.purge_sessions().unwrap());
        assert!(!fixture.catalog.purge_requests().unwrap());
        count(&fixture, rows)
    };
    assert_eq!(purge(), 3);
    fixture.clock.advance_millis(1000);
    assert_eq!(purge(), 1);
    fixture.clock.advance_millis(IDEMPOTENCY_MILLIS);
    assert_eq!(purge(), 0);
}

/// Goal: an owner that keeps too much, or a full disk, begins no new requests with a key, while the
/// responses that are kept are replayed.
#[test]
fn what_is_kept_for_repetitions_is_bounded() {
    let fixture = Fixture::new();
    let RequestStart::Fresh(guard) = begin_as(&fixture, "k", 1).unwrap() else { panic!("fresh") };
    fixture.catalog.finish_request(guard, 200, b"done").unwrap();
    let begin = |value: &str, is_full| {
        fixture.catalog.begin_request(("k", &"k".into()), "/p", value, [1; 32], is_full)
    };
    assert!(matches!(begin("w", true), Err(CatalogError::StorageFull)));
    assert!(matches!(begin("v", true), Ok(RequestStart::Replay { .. })));
    assert!(matches!(begin("w", false), Ok(RequestStart::Fresh(_))));
    let now = fixture.clock.now();
    fixture.catalog.inner.budgets.add(&"k".into(), IDEMPOTENCY_BYTES_MAX as usize, now);
    let refused = begin("x", false).unwrap_err();
    let CatalogError::IdempotencyLimit { used, wait_seconds, .. } = refused else {
        panic!("{refused}")
    };
    assert!(used > IDEMPOTENCY_BYTES_MAX, "the rows count: {used}");
    assert_eq!(wait_seconds, IDEMPOTENCY_MILLIS / 1000);
    assert!(matches!(begin("v", false), Ok(RequestStart::Replay { .. })));
    assert!(matches!(begin("w", false), Ok(RequestStart::Fresh(_))), "it was begun before");
    assert!(matches!(begin_as(&fixture, "k2", 1), Ok(RequestStart::Fresh(_))), "another owner");
    fixture.clock.advance_millis(IDEMPOTENCY_MILLIS);
    assert!(matches!(begin("x", false), Ok(RequestStart::Fresh(_))));
}
