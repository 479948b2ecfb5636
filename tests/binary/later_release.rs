//! Processes of this release on data written by a later one: they leave alone what they do not
//! understand, and forward to whoever does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lodestone_fetch::bucket::{Bucket, Condition};
use lodestone_io::sealed;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::backups::another;
use crate::process::http::Client;
use crate::process::patience::Patience;
use crate::process::{Server, lodestone};
use crate::query_nodes::{free_port, passed_on};
use crate::s3::Store;
use crate::shared_store::{PLACE, bucket, is_child};
use crate::stand_in::{StandIn, Told};
use crate::{Installation, KEY, ask, found, settled, upload};

const MODULE: &str = "later_release";
const OWNER: &str = "owner";
const LOG: &str = "lodestone catalog log 1";
const MANIFEST: &str = "lodestone manifest 1";

/// Starts a process over the bucket, whose credentials are in the environment.
fn start(installation: &Installation, own: &[(&str, &str)]) -> (Server, Client) {
    installation.start_with(&[&[("LODESTONE_STORE", PLACE)], own].concat())
}

fn writer(installation: &Installation, port: u16) -> (Server, Client) {
    let listen = format!("127.0.0.1:{port}");
    let mut command = serve(installation, &[("LODESTONE_WITH_QUERY_NODES", "true")]);
    let mut server = Server::run({
        command.args(["--listen", &listen]);
        command
    });
    let client = server.ready().0.client(KEY);
    (server, client)
}

fn serve(installation: &Installation, own: &[(&str, &str)]) -> std::process::Command {
    let mut command = lodestone(&["serve", "--store", PLACE]);
    command.arg("--data-dir").arg(installation.data());
    command.arg("--model-dir").arg(&installation.model);
    command.env("LODESTONE_ADMIN_KEY", KEY).envs(own.iter().copied());
    command
}

/// The output of a process that refuses to start.
fn refused(installation: &Installation, own: &[(&str, &str)]) -> String {
    let mut command = serve(installation, own);
    command.args(["--listen", "127.0.0.1:0"]);
    let output = command.output().expect("it runs");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(!output.status.success(), "{said}");
    said
}

/// Takes over the catalog's log like a process of a later release; returns its id.
fn claim_of_later_release(bucket: &Bucket) -> Uuid {
    let entries = bucket.list("v1/catalog/").expect("a listing");
    let (newest, _) = entries.last().expect("an entry");
    let bytes = bucket.get(newest).expect("an answer").expect("an entry");
    let body = sealed::open(LOG, &bytes).expect("an entry");
    let (label, _) = sealed::read_label("entry", body).expect("a label");
    let label: Value = serde_json::from_slice(label).expect("JSON");
    let number: u64 = newest.rsplit('/').next().expect("a name").parse().expect("a number");
    let base = if label["kind"]["base"].is_null() { label["base"].clone() } else { number.into() };
    let (name, number) = (Uuid::from_u128(99), number + 1);
    let claim = json!({
        "nonce": name, "parent": label["nonce"], "claim": number, "base": base,
        "kind": {"claim": {"format": 99, "waits": true}},
    });
    let content = zstd::bulk::compress(&[], 1).expect("it is packed");
    let entry = sealed::label("entry", claim.to_string().as_bytes(), &content);
    let key = format!("v1/catalog/{number:020}");
    bucket.put(&key, &sealed::seal(LOG, &entry), Condition::Absent).expect("it is written");
    name
}

/// Polls the readiness of a node until a component is in the expected state.
fn until_ready(client: &Client, component: &str, status: u16, words: &str) {
    let mut patience = Patience::new();
    loop {
        let reply = client.call("GET", "/readyz", &Value::Null).expect("an answer");
        let told = reply.json()["components"][component].to_string();
        if reply.status == status && told.contains(words) {
            return;
        }
        assert!(!patience.is_over((reply.status, told.clone())), "{} {told}", reply.status);
    }
}

