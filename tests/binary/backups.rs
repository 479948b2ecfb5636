//! `lodestone backup` and `lodestone restore`, with and without a running server.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::http::Client;
use crate::process::lodestone;
use crate::process::patience::Patience;
use crate::{Installation, KEY, ask, files, settled, upload};

const QUERIES: usize = 200;
pub(super) const SOURCES: usize = 60;
const WORDS: [&str; 20] = [
    "granite", "harbour", "lantern", "meadow", "copper", "violin", "glacier", "orchard", "compass",
    "thunder", "velvet", "falcon", "ember", "canyon", "marble", "willow", "saffron", "anchor",
    "prairie", "beacon",
];

/// Runs a command; returns whether it succeeded, and its output.
fn run(arguments: &[&str]) -> (bool, String) {
    let mut command = lodestone(arguments);
    command.env("LODESTONE_API_KEY", KEY);
    let output = command.output().expect("it runs");
    let said = String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8");
    (output.status.success(), said)
}

pub(super) fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Backs up the directory of a stopped server; returns the backup's id and the output.
fn back_up(data: &Path, to: &Path, more: &[&str]) -> (String, String) {
    let arguments = [&["backup", text(to), "--data-dir", text(data)], more].concat();
    let (is_done, said) = run(&arguments);
    assert!(is_done, "{said}");
    (said.split(':').next().expect("an id").to_owned(), said)
}

fn restore(from: &Path, data: &Path, more: &[&str]) -> (bool, String) {
    run(&[&["restore", text(from), "--data-dir", text(data)], more].concat())
}

/// A sentence of generated words, different for each number.
pub(super) fn sentence(number: usize) -> String {
    let word = |step: usize| WORDS[(number * step + number / 7) % WORDS.len()];
    format!("{} {} near the {} of report {number}.", word(1), word(3), word(7))
}

pub(super) fn put(client: &Client, tenant: &str, id: &str, content: &str) {
    let path = format!("/upload/upload_text?tenant_id={tenant}");
    ask(client, "POST", &path, json!({"file_id": id, "content": content}));
}

fn remove(client: &Client, tenant: &str, id: &str) {
    let path = format!("/delete_source?tenant_id={tenant}");
    ask(client, "DELETE", &path, json!({"source_ids": [id]}));
}

fn listing(client: &Client, tenant: &str) -> String {
    let path = format!("/list/sources?tenant_id={tenant}&limit=1000");
    ask(client, "GET", &path, Value::Null).to_string()
}

pub(super) fn wait(client: &Client, tenant: &str) {
    let mut patience = Patience::new();
    loop {
        let path = format!("/jobs?limit=1&tenant_id={tenant}");
        let counts = ask(client, "GET", &path, Value::Null)["counts"].clone();
        if counts["queued"] == 0 && counts["in_progress"] == 0 {
            return;
        }
        assert!(!patience.is_over(counts.clone()), "jobs are stuck: {counts}");
    }
}

/// The listing, and the ten best results of many queries with their scores.
pub(super) fn seen(client: &Client, tenant: &str) -> Vec<String> {
    let mut seen = vec![listing(client, tenant)];
    for number in 0..QUERIES {
        let body =
            json!({"tenant_id": tenant, "query": sentence(number * 3 + 1), "max_chunks": 10});
        let chunks = ask(client, "POST", "/search/retrieve", body)["chunks"].clone();
        assert!(chunks.as_array().is_some_and(|chunks| !chunks.is_empty()), "{chunks}");
        seen.push(chunks.to_string());
    }
    seen
}

/// Another installation with the same model and no data directory yet.
pub(super) fn another(installation: &Installation) -> Installation {
    let dir = TempDir::new().expect("a temporary directory");
    Installation { dir, model: installation.model.clone() }
}

