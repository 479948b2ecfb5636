//! Damaged data directories: the findings of `lodestone verify`, and the reaction of a server.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use crate::process::http::Client;
use crate::process::lodestone;
use crate::process::patience::Patience;
use crate::{Installation, ask, files, found, settled, upload};

/// Number of evenly spaced positions in a file at which a byte is changed.
const FLIPS: usize = 24;

/// Whether the directory is sound, and the output of `verify`.
pub(crate) fn verify(data: &Path) -> (bool, String) {
    let output = lodestone(&["verify", "--data-dir"]).arg(data).output().expect("it runs");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).expect("UTF-8"))
}

/// Goal: a changed byte is detected anywhere in any file written by a commit or an upload.
#[test]
fn verify_finds_a_damaged_byte() {
    let Some(installation) = Installation::new("verify_finds_a_damaged_byte") else { return };
    let (server, client) = installation.start();
    upload(&client, "doc", &"A long text about wind and water. ".repeat(300));
    assert_eq!(settled(&client, "doc"), "success");
    server.kill();
    let (is_sound, said) = verify(&installation.data());
    assert!(is_sound && said.contains("all sound"), "{said}");

    let stored = files(&installation.data().join("v1"));
    let is_segment = |path: &Path| path.extension().is_some_and(|ending| ending == "seg");
    assert!(stored.iter().any(|path| is_segment(path)), "{stored:?}");
    let newest = |path: &Path| !stored.iter().any(|p| p.parent() == path.parent() && **p > *path);
    for path in stored.iter().filter(|path| is_segment(path) || newest(path)) {
        let bytes = std::fs::read(path).expect("a readable file");
        for at in (0..FLIPS).map(|n| n * (bytes.len() - 1) / (FLIPS - 1)) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x20;
            std::fs::write(path, damaged).expect("a writable file");
            let (is_sound, said) = verify(&installation.data());
            assert!(!is_sound, "{} byte {at}: {said}", path.display());
            assert!(said.contains("acme: "), "the tenant is named: {said}");
        }
        std::fs::write(path, &bytes).expect("a writable file");
    }
    let (is_sound, said) = verify(&installation.data());
    assert!(is_sound, "{said}");
}

