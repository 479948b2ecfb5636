//! Standby processes, which wait to take over from the writer.

#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::backups::another;
use crate::process::Server;
use crate::process::http::Client;
use crate::process::patience::Patience;
use crate::query_nodes::{Node, delete, free_port, spawn, try_search};
use crate::s3::Store;
use crate::shared_store::PLACE;
use crate::stand_in::{StandIn, Told};
use crate::{Installation, KEY, found, settled, upload};

const WAITS: [(&str, &str); 2] =
    [("LODESTONE_STANDBY", "true"), ("LODESTONE_WITH_QUERY_NODES", "true")];

/// One of two processes that are configured alike.
struct Place {
    installation: Installation,
    port: u16,
    client: Client,
}

impl Place {
    fn new(installation: Installation) -> Self {
        let port = free_port();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Self { installation, port, client: Client { address, key: KEY.into() } }
    }

    fn start(&self, store: &Store) -> Server {
        spawn(store, &self.installation, self.port, &WAITS)
    }

    /// Starts a server that reaches the store through a link.
    fn start_behind(&self, store: &Store, link: &Link) -> Server {
        let endpoint = format!("http://{}", link.address);
        let own = [&WAITS[..], &[("AWS_ENDPOINT_URL_S3", &*endpoint)]].concat();
        spawn(store, &self.installation, self.port, &own)
    }

    fn health(&self) -> Value {
        let health = self.client.call("GET", "/healthz", &Value::Null);
        health.map(|reply| reply.json()).unwrap_or_default()
    }

    fn writes(&self) -> bool {
        !self.health()["writer"].is_null()
    }

    /// Waits until `/healthz` of its `server` contains `key`.
    fn until(&self, server: &mut Server, key: &str) {
        let mut patience = Patience::new();
        loop {
            let state = self.health();
            if !state[key].is_null() {
                return;
            }
            let is_over = patience.is_over(state.clone());
            assert!(!is_over, "no {key} in {state} of:\n{}", server.output());
        }
    }
}

/// Uploads through a node as soon as it accepts uploads; returns once the text is found.
pub fn put(client: &Client, id: &str, word: &str) {
    let body = json!({"file_id": id, "content": format!("The {word} gate opens at nine.")});
    let mut patience = Patience::new();
    loop {
        let reply = client.call("POST", "/upload/upload_text?tenant_id=acme", &body);
        let reply = reply.expect("an answer");
        if reply.status == 200 {
            break;
        }
        // A node that has not looked recently may forward the request to the standby process.
        let reason = reply.json()["reason"].clone();
        assert!(reply.status == 503 && [json!("writer_away"), json!("standby")].contains(&reason));
        assert!(!patience.is_over(()), "{reason}");
    }
    assert_eq!(settled(client, id), "success");
    assert_eq!(found(client, word), [id]);
}

