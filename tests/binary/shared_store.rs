//! A server whose data are in a bucket: its machine is lost, its store fails, another server takes
//! over.

#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use lodestone_bucket::{BucketBlobs, SharedStoreError, check_prefix, mark_prefix, probe};
use lodestone_catalog::{Catalog, CatalogOptions};
use lodestone_engine::backup::{Location, Opener};
use lodestone_engine::copy_store;
use lodestone_engine::settings::BucketSettings;
use lodestone_fetch::Authorities;
use lodestone_fetch::bucket::{Bucket, BucketOptions, Condition};
use lodestone_io::store::{BlobStore, Key, conformance};
use lodestone_io::{DataDir, RealDisk};
use lodestone_types::{RandomIds, SystemClock, Timestamp};
use serde_json::{Value, json};

use crate::backups::{another, put, seen, sentence, text, wait};
use crate::exposition::Scrape;
use crate::process::http::Client;
use crate::process::patience::Patience;
use crate::s3::{Kind, Store};
use crate::{Installation, ask, files, found, settled, upload};

pub const PLACE: &str = "s3://backups/data/prod";
/// The variable that tells a child process its bucket.
const OWN_BUCKET: &str = "BUCKET_OF_THIS_TEST";

/// Re-runs this test in a child process whose environment contains the store's credentials; returns
/// whether this process is the child.
pub fn is_child(module: &str, test: &str, store: Option<&Store>) -> bool {
    let Some(store) = store else { return std::env::var_os(OWN_BUCKET).is_some() };
    let program = std::env::current_exe().expect("a path");
    let mut child = Command::new(program);
    child.args(["--exact", &format!("{module}::{test}"), "--nocapture"]);
    child.envs(store.variables()).env(OWN_BUCKET, store.place(""));
    let output = child.output().expect("it runs");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    false
}

pub fn bucket(prefix: &str) -> Arc<Bucket> {
    let own = std::env::var(OWN_BUCKET).expect("this is a child");
    let url = format!("{own}{prefix}").parse().expect("a place");
    let clock = Arc::new(SystemClock);
    let pause = Box::new(|time| {
        std::thread::park_timeout(time);
        false
    });
    let (options, authorities) = (BucketOptions::default(), Authorities::default());
    Arc::new(Bucket::new(url, &options, &authorities, clock, pause).expect("a bucket"))
}

fn blobs(prefix: &str, root: &Path, copies_bytes_max: u64) -> BucketBlobs {
    let data = Arc::new(DataDir::open(root, Arc::new(RealDisk)).expect("a directory"));
    BucketBlobs::open(bucket(prefix), data, Some(copies_bytes_max)).expect("blobs")
}

/// Goal: blobs in a bucket have the guarantees of blobs in a directory, with and without local
/// copies.
#[test]
fn blobs_in_a_bucket_conform() {
    conform(Kind::S3, "shared_store", "blobs_in_a_bucket_conform");
}

pub fn conform(kind: Kind, module: &str, test: &str) {
    if !is_child(module, test, None) {
        let Some(store) = Store::of(kind, test) else { return };
        is_child(module, test, Some(&store));
        return;
    }
    let root = tempfile::tempdir().expect("a directory");
    conformance::run(&blobs("conformance", root.path(), 1 << 20));
    conformance::run(&blobs("copied", root.path(), 1 << 20).with_copies_of(|_| true));
    // Larger than a part and a range: sent and fetched in several pieces.
    let large: Vec<u8> = (0..50_000_001_u32).map(|at| (at % 251) as u8).collect();
    let key = Key::parse("v1/c/one/s/large.seg").expect("a key");
    blobs("large", root.path(), 0).put(&key, &large).expect("it is sent");
    let elsewhere = tempfile::tempdir().expect("a directory");
    let again = blobs("large", elsewhere.path(), 1 << 30);
    assert!(again.map(&key).expect("it is fetched")[..] == large[..]);
    assert_eq!((again.copies().misses, again.copies().bytes), (1, large.len() as u64));
    fetch_ahead(root.path());
}

