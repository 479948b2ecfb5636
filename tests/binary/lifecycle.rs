//! Starting and stopping.

use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use serde_json::{Value, json};

use crate::process::Server;
use crate::process::http::Client;
use crate::{Installation, ask, files, found, settled, upload};

/// Enough documents that some are still waiting when the process ends.
const DOCUMENTS: usize = 80;

fn ids() -> impl Iterator<Item = String> {
    (0..DOCUMENTS).map(|n| format!("doc-{n}"))
}

fn fill(client: &Client) {
    for id in ids() {
        let word = id.replace('-', "x");
        let sentence = format!("Everyone knows that {word} stands in the northern hall. ");
        upload(client, &id, &sentence.repeat(20));
    }
}

/// Goal: after a kill and a restart, every upload that was acknowledged ends as a success or an
/// error, and nothing that was deleted comes back.
#[test]
fn a_killed_process_keeps_its_promises() {
    let Some(installation) = Installation::new("a_killed_process_keeps_its_promises") else {
        return;
    };
    let (server, client) = installation.start();
    fill(&client);
    let table = "name,place\nquartz,cellar\n";
    let parts = [("tenant_id", "acme"), ("file_id", "table")];
    let uploaded = client.file("/upload/upload_document", "stones.csv", table.as_bytes(), &parts);
    assert_eq!(uploaded.expect("an answer").status, 200);
    // Includes waiting documents and ones that may already be visible.
    let gone: Vec<String> = ids().step_by(5).collect();
    let body = json!({"tenant_id": "acme", "source_ids": gone});
    let deleted = ask(&client, "DELETE", "/upload/delete_source", body);
    assert_eq!(deleted["deleted_count"], gone.len());
    server.kill();

    let (_server, client) = installation.start();
    assert_eq!(settled(&client, "table"), "success");
    for id in ids() {
        let word = id.replace('-', "x");
        if gone.contains(&id) {
            let path = format!("/upload/verify_processing?tenant_id=acme&file_id={id}");
            let status = client.call("POST", &path, &Value::Null).expect("an answer");
            assert_eq!((status.status, found(&client, &word).len()), (404, 0), "{id} came back");
        } else {
            assert_eq!(settled(&client, &id), "success");
            assert_eq!(found(&client, &word), [id]);
        }
    }
    let listed = ask(&client, "GET", "/list/sources?tenant_id=acme", Value::Null);
    assert_eq!(listed["total"], DOCUMENTS - gone.len() + 1);
}

#[test]
fn a_stopped_process_ends_soon_and_goes_on_after_a_restart() {
    let Some(installation) = Installation::new("a_stopped_process_ends_soon") else { return };
    let (mut server, client) = installation.start();
    fill(&client);
    server.terminate();
    let begun = Instant::now();
    let status = server.ended();
    let status = status.unwrap_or_else(|| panic!("it still runs:\n{}", server.output()));
    assert!(status.success(), "{status}: {}", server.output());
    println!("stopped after {:.1} s", begun.elapsed().as_secs_f64());

    let (_server, client) = installation.start();
    for id in ids() {
        assert_eq!(settled(&client, &id), "success");
    }
    assert_eq!(found(&client, "everyone").len(), DOCUMENTS);
}

#[test]
fn a_second_process_on_the_same_directory_is_refused() {
    let Some(installation) = Installation::new("a_second_process_is_refused") else { return };
    let (first, client) = installation.start();
    let mut second = Server::spawn(&installation.data(), &installation.model, Some(crate::KEY));
    let status = second.ended().expect("it ends by itself");
    let said = second.output().to_owned();
    assert!(!status.success(), "{said}");
    let dir = installation.data().display().to_string();
    assert!(said.contains(&dir) && said.contains("in use"), "{said}");
    assert!(said.contains(&first.id().to_string()), "it names the holder: {said}");
    upload(&client, "still", "The first one goes on.");
    assert_eq!(settled(&client, "still"), "success");
}

