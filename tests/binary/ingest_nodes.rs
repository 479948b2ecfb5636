//! Ingest nodes: the work that they do, and the cost of losing them, of their hanging, and of their
//! sending wrong data.

#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::exposition::Scrape;
use crate::process::http::Client;
use crate::process::patience::Patience;
use crate::process::{Server, lodestone};
use crate::query_nodes::free_port;
use crate::stand_in::{StandIn, Told};
use crate::{Installation, ask, found, settled, upload};

const NODE_KEY: &str = "key-of-the-ingest-nodes-of-tests-00000001";
const PAGE: &str =
    "<html><body><h1>Ferries</h1><p>The WORD ferry leaves at noon.</p></body></html>";
/// A text that is uploaded twice, under different ids.
const TWIN: &str = "The old man at the harbour mends nets in winter.";
/// Metrics: vectors computed by nodes and locally, documents parsed by nodes.
const BY_NODE: &str = "ingest_node_passages_total{place=\"node\"}";
const HERE: &str = "ingest_node_passages_total{place=\"here\"}";
const PARSED_BY_NODE: &str = "ingest_node_documents_total{place=\"node\"}";
const FAILURES: &str = "ingest_node_failures_total";
const USABLE: &str = "ingest_nodes_usable";

fn node(installation: &Installation, port: u16) -> (Server, Client) {
    let mut command = lodestone(&["serve", "--role", "ingest"]);
    command.args(["--listen", &format!("127.0.0.1:{port}")]);
    command.arg("--model-dir").arg(&installation.model);
    command.env("LODESTONE_NODE_KEY", NODE_KEY);
    // It must not touch the directory that would hold data.
    command.arg("--data-dir").arg("/nonexistent/data");
    let mut server = Server::run(command);
    let (banner, _) = server.ready();
    (server, banner.client(NODE_KEY))
}

fn with_nodes(installation: &Installation, url: &str, key: &str) -> (Server, Client) {
    installation.start_with(&[("LODESTONE_INGEST_NODES", url), ("LODESTONE_NODE_KEY", key)])
}

fn metric(client: &Client, name: &str) -> f64 {
    let text = client.call("GET", "/metrics", &Value::Null).expect("an answer").body;
    Scrape::read(&String::from_utf8(text).expect("UTF-8")).get(name)
}

fn until_usable(client: &Client, nodes: f64) {
    let mut patience = Patience::new();
    while metric(client, USABLE) != nodes {
        assert!(!patience.is_over(()), "{nodes} nodes are never usable");
    }
}

/// Uploads a page that needs parsing, and a text, and waits for both.
fn take_in(client: &Client, word: &str) {
    let (page, parts) = (PAGE.replace("WORD", word), [("tenant_id", "acme"), ("file_id", word)]);
    let name = format!("{word}.html");
    let reply = client.file("/upload/upload_document", &name, page.as_bytes(), &parts);
    assert_eq!(reply.expect("an answer").status, 200);
    let text = format!("{word}-text");
    upload(client, &text, &format!("A timetable of the {word} ferry hangs at the pier."));
    assert_eq!(settled(client, word), "success");
    assert_eq!(settled(client, &text), "success");
    assert_eq!(found(client, word), [word.to_owned(), text]);
}

/// Goal: a node parses and embeds documents; when it is killed, its server does the work itself,
/// and uses the node again once it is back.
#[test]
fn a_node_does_the_work_while_it_is_there() {
    let test = "a_node_does_the_work_while_it_is_there";
    let Some(installation) = Installation::new(test) else { return };
    let port = free_port();
    let (first, of_node) = node(&installation, port);
    let (_server, client) =
        with_nodes(&installation, &format!("http://127.0.0.1:{port}"), NODE_KEY);
    until_usable(&client, 1.0);
    take_in(&client, "granite");
    upload(&client, "at-node", TWIN);
    assert_eq!(settled(&client, "at-node"), "success");
    assert_eq!((metric(&client, BY_NODE), metric(&client, PARSED_BY_NODE)), (3.0, 1.0));
    assert_eq!(metric(&of_node, "node_passages_total"), 3.0);
    assert_eq!(metric(&client, HERE), 0.0);

    first.kill();
    take_in(&client, "basalt");
    upload(&client, "here", TWIN);
    assert_eq!(settled(&client, "here"), "success");
    assert_eq!((metric(&client, BY_NODE), metric(&client, HERE)), (3.0, 3.0));
    until_usable(&client, 0.0);
    let ready = ask(&client, "GET", "/readyz", Value::Null);
    let state = ready["components"]["index"].as_str().expect("a state").to_owned();
    assert!(state.contains("ingest node"), "{state}");
    let named = format!("ingest_node_usable{{node=\"http://127.0.0.1:{port}\"}}");
    assert_eq!(metric(&client, &named), 0.0);

    let (_second, _) = node(&installation, port);
    until_usable(&client, 1.0);
    assert_eq!(metric(&client, &named), 1.0);
    take_in(&client, "marble");
    assert_eq!((metric(&client, BY_NODE), metric(&client, HERE)), (5.0, 3.0));
    assert_eq!(score_of(&client, "at-node"), score_of(&client, "here"), "vectors are the same");
}

/// The vector score of a source that consists of a single passage.
fn score_of(client: &Client, id: &str) -> f64 {
    let body = json!({"tenant_id": "acme", "query": "who mends nets", "max_chunks": 50});
    let found = ask(client, "POST", "/search/retrieve", body);
    let chunks = found["chunks"].as_array().expect("chunks");
    let chunk = chunks.iter().find(|chunk| chunk["source_id"] == id);
    let chunk = chunk.unwrap_or_else(|| panic!("{id} in {found}"));
    chunk["vector_score"].as_f64().expect("a score")
}