/// Goal: blobs that are fetched ahead are not fetched again when they are mapped, however small the
/// budget of the copies is.
fn fetch_ahead(root: &Path) {
    let small = blobs("small", root, 0);
    let keys =
        ["a", "b", "c"].map(|name| Key::parse(&format!("v1/c/one/s/{name}.seg")).expect("a key"));
    keys.iter().for_each(|key| small.put(key, b"segment").expect("it is sent"));
    let kept = small.prefetch(&keys);
    let fetched = small.copies().misses;
    let mapped = keys.each_ref().map(|key| small.map(key).expect("it is there"));
    drop(kept);
    assert_eq!((small.copies().misses, small.copies().copies), (fetched, 3));
    drop(mapped);
}

/// Goal: a store is refused, with nothing left in it, if it does not honour the conditional writes
/// on which commits depend, even if it honours them whenever requests are not concurrent.
#[test]
fn a_store_that_cannot_keep_commits_apart_is_refused() {
    refuse_unfit(Kind::S3, "shared_store", "a_store_that_cannot_keep_commits_apart_is_refused");
}

pub fn refuse_unfit(kind: Kind, module: &str, test: &str) {
    if is_child(module, test, None) {
        let bucket = bucket("probed");
        assert_eq!(probe(&bucket, "token").expect("it is fit").races, 8);
        assert!(bucket.is_empty().expect("an answer"), "nothing is left");
        bucket.put("probe/cut-off/0", b"", Condition::None).expect("it is written");
        assert!(!check_prefix(&bucket, None).expect("it is empty"));
        for now in [1, 2].map(Timestamp) {
            let since = mark_prefix(&bucket, "token", None, now).expect("it is fit");
            assert_eq!(since, Timestamp(1), "the time of the first mark");
        }
        bucket
            .put(
                "lodestone-store",
                br#"{"format": 2, "since": 1, "probed": {"races": 8, "racers": 16}}"#,
                Condition::None,
            )
            .expect("it is written");
        let error =
            mark_prefix(&bucket, "token", None, Timestamp(1)).expect_err("of a later program");
        assert!(error.to_string().contains("format 2"), "{error}");
        bucket.put("lodestone-store", b"?", Condition::None).expect("it is written");
        assert!(matches!(
            mark_prefix(&bucket, "token", None, Timestamp(1)),
            Err(SharedStoreError::Unfit { .. })
        ));
        bucket.remove("lodestone-store").expect("it is removed");
        bucket.put("copying", b"/elsewhere", Condition::None).expect("it is written");
        let error =
            mark_prefix(&bucket, "token", None, Timestamp(1)).expect_err("it is no whole copy");
        assert!(error.to_string().contains("unfinished copy of /elsewhere"), "{error}");
        bucket.remove("copying").expect("it is removed");
        bucket.put("foreign", b"", Condition::None).expect("it is written");
        let error =
            mark_prefix(&bucket, "token", None, Timestamp(1)).expect_err("it holds other things");
        assert!(error.to_string().contains("is not empty"), "{error}");
        return;
    }
    let Some(store) = Store::of(kind, test) else { return };
    is_child(module, test, Some(&store));
    let place = store.place("data/prod");
    // Azurite can only be made to ignore the condition.
    let ways = if kind == Kind::Azure { &["ignored"][..] } else { &["ignored", "racy"] };
    for how in ways {
        store.break_conditions(how);
        let (is_done, said) = store.run(&["doctor", "--store", &place]);
        assert!(
            !is_done && said.contains("does not enforce conditional creation"),
            "{how}: {said}"
        );
    }
    store.break_conditions("kept");
    let (_, said) = store.run(&["doctor", "--store", &place]);
    assert!(
        said.contains("of 16 concurrent requests exactly one created a name, 8 times"),
        "{said}"
    );
}

/// The environment of a server over the bucket.
fn variables(store: &Store) -> Vec<(&'static str, String)> {
    store.variables().into_iter().chain([("LODESTONE_STORE", store.place("data/prod"))]).collect()
}