/// Goal: a backup that a server takes during uploads, replacements and deletions contains every
/// source that was acknowledged before it and none that was sent after it, and answers like the
/// server.
#[test]
fn a_backup_under_load_restores_what_was_there() {
    let test = "a_backup_under_load_restores_what_was_there";
    let Some(installation) = Installation::new(test) else { return };
    let to = installation.dir.path().join("backups");
    let (server, client) = installation.start_with(&[("LODESTONE_BACKUP_TO", text(&to))]);
    for number in 0..SOURCES {
        put(&client, "steady", &format!("s{number}"), &sentence(number));
    }
    wait(&client, "steady");
    for number in (0..SOURCES).step_by(5) {
        remove(&client, "steady", &format!("s{number}"));
    }
    let expected = seen(&client, "steady");
    let (next, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let address = format!("http://{}", client.address);
    let (before, after) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                let number = next.load(Ordering::SeqCst);
                put(&client, "busy", &format!("b{number}"), &sentence(number as usize));
                next.fetch_add(1, Ordering::SeqCst);
                if number % 4 == 3 {
                    remove(&client, "busy", &format!("b{}", number - 3));
                }
            }
        });
        let mut patience = Patience::new();
        while next.load(Ordering::SeqCst) < 12 {
            assert!(!patience.is_over(next.load(Ordering::SeqCst)), "nothing is uploaded");
        }
        let before = next.load(Ordering::SeqCst);
        let made = run(&["backup", text(&to), "--server", &address]);
        let after = next.load(Ordering::SeqCst) + 1;
        is_over.store(true, Ordering::SeqCst);
        assert!(made.0, "{}", made.1);
        (before, after)
    });
    let refused = run(&[
        "backup",
        "/tmp/elsewhere",
        "--data-dir",
        text(&installation.data()),
        "--server",
        &address,
    ]);
    assert!(!refused.0 && refused.1.contains("--backup-to"), "{}", refused.1);
    let wrong = run(&["backup", text(&to), "--server", &address, "--api-key", "wrong"]);
    assert!(!wrong.0 && wrong.1.contains("set a key with --api-key-file"), "{}", wrong.1);
    // The directory belongs to a server other than the one addressed, or to none.
    let copy = another(&installation);
    let (other, _) = copy.start();
    for other in [Some(other), None] {
        let data = copy.data();
        let (is_done, said) =
            run(&["backup", text(&to), "--data-dir", text(&data), "--server", &address]);
        assert!(!is_done && said.contains("not the one requested"), "{said}");
        drop(other);
    }
    std::fs::remove_dir_all(copy.data()).expect("a directory");
    server.kill();
    let (is_done, said) = restore(&to, &copy.data(), &[]);
    assert!(is_done, "{said}");
    let (is_sound, said) = crate::damage::verify(&copy.data());
    assert!(is_sound, "{said}");
    let (_server, client) = copy.start();
    assert_eq!(seen(&client, "steady"), expected);
    wait(&client, "busy");
    let listing = listing(&client, "busy");
    for number in 0..before {
        let is_deleted = number % 4 == 0 && number + 3 < before;
        let is_there = listing.contains(&format!("\"b{number}\""));
        // The last deletions may have come before or after the backup.
        let is_certain = number % 4 != 0 || is_deleted;
        assert!(!is_certain || is_there != is_deleted, "b{number} of {before}: {listing}");
    }
    assert!(!listing.contains(&format!("\"b{}\"", after + 1)), "{after}: {listing}");
}

type Damage = fn(&Path);

fn flip(path: &Path) {
    let mut bytes = std::fs::read(path).expect("bytes");
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    std::fs::write(path, bytes).expect("a writable file");
}

fn cut(path: &Path) {
    let bytes = std::fs::read(path).expect("bytes");
    std::fs::write(path, &bytes[..bytes.len() / 2]).expect("a writable file");
}

fn lose(path: &Path) {
    std::fs::remove_file(path).expect("a file");
}

fn lengthen(path: &Path) {
    let bytes = std::fs::read(path).expect("bytes");
    std::fs::write(path, [&bytes[..], b"more"].concat()).expect("a writable file");
}

