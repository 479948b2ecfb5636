//! Query nodes that search a tenant together: the results equal those of a single process.

#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use std::time::{Duration, Instant};

use lodestone_engine::query::shares::wire::{TASK_ROWS_MAX, TopsTask};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::backups::another;
use crate::process::http::Client;
use crate::process::model::first_layer_dir;
use crate::process::patience::Patience;
use crate::query_nodes::{Node, free_port, sharing};
use crate::s3::Store;
use crate::shared_store::PLACE;
use crate::{Installation, KEY, ask, settled, upload};

const NODE_KEY: &str = "node-key-node-key-node-key-node-key";
const SHARE: &str = "/nodes/share";
const DOCUMENTS: usize = 11;

fn text(number: usize) -> String {
    let thing = ["lantern", "harbour", "compass", "orchard"][number % 4];
    format!("The {thing} number {number} stands in hall {}, beside a copper bell.", number * 7 % 5)
}

/// The requests whose responses are compared.
fn requests() -> Vec<(&'static str, Value)> {
    let named = |path, more: Value| {
        let mut body = json!({"tenant_id": "acme", "query": "the copper lantern of hall 3"});
        let own = body.as_object_mut().expect("an object");
        own.extend(more.as_object().expect("an object").clone());
        (path, body)
    };
    let retrieve = "/search/retrieve";
    vec![
        named(retrieve, json!({"mode": "fast"})),
        named(retrieve, json!({"mode": "accurate", "graph_context": true})),
        named(retrieve, json!({"alpha": 0, "max_chunks": 4})),
        named(retrieve, json!({"alpha": 1, "max_chunks": 30, "recency_bias": 0.4})),
        named("/search/full-text-search", json!({"max_chunks": 5})),
    ]
}

