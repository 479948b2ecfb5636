//! `lodestone backup` and `lodestone restore`, with a server and without.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::http::Client;
use crate::process::lodestone;
use crate::process::patience::Patience;
use crate::{Installation, KEY, ask, files, settled, upload};

const QUERIES: usize = 200;
const SOURCES: usize = 60;
const WORDS: [&str; 20] = [
    "granite", "harbour", "lantern", "meadow", "copper", "violin", "glacier", "orchard", "compass",
    "thunder", "velvet", "falcon", "ember", "canyon", "marble", "willow", "saffron", "anchor",
    "prairie", "beacon",
];

/// Runs a command; returns whether it succeeded and what it said.
fn run(arguments: &[&str]) -> (bool, String) {
    let mut command = lodestone(arguments);
    command.env("LODESTONE_API_KEY", KEY);
    let output = command.output().expect("it runs");
    let said = String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8");
    (output.status.success(), said)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Backs up a stopped server's directory; returns the id.
fn back_up(data: &Path, to: &Path, more: &[&str]) -> (String, String) {
    let arguments = [&["backup", text(to), "--data-dir", text(data)], more].concat();
    let (is_done, said) = run(&arguments);
    assert!(is_done, "{said}");
    (said.split(':').next().expect("an id").to_owned(), said)
}

fn restore(from: &Path, data: &Path, more: &[&str]) -> (bool, String) {
    run(&[&["restore", text(from), "--data-dir", text(data)], more].concat())
}

/// A sentence of words by number, different for each.
fn sentence(number: usize) -> String {
    let word = |step: usize| WORDS[(number * step + number / 7) % WORDS.len()];
    format!("{} {} near the {} of report {number}.", word(1), word(3), word(7))
}

fn put(client: &Client, tenant: &str, id: &str, content: &str) {
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

fn wait(client: &Client, tenant: &str) {
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

/// The listing, and the ten best results with their scores of many questions.
fn seen(client: &Client, tenant: &str) -> Vec<String> {
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

/// A second installation of the same model, whose data directory is still missing.
fn another(installation: &Installation) -> Installation {
    let dir = TempDir::new().expect("a temporary directory");
    Installation { dir, model: installation.model.clone() }
}

/// Goal: a backup that a server makes while sources are uploaded, replaced and deleted holds every
/// source that was acknowledged before, none that began after, and answers as the server does.
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
    server.kill();
    let copy = another(&installation);
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
        // The deletion of the last ones may have come before the backup or after it.
        let is_certain = number % 4 != 0 || is_deleted;
        assert!(!is_certain || is_there != is_deleted, "b{number} of {before}: {listing}");
    }
    assert!(!listing.contains(&format!("\"b{}\"", after + 1)), "{after}: {listing}");
}

/// Goal: backups that are cut off or damaged are refused, the file is named, and nothing is made.
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
    type Damage = fn(&Path);
    let flip: Damage = |path| {
        let mut bytes = std::fs::read(path).expect("bytes");
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
        std::fs::write(path, bytes).expect("a writable file");
    };
    let cut: Damage = |path| {
        let bytes = std::fs::read(path).expect("bytes");
        std::fs::write(path, &bytes[..bytes.len() / 2]).expect("a writable file");
    };
    let remove: Damage = |path| std::fs::remove_file(path).expect("a file");
    let longer: Damage = |path| {
        let bytes = std::fs::read(path).expect("bytes");
        std::fs::write(path, [&bytes[..], b"more"].concat()).expect("a writable file");
    };
    let begun: Damage = |path| {
        let started = path.parent().and_then(Path::parent).expect("a folder").join("started");
        std::fs::rename(path, started.join(path.file_name().expect("a name"))).expect("moved");
    };
    let cases: [(&PathBuf, Damage); 10] = [
        (&largest, flip),
        (&largest, cut),
        (&largest, remove),
        (&middle, flip),
        (&middle, longer),
        (&smallest, flip),
        (&smallest, remove),
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

/// Goal: a second backup adds what is new; any kept point and one tenant, renamed, can be restored;
/// old backups go with what only they need.
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

/// Goal: a backup whose server is killed is seen as cut off, and the next one is whole.
#[test]
fn a_backup_that_is_killed_is_cut_off_and_the_next_is_whole() {
    let test = "a_backup_that_is_killed_is_cut_off_and_the_next_is_whole";
    let Some(installation) = Installation::new(test) else { return };
    let to = installation.dir.path().join("backups");
    let slow = [("LODESTONE_BACKUP_TO", text(&to)), ("LODESTONE_BACKUP_RATE", "1MiB")];
    let (server, client) = installation.start_with(&slow);
    // At the rate above it takes seconds.
    upload(&client, "large", &sentence(1).repeat(60_000));
    upload(&client, "small", &sentence(2));
    ask(&client, "POST", "/admin/backups", json!({}));
    let mut patience = Patience::new();
    loop {
        let state = ask(&client, "GET", "/admin/backups", Value::Null);
        if state["copied_bytes"].as_u64() > Some(0) {
            assert_eq!(state["running"], true, "{state}");
            break;
        }
        assert!(!patience.is_over(state.clone()), "nothing is copied: {state}");
    }
    server.kill();
    let (_, listed) = run(&["backup", "ls", text(&to)]);
    assert!(listed.contains("cut off"), "{listed}");
    let id = listed.split_whitespace().next().expect("an id").to_owned();
    let (is_done, said) = restore(&to, &another(&installation).data(), &["--at", &id]);
    assert!(!is_done && said.contains("cut off"), "{said}");
    back_up(&installation.data(), &to, &[]);
    let copy = another(&installation);
    let (is_done, said) = restore(&to, &copy.data(), &[]);
    assert!(is_done, "{said}");
    // It was waiting, and is processed.
    let (_server, client) = copy.start();
    assert_eq!(settled(&client, "small"), "success");
}