/// Goal: a backup on top of one with any file changed, truncated or missing names that file and is
/// itself complete.
#[test]
fn a_backup_onto_a_damaged_one_names_the_damage_and_is_whole() {
    let test = "a_backup_onto_a_damaged_one_names_the_damage_and_is_whole";
    let Some(installation) = Installation::new(test) else { return };
    let (server, client) = installation.start();
    upload(&client, "d", &sentence(1));
    assert_eq!(settled(&client, "d"), "success");
    server.kill();
    let (to, data) = (installation.dir.path().join("backups"), installation.data());
    back_up(&data, &to, &[]);
    let objects = files(&to.join("objects"));
    assert!(objects.len() > 4, "{objects:?}");
    for (number, path) in objects.iter().enumerate() {
        let damage: [Damage; 3] = [flip, cut, lose];
        damage[number % 3](path);
        let (_, said) = back_up(&data, &to, &[]);
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let told = said.lines().find(|line| line.ends_with("are new")).expect("a summary");
        let id = told.split(':').next().expect("an id");
        assert!(said.contains(name) && said.contains("rewritten"), "{number}: {said}");
        let (is_sound, said) = run(&["backup", "verify", text(&to), "--at", id]);
        assert!(is_sound, "{number}: {said}");
    }
    let newest = files(&to.join("backups")).into_iter().max().expect("a manifest");
    flip(&newest);
    let (_, said) = back_up(&data, &to, &[]);
    assert!(said.contains("this backup cannot be restored"), "{said}");
    let (_, said) = back_up(&data, &to, &["--full"]);
    assert!(!said.contains("rewritten"), "{said}");
}

/// Goal: a backup without a damaged tenant or a lost original fails and says what it lacks, and the
/// errors of its parts are on standard error; so does restoring it, after what it has was restored.
#[test]
fn a_backup_that_lacks_something_fails_and_says_so() {
    let test = "a_backup_that_lacks_something_fails_and_says_so";
    let Some(installation) = Installation::new(test) else { return };
    let (to, data) = (installation.dir.path().join("backups"), installation.data());
    let (server, client) = installation.start();
    put(&client, "lost", "l", &sentence(1));
    wait(&client, "lost");
    let (originals, before) = (files(&data.join("v1/raw")), segments(&data));
    put(&client, "broken", "b", &sentence(2));
    wait(&client, "broken");
    server.kill();
    originals.iter().for_each(|path| lose(path));
    segments(&data).difference(&before).for_each(|path| flip(path));
    let output = lodestone(&["backup", text(&to), "--data-dir", text(&data)]).output();
    let output = output.expect("it runs");
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(!output.status.success() && said.contains("1 tenant, "), "{said}");
    assert!(said.contains("lost: not in this backup: 1 original"), "{said}");
    assert!(said.contains("broken: not in this backup: "), "{said}");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("the backup lacks 1 tenant and 1 original"), "{said}");
    assert!(said.contains("originals are lost"), "{said}");
    let (_, listed) = run(&["backup", "ls", text(&to)]);
    assert!(listed.contains("lacks 1 tenant and 1 original"), "{listed}");
    let (is_sound, said) = run(&["backup", "verify", text(&to)]);
    assert!(is_sound && said.contains(" lacks 1 tenant and 1 original, which were"), "{said}");
    let copy = another(&installation);
    let (is_done, said) = restore(&to, &copy.data(), &[]);
    assert!(!is_done && said.contains("1 tenant restored"), "{said}");
    assert!(said.contains("broken: not in this backup: "), "{said}");
    assert!(said.contains("the backup lacks 1 tenant and 1 original"), "{said}");
    let (_server, client) = copy.start();
    assert!(listing(&client, "lost").contains("\"l\""));
}