/// Goal: documents that were sent to a frozen node are processed nonetheless.
#[test]
fn a_node_that_hangs_holds_no_document_up() {
    let test = "a_node_that_hangs_holds_no_document_up";
    let Some(installation) = Installation::new(test) else { return };
    let (frozen, of_node) = node(&installation, 0);
    let url = format!("http://{}", of_node.address);
    let (_server, client) = with_nodes(&installation, &url, NODE_KEY);
    until_usable(&client, 1.0);
    let process = Pid::from_raw(frozen.id() as i32).expect("a process");
    kill_process(process, Signal::STOP).expect("it lives");
    for word in ["granite", "basalt", "marble"] {
        take_in(&client, word);
    }
    assert!(metric(&client, FAILURES) >= 1.0, "a task was on the frozen node");
    kill_process(process, Signal::CONT).expect("it lives");
    until_usable(&client, 1.0);
    let before = metric(&client, BY_NODE);
    take_in(&client, "slate");
    assert_eq!(metric(&client, BY_NODE), before + 2.0);
}

/// Goal: invalid responses are detected, and cost nothing but the use of the node.
#[test]
fn nonsense_of_a_node_is_not_stored() {
    let test = "nonsense_of_a_node_is_not_stored";
    let Some(installation) = Installation::new(test) else { return };
    let (_real, of_node) = node(&installation, 0);
    let described = ask(&of_node, "GET", "/ingest", Value::Null);
    let width = 384;
    let zeros = vec![0_u8; width * 4];
    let short = vec![0_u8; 7];
    let html = b"<html>a proxy's page</html>".to_vec();
    for lie in [zeros, short, html] {
        let installation = Installation::new(test).expect("there is a model");
        let described = described.clone();
        let liar = StandIn::start(move |asked| match asked.path() {
            "/ingest" => Told::json(200, &described),
            _ => Told::bytes(200, lie.clone()),
        });
        let (_server, client) = with_nodes(&installation, &liar.url, NODE_KEY);
        until_usable(&client, 1.0);
        take_in(&client, "granite");
        assert!(metric(&client, FAILURES) >= 1.0);
        assert_eq!((metric(&client, BY_NODE), metric(&client, HERE)), (0.0, 2.0));
        until_usable(&client, 0.0);
    }
}

/// Goal: `doctor` checks the parts that a node has, and none that only a server has.
fn doctor_looks(installation: &Installation) {
    let mut command = lodestone(&["doctor", "--role", "ingest", "--listen", "127.0.0.1:0"]);
    command.arg("--model-dir").arg(&installation.model).env("LODESTONE_NODE_KEY", NODE_KEY);
    command.arg("--data-dir").arg("/nonexistent/data");
    let output = command.output().expect("it runs");
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    let parts: Vec<&str> = said.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let expected = [
        "version", "processor", "memory", "device", "model", "parsers", "listen", "tls", "metrics",
    ];
    assert!(output.status.success() && parts == expected, "{said}");
}

/// Goal: a node works only for holders of its key, and rejects operations that it does not support.
#[test]
fn a_node_works_for_its_key_alone() {
    let test = "a_node_works_for_its_key_alone";
    let Some(installation) = Installation::new(test) else { return };
    let (mut server, client) = node(&installation, 0);
    doctor_looks(&installation);
    let stranger = Client { key: "another-key-of-thirty-two-letters".to_owned(), ..client.clone() };
    let status = |client: &Client, method: &str, path: &str, body: &Value| {
        client.call(method, path, body).expect("an answer").status
    };
    for (method, path) in [
        ("GET", "/ingest"),
        ("GET", "/metrics"),
        ("POST", "/ingest/embed"),
        ("POST", "/ingest/parse?format=Pdf"),
    ] {
        assert_eq!(status(&stranger, method, path, &Value::Null), 401, "{path}");
    }
    let model = ask(&client, "GET", "/ingest", Value::Null)["models"][0].clone();
    let embed = |body: Value| status(&client, "POST", "/ingest/embed", &body);
    assert_eq!(embed(json!({"model": model, "texts": ["a ferry"]})), 200);
    assert_eq!(embed(json!({"model": "another", "texts": ["a ferry"]})), 400);
    assert_eq!(embed(json!({"texts": ["a ferry"]})), 400);
    assert_eq!(embed(json!({"model": model, "texts": vec!["a"; 1025]})), 400);
    assert_eq!(embed(json!({"model": model, "texts": ["a".repeat(17 << 20)]})), 413);
    assert_eq!(status(&client, "POST", "/ingest/parse?format=Exe", &Value::Null), 400);
    assert_eq!(status(&client, "POST", "/ingest/parse", &Value::Null), 400);
    assert_eq!(status(&client, "POST", "/search/retrieve", &Value::Null), 404);
    assert_eq!(status(&stranger, "GET", "/readyz", &Value::Null), 200);

    let (_server, refused) =
        with_nodes(&installation, &format!("http://{}", client.address), &stranger.key);
    take_in(&refused, "granite");
    assert_eq!((metric(&refused, BY_NODE), metric(&refused, HERE)), (0.0, 2.0));
    let mut patience = Patience::new();
    while !ask(&refused, "GET", "/readyz", Value::Null)["components"]["index"]
        .as_str()
        .is_some_and(|state| state.contains("ingest node"))
    {
        assert!(!patience.is_over(()), "a key that is refused is never told");
    }
    server.terminate();
    assert!(server.ended().is_some_and(|status| status.success()));
    let output = server.output();
    assert!(!output.contains(NODE_KEY) && !output.contains(&stranger.key), "{output}");
}
