//! `lodestone verify` on data in a bucket, with the server stopped or running.

#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use std::path::Path;
use std::process::Stdio;

use lodestone_engine::backup::{Location, Opener};
use lodestone_engine::copy_store;
use lodestone_engine::settings::BucketSettings;
use lodestone_fetch::Authorities;
use lodestone_fetch::bucket::{Bucket, Condition};
use serde_json::json;

use crate::backups::another;
use crate::process::http::Client;
use crate::process::{Server, lodestone};
use crate::s3::Store;
use crate::shared_store::{PLACE, bucket, is_child};
use crate::{Installation, ask, settled, upload};

/// Starts a server over the bucket; the store's credentials are in the environment.
fn server(installation: &Installation) -> (Server, Client) {
    installation.start_with(&[("LODESTONE_STORE", PLACE)])
}

/// Returns whether the bucket is sound, and the output. Checks that the temporary folder stays
/// empty.
fn verify(scratch: &Path) -> (bool, String) {
    let mut command = lodestone(&["verify", "--store", PLACE]);
    let output = command.env("TMPDIR", scratch).output().expect("it runs");
    assert_eq!(scratch.read_dir().expect("a folder").count(), 0);
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).expect("UTF-8"))
}

fn delete(client: &Client, id: &str) {
    ask(client, "DELETE", "/delete_source?tenant_id=acme", json!({"source_ids": [id]}));
}

/// The objects whose keys have the given prefix and suffix.
fn objects(bucket: &Bucket, start: &str, end: &str) -> Vec<(String, Vec<u8>)> {
    let keys = bucket.list(start).expect("a listing").into_iter().map(|(key, _)| key);
    let object = |key: String| {
        let bytes = bucket.get(&key).expect("an answer").expect("an object");
        (key, bytes.to_vec())
    };
    keys.filter(|key| key.ends_with(end)).map(object).collect()
}

fn put_back(bucket: &Bucket, objects: &[(String, Vec<u8>)]) {
    for (key, bytes) in objects {
        bucket.put(key, bytes, Condition::None).expect("it is written");
    }
}

/// The number of the tenant's segments that `verify` found sound.
fn segments_said(said: &str) -> usize {
    let counted = said.lines().find_map(|line| line.strip_prefix("acme: "));
    let number = counted.and_then(|line| line.split(' ').next());
    number.and_then(|number| number.parse().ok()).expect("a number of segments")
}

/// The number of the given objects that `verify` names as damaged.
fn named(objects: &[(String, Vec<u8>)], said: &str) -> usize {
    objects.iter().filter(|(key, _)| said.contains(key.as_str())).count()
}