/// Goal: truncated or damaged backups are rejected, the message names the file, and nothing is
/// created.
#[test]
fn ten_damaged_backups_are_refused() {
    let Some(installation) = Installation::new("ten_damaged_backups_are_refused") else { return };
    let (server, client) = installation.start();
    for number in 0..3 {
        upload(&client, &format!("d{number}"), &sentence(number));
        assert_eq!(settled(&client, &format!("d{number}")), "success");
    }
    server.kill();
    let to = installation.dir.path().join("backups");
    let (id, _) = back_up(&installation.data(), &to, &[]);
    let manifest = to.join("backups").join(&id);
    let mut objects = files(&to.join("objects"));
    objects.sort_by_key(|path| std::fs::metadata(path).expect("a file").len());
    let (smallest, largest) = (objects[0].clone(), objects[objects.len() - 1].clone());
    let middle = objects[objects.len() / 2].clone();
    let begun: Damage = |path| {
        let started = path.parent().and_then(Path::parent).expect("a folder").join("started");
        std::fs::rename(path, started.join(path.file_name().expect("a name"))).expect("moved");
    };
    let cases: [(&PathBuf, Damage); 10] = [
        (&largest, flip),
        (&largest, cut),
        (&largest, lose),
        (&middle, flip),
        (&middle, lengthen),
        (&smallest, flip),
        (&smallest, lose),
        (&manifest, flip),
        (&manifest, cut),
        (&manifest, begun),
    ];
    for (number, (path, damage)) in cases.into_iter().enumerate() {
        let bytes = std::fs::read(path).expect("bytes");
        damage(path);
        let copy = another(&installation);
        let (is_done, said) = restore(&to, &copy.data(), &["--at", &id]);
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        assert!(!is_done && said.contains(name), "case {number}: {said}");
        assert!(files(copy.dir.path()).is_empty(), "case {number}: something was left");
        let (is_sound, said) = run(&["backup", "verify", text(&to), "--at", &id]);
        assert!(!is_sound && said.contains(name), "case {number}: {said}");
        let _ = std::fs::remove_file(to.join("started").join(&id));
        std::fs::write(path, bytes).expect("a writable file");
    }
    let (is_sound, said) = run(&["backup", "verify", text(&to)]);
    assert!(is_sound && said.contains("all sound"), "{said}");
}

/// Goal: a second backup adds only new data; every retained backup, and a single tenant under
/// another name, can be restored; expiring old backups removes only the files that no other needs.
#[test]
fn backups_grow_with_change_and_each_point_can_be_restored() {
    let test = "backups_grow_with_change_and_each_point_can_be_restored";
    let Some(installation) = Installation::new(test) else { return };
    let to = installation.dir.path().join("backups");
    let data = installation.data();
    let (server, client) = installation.start();
    for number in 0..SOURCES {
        put(&client, "acme", &format!("s{number}"), &sentence(number));
    }
    put(&client, "other", "o", "Another tenant.");
    wait(&client, "acme");
    wait(&client, "other");
    let expected = seen(&client, "acme");
    server.kill();
    let (first, _) = back_up(&data, &to, &[]);
    let (_, said) = back_up(&data, &to, &[]);
    assert!(said.contains("0 files and 0 bytes are new"), "{said}");
    let (server, client) = installation.start();
    upload(&client, "late", "A late report about saffron.");
    assert_eq!(settled(&client, "late"), "success");
    server.kill();
    let (third, said) = back_up(&data, &to, &["--with-keys"]);
    let (_, listed) = run(&["backup", "ls", text(&to)]);
    assert!(listed.lines().count() == 3 && listed.contains("keys"), "{listed} {said}");

    let copy = another(&installation);
    let renamed = ["--at", &first, "--tenant", "acme", "--as", "moved"];
    let (is_done, said) = restore(&to, &copy.data(), &renamed);
    assert!(is_done, "{said}");
    let (is_done, said) = restore(&to, &copy.data(), &[]);
    assert!(!is_done && said.contains("is not empty"), "{said}");
    let (server, client) = copy.start();
    assert_eq!(seen(&client, "moved"), expected);
    let tenants = ask(&client, "GET", "/tenant/list", Value::Null).to_string();
    assert!(!tenants.contains("\"other\"") && !tenants.contains("\"acme\""), "{tenants}");
    server.kill();

    let (is_done, said) = run(&["backup", "prune", text(&to), "--keep", "1"]);
    assert!(is_done && said.starts_with("2 backups removed"), "{said}");
    let (is_done, said) = restore(&to, &another(&installation).data(), &["--at", &first]);
    assert!(!is_done && said.contains(&first), "{said}");
    let copy = another(&installation);
    let (is_done, said) = restore(&to, &copy.data(), &["--at", &third]);
    assert!(is_done, "{said}");
    let (_server, client) = copy.start();
    assert_eq!(crate::found(&client, "saffron").iter().filter(|id| *id == "late").count(), 1);
}