fn chunks(client: &Client, (path, body): &(&'static str, Value)) -> Value {
    let mut answer = ask(client, "POST", path, body.clone());
    match answer.get_mut("chunks") {
        Some(chunks) => chunks.take(),
        None => answer,
    }
}

/// Goal: whichever node is asked, and whatever happens to the others, the response equals that of
/// the writer, which searches alone.
#[test]
fn what_several_nodes_find_together_is_what_one_finds() {
    let test = "what_several_nodes_find_together_is_what_one_finds";
    let Some(store) = Store::start(test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let others = (0..3).map(|_| another(&installation)).collect();
    let port = free_port();
    let writer = Node::writer(&store, installation, port);
    for number in 0..DOCUMENTS {
        let id = format!("d{number}");
        upload(&writer.client, &id, &text(number));
        assert_eq!(settled(&writer.client, &id), "success");
    }
    let settings = [("LODESTONE_NODE_KEY", NODE_KEY), ("LODESTONE_SHARED_SEARCH_ROWS", "1")];
    let nodes = sharing(&store, port, others, &settings);
    let is_same = |nodes: &[Node]| {
        for request in requests() {
            let expected = chunks(&writer.client, &request);
            assert!(expected.as_array().is_some_and(|found| !found.is_empty()), "{expected}");
            for node in nodes {
                assert_eq!(chunks(&node.client, &request), expected, "{request:?}");
            }
        }
    };
    let sum = |nodes: &[Node], name: &str| nodes.iter().map(|node| node.metric(name)).sum::<f64>();
    is_same(&nodes);
    doctor_asks(&store, &nodes, port);
    // Nodes that have no copy of the tenant yet are not waited for.
    let mut patience = Patience::new();
    while sum(&nodes, "query_shares_answered_total") == 0.0 {
        is_same(&nodes);
        assert!(!patience.is_over(()), "they never have one");
    }
    let before = sum(&nodes, "query_shares_answered_total");
    is_same(&nodes);
    let answered = sum(&nodes, "query_shares_answered_total");
    assert!(answered > before, "{answered} {before}");
    assert!(sum(&nodes, "query_shares_served_total") >= answered);
    refuses_strangers(&nodes[0].client);
    refuses_strangers(&nodes[1].client);

    // Once a replacement or deletion is acknowledged, no node finds the old version or the deleted
    // source.
    for round in 0..3 {
        upload(&writer.client, "d3", &format!("The beacon number {round} stands in hall 3."));
        assert_eq!(settled(&writer.client, "d3"), "success");
        let body = json!({"source_ids": [format!("d{}", 4 + round)]});
        ask(&nodes[0].client, "DELETE", "/delete_source?tenant_id=acme", body);
        is_same(&nodes);
    }

    // A frozen node delays the others once, and a lost one does not delay them at all.
    nodes[2].signal(Signal::STOP);
    let begun = Instant::now();
    is_same(&nodes[..2]);
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    nodes[2].signal(Signal::CONT);
    let mut nodes = nodes.into_iter();
    let first = [nodes.next().expect("the first")];
    nodes.for_each(|node| drop(node.server.kill()));
    is_same(&first);
    let mut patience = Patience::new();
    while first[0].metric("query_nodes_usable") != 1.0 {
        assert!(!patience.is_over(()), "lost nodes are never noticed");
    }
    let asked = first[0].metric("query_shares_failed_total");
    is_same(&first);
    assert_eq!(first[0].metric("query_shares_failed_total"), asked, "nobody is asked any more");
}

/// Goal: `doctor` reports the state of each query node.
fn doctor_asks(store: &Store, nodes: &[Node], writer: u16) {
    let base = |client: &Client| format!("http://{}", client.address);
    let [first, second] = [0, 1].map(|at| base(&nodes[at].client));
    let writer = format!("http://127.0.0.1:{writer}");
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let urls = [&*first, &second, &writer, &nobody].join(",");
    let doctor = |key: &str, writer: &str| {
        let mut command = store.command(&["doctor", "--role", "query", "--store", PLACE]);
        command.args(["--listen", "127.0.0.1:0", "--query-nodes", &urls, "--writer-url", writer]);
        command.args(["--device", "cpu", "--shared-search-rows", "9"]);
        let dir = tempfile::tempdir().expect("a folder");
        command.arg("--data-dir").arg(dir.path().join("data"));
        command.arg("--model-dir").arg(first_layer_dir("doctor").expect("a model"));
        let output = command.env("LODESTONE_NODE_KEY", key).output().expect("it runs");
        let said = [output.stdout, output.stderr].concat();
        String::from_utf8(said).expect("UTF-8")
    };
    let said = doctor(NODE_KEY, &writer);
    let release = env!("CARGO_PKG_VERSION");
    for url in [&first, &second] {
        let line = format!(
            "  node       {url} answers, release {release}; follows the writer; shares searches\n"
        );
        assert!(said.contains(&line), "{said}");
    }
    let line = format!("currently not used: {writer} is the writer, not a query node\n");
    assert!(said.contains(&line), "{said}");
    assert!(said.contains(&format!("currently not used: {nobody}")), "{said}");
    let said = doctor(&"k".repeat(32), &nobody);
    assert!(said.contains("its node-key differs"), "{said}");
    assert!(said.contains("without a writer, searches work") && !said.contains('!'), "{said}");
    assert!(said.contains("cannot tell whom it follows"), "{said}");
}

/// Checks that a node searches its share only for holders of the nodes' key.
fn refuses_strangers(client: &Client) {
    let task = json!({
        "release": env!("CARGO_PKG_VERSION"), "collection": uuid::Uuid::nil(), "version": 1,
        "sub_tenant": "default", "filter": "All", "segments": [], "within_millis": 1000,
        "step": {"Counts": {"operator": "Or", "clauses": []}},
    });
    let with = |key: &str| Client { key: key.to_owned(), ..client.clone() };
    let status =
        |client: &Client, body: &Value| client.call("POST", SHARE, body).expect("an answer").status;
    for key in [KEY, "", &NODE_KEY[1..]] {
        assert_eq!(status(&with(key), &task), 401, "{key:?}");
    }
    for (method, path, status) in
        [("POST", SHARE, 401), ("DELETE", SHARE, 405), ("DELETE", "/nodes/query", 405)]
    {
        let reply = client.call(method, path, &Value::Null).expect("an answer");
        let body = reply.json();
        assert_eq!((reply.status, &body["success"]), (status, &json!(false)), "{body}");
        assert!(body["request_id"].as_str().is_some_and(|id| !id.is_empty()), "{body}");
    }
    let node = with(NODE_KEY);
    for wrong in [json!({}), json!([]), json!({"release": "0"})] {
        assert_eq!(status(&node, &wrong), 400, "{wrong}");
    }
    let mut old = task.clone();
    old["release"] = json!("0.0.0");
    assert_eq!(status(&node, &old), 400);
    assert_ne!(status(&node, &task), 200, "there is no such collection");
    let mut greedy = task;
    greedy["step"] = json!({"Tops": TopsTask { k: TASK_ROWS_MAX + 1, ..TopsTask::default() }});
    let reply = node.call("POST", SHARE, &greedy).expect("an answer");
    let told = reply.json().to_string();
    assert!(reply.status == 400 && told.contains("k is 11002; it must be at most 11001"), "{told}");
    greedy["step"]["Tops"]["k"] = TASK_ROWS_MAX.into();
    assert_ne!(status(&node, &greedy), 400, "as many as a search asks for");
    let body = json!({"tenant_id": "acme", "query": "copper"});
    assert_eq!(status(&node, &body), 400);
    let reply = node.call("POST", "/search/retrieve", &body).expect("an answer");
    assert_eq!(reply.status, 401, "the key of the nodes opens nothing else");
}
