//! Query nodes that speak TLS to each other and to the writer.

#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use serde_json::{Value, json};

use crate::backups::another;
use crate::exposition::Scrape;
use crate::process::Server;
use crate::process::patience::Patience;
use crate::query_nodes::{free_port, spawn};
use crate::s3::Store;
use crate::tls::Authority;
use crate::{Installation, KEY};

const NODE_KEY: &str = "node-key-node-key-node-key-node-key";

/// A running process and a TLS client for it.
struct Secure {
    agent: ureq::Agent,
    base: String,
    _server: Server,
}

impl Secure {
    /// The status and body of a response.
    fn call(&self, path: &str, body: &Value) -> (u16, String) {
        let url = format!("{}{path}", self.base);
        let key = format!("Bearer {KEY}");
        let answer = match body {
            Value::Null => self.agent.get(&url).header("authorization", &key).call(),
            body => self
                .agent
                .post(&url)
                .header("authorization", &key)
                .header("content-type", "application/json")
                .send(body.to_string()),
        };
        let mut answer = answer.expect("an answer");
        let text = answer.body_mut().read_to_string().expect("a whole answer");
        (answer.status().as_u16(), text)
    }

    fn metric(&self, name: &str) -> f64 {
        Scrape::read(&self.call("/metrics", &Value::Null).1).get(name)
    }

    fn search(&self) -> Value {
        let body = json!({"tenant_id": "acme", "query": "the copper lantern", "mode": "fast"});
        let (status, text) = self.call("/search/retrieve", &body);
        assert_eq!(status, 200, "{text}");
        serde_json::from_str::<Value>(&text).expect("JSON")["chunks"].take()
    }
}

/// Goal: nodes with https:// addresses forward requests and share searches if `--ca-file` trusts
/// them all; a node that trusts another authority answers searches by itself, and reports that the
/// writer is unreachable.
#[test]
fn nodes_pass_on_and_share_over_tls() {
    let test = "nodes_pass_on_and_share_over_tls";
    let (Some(right), Some(wrong)) = (Authority::new(test), Authority::new(test)) else { return };
    let Some(store) = Store::start(test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let (certificate, key) = right.certificate("nodes", 2);
    let pair = [certificate, key].map(|file| file.display().to_string());
    let start = |installation: &Installation, port: u16, authority: &Authority, own: &[_]| {
        let authorities = authority.path("ca.pem").display().to_string();
        let tls = [
            ("LODESTONE_TLS_CERT", &*pair[0]),
            ("LODESTONE_TLS_KEY", &pair[1]),
            ("LODESTONE_CA_FILE", &authorities),
            ("LODESTONE_NODE_KEY", NODE_KEY),
        ];
        let mut server = spawn(&store, installation, port, &[&tls, own].concat());
        let (banner, _) = server.ready();
        let base = format!("https://{}", banner.client(KEY).address);
        Secure { agent: right.agent(), base, _server: server }
    };
    let writes = [("LODESTONE_WITH_QUERY_NODES", "true")];
    let writes = start(&installation, 0, &right, &writes);
    // The nodes need each other's addresses before they start.
    let ports = [free_port(), free_port()];
    let urls = ports.map(|port| format!("https://127.0.0.1:{port}")).join(",");
    let own = [
        ("LODESTONE_ROLE", "query"),
        ("LODESTONE_WRITER_URL", &*writes.base),
        ("LODESTONE_QUERY_NODES", &urls),
        ("LODESTONE_SHARED_SEARCH_ROWS", "1"),
    ];
    let others: Vec<Installation> = (0..3).map(|_| another(&installation)).collect();
    let nodes = [0, 1].map(|at| start(&others[at], ports[at], &right, &own));
    let mut patience = Patience::new();
    let sees_all = |node: &Secure| {
        node.metric("query_nodes_usable") == 2.0 && node.metric("query_node_writer_usable") == 1.0
    };
    while !nodes.iter().all(sees_all) {
        assert!(!patience.is_over(()), "they are never usable");
    }
    // Uploads to either node reach the writer.
    for (at, node) in nodes.iter().chain(&nodes).enumerate() {
        let content = format!("The copper lantern number {at} stands in hall {at}.");
        let body = json!({"file_id": format!("d{at}"), "content": content});
        let (status, text) = node.call("/upload/upload_text?tenant_id=acme", &body);
        assert_eq!(status, 200, "{text}");
        let path = format!("/upload/verify_processing?tenant_id=acme&file_id=d{at}&wait=30");
        let mut patience = Patience::new();
        while !node.call(&path, &json!({})).1.contains("\"status\":\"success\"") {
            assert!(!patience.is_over(()), "it is never processed");
        }
    }
    let mut patience = Patience::new();
    while nodes.iter().map(|node| node.metric("query_shares_answered_total")).sum::<f64>() == 0.0 {
        let expected = writes.search();
        assert_eq!(expected.as_array().map(Vec::len), Some(4), "{expected}");
        nodes.iter().for_each(|node| assert_eq!(node.search(), expected));
        assert!(!patience.is_over(()), "no search is shared");
    }
    let stranger = start(&others[2], 0, &wrong, &own);
    assert_eq!(stranger.search(), writes.search());
    let body = json!({"file_id": "x", "content": "A tin lantern."});
    let (status, text) = stranger.call("/upload/upload_text?tenant_id=acme", &body);
    assert!(status == 503 && text.contains("writer_away"), "{status} {text}");
    assert_eq!(stranger.metric("query_shares_answered_total"), 0.0);
}