#[test]
fn a_backup_keeps_the_metric_of_vectors() {
    let Some(installation) = Installation::new("a_backup_keeps_the_metric_of_vectors") else {
        return;
    };
    let to = installation.dir.path().join("backups");
    let (server, client) = installation.start();
    ask(&client, "POST", "/embeddings/create_tenant?tenant_id=l2&metric=l2", Value::Null);
    let vectors = json!({"embeddings": [[1, 0], [9, 1]], "ids": ["near", "far"]});
    ask(&client, "POST", "/upload/upload_embeddings?tenant_id=l2", vectors);
    server.kill();
    back_up(&installation.data(), &to, &[]);
    let copy = another(&installation);
    let (is_done, said) = restore(&to, &copy.data(), &["--tenant", "l2", "--as", "moved"]);
    assert!(is_done, "{said}");
    let (_server, client) = copy.start();
    let query = json!({"tenant_id": "moved", "embeddings": [0, 0]});
    let found = ask(&client, "POST", "/embeddings/search", query);
    assert_eq!((&found["chunk_ids"], &found["scores"][0]), (&json!(["near", "far"]), &json!(-1.0)));
}

/// Uploads vectors of a separate tenant: a few megabytes that are neither merged nor embedded.
pub(super) fn put_vectors(client: &Client, rows: usize) {
    ask(client, "POST", "/embeddings/create_tenant?tenant_id=large", json!({}));
    let component = |at: usize| ((at * 7919 + at / 31) % 2003) as f64 / 1000.0 - 1.0;
    let row = |row: usize| (0..384).map(|at| component(row * 384 + at)).collect::<Vec<f64>>();
    let vectors: Vec<Vec<f64>> = (0..rows).map(row).collect();
    let body = json!({"file_id": "batch", "embeddings": vectors});
    ask(client, "POST", "/upload/upload_embeddings?tenant_id=large", body);
}

/// Uploads, replaces and deletes sources until the server is gone or `is_over`; returns for each
/// source whether it must exist. Sources whose last response was lost are left out.
fn write_on(
    client: &Client,
    round: usize,
    is_over: &AtomicBool,
    written: &AtomicU64,
) -> BTreeMap<String, bool> {
    let mut known = BTreeMap::new();
    for number in 0.. {
        let (id, older) = (format!("r{round}-{number}"), format!("r{round}-{}", number / 2));
        let upload = "/upload/upload_text?tenant_id=busy";
        let put = |id: &str, number: usize| {
            client.call("POST", upload, &json!({"file_id": id, "content": sentence(number)}))
        };
        let (id, reply, is_there) = match number % 4 {
            1 => (older.clone(), put(&older, number + 1), true),
            3 => {
                let path = "/delete_source?tenant_id=busy";
                (older.clone(), client.call("DELETE", path, &json!({"source_ids": [older]})), false)
            }
            _ => (id.clone(), put(&id, number), true),
        };
        match reply {
            Ok(reply) if reply.status == 200 => known.insert(id, is_there),
            _ => known.remove(&id),
        };
        written.fetch_add(1, Ordering::SeqCst);
        if is_over.load(Ordering::SeqCst) {
            break;
        }
    }
    known
}

fn segments(data: &Path) -> BTreeSet<PathBuf> {
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|end| end == "seg");
    files(&data.join("v1")).into_iter().filter(is_segment).collect()
}

