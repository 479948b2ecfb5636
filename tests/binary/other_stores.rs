//! Data and backups in other clouds' object stores: the tests of S3, and tests of their own
//! features.

#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use serde_json::Value;

use crate::Installation;
use crate::backups::{another, put, seen, sentence, wait};
use crate::buckets::back_up_and_restore;
use crate::process::http::Client;
use crate::process::patience::Patience;
use crate::s3::{Kind, Store};
use crate::shared_store::{bucket, conform, is_child, lose_machines, refuse_unfit};
use lodestone_fetch::bucket::{Condition, Put};

#[test]
fn blobs_at_google_conform() {
    conform(Kind::Google, "other_stores", "blobs_at_google_conform");
}

#[test]
fn a_store_of_googles_that_cannot_keep_commits_apart_is_refused() {
    let test = "a_store_of_googles_that_cannot_keep_commits_apart_is_refused";
    refuse_unfit(Kind::Google, "other_stores", test);
}

#[test]
fn blobs_at_azure_conform() {
    conform(Kind::Azure, "other_stores", "blobs_at_azure_conform");
}

#[test]
fn a_store_of_azures_that_cannot_keep_commits_apart_is_refused() {
    let test = "a_store_of_azures_that_cannot_keep_commits_apart_is_refused";
    refuse_unfit(Kind::Azure, "other_stores", test);
}

#[test]
fn a_lost_machine_loses_nothing_at_azure() {
    lose_machines(Kind::Azure, "a_lost_machine_loses_nothing_at_azure");
}

#[test]
fn a_backup_at_azure_restores_what_was_there() {
    back_up_and_restore(Kind::Azure, "a_backup_at_azure_restores_what_was_there");
}

#[test]
fn a_lost_machine_loses_nothing_at_google() {
    lose_machines(Kind::Google, "a_lost_machine_loses_nothing_at_google");
}

#[test]
fn a_backup_at_google_restores_what_was_there() {
    back_up_and_restore(Kind::Google, "a_backup_at_google_restores_what_was_there");
}

/// Goal: conditional writes, multi-page listings and interrupted uploads behave as the store's
/// documentation says, through our client.
fn follow_description(kind: Kind, test: &str) {
    if !is_child("other_stores", test, None) {
        let Some(store) = Store::of(kind, test) else { return };
        store.client.call("POST", "/pages/7", &Value::Null).expect("an answer");
        is_child("other_stores", test, Some(&store));
        return;
    }
    let bucket = bucket("described");
    let put = |body: &[u8], condition| bucket.put("one+a=b@c", body, condition).expect("an answer");
    let Put::Done(first) = put(b"1", Condition::Absent) else { panic!("there was none") };
    assert_eq!(put(b"2", Condition::Absent), Put::Refused);
    assert_eq!(bucket.version("one+a=b@c").expect("an answer"), Some(first.clone()));
    let Put::Done(second) = put(b"3", Condition::Unchanged(&first)) else { panic!("it was") };
    assert_eq!(put(b"4", Condition::Unchanged(&first)), Put::Refused);
    assert_ne!(first, second);
    assert_eq!(bucket.get("one+a=b@c").expect("an answer").as_deref(), Some(&b"3"[..]));
    bucket.remove("one+a=b@c").expect("it is removed");
    bucket.remove("one+a=b@c").expect("nothing is there");
    assert_eq!(put(b"5", Condition::Unchanged(&second)), Put::Refused);
    assert_eq!(bucket.version("one+a=b@c").expect("an answer"), None);
    assert_eq!(bucket.len("one+a=b@c").expect("an answer"), None);
    assert_eq!(bucket.get("one+a=b@c").expect("an answer"), None);

    let names: Vec<_> = (0..20).map(|number| (format!("listed/{number:02}"), number)).collect();
    for (name, length) in &names {
        bucket.put(name, &vec![b'x'; *length as usize], Condition::None).expect("it is written");
    }
    assert_eq!(bucket.list("listed/").expect("a listing"), names);
    assert_eq!(bucket.list("listed/1").expect("a listing"), names[10..]);
    assert!(bucket.holds_only(|key| key.starts_with("listed/")).expect("an answer"));
    assert!(!bucket.holds_only(|key| key != "listed/19").expect("an answer"));
    assert!(!bucket.is_empty().expect("an answer"));

    // An upload that fails in its second part leaves nothing behind, and the next one is not mixed
    // up with it.
    let send = |byte: u8, parts: usize, end: Result<usize, &'static str>| {
        let mut sent = 0;
        bucket.put_parts("large", (5 << 20, 1), &mut |part| {
            part.fill(byte);
            sent += 1;
            if sent <= parts { Ok(part.len()) } else { end.map_err(Stopped) }
        })
    };
    assert!(send(1, 1, Err("the disk failed")).is_err());
    assert_eq!(bucket.len("large").expect("an answer"), None);
    assert_eq!(bucket.abandon_parts("").expect("an answer"), 0);
    send(2, 2, Ok(3)).expect("it is sent");
    let whole = bucket.get("large").expect("an answer").expect("it is there");
    assert!(whole.len() == (10 << 20) + 3 && whole.iter().all(|byte| *byte == 2));
}

