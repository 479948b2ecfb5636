//! OpenAI-compatible files and vector stores through kills, a lost catalog and a backup.

use std::path::Path;

use serde_json::{Value, json};

use crate::process::http::Client;
use crate::process::lodestone;
use crate::process::patience::Patience;
use crate::{Installation, ask};

const TEXT: &str = "The northern hall is lit by forty lamps.";

/// Creates a tenant and a key for it alone, so that clients need not name the tenant.
fn client_of(operator: &Client) -> Client {
    ask(operator, "POST", "/user/create_tenant?tenant_id=acme", Value::Null);
    new_key(operator)
}

fn with_key(client: &Client, key: &str) -> Client {
    Client { key: key.to_owned(), ..client.clone() }
}

fn upload(client: &Client, name: &str, text: &str) -> String {
    let fields = [("purpose", "assistants")];
    let reply = client.file("/v1/files", name, text.as_bytes(), &fields).expect("an answer");
    assert_eq!(reply.status, 200, "{}", reply.json());
    reply.json()["id"].as_str().expect("an id").to_owned()
}

fn content(client: &Client, file: &str) -> (u16, String) {
    let path = format!("/v1/files/{file}/content");
    let reply = client.call("GET", &path, &Value::Null).expect("an answer");
    (reply.status, String::from_utf8_lossy(&reply.body).into_owned())
}

fn ids(client: &Client, path: &str) -> Vec<String> {
    let list = ask(client, "GET", path, Value::Null);
    let data = list["data"].as_array().expect("entries");
    data.iter().map(|entry| entry["id"].as_str().expect("an id").to_owned()).collect()
}

/// The ids of the files that a search finds, once nothing is being processed.
fn found(client: &Client, store: &str) -> Vec<String> {
    let path = format!("/v1/vector_stores/{store}");
    let mut patience = Patience::new();
    while ask(client, "GET", &path, Value::Null)["status"] == "in_progress" {
        assert!(!patience.is_over(()), "{store} is stuck");
    }
    let found = ask(client, "POST", &format!("{path}/search"), json!({"query": "lamps"}));
    let data = found["data"].as_array().expect("results");
    data.iter().map(|entry| entry["file_id"].as_str().expect("an id").to_owned()).collect()
}

fn attach(client: &Client, store: &str, file: &str) {
    let path = format!("/v1/vector_stores/{store}/files");
    ask(client, "POST", &path, json!({"file_id": file, "attributes": {"lamps": 40}}));
}

fn make_store(client: &Client, name: &str) -> String {
    let made = ask(client, "POST", "/v1/vector_stores", json!({"name": name}));
    made["id"].as_str().expect("an id").to_owned()
}

#[test]
fn what_was_answered_survives_a_kill() {
    let Some(installation) = Installation::new("what_was_answered_survives_a_kill") else { return };
    let (server, operator) = installation.start();
    let client = client_of(&operator);
    let key = client.key.clone();
    let store = make_store(&client, "Halls");
    let kept = upload(&client, "kept.txt", TEXT);
    let gone = upload(&client, "gone.txt", TEXT);
    attach(&client, &store, &gone);
    assert_eq!(found(&client, &store), [gone.as_str()]);
    ask(&client, "DELETE", &format!("/v1/files/{gone}"), Value::Null);
    // Attached and killed at once, so that it may or may not have been processed.
    attach(&client, &store, &kept);
    server.kill();

    let (server, operator) = installation.start();
    let client = with_key(&operator, &key);
    assert_eq!(ids(&client, "/v1/files"), [kept.as_str()]);
    assert_eq!(content(&client, &kept), (200, TEXT.to_owned()));
    assert_eq!(content(&client, &gone).0, 404);
    let shown = ask(&client, "GET", &format!("/v1/vector_stores/{store}"), Value::Null);
    assert_eq!(shown["name"], "Halls");
    assert_eq!(found(&client, &store), [kept.as_str()]);
    // The last upload before a kill, and the last deletion.
    let last = upload(&client, "last.txt", "Nobody counts the lamps of the southern hall.");
    server.kill();
    let (server, operator) = installation.start();
    let client = with_key(&operator, &key);
    assert_eq!(ids(&client, "/v1/files"), [last.as_str(), &kept]);
    ask(&client, "DELETE", &format!("/v1/files/{kept}"), Value::Null);
    server.kill();
    let (_server, operator) = installation.start();
    let client = with_key(&operator, &key);
    assert_eq!(ids(&client, "/v1/files"), [last.as_str()]);
    assert_eq!(found(&client, &store), [""; 0]);
}

/// Returns a file and the source created from it, on a server that is then stopped.
fn stopped(installation: &Installation) -> (String, String) {
    let (mut server, operator) = installation.start();
    let client = client_of(&operator);
    let store = make_store(&client, "Halls");
    let file = upload(&client, "kept.txt", TEXT);
    attach(&client, &store, &file);
    assert_eq!(found(&client, &store), [file.as_str()]);
    server.terminate();
    assert!(server.ended().is_some_and(|status| status.success()), "{}", server.output());
    (store, file)
}

/// Creates a new key for the tenant.
fn new_key(operator: &Client) -> Client {
    let body = json!({"name": "n", "role": "write", "tenants": [{"tenant_id": "acme"}]});
    let key = ask(operator, "POST", "/admin/api_keys", body)["api_key"].clone();
    with_key(operator, key.as_str().expect("a secret"))
}

#[test]
fn files_come_back_with_a_lost_catalog() {
    let Some(installation) = Installation::new("files_come_back_with_a_lost_catalog") else {
        return;
    };
    let (store, file) = stopped(&installation);
    std::fs::remove_file(installation.data().join("catalog.sqlite")).expect("a catalog");
    let (_server, operator) = installation.start();
    let client = new_key(&operator);
    let shown = ask(&client, "GET", &format!("/v1/files/{file}"), Value::Null);
    assert_eq!((&shown["filename"], &shown["purpose"]), (&json!("kept.txt"), &json!("assistants")));
    assert_eq!(content(&client, &file), (200, TEXT.to_owned()));
    assert_eq!(found(&client, &store), [file.as_str()]);
}

/// Runs a command that must succeed; returns its output.
fn run(arguments: &[&str], data: &Path) -> String {
    let output = lodestone(arguments).arg("--data-dir").arg(data).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn files_come_back_from_a_backup() {
    let Some(installation) = Installation::new("files_come_back_from_a_backup") else { return };
    let (store, file) = stopped(&installation);
    let place = installation.dir.path().join("backup");
    let place = place.to_str().expect("a path in UTF-8");
    run(&["backup", place], &installation.data());
    std::fs::remove_dir_all(installation.data()).expect("a data directory");
    run(&["restore", place], &installation.data());
    assert!(run(&["verify"], &installation.data()).contains("also 1 uploaded file"));
    let (_server, operator) = installation.start();
    let client = new_key(&operator);
    assert_eq!(content(&client, &file), (200, TEXT.to_owned()));
    let shown = ask(&client, "GET", &format!("/v1/vector_stores/{store}"), Value::Null);
    assert_eq!((&shown["name"], &shown["file_counts"]["completed"]), (&json!("Halls"), &json!(1)));
    assert_eq!(found(&client, &store), [file.as_str()]);
}