fn pairs<'a>(variables: &'a [(&'static str, String)]) -> Vec<(&'a str, &'a str)> {
    variables.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

fn segments_in(data: &Path) -> Vec<PathBuf> {
    let all = files(&data.join("cache/blobs")).into_iter();
    all.filter(|path| path.extension().is_some_and(|end| end == "seg")).collect()
}

/// Goal: with a store that fails every third request, a server whose process is killed and whose
/// disk is lost is succeeded by one on another disk that has everything that was acknowledged:
/// sources, including unprocessed ones, deletions, keys, memories and limits; and repeatedly.
#[test]
fn a_lost_machine_loses_nothing_that_was_acknowledged() {
    lose_machines(Kind::S3, "a_lost_machine_loses_nothing_that_was_acknowledged");
}

pub fn lose_machines(kind: Kind, test: &str) {
    let Some(store) = Store::of(kind, test) else { return };
    let Some(mut installation) = Installation::new(test) else { return };
    let variables = variables(&store);
    let (mut key, mut expected) = (None, None);
    for round in 0..3 {
        store.fail(0);
        let (server, client) = installation.start_with(&pairs(&variables));
        if let (Some(key), Some(expected)) = (&key, &expected) {
            let client = Client { key: String::clone(key), ..client.clone() };
            wait(&client, "acme");
            assert_eq!(seen(&client, "acme"), *expected, "round {round}");
            let ids = (0..round).map(|number| format!("late{number}")).collect::<Vec<_>>();
            for id in ids {
                assert_eq!(settled(&client, &id), "success", "what was accepted is processed");
            }
        }
        store.fail(3);
        for number in 0..8 {
            put(&client, "acme", &format!("r{round}s{number}"), &sentence(round * 8 + number));
        }
        wait(&client, "acme");
        let gone = json!({"source_ids": [format!("r{round}s0")]});
        ask(&client, "DELETE", "/delete_source?tenant_id=acme", gone);
        let body = json!({"name": format!("round {round}"), "role": "admin"});
        let made = ask(&client, "POST", "/admin/api_keys", body);
        key = Some(made["api_key"].as_str().expect("a key").to_owned());
        expected = Some(seen(&client, "acme"));
        let late = format!("late{round}");
        put(&client, "acme", &late, &format!("The {late} harbour opens at {round} o'clock."));
        server.kill();
        installation = another(&installation);
        if round < 2 {
            // Include the upload that was accepted last in what the next round expects.
            store.fail(0);
            let (server, client) = installation.start_with(&pairs(&variables));
            assert_eq!(settled(&client, &late), "success");
            expected = Some(seen(&client, "acme"));
            server.kill();
            installation = another(&installation);
        }
    }
}

/// Goal: while the store is unreachable, searches continue and nothing is acknowledged; once it is
/// back, the same process accepts everything again, and the uploads it refused are either absent or
/// complete.
#[test]
fn a_store_that_is_away_stops_uploads_and_not_searches() {
    let test = "a_store_that_is_away_stops_uploads_and_not_searches";
    let Some(store) = Store::start(test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let variables = variables(&store);
    let (server, client) = installation.start_with(&pairs(&variables));
    upload(&client, "before", "The granite quarry closed in 1988.");
    assert_eq!(settled(&client, "before"), "success");
    store.fail(1);
    let body = json!({"file_id": "during", "content": "The lantern room is on floor 9."});
    let path = "/upload/upload_text?tenant_id=acme";
    let reply = client.call("POST", path, &body).expect("an answer");
    assert_eq!(reply.status, 503, "{}", reply.json());
    let gone = json!({"source_ids": ["before"]});
    let reply = client.call("DELETE", "/delete_source?tenant_id=acme", &gone).expect("an answer");
    assert_eq!(reply.status, 503, "{}", reply.json());
    assert_eq!(found(&client, "granite"), ["before"], "searches go on");
    let mut patience = Patience::new();
    loop {
        let state = ask(&client, "GET", "/readyz", Value::Null);
        if state["components"]["storage"].as_str().is_some_and(|told| told.contains("bucket")) {
            break;
        }
        assert!(!patience.is_over(()), "{state}");
    }
    store.fail(0);
    let mut patience = Patience::new();
    loop {
        let reply = client.call("POST", path, &body).expect("an answer");
        if reply.status == 200 {
            break;
        }
        assert!(!patience.is_over(reply.status), "{}", reply.json());
    }
    assert_eq!(settled(&client, "during"), "success");
    assert_eq!(found(&client, "lantern"), ["during"]);
    ask(&client, "DELETE", "/delete_source?tenant_id=acme", gone);
    assert!(found(&client, "granite").is_empty());
    server.kill();
    let elsewhere = another(&installation);
    let (_server, client) = elsewhere.start_with(&pairs(&variables));
    assert_eq!(found(&client, "lantern"), ["during"]);
    assert!(found(&client, "granite").is_empty());
}

/// Goal: a second server on the same prefix is refused while the first one lives; one that is
/// suspended for longer than its lease is succeeded by another, and on waking up exits without
/// having acknowledged anything more.
#[test]
fn a_second_server_is_refused_and_a_sleeping_one_is_fenced() {
    let test = "a_second_server_is_refused_and_a_sleeping_one_is_fenced";
    let Some(store) = Store::start(test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let variables = variables(&store);
    let (mut first, client) = installation.start_with(&pairs(&variables));
    upload(&client, "a", "The copper roof was laid in March.");
    assert_eq!(settled(&client, "a"), "success");
    let elsewhere = another(&installation);
    let mut second = store.command(&["serve", "--listen", "127.0.0.1:0", "--store", PLACE]);
    second.arg("--data-dir").arg(elsewhere.data()).arg("--model-dir").arg(&elsewhere.model);
    let output = second.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("is in use by process"), "{said}");
    for standby in ["false", "true"] {
        let mut doctor = store.command(&["doctor", "--store", PLACE, "--standby", standby]);
        doctor.arg("--data-dir").arg(elsewhere.data()).arg("--model-dir").arg(&elsewhere.model);
        doctor.args(["--device", "cpu", "--listen", "127.0.0.1:0"]);
        let output = doctor.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_refused = said.contains("is in use by process");
        assert_eq!((output.status.success(), is_refused), (standby == "true", standby == "false"));
    }

    let signal = |name| rustix::process::kill_process(process_of(&first), name).expect("it lives");
    signal(rustix::process::Signal::STOP);
    let (_second, next) = elsewhere.start_with(&pairs(&variables));
    assert_eq!(found(&next, "copper"), ["a"]);
    upload(&next, "b", "The violin hangs in the second hall.");
    assert_eq!(settled(&next, "b"), "success");
    signal(rustix::process::Signal::CONT);
    let body = json!({"file_id": "c", "content": "The meadow is mown in June."});
    if let Ok(reply) = client.call("POST", "/upload/upload_text?tenant_id=acme", &body) {
        assert_ne!(reply.status, 200, "{}", reply.json());
    }
    let ended = first.ended().expect("it ends by itself");
    assert!(!ended.success(), "{}", first.output());
    assert!(first.output().contains("another process has taken over s3://"), "{}", first.output());
    assert!(found(&next, "meadow").is_empty());
    assert_eq!(found(&next, "violin"), ["b"]);
}

/// Goal: a writer whose successor ended before writing anything accepts no uploads for the time
/// being, and resumes once the successor is considered gone.
#[test]
fn a_writer_goes_on_behind_a_successor_that_ended() {
    let test = "a_writer_goes_on_behind_a_successor_that_ended";
    if !is_child("shared_store", test, None) {
        let Some(store) = Store::start(test) else { return };
        is_child("shared_store", test, Some(&store));
        return;
    }
    let Some(installation) = Installation::new(test) else { return };
    let waits = [("LODESTONE_STORE", PLACE), ("LODESTONE_STANDBY", "true")];
    let (_server, client) = installation.start_with(&waits);
    upload(&client, "a", "The copper roof was laid in March.");
    assert_eq!(settled(&client, "a"), "success");
    let taken = bucket("data/prod").put("owner", b"another 0", Condition::None);
    taken.expect("it is written");
    let body = json!({"file_id": "b", "content": "The violin hangs in the second hall."});
    let until = |status: u16| {
        let mut patience = Patience::new();
        loop {
            let reply = client.call("POST", "/upload/upload_text?tenant_id=acme", &body);
            let reply = reply.expect("an answer");
            if reply.status == status {
                return reply.json()["reason"].clone();
            }
            assert!(!patience.is_over(reply.status), "not {status}: {}", reply.json());
        }
    };
    assert_eq!(until(503), json!("node_behind"));
    until(200);
    assert_eq!(settled(&client, "b"), "success");
    assert_eq!([found(&client, "copper"), found(&client, "violin")], [["a"], ["b"]]);
}

fn process_of(server: &crate::process::Server) -> rustix::process::Pid {
    rustix::process::Pid::from_raw(server.id() as i32).expect("a process")
}

/// Goal: a local copy that is damaged on disk is fetched again, and nothing is quarantined;
/// emptying the folder of copies costs only time.
#[test]
fn a_damaged_copy_is_fetched_again() {
    let test = "a_damaged_copy_is_fetched_again";
    let Some(store) = Store::start(test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let variables = variables(&store);
    let (server, client) = installation.start_with(&pairs(&variables));
    upload(&client, "a", "The saffron market opens on Tuesdays.");
    assert_eq!(settled(&client, "a"), "success");
    server.kill();
    let copies = segments_in(&installation.data());
    assert_eq!(copies.len(), 1);
    let originals = files(&installation.data().join("cache/blobs/v1/raw"));
    assert_eq!(originals.len(), 1);
    for copy in [&copies[0], &originals[0]] {
        let mut bytes = fs::read(copy).expect("a copy");
        // After the header of a segment, and at the end of an original's content.
        let sound = 4096.min(bytes.len() - 8);
        bytes.iter_mut().skip(sound).for_each(|byte| *byte ^= 0x5a);
        fs::write(copy, &bytes).expect("it is written");
    }
    let (server, client) = installation.start_with(&pairs(&variables));
    assert_eq!(found(&client, "saffron"), ["a"]);
    let body = json!({"tenant_id": "acme", "file_id": "a"});
    let fetched = ask(&client, "POST", "/fetch/fetch_content", body);
    assert_eq!(fetched["file_content"], "The saffron market opens on Tuesdays.");
    let state = ask(&client, "GET", "/readyz", Value::Null);
    assert_eq!(state["components"]["index"], "ok", "{state}");
    server.kill();
    fs::remove_dir_all(installation.data().join("cache")).expect("it is removed");
    let (mut server, client) = installation.start_with(&pairs(&variables));
    assert_eq!(found(&client, "saffron"), ["a"]);
    assert!(!server.output().contains("quarantined"), "{}", server.output());
}

/// Goal: an upload makes exactly the documented number of store requests: one object for the
/// original, three for the steps of its job, the segment and the manifest, and one read of a
/// manifest to check that nobody else has committed. A search served from local copies makes none.
#[test]
fn requests_to_the_store_are_counted() {
    let test = "requests_to_the_store_are_counted";
    let Some(store) = Store::start(test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let variables = variables(&store);
    let (_server, client) = installation.start_with(&pairs(&variables));
    upload(&client, "a", "The prairie station was built of willow.");
    assert_eq!(settled(&client, "a"), "success");
    let counts = || {
        let text = client.call("GET", "/metrics", &Value::Null).expect("an answer").body;
        let scrape = Scrape::read(&String::from_utf8(text).expect("UTF-8"));
        let of = |kind| scrape.get(&format!("store_requests_total{{kind=\"{kind}\"}}")) as u64;
        ["put", "get", "head"].map(of)
    };
    // Every five seconds the owner's record is read and renewed, and a successor is looked for.
    let spent = |before: [u64; 3], since: Instant| {
        let (now, rounds) = (counts(), since.elapsed().as_secs() / 5 + 1);
        ([0, 1, 2].map(|kind| now[kind] - before[kind]), rounds)
    };
    let (mut before, mut since) = (counts(), Instant::now());
    assert!(before[0] > 0 && before[1] > 0, "{before:?}");
    assert_eq!(found(&client, "prairie"), ["a"]);
    let ([puts, gets, heads], rounds) = spent(before, since);
    let is_near = puts <= rounds && gets <= 2 * rounds && heads == 0;
    assert!(is_near, "a search of what is near: {puts}, {gets}");
    (before, since) = (counts(), Instant::now());
    upload(&client, "b", "The marble anchor lies in the yard.");
    assert_eq!(settled(&client, "b"), "success");
    let ([puts, gets, heads], rounds) = spent(before, since);
    assert!((6..=6 + rounds).contains(&puts) && heads == 0, "{puts}, {heads}");
    assert!((1..=2 + 2 * rounds).contains(&gets), "{gets}");
}

/// Goal: the data of a stopped server can be copied to a bucket, served there and copied back;
/// destinations that contain anything else are refused.
#[test]
fn data_move_to_a_bucket_and_back() {
    let test = "data_move_to_a_bucket_and_back";
    let Some(store) = Store::start(test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let (server, client) = installation.start();
    for number in 0..6 {
        put(&client, "acme", &format!("s{number}"), &sentence(number));
    }
    wait(&client, "acme");
    let expected = seen(&client, "acme");
    server.kill();
    let data = installation.data();
    let local = data.to_str().expect("UTF-8");
    let variables = variables(&store);
    let mut refused = store.command(&["serve", "--listen", "127.0.0.1:0", "--store", PLACE]);
    refused.arg("--data-dir").arg(&data).arg("--model-dir").arg(&installation.model);
    let output = refused.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("lodestone store copy"), "{said}");

    let (is_done, said) = store.run(&["store", "copy", local, PLACE]);
    assert!(is_done && said.contains(PLACE), "{said}");
    let (is_done, said) = store.run(&["store", "copy", local, PLACE]);
    assert!(!is_done && said.contains("already contains the data of a server"), "{said}");
    let elsewhere = another(&installation);
    let (server, client) = elsewhere.start_with(&pairs(&variables));
    assert_eq!(seen(&client, "acme"), expected);
    put(&client, "acme", "there", "The beacon was lit in the bucket.");
    wait(&client, "acme");
    let expected = seen(&client, "acme");
    server.kill();
    let mut other = store.command(&["serve", "--listen", "127.0.0.1:0"]);
    other.args(["--store", "s3://backups/other"]).arg("--data-dir").arg(elsewhere.data());
    let output = other.arg("--model-dir").arg(&installation.model).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("is the cache of s3://"), "{said}");
    let (is_sound, said) = crate::damage::verify(&elsewhere.data());
    assert!(!is_sound && said.contains("is the cache of s3://"), "{said}");

    let back = another(&installation);
    let (is_done, said) =
        store.run(&["store", "copy", PLACE, back.data().to_str().expect("UTF-8")]);
    assert!(is_done, "{said}");
    let (is_sound, said) = crate::damage::verify(&back.data());
    assert!(is_sound, "{said}");
    let (_server, client) = back.start();
    assert_eq!(seen(&client, "acme"), expected);
    let (is_done, said) = store.run(&["store", "copy", local, local]);
    assert!(!is_done && said.contains("one location must be a folder"), "{said}");
}

fn write(root: &Path, name: &str, content: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
    fs::write(path, content).expect("it is written");
}

fn remove_catalog(root: &Path) {
    for path in files(root) {
        let name = path.strip_prefix(root).expect("it is below").to_str().expect("UTF-8");
        if name.starts_with("catalog.sqlite") {
            fs::remove_file(&path).expect("it is removed");
        }
    }
}

fn copy(from: &str, to: &str) -> Result<(), String> {
    let at = |place: &str| Location::parse(place).expect("a place");
    let opener =
        Opener { settings: BucketSettings::default(), authorities: Authorities::default() };
    let copied = copy_store(&at(from), &at(to), &opener, &mut |_| {});
    copied.map(drop).map_err(|error| error.to_string())
}

/// Goal: a resumed copy contains what the source has by then, although blobs were deleted and a
/// number was given to another manifest in between. Other things at the destination stay, and data
/// that are no unfinished copy are refused.
/// Method: the first attempt ends at a catalog that cannot be read; in the other direction, the
/// state of an interrupted copy is imitated.
#[test]
fn a_resumed_copy_drops_what_the_source_no_longer_has() {
    let test = "a_resumed_copy_drops_what_the_source_no_longer_has";
    if !is_child("shared_store", test, None) {
        let Some(store) = Store::start(test) else { return };
        is_child("shared_store", test, Some(&store));
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let (from, back) = (dir.path().join("from"), dir.path().join("back"));
    let manifest = "v1/c/kept/m/00000000000000000002";
    let kept = [manifest, "v1/raw/kept/original", "v1/t/kept"];
    let newer = "v1/c/kept/m/00000000000000000003";
    let gone = ["v1/t/gone", "v1/raw/gone/original", "v1/c/gone/s/one.seg", newer];
    kept.iter().chain(&gone).for_each(|name| write(&from, name, "before"));
    write(&from, "catalog.sqlite", "this is not a catalog");
    let cut = copy(text(&from), PLACE).expect_err("the catalog cannot be read");
    let target = bucket("data/prod");
    let is_there = |key: &str| target.get(key).expect("an answer").is_some();
    assert!(is_there("copying") && gone.into_iter().all(is_there), "{cut}");
    let origin = target.get("copying").expect("an answer").expect("an origin");
    target.put("notes", b"of a person", Condition::None).expect("it is written");

    remove_catalog(&from);
    let (clock, ids) = (Arc::new(SystemClock), Arc::new(RandomIds));
    let catalog =
        Catalog::open(&from.join("catalog.sqlite"), CatalogOptions::default(), clock, ids);
    drop(catalog.expect("a catalog"));
    gone.iter().for_each(|name| fs::remove_file(from.join(name)).expect("it is removed"));
    write(&from, manifest, "after!");
    copy(text(&from), PLACE).expect("a copy");
    let listed = target.list("v1/").expect("a listing").into_iter().map(|(key, _)| key);
    let listed: Vec<String> = listed.filter(|key| !key.starts_with("v1/catalog")).collect();
    assert_eq!(listed, kept);
    assert_eq!(target.get(manifest).expect("an answer").as_deref(), Some(&b"after!"[..]));
    assert!(is_there("notes") && !is_there("copying"));

    // Interrupted after the catalog was copied, before the last step.
    target.put("copying", &origin, Condition::None).expect("it is written");
    write(&from, "v1/raw/kept/later", "later");
    copy(text(&from), PLACE).expect("a copy");
    assert!(is_there("v1/raw/kept/later") && !is_there("copying"));

    let other = bucket("other");
    mark_prefix(&other, "token", None, Timestamp(1)).expect("it is fit");
    other.put("v1/t/tenant", b"of another server", Condition::None).expect("it is written");
    let refused = copy(text(&from), "s3://backups/other").expect_err("it is no copy");
    assert!(refused.contains("not an unfinished copy of"), "{refused}");
    assert!(other.get("v1/t/tenant").expect("an answer").is_some());
    assert!(other.get("copying").expect("an answer").is_none());

    copy(PLACE, text(&back)).expect("a copy");
    remove_catalog(&back);
    write(&back, "catalog.sqlite", "half of it");
    write(&back, "copying", &target.place());
    gone.iter().chain([&manifest]).for_each(|name| write(&back, name, "before"));
    write(&back, "notes", "of a person");
    copy(PLACE, text(&back)).expect("a copy");
    assert!(!gone.iter().any(|name| back.join(name).exists()), "{:?}", files(&back));
    assert_eq!(fs::read(back.join(manifest)).expect("a blob"), b"after!");
    assert!(back.join("notes").exists());
    assert!(fs::read(back.join("catalog.sqlite")).expect("a catalog").starts_with(b"SQLite"));
}