/// Goal: the original of a job that a restart would resume is verified as well.
#[test]
fn verify_finds_a_damaged_original_that_waits() {
    let Some(installation) = Installation::new("verify_finds_a_damaged_original_that_waits") else {
        return;
    };
    let (server, client) = installation.start();
    let sentence = "The last of many documents is still waiting when the power fails. ";
    (0..60).for_each(|n| upload(&client, &format!("d{n}"), &sentence.repeat(40)));
    server.kill();
    let (is_sound, said) = verify(&installation.data());
    assert!(is_sound && said.contains("originals of unfinished jobs"), "{said}");
    // File names begin with the time, so the last one is the newest.
    let raw = files(&installation.data().join("v1/raw"));
    let newest = raw.last().expect("originals");
    let mut bytes = std::fs::read(newest).expect("a readable file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(newest, bytes).expect("a writable file");
    let (is_sound, said) = verify(&installation.data());
    assert!(!is_sound && said.contains("the waiting original of"), "{said}");
}

fn chunks(client: &Client) -> (BTreeSet<(String, String)>, bool) {
    let body = json!({"tenant_id": "acme", "query": "everywhere", "max_chunks": 1001, "alpha": 0});
    let reply = ask(client, "POST", "/search/retrieve", body);
    let text = |chunk: &Value, key: &str| chunk[key].as_str().expect("a text").to_owned();
    let chunks = reply["chunks"].as_array().expect("an array").iter();
    let found = chunks.map(|chunk| (text(chunk, "source_id"), text(chunk, "chunk_content")));
    let lacks = reply["metadata"]["degraded"].as_array().expect("an array");
    (found.collect(), lacks.contains(&json!("segments_quarantined")))
}

/// Goal: with the real binary and model, damage is reported until everything is restored, even
/// through a kill in between, and the restored data equal the original.
#[test]
fn a_damaged_segment_is_rebuilt() {
    const DOCUMENTS: usize = 24;
    let Some(installation) = Installation::new("a_damaged_segment_is_rebuilt") else { return };
    let (mut server, client) = installation.start();
    for n in 0..DOCUMENTS {
        let sentence = format!("The stone number {n} lies in the hall, and everywhere is wind. ");
        upload(&client, &format!("doc-{n}"), &sentence.repeat(120));
    }
    for n in 0..DOCUMENTS {
        assert_eq!(settled(&client, &format!("doc-{n}")), "success");
    }
    let change = json!({"tenant_id": "acme", "source_id": "doc-1", "tenant_metadata": {"team": 7}});
    let changed = client.call("PATCH", "/upload/update_metadata", &change).expect("an answer");
    let list = |client: &Client| ask(client, "GET", "/list/sources?tenant_id=acme", Value::Null);
    assert_eq!(changed.status, 200, "{}", changed.json());
    let (before, listed) = (chunks(&client), list(&client));
    assert!(!before.1 && before.0.len() > DOCUMENTS, "{} chunks", before.0.len());
    server.terminate();
    assert!(server.ended().expect("it ends").success());

    for path in files(&installation.data().join("v1/c")) {
        if path.extension().is_some_and(|ending| ending == "seg") {
            let mut bytes = std::fs::read(&path).expect("a readable file");
            let middle = bytes.len() / 2;
            bytes[30] ^= 1;
            bytes[middle] ^= 1;
            std::fs::write(&path, bytes).expect("a writable file");
        }
    }
    let (server, client) = installation.start();
    let (found, is_marked) = chunks(&client);
    assert!(is_marked && found.len() < before.0.len(), "{} chunks", found.len());
    server.kill();
    let (mut server, client) = installation.start();
    let (begun, mut patience) = (Instant::now(), Patience::new());
    loop {
        let (found, is_marked) = chunks(&client);
        assert!(found.is_subset(&before.0), "nothing else comes back");
        if !is_marked {
            assert_eq!(found, before.0);
            break;
        }
        let state = (found.len(), server.output().len());
        assert!(!patience.is_over(state), "{} chunks are back", found.len());
    }
    println!("rebuilt after {:.1} s", begun.elapsed().as_secs_f64());
    assert_eq!(list(&client), listed);
}

/// Goal: with a tombstone file lost, accepted jobs end and writes that cannot be stored are
/// rejected; once the file is back, everything is there.
#[test]
fn a_lost_tombstone_file_leaves_no_job_waiting() {
    let Some(installation) = Installation::new("a_lost_tombstone_file") else { return };
    let (server, client) = installation.start_with(&[("LODESTONE_INGEST_THREADS", "1")]);
    // While this one is processed the others queue up and share a segment, so that a deletion
    // writes a tombstone.
    upload(&client, "first", &"Everywhere is wind. ".repeat(600));
    let texts = (0..10).map(|n| json!({"file_id": format!("d{n}"), "content": "A granite wall."}));
    let batch = json!({"items": texts.collect::<Vec<_>>()});
    ask(&client, "POST", "/upload/batch_upload_text?tenant_id=acme", batch);
    (0..10).for_each(|n| assert_eq!(settled(&client, &format!("d{n}")), "success"));
    let body = json!({"tenant_id": "acme", "source_ids": ["d9"]});
    ask(&client, "DELETE", "/upload/delete_source", body);
    for id in ["late", "later"] {
        upload(&client, id, &"Everywhere is wind. ".repeat(600));
    }
    server.kill();
    let is_tombstone = |path: &Path| path.parent().is_some_and(|dir| dir.ends_with("d"));
    let lost: Vec<_> = files(&installation.data().join("v1/c"))
        .into_iter()
        .filter(|path| is_tombstone(path))
        .map(|path| (std::fs::read(&path).expect("a readable file"), path))
        .collect();
    assert!(!lost.is_empty(), "a deletion leaves a tombstone file");
    lost.iter().for_each(|(_, path)| std::fs::remove_file(path).expect("a file"));

    let (server, client) = installation.start();
    for id in ["late", "later"] {
        assert_eq!(settled(&client, id), "errored");
    }
    let text = json!({"file_id": "new", "content": "A wall."});
    let refused = client.call("POST", "/upload/upload_text?tenant_id=acme", &text);
    let refused = refused.expect("an answer");
    assert_eq!((refused.status, &refused.json()["reason"]), (503, &json!("quarantined")));
    let ready = ask(&client, "GET", "/readyz", Value::Null)["components"]["index"].clone();
    assert!(ready.as_str().expect("a text").starts_with("degraded"), "{ready}");
    server.kill();
    let (is_sound, said) = verify(&installation.data());
    assert!(!is_sound && said.contains("acme: "), "{said}");
    for (bytes, path) in lost {
        std::fs::write(path, bytes).expect("a writable file");
    }
    let (_server, client) = installation.start();
    upload(&client, "late", "A wall.");
    assert_eq!(settled(&client, "late"), "success");
    assert_eq!(found(&client, "granite").len(), 9);
}
