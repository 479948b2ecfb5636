//! `lodestone export` and `lodestone import` through kills; `full_disk` tests them on a full disk.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::backups::put_vectors;
use crate::process::http::Client;
use crate::process::lodestone;
use crate::process::patience::Patience;
use crate::{Installation, KEY, ask, files, settled, upload};

const KILLS: u32 = 6;
const ROWS: usize = 2000;

/// A command directed at a server.
fn verb(client: &Client, arguments: &[&str]) -> std::process::Command {
    let mut command = lodestone(arguments);
    command.env("LODESTONE_SERVER", format!("http://{}", client.address));
    command.env("LODESTONE_API_KEY", KEY).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(super) fn text(output: &Output) -> String {
    [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).concat()
}

/// Exports the tenants `large` (vectors) and `acme` (documents) of a server.
pub(super) fn exported(client: &Client, to: &Path) -> [PathBuf; 2] {
    put_vectors(client, ROWS);
    upload(client, "d0", "A wall of granite.");
    assert_eq!(settled(client, "d0"), "success");
    ["large", "acme"].map(|tenant| {
        let file = to.join(format!("{tenant}.jsonl"));
        let path = file.to_str().expect("UTF-8");
        let run = verb(client, &["export", path, "--tenant", tenant]).output().expect("it runs");
        assert!(run.status.success(), "{}", text(&run));
        file
    })
}

/// Imports an archive under another name; the output says whether it succeeded.
pub(super) fn import(client: &Client, archive: &Path, tenant: &str) -> Output {
    let path = archive.to_str().expect("UTF-8");
    verb(client, &["import", path, "--tenant", tenant]).output().expect("it runs")
}

/// Whether a tenant is listed.
pub(super) fn is_listed(client: &Client, tenant: &str) -> bool {
    let listed = ask(client, "GET", "/tenant/list", Value::Null).to_string();
    listed.contains(&format!("\"{tenant}\""))
}

/// Asserts that a tenant holds the vectors of `large`.
pub(super) fn assert_whole(client: &Client, tenant: &str) {
    let seen = |tenant: &str| {
        let stats = ask(client, "GET", &format!("/tenant/stats?tenant_id={tenant}"), Value::Null);
        let ids = [0, ROWS / 2, ROWS - 1].map(|row| format!("batch_{row}"));
        let ids = json!({"tenant_id": tenant, "chunk_ids": ids});
        let rows = ask(client, "POST", "/embeddings/retrieve_by_ids", ids);
        (stats["object_count"].clone(), rows)
    };
    assert_eq!(seen(tenant), seen("large"), "{tenant}");
    assert_eq!(seen(tenant).0, json!(ROWS));
}

fn bytes_below(dir: &Path) -> u64 {
    files(dir).iter().map(|file| file.metadata().map_or(0, |found| found.len())).sum()
}

/// Goal: an export does not disturb another export to the same file that is in progress, and
/// overwrites the remains of one that was interrupted.
#[test]
fn an_export_under_way_is_not_taken_over() {
    let test = "an_export_under_way_is_not_taken_over";
    let Some(installation) = Installation::new(test) else { return };
    let (_server, client) = installation.start();
    upload(&client, "d0", "A wall of granite.");
    assert_eq!(settled(&client, "d0"), "success");
    let (to, part) =
        (installation.dir.path().join("a.jsonl"), installation.dir.path().join("a.jsonl.part"));
    std::fs::write(&part, "of another").expect("a file");
    let other = std::fs::File::open(&part).expect("it is there");
    other.lock().expect("nobody else has it");
    let export = ["export", to.to_str().expect("UTF-8"), "--tenant", "acme"];
    let run = verb(&client, &export).output().expect("it runs");
    assert!(!run.status.success() && text(&run).contains("a.jsonl.part"), "{}", text(&run));
    assert_eq!(std::fs::read(&part).expect("it is still there"), b"of another");
    drop(other);
    let run = verb(&client, &export).output().expect("it runs");
    assert!(run.status.success() && to.exists() && !part.exists(), "{}", text(&run));
}

/// Goal: whenever the server is killed during an import, the tenant exists completely or not at
/// all, and if it does not exist, none of its files remain.
#[test]
fn an_import_that_is_killed_is_there_whole_or_not_at_all() {
    let test = "an_import_that_is_killed_is_there_whole_or_not_at_all";
    let Some(installation) = Installation::new(test) else { return };
    let (server, client) = installation.start();
    let [archive, _] = exported(&client, installation.dir.path());
    let data = installation.data();
    let before = bytes_below(&data);
    let whole = import(&client, &archive, "first");
    assert!(whole.status.success(), "{}", text(&whole));
    let one = bytes_below(&data) - before;
    server.kill();
    let mut there = 0;
    for number in 0..KILLS {
        let (mut server, client) = installation.start();
        let start = bytes_below(&data);
        let name = format!("copy-{number}");
        let path = archive.to_str().expect("UTF-8");
        let mut importing =
            verb(&client, &["import", path, "--tenant", &name]).spawn().expect("it runs");
        // The kill comes when this share of the tenant is on disk, or at the end.
        let target = start + one * u64::from(number) / u64::from(KILLS - 1);
        let mut patience = Patience::new();
        while importing.try_wait().expect("a child").is_none() {
            let bytes = bytes_below(&data);
            if bytes > target {
                break;
            }
            assert!(!patience.is_over(bytes), "{}", server.output());
        }
        server.kill();
        let told = importing.wait().expect("it ends").success();
        let (mut server, client) = installation.start();
        let is_there = is_listed(&client, &name);
        assert!(is_there || !told, "{name} was acknowledged");
        if is_there {
            assert_whole(&client, &name);
            there += 1;
        } else {
            // The remains of a crash are removed after the start.
            let mut patience = Patience::new();
            let most = before + (there + 2) * one;
            while bytes_below(&data) > most {
                assert!(!patience.is_over(bytes_below(&data)), "{}", server.output());
            }
        }
        server.terminate();
        assert!(server.ended().expect("it ends").success());
    }
    let (mut server, client) = installation.start();
    println!("{there} of {KILLS} imports were whole when the server was killed");
    assert!(there < u64::from(KILLS), "no kill came in time");
    let last = import(&client, &archive, "last");
    assert!(last.status.success(), "{}", text(&last));
    assert_whole(&client, "last");
    server.terminate();
    assert!(server.ended().expect("it ends").success());
    let (is_sound, said) = crate::damage::verify(&installation.data());
    assert!(is_sound, "{said}");
}