/// Goal: a server is killed in the middle of backups while sources are uploaded, replaced, deleted
/// and merged. Every interrupted backup is rejected by name, the next one is complete and the one
/// after it copies only new data, and nothing acknowledged is missing from a restore.
#[test]
fn backups_cut_by_kills_under_load_are_refused_and_the_next_is_whole() {
    const KILLS: usize = 3;
    const ROWS: usize = 1500;
    let test = "backups_cut_by_kills_under_load_are_refused_and_the_next_is_whole";
    let Some(installation) = Installation::new(test) else { return };
    let (to, data) = (installation.dir.path().join("backups"), installation.data());
    // At this rate a backup takes seconds.
    let slow = [("LODESTONE_BACKUP_TO", text(&to)), ("LODESTONE_BACKUP_RATE", "1MiB")];
    let (mut known, mut seen_segments, mut cut) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
    let (written, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    for round in 0..KILLS {
        let (server, client) = installation.start_with(&slow);
        if round == 0 {
            put_vectors(&client, ROWS);
        }
        let begun = written.load(Ordering::SeqCst);
        let writer = client.clone();
        std::thread::scope(|scope| {
            is_over.store(false, Ordering::SeqCst);
            let writing = scope.spawn(|| write_on(&writer, round, &is_over, &written));
            let mut patience = Patience::new();
            while written.load(Ordering::SeqCst) < begun + 12 {
                assert!(!patience.is_over(written.load(Ordering::SeqCst)), "nothing is written");
            }
            ask(&client, "POST", "/admin/backups", json!({}));
            let mut patience = Patience::new();
            loop {
                let state = ask(&client, "GET", "/admin/backups", Value::Null);
                assert_eq!(state["running"], true, "{state}");
                if state["copied_bytes"].as_u64() > Some(0) {
                    break;
                }
                assert!(!patience.is_over(state.clone()), "nothing is copied: {state}");
            }
            server.kill();
            is_over.store(true, Ordering::SeqCst);
            known.extend(writing.join().expect("the writer ends"));
        });
        seen_segments.extend(segments(&data));
        let (_, listed) = run(&["backup", "ls", text(&to)]);
        let id = listed.lines().last().and_then(|line| line.split_whitespace().next());
        let id = id.expect("an id").to_owned();
        assert!(listed.lines().all(|line| line.contains("incomplete")), "{listed}");
        let (is_done, said) = restore(&to, &another(&installation).data(), &["--at", &id]);
        assert!(!is_done && said.contains("incomplete") && said.contains(&id), "{said}");
        cut.push(id);
    }
    let (server, client) = installation.start_with(&[("LODESTONE_BACKUP_TO", text(&to))]);
    let address = format!("http://{}", client.address);
    let make = || {
        let (is_done, said) = run(&["backup", text(&to), "--server", &address]);
        assert!(is_done, "{said}");
        ask(&client, "GET", "/admin/backups", Value::Null)["last"]["backup"].clone()
    };
    wait(&client, "busy");
    let first = make();
    known.extend(std::thread::scope(|scope| {
        is_over.store(true, Ordering::SeqCst);
        scope.spawn(|| write_on(&client, KILLS, &is_over, &written)).join().expect("it ends")
    }));
    wait(&client, "busy");
    let expected = seen(&client, "busy");
    let second = make();
    let (of_first, of_second) = (first["new_bytes"].as_u64(), second["new_bytes"].as_u64());
    assert!(of_first > Some((ROWS * 384) as u64), "it is whole: {first}");
    assert!(of_second > Some(0) && of_second < of_first.map(|bytes| bytes / 2), "{second}");
    server.kill();
    let left = segments(&data);
    assert!(seen_segments.difference(&left).count() > 0, "no segment was merged away");

    let copy = another(&installation);
    let (is_done, said) = restore(&to, &copy.data(), &[]);
    assert!(is_done, "{said}");
    let (is_sound, said) = crate::damage::verify(&copy.data());
    assert!(is_sound, "{said}");
    let (_server, client) = copy.start();
    assert_eq!(seen(&client, "busy"), expected);
    for (id, is_there) in known {
        assert_eq!(expected[0].contains(&format!("\"{id}\"")), is_there, "{id}: {}", expected[0]);
    }
    let (is_done, said) = run(&["backup", "prune", text(&to), "--keep", "1"]);
    let removed = format!("{} backups removed", cut.len() + 1);
    assert!(is_done && said.starts_with(&removed), "{said}");
}
