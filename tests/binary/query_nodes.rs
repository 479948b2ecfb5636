//! Query nodes next to the writer: everything acknowledged anywhere holds on every node.

#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::net::TcpSocket;

use crate::backups::another;
use crate::exposition::Scrape;
use crate::process::http::{Client, Failure, Reply};
use crate::process::patience::Patience;
use crate::process::{Server, lodestone};
use crate::s3::Store;
use crate::{Installation, KEY, ask, files, found, settled, upload};

const PLACE: &str = "s3://backups/data/prod";

/// A process with its data directory and a client.
pub struct Node {
    pub server: Server,
    pub client: Client,
    pub installation: Installation,
}

impl Node {
    pub fn start(
        store: &Store,
        installation: Installation,
        port: u16,
        own: &[(&str, &str)],
    ) -> Self {
        let mut server = spawn(store, &installation, port, own);
        let (banner, _) = server.ready();
        Self { client: banner.client(KEY), server, installation }
    }

    pub fn writer(store: &Store, installation: Installation, port: u16) -> Self {
        Self::start(store, installation, port, &[("LODESTONE_WITH_QUERY_NODES", "true")])
    }

    fn query(store: &Store, installation: Installation, writer: u16) -> Self {
        let url = format!("http://127.0.0.1:{writer}");
        let own = [("LODESTONE_ROLE", "query"), ("LODESTONE_WRITER_URL", &url)];
        Self::start(store, installation, 0, &own)
    }

    pub fn signal(&self, signal: Signal) {
        let process = Pid::from_raw(self.server.id() as i32).expect("a process");
        kill_process(process, signal).expect("it lives");
    }

    /// The value of one of its metrics.
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.client.call("GET", "/metrics", &Value::Null).expect("an answer").body;
        Scrape::read(&String::from_utf8(text).expect("UTF-8")).get(name)
    }
}

/// Starts a process on a port without waiting until it is ready.
pub fn spawn(
    store: &Store,
    installation: &Installation,
    port: u16,
    own: &[(&str, &str)],
) -> Server {
    let mut command = lodestone(&["serve", "--store", PLACE, "--query-timeout", "20"]);
    command.args(["--listen", &format!("127.0.0.1:{port}")]);
    command.arg("--data-dir").arg(installation.data());
    command.arg("--model-dir").arg(&installation.model);
    command.env("LODESTONE_ADMIN_KEY", KEY).envs(store.variables());
    command.env("RUST_LOG", "info").envs(own.iter().copied());
    Server::run(command)
}

/// Starts a query node that finds the writer's only source.
fn node_with_saffron(writer: &Node, store: &Store, installation: Installation, port: u16) -> Node {
    upload(&writer.client, "a", "The saffron market opens on Tuesdays.");
    assert_eq!(settled(&writer.client, "a"), "success");
    let node = Node::query(store, installation, port);
    assert_eq!(found(&node.client, "saffron"), ["a"]);
    node
}

/// Reserves a port for a process that starts later or restarts at the same address. The ports are
/// outside the system's ephemeral range, and each test process starts at a different one.
///
/// A bound socket that does not listen keeps the port until the test process ends. It shares the
/// address only with sockets that ask for sharing, as servers do; this function does not, so no
/// other test gets the port, not even while its server is down.
pub fn free_port() -> u16 {
    const PORTS: Range<u32> = 20_000..32_000;
    static CALLS: AtomicU32 = AtomicU32::new(0);
    static RESERVED: Mutex<Vec<TcpSocket>> = Mutex::new(Vec::new());
    let first = std::process::id() * 37;
    for _ in PORTS {
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        let port = (PORTS.start + first.wrapping_add(call) % (PORTS.end - PORTS.start)) as u16;
        let socket = TcpSocket::new_v4().expect("a socket");
        if socket.bind((Ipv4Addr::LOCALHOST, port).into()).is_ok() {
            socket.set_reuseaddr(true).expect("an option");
            RESERVED.lock().expect("no panic").push(socket);
            return port;
        }
    }
    panic!("no port is free")
}

