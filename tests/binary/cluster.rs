//! The cluster of `deploy/compose/cluster.yaml`, run as local processes over a bucket.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::backups::another;
use crate::exposition::Scrape;
use crate::process::http::Client;
use crate::process::patience::Patience;
use crate::process::{Server, lodestone};
use crate::query_nodes::{free_port, passed_on};
use crate::s3::Store;
use crate::shared_store::PLACE;
use crate::standby::put;
use crate::{Installation, KEY, ask, found};

const NODE_KEY: &str = "key-of-the-nodes-of-the-cluster-tests-0001";

/// The services of the file by name.
fn services() -> BTreeMap<String, Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = File::open(root.join("deploy/compose/cluster.yaml")).expect("a file");
    // Available wherever the store's software is installed.
    let script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin)))";
    let mut python = Command::new(root.join(".venv/bin/python"));
    let output = python.args(["-c", script]).stdin(file).output().expect("it runs");
    let read: Value = serde_json::from_slice(&output.stdout).expect("YAML");
    let services = read["services"].as_object().expect("services").clone();
    services.into_iter().collect()
}

/// Substitutes variables of the forms `${NAME}`, `${NAME:-}` and `${NAME:?...}` in a value.
fn filled(value: &str, variables: &BTreeMap<&str, String>) -> String {
    let Some((before, rest)) = value.split_once("${") else { return value.to_owned() };
    let (inside, after) = rest.split_once('}').expect("it is closed");
    let (name, or) = inside.split_once(':').unwrap_or((inside, ""));
    let known = variables.get(name).cloned();
    let text = known.or_else(|| or.strip_prefix('-').map(str::to_owned)).expect("a value");
    format!("{before}{text}{}", filled(after, variables))
}

/// Starts a service, with local addresses in place of service names.
fn start(
    name: &str,
    service: &Value,
    ports: &BTreeMap<String, u16>,
    variables: &BTreeMap<&str, String>,
    installation: &Installation,
) -> Server {
    let mut command = lodestone(&["serve"]);
    // Variables that the image sets.
    command.env("LODESTONE_DATA_DIR", installation.data());
    command.env("LODESTONE_MODEL_DIR", &installation.model).env("LODESTONE_DEVICE", "cpu");
    for (key, value) in service["environment"].as_object().expect("an environment") {
        let mut value = filled(value.as_str().expect("a text"), variables);
        value = value.replace("0.0.0.0:8080", &format!("127.0.0.1:{}", ports[name]));
        for (other, port) in ports {
            value = value.replace(&format!("//{other}:8080"), &format!("//127.0.0.1:{port}"));
        }
        command.env(key, value);
    }
    Server::run(command)
}

/// Goal: the file starts a cluster that accepts documents at any of its addresses, has its ingest
/// node embed them, finds them through every other node, and keeps working when the writer is
/// killed.
#[test]
fn the_cluster_of_the_compose_file_works() {
    let test = "the_cluster_of_the_compose_file_works";
    let Some(store) = Store::start(test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let services = services();
    let ports = services.keys().map(|name| (name.clone(), free_port())).collect();
    let [(_, key_id), (_, secret), (_, endpoint), _] = store.variables();
    let variables = BTreeMap::from([
        ("LODESTONE_STORE", PLACE.to_owned()),
        ("LODESTONE_S3_ENDPOINT", endpoint),
        ("LODESTONE_ADMIN_KEY", KEY.to_owned()),
        ("LODESTONE_NODE_KEY", NODE_KEY.to_owned()),
        ("AWS_ACCESS_KEY_ID", key_id),
        ("AWS_SECRET_ACCESS_KEY", secret),
    ]);
    let mut running: BTreeMap<String, (Server, Installation)> = BTreeMap::new();
    for (name, service) in &services {
        let own = another(&installation);
        let server = start(name, service, &ports, &variables, &own);
        running.insert(name.clone(), (server, own));
    }
    let client = |name: &str| {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports[name]));
        Client { address, key: KEY.into() }
    };
    for name in ["query-a", "query-b"] {
        running.get_mut(name).expect("a service").0.ready();
    }
    let metric = |writer: &str, name: &str| {
        let reply = client(writer).call("GET", "/metrics", &Value::Null).ok()?;
        (reply.status == 200)
            .then(|| Scrape::read(&String::from_utf8(reply.body).expect("UTF-8")).get(name))
    };
    let mut patience = Patience::new();
    let has_a_hand = |name: &&str| metric(name, "ingest_nodes_usable") == Some(1.0);
    let writer = loop {
        if let Some(writer) = ["writer-a", "writer-b"].into_iter().find(has_a_hand) {
            break writer;
        }
        assert!(!patience.is_over(()), "nobody writes and has an ingest node");
    };
    put(&client("query-a"), "one", "saffron");
    put(&client("query-b"), "two", "copper");
    let embedded = metric(writer, "ingest_node_passages_total{place=\"node\"}");
    assert_eq!(embedded, Some(2.0));

    running.remove(writer).expect("it runs").0.kill();
    put(&client("query-b"), "three", "violin");
    let gone = json!({"source_ids": ["one"]});
    passed_on(&client("query-a"), "DELETE", "/delete_source?tenant_id=acme", &gone);
    for name in ["query-a", "query-b"] {
        assert_eq!(found(&client(name), "saffron"), [""; 0]);
        assert_eq!(found(&client(name), "copper"), ["two"]);
        let mut patience = Patience::new();
        loop {
            let state = ask(&client(name), "GET", "/readyz", Value::Null);
            let parts = state["components"].as_object().expect("components");
            if state["status"] == "ok" && parts.values().all(|part| part == "ok") {
                break;
            }
            assert!(!patience.is_over(state.clone()), "{state}");
        }
    }
}
