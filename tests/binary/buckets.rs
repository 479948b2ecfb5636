//! Backups in a bucket, with the real binary and a third-party store, moto, which verifies every
//! signature. Requests that it is told to fail are failed before or after they take effect.

#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::backups::{SOURCES, another, put, seen, sentence, text, wait};
use crate::process::http::Client;
use crate::process::patience::Patience;
use crate::process::{Server, lodestone};
use crate::s3::{Kind, Store};
use crate::{Installation, ask};

const PLACE: &str = "s3://backups/lodestone/prod";

/// Uploads vectors of a separate tenant that form a single file larger than an upload part.
fn put_large(client: &Client) {
    const ROWS: usize = 12_000;
    const WIDTH: usize = 384;
    ask(client, "POST", "/embeddings/create_tenant?tenant_id=large", json!({}));
    let mut header =
        format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({ROWS}, {WIDTH}), }}");
    // The data begin at a multiple of 64 bytes.
    header += &" ".repeat(63 - (10 + header.len()) % 64);
    header.push('\n');
    let length = (header.len() as u16).to_le_bytes();
    let mut file = [b"\x93NUMPY\x01\x00".as_slice(), &length, header.as_bytes()].concat();
    let component = |at: usize| ((at * 7919 + at / 31) % 2003) as f32 / 1000.0 - 1.0;
    file.extend((0..ROWS * WIDTH).flat_map(|at| component(at).to_le_bytes()));
    let path = "/upload/upload_embeddings?tenant_id=large&file_id=batch";
    let reply = client.send("POST", path, "application/x-npy", &file).expect("an answer");
    assert_eq!(reply.status, 200, "{}", reply.json());
    wait(client, "large");
}

/// Goal: a backup to a bucket that fails every third request is complete: a restore lists and
/// answers as before, the next backup adds only new data, and wrong credentials are reported
/// without revealing a secret.
#[test]
fn a_backup_in_a_failing_bucket_restores_what_was_there() {
    back_up_and_restore(Kind::S3, "a_backup_in_a_failing_bucket_restores_what_was_there");
}

pub fn back_up_and_restore(kind: Kind, test: &str) {
    let Some(store) = Store::of(kind, test) else { return };
    let place = &*store.place("lodestone/prod");
    let Some(installation) = Installation::new(test) else { return };
    let data = installation.data();
    let (server, client) = installation.start();
    for number in 0..SOURCES {
        put(&client, "acme", &format!("s{number}"), &sentence(number));
    }
    // Larger than a part, so that it is a multipart upload.
    put_large(&client);
    wait(&client, "acme");
    let expected = seen(&client, "acme");
    server.kill();

    let mut wrong = store.command(&["backup", place, "--data-dir", text(&data)]);
    let ((secret, of_another), [no_match, no_bucket]) = (store.wrong_secret(), kind.words());
    let refused = wrong.env(secret, of_another).output().expect("it runs");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains(no_match), "{said}");
    let named = format!("{place} at http://{}", store.client.address);
    assert!(said.contains(&named) && !said.contains(of_another), "{said}");

    store.fail(3);
    let (is_done, said) = store.run(&["backup", place, "--data-dir", text(&data)]);
    assert!(is_done, "{said}");
    let (is_done, said) = store.run(&["backup", place, "--data-dir", text(&data)]);
    assert!(is_done && said.contains("0 files and 0 bytes are new"), "{said}");
    // A multipart upload may have been started whose response was lost; this backup has removed it.
    assert_eq!(store.number("uploads"), 0);
    let (is_sound, said) = store.run(&["backup", "verify", place]);
    assert!(is_sound && said.contains("2 backups") && said.contains("all sound"), "{said}");
    let (is_done, said) = store.run(&["backup", "prune", place, "--keep", "1"]);
    assert!(is_done && said.starts_with("1 backup removed"), "{said}");

    let copy = another(&installation);
    let (is_done, said) = store.run(&["restore", place, "--data-dir", text(&copy.data())]);
    assert!(is_done, "{said}");
    let (is_sound, said) = crate::damage::verify(&copy.data());
    assert!(is_sound, "{said}");
    let (_server, client) = copy.start();
    assert_eq!(seen(&client, "acme"), expected);

    let whole = store.place("");
    let (is_done, said) = store.run(&["backup", &whole, "--data-dir", text(&data)]);
    assert!(!is_done && said.contains("is not empty and contains no backups"), "{said}");
    let absent = place.replace("backups", "absent");
    let (is_done, said) = store.run(&["backup", "ls", &absent]);
    assert!(!is_done && said.contains(no_bucket) && said.contains(&absent), "{said}");
}