/// The error of a data source that stops.
#[derive(Debug)]
struct Stopped(#[expect(dead_code, reason = "it is shown")] &'static str);

impl From<lodestone_fetch::bucket::BucketError> for Stopped {
    fn from(error: lodestone_fetch::bucket::BucketError) -> Self {
        panic!("{error}")
    }
}

#[test]
fn googles_store_is_used_as_it_is_described() {
    follow_description(Kind::Google, "googles_store_is_used_as_it_is_described");
}

#[test]
fn azures_store_is_used_as_it_is_described() {
    follow_description(Kind::Azure, "azures_store_is_used_as_it_is_described");
}

/// Goal: a shared access signature works in place of a key. It is part of every request's URL, and
/// yet is not revealed. It is not sent over plain HTTP.
#[test]
fn a_shared_access_signature_is_used_and_not_told() {
    let test = "a_shared_access_signature_is_used_and_not_told";
    let Some(store) = Store::of(Kind::Azure, test) else { return };
    let reply = store.client.call("GET", "/sas", &Value::Null).expect("an answer");
    let signature = String::from_utf8(reply.body).expect("UTF-8");
    let place = store.place("data/prod");
    let doctor = |change: &[(&str, &str)]| {
        let mut command = store.command(&["doctor", "--store", &place]);
        command.env("AZURE_STORAGE_KEY", "").env("AZURE_STORAGE_SAS_TOKEN", &signature);
        let output = command.envs(change.iter().copied()).output().expect("it runs");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let (_, secret) = signature.split_once("sig=").expect("it is signed");
        assert!(!said.contains(secret) && !said.contains("sig="), "{said}");
        said
    };
    assert!(doctor(&[]).contains("of 16 concurrent requests exactly one created a name, 8 times"));
    let wrong = [("AZURE_STORAGE_SAS_TOKEN", &*format!("?{signature}x"))];
    assert!(doctor(&wrong).contains("the store refused GET copying: 403"), "{}", doctor(&wrong));
    let far = [("AZURE_STORAGE_SERVICE_ENDPOINT", "http://store.example")];
    assert!(doctor(&far).contains("only sent to https://"));
    let unnamed = [("AZURE_STORAGE_ACCOUNT", "")];
    assert!(doctor(&unnamed).contains("AZURE_STORAGE_ACCOUNT is not set"));
}

/// Goal: on a Google Cloud machine a server uses the tokens of its service account, which expire
/// every few seconds, once ahead of time; no request is rejected, and no token is revealed.
#[test]
fn a_server_outlives_the_tokens_of_its_machine() {
    let test = "a_server_outlives_the_tokens_of_its_machine";
    let Some(store) = Store::of(Kind::Google, test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let ask = |path: &str| store.client.call("POST", path, &Value::Null).expect("an answer");
    ask("/tokens/3");
    let (origin, host) = (format!("http://{}", store.client.address), store.client.address);
    let (host, place) = (host.to_string(), store.place("data/prod"));
    let variables = [
        ("STORAGE_EMULATOR_HOST", &*origin),
        ("GCE_METADATA_HOST", &host),
        ("LODESTONE_STORE", &place),
        ("RUST_LOG", "debug"),
    ];
    let (mut server, client) = installation.start_with(&variables);
    let (mut patience, mut count) = (Patience::new(), 0);
    while store.number("given") < 4 {
        put(&client, "acme", &format!("s{count}"), &sentence(count));
        count += 1;
        if count == 4 {
            store.expire_keys();
        }
        assert!(!patience.is_over(store.number("given")), "tokens are renewed");
    }
    wait(&client, "acme");
    let expected = seen(&client, "acme");
    server.terminate();
    assert!(server.ended().is_some_and(|status| status.success()), "{}", server.output());
    assert!(!server.output().contains("ya29."), "{}", server.output());
    let elsewhere = another(&installation);
    let (_server, fresh) = elsewhere.start_with(&variables);
    let client = Client { key: client.key, ..fresh };
    assert_eq!(seen(&client, "acme"), expected);

    let mut command = crate::process::lodestone(&["doctor", "--store", &place]);
    command.env("GCE_METADATA_HOST", &host).env("STORAGE_EMULATOR_HOST", "http://store.example");
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(!output.status.success() && said.contains("only sent to https://"), "{said}");
    command.env("GCE_METADATA_HOST", format!("{host}/elsewhere"));
    let output = command.env("STORAGE_EMULATOR_HOST", &origin).output().expect("it runs");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(!output.status.success() && said.contains("GS_ACCESS_KEY_ID"), "{said}");
    assert!(said.contains(&format!("service account from {origin}")), "{said}");
}