#[test]
fn the_first_key_is_told_once_and_kept_as_a_hash() {
    let Some(installation) = Installation::new("the_first_key_is_told_once") else { return };
    let mut server = Server::spawn(&installation.data(), &installation.model, None);
    let (banner, _) = server.ready();
    let key = banner.key.clone().expect("a key is made when there is none");
    let client = banner.client(&key);
    upload(&client, "doc", "Something to keep.");
    assert_eq!(settled(&client, "doc"), "success");
    // Output that is not a terminal may be archived, so the key is in a file that only its owner
    // can read.
    let output = server.kill();
    assert!(!output.contains(&key), "{output}");
    let place = installation.data().join("admin_key");
    let mode = std::fs::metadata(&place).expect("a file with the key").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    std::fs::remove_file(&place).expect("the operator has kept the key");
    let secret = key.as_bytes();
    for path in files(&installation.data()) {
        let bytes = std::fs::read(&path).expect("a readable file");
        let holds_it = bytes.windows(secret.len()).any(|window| window == secret);
        assert!(!holds_it, "{} holds the key", path.display());
    }

    let mut server = Server::spawn(&installation.data(), &installation.model, None);
    let (banner, _) = server.ready();
    assert_eq!(banner.key, None);
    assert_eq!(found(&banner.client(&key), "keep"), ["doc"]);
    let (kept, last) = key.split_at(key.len() - 1);
    let wrong = banner.client(&format!("{kept}{}", if last == "a" { "b" } else { "a" }));
    let refused = wrong.call("GET", "/list/sources?tenant_id=acme", &Value::Null);
    assert_eq!(refused.expect("an answer").status, 401);
    assert!(!server.kill().contains(&key));
}

/// Goal: a start that fails to listen does not generate a key that nobody would ever see.
#[test]
fn a_busy_port_costs_no_key() {
    let Some(installation) = Installation::new("a_busy_port_costs_no_key") else { return };
    let busy = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = busy.local_addr().expect("an address").to_string();
    let mut command = crate::process::lodestone(&["serve", "--listen", &address]);
    command.arg("--data-dir").arg(installation.data()).arg("--model-dir").arg(&installation.model);
    let mut refused = Server::run(command);
    let status = refused.ended().expect("it ends by itself");
    assert!(!status.success() && refused.output().contains(&address), "{}", refused.output());

    let mut server = Server::spawn(&installation.data(), &installation.model, None);
    assert!(server.ready().0.key.is_some(), "the first start that listens shows the key");
}

/// Goal: an API key in a variable meant for clients does not become the server's admin key.
#[test]
fn the_key_of_a_client_is_not_the_key_of_the_server() {
    let Some(installation) = Installation::new("the_key_of_a_client") else { return };
    let (server, client) = installation.start();
    let body = json!({"name": "reader", "role": "read", "tenants": [{"tenant_id": "acme"}]});
    let made = ask(&client, "POST", "/admin/api_keys", body);
    let reader = made["api_key"].as_str().expect("a key").to_owned();
    let gone = ask(&client, "POST", "/admin/api_keys", json!({"name": "gone", "role": "admin"}));
    let path = format!("/admin/api_keys/{}", gone["key_id"].as_str().expect("an id"));
    ask(&client, "DELETE", &path, Value::Null);
    let gone = gone["api_key"].as_str().expect("a key").to_owned();
    server.kill();

    let start = |key: &str| {
        let mut command = crate::process::lodestone(&["serve", "--listen", "localhost:0"]);
        command.arg("--data-dir").arg(installation.data());
        command.arg("--model-dir").arg(&installation.model).env("LODESTONE_API_KEY", key);
        let mut server = Server::run(command);
        let client = server.ready().0.client(key);
        (server, client)
    };
    let status = |client: &Client| {
        let reply = client.call("GET", "/tenant/list", &Value::Null).expect("an answer");
        reply.status
    };
    for (key, expected) in [(&reader, 403), (&gone, 401)] {
        let (server, client) = start(key);
        assert_eq!(status(&client), expected);
        let output = server.kill();
        assert!(!output.contains("LODESTONE_API_KEY"), "a client's variable is its own: {output}");
    }
    let (server, client) = start(crate::KEY);
    assert_eq!(status(&client), 200, "any other text is still taken");
    let output = server.kill();
    assert!(output.contains("rename it to LODESTONE_ADMIN_KEY"), "{output}");
}