/// The report of `lodestone doctor` for a query node with these writer addresses.
fn doctor(store: &Store, writers: &str, model: &Path) -> String {
    let dir = TempDir::new().expect("a directory");
    let mut command = store.command(&["doctor", "--role", "query", "--store", PLACE]);
    command.args(["--listen", "127.0.0.1:0", "--device", "cpu", "--writer-url", writers]);
    command.arg("--data-dir").arg(dir.path().join("data")).arg("--model-dir").arg(model);
    let output = command.output().expect("it runs");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Goal: of two identically configured processes one writes and the other stands by, says so and
/// answers nothing; the standby takes over by itself when the writer is killed, stopped or frozen,
/// and nodes that know both addresses find it; nothing is lost, and there are never two writers.
#[test]
fn one_that_waits_takes_over_from_one_that_is_gone() {
    let test = "one_that_waits_takes_over_from_one_that_is_gone";
    let Some(store) = Store::start(test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let (third, b) = (another(&installation), Place::new(another(&installation)));
    let a = Place::new(installation);
    let writers = format!("http://127.0.0.1:{},http://127.0.0.1:{}", b.port, a.port);
    let own = [("LODESTONE_ROLE", "query"), ("LODESTONE_WRITER_URL", &*writers)];
    // All start at once, over an empty bucket.
    let (one, other) = (a.start(&store), b.start(&store));
    let node = Node::start(&store, third, 0, &own);
    put(&node.client, "one", "saffron");
    let ((a, mut first), (b, mut second)) = match a.writes() {
        true => ((a, one), (b, other)),
        false => ((b, other), (a, one)),
    };
    first.ready();
    upload(&a.client, "granite", "The granite quarry closed in 1988.");
    assert_eq!(settled(&a.client, "granite"), "success");
    b.until(&mut second, "standby");
    let reply = b.client.call("GET", "/readyz", &Value::Null).expect("an answer");
    assert_eq!((reply.status, reply.json()["reason"].clone()), (503, json!("standby")));
    assert!(reply.json()["request_id"].as_str().is_some_and(|id| id.starts_with("req_")));

    let said = doctor(&store, &writers, &a.installation.model);
    let url = |place: &Place| format!("http://127.0.0.1:{}", place.port);
    assert!(said.contains(&format!("{} writes to the bucket", url(&a))), "{said}");
    assert!(said.contains(&format!("{} is a standby", url(&b))), "{said}");
    let other = json!({"writer": "00000000-0000-4000-8000-000000000000"});
    let other = StandIn::start(move |_| Told::json(200, &other));
    let said = doctor(&store, &other.url, &a.installation.model);
    let problem = format!("! writer     {} does not write the data of the bucket", other.url);
    assert!(said.contains(&problem), "{said}");

    // Killed: the other has everything that was acknowledged, and the restarted one stands by.
    first.kill();
    assert_eq!(found(&node.client, "granite"), ["granite"], "searches go on");
    put(&node.client, "two", "copper");
    second.ready();
    let mut first = a.start(&store);
    a.until(&mut first, "standby");

    // Stopped: the standby takes over without a waiting period.
    second.terminate();
    assert!(second.ended().expect("it ends").success(), "{}", second.output());
    first.ready();
    put(&node.client, "three", "violin");

    // A signal ends a standby process.
    let mut second = b.start(&store);
    b.until(&mut second, "standby");
    second.terminate();
    assert!(second.ended().expect("it ends").success(), "{}", second.output());

    // Frozen: it is succeeded, and exits when it resumes.
    let mut second = b.start(&store);
    b.until(&mut second, "standby");
    signal(&first, Signal::STOP);
    put(&node.client, "four", "marble");
    second.ready();
    delete(&node.client, "granite");
    signal(&first, Signal::CONT);
    // Until it exits, it returns nothing stale.
    while let Ok(reply) = try_search(&a.client, "granite") {
        assert_eq!(reply.status, 503, "{}", reply.json());
    }
    assert!(!first.ended().expect("it ends by itself").success(), "{}", first.output());
    put(&node.client, "five", "lantern");
    for (word, ids) in [("granite", vec![]), ("saffron", vec!["one"]), ("copper", vec!["two"])] {
        assert_eq!(found(&b.client, word), ids);
    }
}

fn signal(server: &Server, name: Signal) {
    let process = rustix::process::Pid::from_raw(server.id() as i32).expect("a process");
    rustix::process::kill_process(process, name).expect("it lives");
}

/// A connection to the store that can be cut; data sent meanwhile arrive once it is restored.
struct Link {
    address: SocketAddr,
    is_cut: Arc<AtomicBool>,
}

impl Link {
    fn new(store: &Store) -> Self {
        let endpoint = store.variables().into_iter().find(|(name, _)| name.contains("ENDPOINT"));
        let target = endpoint.expect("an endpoint").1.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let (address, is_cut) = (listener.local_addr().expect("an address"), Arc::default());
        let cut = Arc::clone(&is_cut);
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect(&target) else { return };
                let back =
                    (far.try_clone().expect("a socket"), near.try_clone().expect("a socket"));
                for (from, to) in [(near, far), back] {
                    let cut = Arc::clone(&cut);
                    std::thread::spawn(move || carry(from, to, &cut));
                }
            }
        });
        Self { address, is_cut }
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, is_cut: &AtomicBool) {
    let mut bytes = [0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        while is_cut.load(Ordering::Relaxed) {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// Goal: a writer that is cut off from the store, but not from its clients, stops answering no
/// later than the moment another may have taken over, and exits once it learns of that.
#[test]
fn one_that_is_cut_off_answers_nothing_that_is_old() {
    let test = "one_that_is_cut_off_answers_nothing_that_is_old";
    let Some(store) = Store::start(test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let (a, b) = (Place::new(another(&installation)), Place::new(installation));
    let link = Link::new(&store);
    let mut first = a.start_behind(&store, &link);
    first.ready();
    upload(&a.client, "granite", "The granite quarry closed in 1988.");
    assert_eq!(settled(&a.client, "granite"), "success");
    let mut second = b.start(&store);
    b.until(&mut second, "standby");
    link.is_cut.store(true, Ordering::Relaxed);
    second.ready();
    delete(&b.client, "granite");
    let reply = try_search(&a.client, "granite").expect("an answer");
    assert_eq!(reply.status, 503, "{}", reply.json());
    link.is_cut.store(false, Ordering::Relaxed);
    while let Ok(reply) = try_search(&a.client, "granite") {
        assert_eq!(reply.status, 503, "{}", reply.json());
    }
    assert!(!first.ended().expect("it ends by itself").success(), "{}", first.output());
    assert!(found(&b.client, "granite").is_empty());
}