/// Goal: killing a server in the middle of its backup leaves an incomplete backup that is
/// recognized and refused, and parts and a lock that the next backup removes; until then nobody
/// else can write there.
#[test]
fn a_backup_cut_by_a_kill_is_refused_and_the_next_is_whole() {
    let test = "a_backup_cut_by_a_kill_is_refused_and_the_next_is_whole";
    let Some(store) = Store::start(test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let data = installation.data();
    let variables = store.variables();
    let mut slow: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    slow.extend([("LODESTONE_BACKUP_TO", "s3://backups/lodestone")]);
    let schedule = [("LODESTONE_BACKUP_RATE", "1MiB"), ("LODESTONE_BACKUP_EVERY", "24")];
    let (server, client) = installation.start_with(&[&slow[..], &schedule].concat());
    put(&client, "acme", "first", &sentence(1));
    put_large(&client);
    wait(&client, "acme");
    // The schedule starts the first backup at once, perhaps before there are any data.
    let begun = |client: &Client| {
        let mut patience = Patience::new();
        loop {
            let state = ask(client, "GET", "/admin/backups", Value::Null);
            if state["running"] == true && state["copied_bytes"].as_u64() > Some(1 << 20) {
                return;
            }
            if state["running"] == false && !state["last"].is_null() {
                ask(client, "POST", "/admin/backups", json!({"to": PLACE, "full": true}));
            }
            assert!(!patience.is_over(state["copied_bytes"].clone()), "no backup: {state}");
        }
    };
    begun(&client);
    let elsewhere = json!({"to": "s3://backups/other"});
    let refused = client.call("POST", "/admin/backups", &elsewhere).expect("an answer");
    assert!((400..=409).contains(&refused.status), "{}", refused.json());
    server.kill();
    let place = ["s3://backups/lodestone", PLACE].into_iter().find(|place| {
        let (is_done, listed) = store.run(&["backup", "ls", place]);
        is_done && listed.contains("incomplete")
    });
    let place = place.expect("one that was cut off");
    let (_, listed) = store.run(&["backup", "ls", place]);
    let cut = listed.lines().find(|line| line.contains("incomplete")).expect("it is listed");
    let id = cut.split_whitespace().next().expect("an id");
    let copy = another(&installation);
    let restored = copy.data();
    let restore = |more: &[&str]| {
        let restore = ["restore", place, "--data-dir", text(&restored)];
        store.run(&[&restore[..], more].concat())
    };
    let (is_done, said) = restore(&["--at", id]);
    assert!(!is_done && said.contains("incomplete") && said.contains(id), "{said}");

    // The backup waits until the lock of the killed server expires.
    let arguments = ["backup", place, "--data-dir", text(&data)];
    let first = store.command(&arguments).stdout(Stdio::piped()).spawn().expect("it runs");
    let first = first.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&first.stderr).into_owned();
    assert!(first.status.success(), "{said}");
    assert_eq!(store.number("uploads"), 0);
    let (is_done, said) = restore(&[]);
    assert!(is_done, "{said}");
    let (is_sound, said) = crate::damage::verify(&restored);
    assert!(is_sound && said.contains("large"), "{said}");
}

/// Goal: of two processes that back up to the same destination, one is refused while the other
/// works.
#[test]
fn two_backups_at_once_keep_each_other_out() {
    let test = "two_backups_at_once_keep_each_other_out";
    let Some(store) = Store::start(test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let variables = store.variables();
    let mut slow: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    slow.extend([("LODESTONE_BACKUP_TO", PLACE), ("LODESTONE_BACKUP_RATE", "1MiB")]);
    let (server, client) = installation.start_with(&slow);
    put_large(&client);
    ask(&client, "POST", "/admin/backups", json!({}));
    let mut patience = Patience::new();
    loop {
        let state = ask(&client, "GET", "/admin/backups", Value::Null);
        if state["copied_bytes"].as_u64() > Some(0) {
            break;
        }
        assert!(!patience.is_over(state.clone()), "nothing is copied: {state}");
    }
    // The lock is renewed during the backup and is not mistaken for an abandoned one.
    let (is_done, said) = store.run(&["backup", "prune", PLACE, "--keep", "1"]);
    assert!(!is_done && said.contains("another backup is running"), "{said}");
    stop(server);
    let (is_done, said) = store.run(&["backup", "prune", PLACE, "--keep", "1"]);
    assert!(is_done, "{said}");
}

/// Goal: a server that cannot use its bucket reports it at the start: without credentials it does
/// not start, and if the store refuses or does not respond it logs a warning; requests report the
/// reason.
#[test]
fn a_start_tells_that_a_bucket_cannot_be_used() {
    let test = "a_start_tells_that_a_bucket_cannot_be_used";
    let Some(store) = Store::start(test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let mut bare = lodestone(&["serve", "--listen", "127.0.0.1:0", "--backup-to", PLACE]);
    bare.arg("--data-dir").arg(installation.data()).arg("--model-dir").arg(&installation.model);
    bare.env("HOME", installation.dir.path());
    let refused = bare.output().expect("it runs");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success(), "{said}");
    assert!(said.contains(PLACE) && said.contains("AWS_ACCESS_KEY_ID"), "{said}");

    let variables = store.variables();
    let mut set: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let absent = "s3://absent/lodestone";
    set.push(("LODESTONE_BACKUP_TO", absent));
    let (mut server, client) = installation.start_with(&set);
    let told = "the backup location is not usable";
    let mut patience = Patience::new();
    while !server.output().contains(told) {
        assert!(!patience.is_over(()), "{}", server.output());
    }
    let reply = client.call("GET", "/admin/backups", &Value::Null).expect("an answer");
    assert_eq!(reply.status, 503, "{}", reply.json());
    let (said, named) = (reply.json().to_string(), format!("at http://{}", store.client.address));
    assert!(said.contains("NoSuchBucket") && said.contains(&named), "{said}");
    let address = format!("http://{}", client.address);
    let (is_done, said) = store.run(&["backup", absent, "--server", &address]);
    assert!(!is_done && said.contains("NoSuchBucket") && said.contains(&named), "{said}");
}

/// Stops a server, which abandons its backup and releases the lock.
fn stop(mut server: Server) {
    server.terminate();
    assert!(server.ended().expect("it ends").success(), "{}", server.output());
}