fn search(client: &Client, word: &str) -> Reply {
    try_search(client, word).expect("an answer")
}

/// Searches on a process that may be gone.
pub fn try_search(client: &Client, word: &str) -> Result<Reply, Failure> {
    let body = json!({"tenant_id": "acme", "query": word});
    client.call("POST", "/search/full-text-search", &body)
}

/// Repeats a search until it returns the given status.
fn until(client: &Client, status: u16, word: &str) -> Reply {
    let mut patience = Patience::new();
    loop {
        let reply = search(client, word);
        if reply.status == status {
            return reply;
        }
        assert!(!patience.is_over(reply.status), "{}", reply.json());
    }
}

pub fn delete(client: &Client, id: &str) {
    ask(client, "DELETE", "/delete_source?tenant_id=acme", json!({"source_ids": [id]}));
}

/// Goal: uploads, replacements, deletions, memories and keys that any node has acknowledged are in
/// effect on every node from that moment on, repeatedly and concurrently; nodes answer searches
/// themselves.
#[test]
fn what_is_told_by_one_node_holds_on_every_node() {
    let test = "what_is_told_by_one_node_holds_on_every_node";
    let Some(store) = Store::start(test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let (one, two) = (another(&installation), another(&installation));
    let port = free_port();
    let writer = Node::writer(&store, installation, port);
    upload(&writer.client, "first", "The granite quarry closed in 1988.");
    assert_eq!(settled(&writer.client, "first"), "success");
    let nodes = [Node::query(&store, one, port), Node::query(&store, two, port)];
    let clients = [&writer.client, &nodes[0].client, &nodes[1].client];
    for client in clients {
        assert_eq!(found(client, "granite"), ["first"]);
    }
    let at_writer =
        "http_requests_total{method=\"POST\",route=\"/search/full-text-search\",status=\"2xx\"}";
    let before = writer.metric(at_writer);
    std::thread::scope(|scope| {
        for (hand, client) in clients.into_iter().enumerate() {
            scope.spawn(move || {
                for round in 0..4 {
                    let (id, word) = (format!("d{hand}"), format!("lantern{hand}x{round}"));
                    upload(client, &id, &format!("The {word} stands in the hall."));
                    assert_eq!(settled(client, &id), "success");
                    for other in clients {
                        assert_eq!(found(other, &word), [id.as_str()], "round {round}");
                        if round > 0 {
                            let old = format!("lantern{hand}x{}", round - 1);
                            assert!(found(other, &old).is_empty(), "round {round}: {old}");
                        }
                    }
                }
                delete(client, &format!("d{hand}"));
                for other in clients {
                    assert!(found(other, &format!("lantern{hand}x3")).is_empty());
                }
                let body = json!({"name": format!("key {hand}"), "role": "read"});
                let made = ask(client, "POST", "/admin/api_keys", body);
                let key = made["api_key"].as_str().expect("a key").to_owned();
                let id = made["key_id"].as_str().expect("an id").to_owned();
                let bearer = |other: &Client| Client { key: key.clone(), ..other.clone() };
                for other in clients {
                    assert_eq!(search(&bearer(other), "granite").status, 200);
                }
                ask(client, "DELETE", &format!("/admin/api_keys/{id}"), Value::Null);
                for other in clients {
                    assert_eq!(search(&bearer(other), "granite").status, 401);
                }
            });
        }
    });
    // A third of the 81 searches went to the writer itself; nodes forward some when the store is
    // slow.
    let asked = writer.metric(at_writer) - before;
    assert!((21.0..=54.0).contains(&asked), "{asked} searches of the nodes' clients");
}

/// The local copies of a tenant's files on a node's disk.
fn copies(installation: &Installation) -> Vec<String> {
    let root = installation.data().join("cache/blobs/v1");
    let name = |path: PathBuf| path.strip_prefix(&root).ok().map(|name| name.display().to_string());
    let names = files(&root).into_iter().filter_map(name);
    names.filter(|name| name.starts_with("c/") || name.starts_with("raw/")).collect()
}

/// Goal: no copy of a deleted document or tenant remains on any machine's disk, neither on nodes
/// that had it open nor on one that was away at the time.
#[test]
fn copies_of_what_is_deleted_go_everywhere() {
    let test = "copies_of_what_is_deleted_go_everywhere";
    let Some(store) = Store::start(test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let (one, two) = (another(&installation), another(&installation));
    let port = free_port();
    let writer = Node::writer(&store, installation, port);
    let away = node_with_saffron(&writer, &store, one, port);
    let node = Node::query(&store, two, port);
    for node in [&away, &node] {
        assert_eq!(found(&node.client, "saffron"), ["a"]);
        let body = json!({"tenant_id": "acme", "file_id": "a"});
        let fetched = ask(&node.client, "POST", "/fetch/fetch_content", body);
        assert_eq!(fetched["file_content"], "The saffron market opens on Tuesdays.");
        let copies = copies(&node.installation);
        for folder in ["c/", "raw/"] {
            assert!(copies.iter().any(|name| name.starts_with(folder)), "{copies:?}");
        }
    }
    let Node { server, installation: cache, .. } = away;
    server.kill();
    let gone = |installation: &Installation, folder: &str| {
        let mut patience = Patience::new();
        while copies(installation).iter().any(|name| name.starts_with(folder)) {
            assert!(!patience.is_over(()), "copies are left: {:?}", copies(installation));
        }
    };
    upload(&writer.client, "b", "The granite quarry closed in 1988.");
    assert_eq!(settled(&writer.client, "b"), "success");
    assert_eq!(found(&node.client, "granite"), ["b"]);
    delete(&writer.client, "a");
    gone(&node.installation, "raw/");
    ask(&writer.client, "DELETE", "/tenant/delete?tenant_id=acme&confirm=acme", Value::Null);
    gone(&writer.installation, "");
    gone(&node.installation, "");
    assert!(!copies(&cache).is_empty());
    gone(&Node::query(&store, cache, port).installation, "");
}

/// Goal: nodes that are killed, lose their disk or are suspended for long never return stale
/// results; while the writer is gone they answer searches and report that nothing can be written,
/// and they follow the next writer.
#[test]
fn nodes_that_die_or_sleep_answer_nothing_that_is_old() {
    let test = "nodes_that_die_or_sleep_answer_nothing_that_is_old";
    let Some(store) = Store::start(test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let (one, two, next) = (another(&installation), another(&installation), another(&installation));
    let port = free_port();
    let writer = Node::writer(&store, installation, port);
    for n in 0..4 {
        upload(&writer.client, &format!("s{n}"), &format!("The copper roof{n} was laid in March."));
        assert_eq!(settled(&writer.client, &format!("s{n}")), "success");
    }
    let sleeper = Node::query(&store, one, port);
    let mortal = Node::query(&store, two, port);
    assert_eq!(found(&sleeper.client, "roof0"), ["s0"]);
    assert_eq!(found(&mortal.client, "roof1"), ["s1"]);
    sleeper.signal(Signal::STOP);
    delete(&mortal.client, "s0");
    mortal.server.kill();
    delete(&writer.client, "s1");
    // Sent before the node resumes: the kernel accepts the connection for it.
    let asking = {
        let client = sleeper.client.clone();
        std::thread::spawn(move || search(&client, "roof0"))
    };
    sleeper.signal(Signal::CONT);
    let reply = asking.join().expect("it does not panic");
    assert!(reply.status == 503 || reply.json() == json!([]), "{}", reply.json());
    assert_eq!(until(&sleeper.client, 200, "roof1").json(), json!([]));
    // The killed node's disk survives, with an outdated catalog.
    let mortal = Node::query(&store, mortal.installation, port);
    assert!(found(&mortal.client, "roof0").is_empty() && found(&mortal.client, "roof1").is_empty());
    assert_eq!(found(&mortal.client, "roof2"), ["s2"]);

    writer.server.kill();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(4) {
        assert_eq!(found(&sleeper.client, "roof2"), ["s2"], "searches go on");
    }
    let body = json!({"file_id": "n", "content": "The violin hangs in the second hall."});
    let path = "/upload/upload_text?tenant_id=acme";
    let reply = sleeper.client.call("POST", path, &body).expect("an answer");
    assert_eq!((reply.status, reply.json()["reason"].clone()), (503, json!("writer_away")));
    let writer = Node::writer(&store, next, port);
    passed_on(&sleeper.client, "POST", path, &body);
    let path = "/upload/verify_processing?tenant_id=acme&file_id=n";
    passed_on(&mortal.client, "POST", path, &Value::Null);
    assert_eq!(settled(&mortal.client, "n"), "success");
    for client in [&sleeper.client, &mortal.client, &writer.client] {
        assert_eq!(found(client, "violin"), ["n"]);
        assert!(found(client, "roof0").is_empty());
    }
}

/// Goal: a node that cannot reach the store forwards searches to the writer, and responds 503 if
/// the writer is unreachable too; it never serves possibly stale data itself.
#[test]
fn a_node_that_does_not_know_the_newest_state_passes_searches_on() {
    let test = "a_node_that_does_not_know_the_newest_state_passes_searches_on";
    let Some(store) = Store::start(test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let elsewhere = another(&installation);
    let port = free_port();
    let writer = Node::writer(&store, installation, port);
    let node = node_with_saffron(&writer, &store, elsewhere, port);
    let body = json!({"name": "prometheus", "role": "read"});
    let made = ask(&node.client, "POST", "/admin/api_keys", body);
    let key = made["api_key"].as_str().expect("a key").to_owned();
    let scraper = Client { key, ..node.client.clone() };
    let scraped = |status: u16| {
        let reply = scraper.call("GET", "/metrics", &Value::Null).expect("an answer");
        assert_eq!(reply.status, status, "{}", String::from_utf8_lossy(&reply.body));
        String::from_utf8(reply.body).expect("UTF-8")
    };
    assert!(scraped(200).contains("query_node_age_milliseconds"));
    store.fail(1);
    let mut patience = Patience::new();
    while node.metric("query_node_age_milliseconds") < 2000.0 {
        assert!(!patience.is_over(0), "it follows a store that fails");
    }
    assert_eq!(found(&node.client, "saffron"), ["a"], "the writer has it in its cache");
    let state = ask(&node.client, "GET", "/readyz", Value::Null);
    let told = state["components"]["storage"].as_str().unwrap_or_default().to_owned();
    assert!(told.contains("may be stale"), "{state}");
    assert!(scraped(503).contains("node_behind"), "never the numbers of another process");
    writer.server.kill();
    let reply = search(&node.client, "saffron");
    assert_eq!(reply.status, 503, "{}", reply.json());
    let state = ready_with(&node.client, 503, "cannot answer on its own");
    assert_eq!(state["status"], "unavailable", "{state}");
    store.fail(0);
    assert_eq!(found_again(&node.client), ["a"]);
    ready_with(&node.client, 200, "searches continue");
}

/// Polls a node's readiness until its status and its storage message are as expected.
fn ready_with(client: &Client, status: u16, words: &str) -> Value {
    let mut patience = Patience::new();
    loop {
        let reply = client.call("GET", "/readyz", &Value::Null).expect("an answer");
        let state = reply.json();
        let told = state["components"]["storage"].as_str().unwrap_or_default().to_owned();
        if reply.status == status && told.contains(words) {
            return state;
        }
        assert!(!patience.is_over(told), "{state}");
    }
}

/// Repeats a request until a node has forwarded it to a writer that it may not know yet.
pub fn passed_on(client: &Client, method: &str, path: &str, body: &Value) {
    let mut patience = Patience::new();
    loop {
        let reply = client.call(method, path, body).expect("an answer");
        if reply.status == 200 {
            return;
        }
        assert!(reply.status == 503 && !patience.is_over(()), "{}", reply.json());
    }
}

fn found_again(client: &Client) -> Vec<String> {
    until(client, 200, "saffron");
    found(client, "saffron")
}

/// Goal: a node that is started before the first writer answers health checks, refuses everything
/// else with a reason, ends on a signal, and answers searches once the writer has started.
#[test]
fn a_node_waits_for_the_first_data() {
    let test = "a_node_waits_for_the_first_data";
    let Some(store) = Store::start(test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let elsewhere = another(&installation);
    let (port, own) = (free_port(), free_port());
    let url = format!("http://127.0.0.1:{port}");
    let settings = [("LODESTONE_ROLE", "query"), ("LODESTONE_WRITER_URL", &*url)];
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, own));
    let client = Client { address, key: KEY.into() };
    let until_it_waits = || {
        let mut patience = Patience::new();
        loop {
            match client.call("GET", "/healthz", &Value::Null) {
                Ok(reply) => return assert_eq!(reply.json()["waiting"], true, "{}", reply.json()),
                Err(failure) => assert!(!patience.is_over(()), "{failure:?}"),
            }
        }
    };
    let mut node = spawn(&store, &elsewhere, own, &settings);
    until_it_waits();
    let health = ask(&client, "GET", "/healthz", Value::Null);
    assert_eq!(health, json!({"status": "ok", "waiting": true}));
    for reply in [
        client.call("GET", "/readyz", &Value::Null).expect("an answer"),
        client.call("POST", "/upload/upload_text?tenant_id=acme", &json!({})).expect("an answer"),
        search(&client, "saffron"),
    ] {
        assert_eq!((reply.status, reply.json()["reason"].clone()), (503, json!("node_behind")));
        assert!(reply.json()["message"].to_string().contains("waits for the writer"));
    }
    node.terminate();
    assert!(node.ended().expect("it ends").success(), "{}", node.output());

    let mut node = spawn(&store, &elsewhere, own, &settings);
    until_it_waits();
    let writer = Node::writer(&store, installation, port);
    upload(&writer.client, "a", "The saffron market opens on Tuesdays.");
    assert_eq!(settled(&writer.client, "a"), "success");
    node.ready();
    assert_eq!(found(&client, "saffron"), ["a"]);
}

/// Goal: nodes do not follow a writer that was not told about query nodes, but forward every
/// request to it.
#[test]
fn a_writer_that_does_not_wait_is_not_answered_for() {
    let test = "a_writer_that_does_not_wait_is_not_answered_for";
    let Some(store) = Store::start(test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let elsewhere = another(&installation);
    let port = free_port();
    let writer = Node::start(&store, installation, port, &[]);
    let node = node_with_saffron(&writer, &store, elsewhere, port);
    writer.server.kill();
    let reply = search(&node.client, "saffron");
    assert_eq!(reply.status, 503, "{}", reply.json());
}

/// Goal: a writer that hangs or serves other data delays no forwarded request for long, and no
/// search at all; nothing is forwarded to a writer with other data.
#[test]
fn nothing_is_passed_on_to_a_writer_that_stands_still_or_is_another_one() {
    let test = "nothing_is_passed_on_to_a_writer_that_stands_still_or_is_another_one";
    let Some(store) = Store::start(test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let (elsewhere, alone) = (another(&installation), another(&installation));
    let port = free_port();
    let writer = Node::writer(&store, installation, port);
    let node = node_with_saffron(&writer, &store, elsewhere, port);
    writer.signal(Signal::STOP);
    let (path, begun) = ("/upload/upload_text?tenant_id=acme", Instant::now());
    let body = json!({"file_id": "b", "content": "The meadow is mown in June."});
    for _ in 0..2 {
        let reply = node.client.call("POST", path, &body).expect("an answer");
        assert_eq!((reply.status, reply.json()["reason"].clone()), (503, json!("writer_away")));
        assert_eq!(found(&node.client, "saffron"), ["a"], "searches go on");
    }
    assert!(begun.elapsed() < Duration::from_secs(90), "{:?}", begun.elapsed());
    let told = ask(&node.client, "GET", "/readyz", Value::Null)["components"]["storage"].clone();
    assert!(told.as_str().is_some_and(|told| told.contains("writer")), "{told}");
    writer.signal(Signal::CONT);
    passed_on(&node.client, "POST", path, &body);
    writer.server.kill();

    let mut command = lodestone(&["serve", "--listen", &format!("127.0.0.1:{port}")]);
    command.arg("--data-dir").arg(alone.data()).arg("--model-dir").arg(&alone.model);
    let mut other = Server::run({
        command.env("LODESTONE_ADMIN_KEY", KEY);
        command
    });
    let client = other.ready().0.client(KEY);
    for _ in 0..3 {
        let reply = node.client.call("POST", path, &body).expect("an answer");
        assert_eq!(reply.status, 503, "{}", reply.json());
    }
    let tenants = ask(&client, "GET", "/tenant/list", Value::Null);
    assert!(!tenants.to_string().contains("acme"), "{tenants}");
    assert_eq!(found(&node.client, "saffron"), ["a"]);
}

/// Starts query nodes that divide the tenants among them, with additional settings. Their list of
/// nodes also contains two addresses that are no query nodes.
pub fn sharing(
    store: &Store,
    writer: u16,
    installations: Vec<Installation>,
    settings: &[(&str, &str)],
) -> Vec<Node> {
    let ports: Vec<u16> = installations.iter().map(|_| free_port()).collect();
    let url = |port: &u16| format!("http://127.0.0.1:{port}");
    // One address where nobody listens, and one that is not a query node.
    let mut urls: Vec<String> = ports.iter().chain([&free_port(), &writer]).map(url).collect();
    urls.sort();
    let (urls, writer) = (urls.join(","), url(&writer));
    let own = [
        ("LODESTONE_ROLE", "query"),
        ("LODESTONE_WRITER_URL", &writer),
        ("LODESTONE_QUERY_NODES", &urls),
    ];
    let own = [&own, settings].concat();
    let joined = |node: &Node, count: usize| {
        let mut patience = Patience::new();
        while node.metric("query_nodes_usable") != count as f64 {
            assert!(!patience.is_over(()), "the others are never usable");
        }
    };
    let mut nodes = Vec::new();
    for (port, installation) in ports.iter().zip(installations) {
        nodes.push(Node::start(store, installation, *port, &own));
        joined(&nodes[nodes.len() - 1], nodes.len());
    }
    nodes.iter().for_each(|node| joined(node, ports.len()));
    nodes
}

/// Goal: whichever node is asked about a tenant, a single node has its data open, from the first
/// request on if others served it before that node joined; a node that is killed or frozen deprives
/// nobody of an answer, and acknowledged changes hold everywhere nonetheless.
#[test]
fn a_tenant_is_at_hand_on_one_node() {
    const TENANTS: usize = 8;
    let test = "a_tenant_is_at_hand_on_one_node";
    let Some(store) = Store::start(test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let others = (0..3).map(|_| another(&installation)).collect();
    let port = free_port();
    let writer = Node::writer(&store, installation, port);
    let text = |tenant: usize, version: usize| {
        let path = format!("/upload/upload_text?tenant_id=t{tenant}");
        let content = format!("The lantern{tenant}x{version} stands in the hall.");
        ask(&writer.client, "POST", &path, json!({"file_id": "a", "content": content}));
        let path = format!("/upload/verify_processing?tenant_id=t{tenant}&file_id=a&wait=30");
        while ask(&writer.client, "POST", &path, Value::Null)["status"] != "success" {}
    };
    let finds = |node: &Node, tenant: usize, version: usize| {
        let (tenant, query) = (format!("t{tenant}"), format!("lantern{tenant}x{version}"));
        let body = json!({"tenant_id": tenant, "query": query});
        let begun = Instant::now();
        let found = ask(&node.client, "POST", "/search/full-text-search", body);
        (found.as_array().expect("an array").len(), begun.elapsed())
    };
    (0..TENANTS).for_each(|tenant| text(tenant, 1));
    let nodes = sharing(&store, port, others, &[]);
    let open = |node: &Node| node.metric("tenants{state=\"open\"}");
    let at_hand: Vec<f64> = nodes.iter().map(open).collect();
    assert_eq!(at_hand[0], 0.0, "nobody answered while the first one joined");
    for node in &nodes {
        for tenant in 0..TENANTS {
            assert_eq!(finds(node, tenant, 1).0, 1);
            let path = format!("/list/sources?tenant_id=t{tenant}");
            let listed = ask(&node.client, "GET", &path, Value::Null);
            assert_eq!(listed["sources"].as_array().map(Vec::len), Some(1), "{listed}");
        }
    }
    let open_now: Vec<f64> = nodes.iter().map(open).collect();
    assert_eq!(open_now[1..], at_hand[1..], "those that joined later open none when asked");
    assert!(open_now[0] + open_now[2] <= TENANTS as f64, "each on one node: {open_now:?}");
    assert!(open_now.iter().sum::<f64>() >= TENANTS as f64, "{open_now:?}");
    let passed: f64 = nodes.iter().map(|node| node.metric("query_nodes_passed_total")).sum();
    assert_eq!(passed, (TENANTS * 2 * 2) as f64, "of three nodes two pass a request on");

    // A replacement is found at once, by the tenant's node and by the others.
    text(0, 2);
    for node in &nodes {
        assert_eq!((finds(node, 0, 1).0, finds(node, 0, 2).0), (0, 1));
    }

    // Other nodes answer for the tenants of a frozen node, slowly until the failure is noticed.
    nodes[2].signal(Signal::STOP);
    for tenant in 0..TENANTS {
        let (found, time) = finds(&nodes[0], tenant, if tenant == 0 { 2 } else { 1 });
        assert_eq!(found, 1);
        assert!(time < Duration::from_secs(15), "{time:?}");
    }
    nodes[2].signal(Signal::CONT);
    let mut nodes = nodes.into_iter();
    let mut first = nodes.next().expect("the first");
    let end = |node: Node| {
        let url = format!("http://{}", node.client.address);
        node.server.kill();
        url
    };
    let lost: Vec<String> = nodes.map(end).collect();
    for tenant in 0..TENANTS {
        assert_eq!(finds(&first, tenant, if tenant == 0 { 2 } else { 1 }).0, 1);
    }
    let mut patience = Patience::new();
    while first.metric("query_nodes_usable") != 1.0 {
        assert!(!patience.is_over(()), "lost nodes are never noticed");
    }
    let named = |url: &str| format!("query_node_answers{{node=\"{url}\"}}");
    assert_eq!(first.metric(&named(&format!("http://{}", first.client.address))), 1.0);
    for url in lost {
        let mut patience = Patience::new();
        while first.metric(&named(&url)) != 0.0 {
            assert!(!patience.is_over(()), "{url}");
        }
        assert!(first.server.output().contains(&url), "{url}");
    }
    let state = ask(&first.client, "GET", "/readyz", Value::Null);
    let told = state["components"]["index"].as_str().unwrap_or_default();
    assert!(state["status"] == "ok" && told.contains("query_node_answers"), "{state}");
}