/// Goal: when the writer is upgraded first, a query node of the previous release forwards
/// everything to it and says why; no process of the previous release takes over from it or changes
/// anything.
#[test]
fn a_node_of_the_release_before_leaves_everything_to_the_one_that_writes() {
    let test = "a_node_of_the_release_before_leaves_everything_to_the_one_that_writes";
    if !is_child(MODULE, test, None) {
        let Some(store) = Store::start(test) else { return };
        is_child(MODULE, test, Some(&store));
        return;
    }
    let Some(installation) = Installation::new(test) else { return };
    let (elsewhere, port, bucket) = (another(&installation), free_port(), bucket("data/prod"));
    let is_there = Arc::new(AtomicBool::new(true));
    let of_later = Arc::clone(&is_there);
    let later = StandIn::start(move |asked| match asked.path() {
        "/healthz" if of_later.load(Ordering::Relaxed) => {
            Told::json(200, &json!({"status": "ok", "writer": Uuid::from_u128(99)}))
        }
        "/healthz" => Told::bytes(500, Vec::new()),
        "/search/full-text-search" => Told::json(200, &json!([{"source_id": "of the later"}])),
        _ => Told::json(200, &json!({})),
    });
    let (mut before, client) = writer(&installation, port);
    upload(&client, "a", "The saffron market opens on Tuesdays.");
    assert_eq!(settled(&client, "a"), "success");
    let urls = format!("http://127.0.0.1:{port},{}", later.url);
    let query = [("LODESTONE_ROLE", "query"), ("LODESTONE_WRITER_URL", &*urls)];
    let (mut node, asked) = start(&elsewhere, &query);
    assert_eq!(found(&asked, "saffron"), ["a"]);
    before.terminate();
    assert!(before.ended().expect("it ends").success());

    assert_eq!(claim_of_later_release(&bucket), Uuid::from_u128(99));
    let body = json!({"file_id": "b", "content": "The violin hangs in the second hall."});
    passed_on(&asked, "POST", "/upload/upload_text?tenant_id=acme", &body);
    let mut patience = Patience::new();
    while found(&asked, "saffron") != ["of the later"] {
        assert!(!patience.is_over(()), "it goes on answering by itself");
    }
    until_ready(&asked, "storage", 200, "of a later release");
    let told = "has catalog format 99, this release reads up to 8: upgrade";
    assert!(node.output().contains(told), "{}", node.output());
    is_there.store(false, Ordering::Relaxed);
    until_ready(&asked, "storage", 503, "cannot answer on its own");

    bucket.put(OWNER, b"process 1 on later 1", Condition::None).expect("it is written");
    let objects = bucket.list("").expect("a listing");
    assert!(refused(&installation, &[("LODESTONE_STANDBY", "true")]).contains(told));
    assert_eq!(
        bucket.get(OWNER).expect("an answer").as_deref(),
        Some(&b"process 1 on later 1"[..])
    );
    bucket.remove(OWNER).expect("it is removed");
    assert!(refused(&installation, &[]).contains(told), "one that would write");
    assert!(refused(&another(&installation), &query).contains(told), "one that would follow");
    let without_owner = objects.into_iter().filter(|(key, _)| key != OWNER);
    assert_eq!(bucket.list("").expect("a listing"), without_owner.collect::<Vec<_>>());
}

/// Goal: a tenant whose latest version was written by a later release is left alone and reported; a
/// query node forwards its requests to the writer. Other tenants are served.
#[test]
fn a_tenant_that_a_later_release_has_written_is_left_alone() {
    let test = "a_tenant_that_a_later_release_has_written_is_left_alone";
    if !is_child(MODULE, test, None) {
        let Some(store) = Store::start(test) else { return };
        is_child(MODULE, test, Some(&store));
        return;
    }
    let Some(installation) = Installation::new(test) else { return };
    let (elsewhere, port, bucket) = (another(&installation), free_port(), bucket("data/prod"));
    let (mut server, client) = writer(&installation, port);
    upload(&client, "a", "The saffron market opens on Tuesdays.");
    assert_eq!(settled(&client, "a"), "success");

    let is_manifest = |key: &str| key.contains("/m/");
    let keys = bucket.list("v1/c/").expect("a listing").into_iter().map(|(key, _)| key);
    let key = keys.filter(|key| is_manifest(key)).max().expect("a manifest");
    let known = bucket.get(&key).expect("an answer").expect("a manifest");
    let body = sealed::open(MANIFEST, &known).expect("a manifest");
    let mut manifest: Value = serde_json::from_slice(body).expect("JSON");
    manifest["min_reader"] = json!(9);
    let later = sealed::seal(MANIFEST, manifest.to_string().as_bytes());
    bucket.put(&key, &later, Condition::None).expect("it is written");

    // The writer has the tenant open.
    let url = format!("http://127.0.0.1:{port}");
    let query = [("LODESTONE_ROLE", "query"), ("LODESTONE_WRITER_URL", &*url)];
    let (mut node, asked) = start(&elsewhere, &query);
    assert_eq!(found(&asked, "saffron"), ["a"], "by the one that writes");
    until_ready(&asked, "index", 200, "of a later release");
    assert!(node.output().contains("needs reader version 9"), "{}", node.output());
    server.terminate();
    assert!(server.ended().expect("it ends").success());

    let files = || {
        let keys = bucket.list("v1/c/").expect("a listing").into_iter().map(|(key, _)| key);
        let file = |key: String| (bucket.get(&key).expect("an answer"), key);
        keys.map(file).collect::<Vec<_>>()
    };
    let before = files();
    let (mut server, client) = writer(&installation, port);
    let search = json!({"tenant_id": "acme", "query": "saffron"});
    let text = json!({"file_id": "b", "content": "The violin hangs in the second hall."});
    let put = "/upload/upload_text?tenant_id=acme";
    for (path, body) in [("/search/full-text-search", search), (put, text)] {
        let reply = client.call("POST", path, &body).expect("an answer");
        assert_eq!(reply.status, 503, "{}", reply.json());
    }
    until_ready(&client, "index", 200, "of a later release");
    assert!(server.output().contains("needs reader version 9"), "{}", server.output());
    let path = "/upload/upload_text?tenant_id=other";
    ask(&client, "POST", path, json!({"file_id": "c", "content": "A copper roof."}));
    let path = "/upload/verify_processing?tenant_id=other&file_id=c&wait=30";
    while ask(&client, "POST", path, Value::Null)["status"] != "success" {}
    let of_tenant = key.split("/m/").next().expect("a prefix");
    let left_alone = |(_, key): &(_, String)| key.starts_with(of_tenant);
    assert_eq!(files().into_iter().filter(left_alone).collect::<Vec<_>>(), before);

    bucket.put(&key, &known, Condition::None).expect("it is written");
    upload(&client, "b", "The violin hangs in the second hall.");
    assert_eq!(settled(&client, "b"), "success");
    assert_eq!(found(&client, "saffron"), ["a"]);
    assert_eq!(found(&client, "violin"), ["b"]);
    until_ready(&client, "index", 200, "ok");
}