/// Goal: a changed byte in a segment, a missing original and a missing entry of the catalog's log
/// are detected and named by their keys, and a segment that no manifest names is not; nothing in
/// the bucket is changed. A copy of the data reports its progress.
#[test]
fn verify_names_what_is_damaged_in_a_bucket() {
    let test = "verify_names_what_is_damaged_in_a_bucket";
    if !is_child("verified_buckets", test, None) {
        let Some(store) = Store::start(test) else { return };
        is_child("verified_buckets", test, Some(&store));
        return;
    }
    let Some(installation) = Installation::new(test) else { return };
    let (mut running, client) = server(&installation);
    let texts = (0..3).map(|n| json!({"file_id": format!("b{n}"), "content": "A granite wall."}));
    let batch = json!({"items": texts.collect::<Vec<_>>()});
    upload(&client, "a", &"A long text about wind and water. ".repeat(300));
    ask(&client, "POST", "/upload/batch_upload_text?tenant_id=acme", batch);
    upload(&client, "c", "The lantern stands in the hall.");
    for id in ["a", "b0", "b1", "b2", "c"] {
        assert_eq!(settled(&client, id), "success");
    }
    delete(&client, "b1");
    running.terminate();
    assert!(running.ended().expect("it ends").success());

    let (bucket, scratch) = (bucket("data/prod"), tempfile::tempdir().expect("a folder"));
    // Like a segment left by a merge that was cut short by the end of the server.
    let (some, bytes) = objects(&bucket, "v1/c/", ".seg").pop().expect("a segment");
    let folder = &some[..some.rfind('/').expect("a folder")];
    let unnamed = format!("{folder}/ffffffff-ffff-7fff-bfff-ffffffffffff.seg");
    bucket.put(&unnamed, &bytes, Condition::None).expect("it is written");
    let before = bucket.list("").expect("a listing");
    let (is_sound, said) = verify(scratch.path());
    assert!(is_sound && said.contains("acme: ") && said.contains("4 originals"), "{said}");
    assert!(said.contains("none missing: all sound"), "{said}");
    let (live, segments) = (segments_said(&said), objects(&bucket, "v1/c/", ".seg"));
    for (key, bytes) in &segments {
        let mut damaged = bytes.clone();
        damaged[bytes.len() / 2] ^= 0x20;
        bucket.put(key, &damaged, Condition::None).expect("it is written");
    }
    let (is_sound, said) = verify(scratch.path());
    assert!(
        !is_sound && named(&segments, &said) == live && live < segments.len(),
        "{live}: {said}"
    );
    assert!(said.contains(&format!("{live} problem")), "{said}");
    put_back(&bucket, &segments);
    let originals = objects(&bucket, "v1/raw/", "");
    originals.iter().for_each(|(key, _)| bucket.remove(key).expect("it is removed"));
    let (is_sound, said) = verify(scratch.path());
    assert!(!is_sound && named(&originals, &said) == 4, "{said}");
    put_back(&bucket, &originals);
    let entries = objects(&bucket, "v1/catalog/", "");
    let entry = &entries[entries.len() - 2..entries.len() - 1];
    bucket.remove(&entry[0].0).expect("it is removed");
    let (is_sound, said) = verify(scratch.path());
    assert!(!is_sound && named(entry, &said) == 1, "{said}");
    put_back(&bucket, entry);
    let (is_sound, said) = verify(scratch.path());
    assert!(is_sound, "{said}");
    assert_eq!(bucket.list("").expect("a listing"), before);

    let mut said = Vec::new();
    let opener =
        Opener { settings: BucketSettings::default(), authorities: Authorities::default() };
    let (from, copy) = (Location::parse(PLACE).expect("a place"), another(&installation));
    let to = Location::Folder(copy.data());
    let copied = copy_store(&from, &to, &opener, &mut |now| said.push(*now)).expect("a copy");
    let end = said.last().expect("news");
    assert_eq!((end.blobs, end.bytes), (end.blobs_total, end.bytes_total));
    assert_eq!((end.blobs, end.bytes), (copied.blobs, copied.new_bytes));
    assert!(said.is_sorted_by_key(|now| (now.bytes, now.blobs)) && said.len() > 4, "{said:?}");
}

/// Goal: uploads, merges and deletions of a server during the verification are not reported as
/// damage.
#[test]
fn verify_of_a_bucket_that_is_written_to_finds_nothing() {
    let test = "verify_of_a_bucket_that_is_written_to_finds_nothing";
    let Some(store) = Store::start(test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let variables = store.variables();
    let mut all: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    all.push(("LODESTONE_STORE", PLACE));
    let (_server, client) = installation.start_with(&all);
    let mut number = 0;
    let mut change = || {
        upload(&client, &format!("d{number}"), &format!("The stone {number} lies in the hall."));
        assert_eq!(settled(&client, &format!("d{number}")), "success");
        if number >= 4 {
            delete(&client, &format!("d{}", number - 4));
        }
        number += 1;
    };
    (0..8).for_each(|_| change());
    for round in 0..3 {
        let mut command = store.command(&["verify", "--store", PLACE]);
        let mut verifying = command.stdout(Stdio::piped()).spawn().expect("it runs");
        while verifying.try_wait().expect("a process").is_none() {
            change();
        }
        let output = verifying.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success() && said.contains("all sound"), "round {round}: {said}");
    }
}
