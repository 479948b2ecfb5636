//! The binary as its operator meets it: started, stopped, killed, asked over real sockets.
//!
//! - `archives`: exports and imports, killed and on a full disk
//! - `backups`: backups under load, damaged ones, and what restoring them gives; `buckets`: those
//!   in a store that fails
//! - `bodies`: memory that hostile bodies cost
//! - `lifecycle`: first key, second process, stopping, restarting after a kill
//! - `shared_store`: data in a bucket, through lost machines and a failing store; `s3`: the store;
//!   `other_stores`: the same in those of other clouds;
//!   `verified_buckets`: what `lodestone verify` finds there; `roles`: its keys expire
//! - `query_nodes`: further processes that answer from the bucket; `ingest_nodes`: those that parse
//!   and embed for another; `later_release`: data of a later one
//! - `sockets`: slow clients, event streams
//! - `memory`: hostile clients and a small machine
//! - `models`: a reranker installed, listed and used; `hub`: models from a model hub; `published`:
//!   those that the documentation names, in small sizes
//! - `remote_model`: the embedding model of another server
//! - `sparse`: a sparse model beside it
//! - `reembed`: another embedding model under load and kills
//! - `settings`: what the environment sets, and what the log tells
//! - `tls`: certificates at the start, changed, and clients without TLS
//! - `streams`: events one by one, clients that leave, the same answer in company
//! - `fairness`: searches of one tenant beside the answers of another; clients that leave
//! - `damage`: what `lodestone verify` finds; `catalogs`: those that are old, empty or damaged
//! - `unreadable`: segments damaged under a running server
//! - `full_disk`: disks without a free byte or inode
//! - `documents`: files of all formats and hostile ones, read by confined children
//! - `client`: the verbs for people: tables, JSON, profiles, failures, hostile text
//! - `cluster`: the processes of the compose file over a bucket
//! - `importers`: what other products hold, through a kill
//! - `ingest`: the client verb, through changes and kills
//! - `image`: the recipe of its container image
//! - `vector_stores`: files and vector stores through kills, a lost catalog and a backup
//! - `watch`: metrics, logs and traces; `webhooks`: receivers that fail, and events of jobs
//! - `stand_in`: a server that the program asks
//! - `documentation`: the README and `docs/`, example by example

mod archives;
mod backups;
mod bodies;
mod buckets;
mod catalogs;
mod client;
mod cluster;
mod damage;
mod documentation;
mod documents;
#[path = "../process/exposition.rs"]
mod exposition;
mod fairness;
mod full_disk;
mod hub;
mod image;
mod importers;
mod ingest;
mod ingest_nodes;
mod later_release;
mod lifecycle;
mod memory;
mod memory_group;
mod models;
mod other_stores;
#[path = "../process/mod.rs"]
mod process;
mod published;
mod query_nodes;
mod reembed;
mod remote_model;
mod roles;
mod s3;
mod secure_nodes;
mod settings;
mod shared_searches;
mod shared_store;
mod sockets;
mod sparse;
mod stand_in;
mod standby;
mod streams;
mod tenant_plans;
mod tls;
mod unreadable;
mod vector_stores;
mod verified_buckets;
mod watch;
mod webhooks;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use memory_group::MemoryGroup;
use process::Server;
use process::http::Client;
use process::patience::Patience;

const KEY: &str = "operator-key-of-the-binary-tests-00000001";

/// A data directory and the model, for one server after another.
struct Installation {
    dir: TempDir,
    model: PathBuf,
}

impl Installation {
    /// A fresh data directory, or `None` without a model.
    fn new(test: &str) -> Option<Self> {
        let model = process::model::first_layer_dir(test)?;
        Some(Self { dir: TempDir::new().expect("a temporary directory"), model })
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// A server that is ready, and a client with the operator's key.
    fn start(&self) -> (Server, Client) {
        self.start_with(&[])
    }

    /// The same with variables of the environment.
    fn start_with(&self, variables: &[(&str, &str)]) -> (Server, Client) {
        self.start_in(None, variables)
    }

    /// The same in a control group.
    fn start_in(
        &self,
        group: Option<&MemoryGroup>,
        variables: &[(&str, &str)],
    ) -> (Server, Client) {
        let mut command = process::lodestone(&["serve", "--listen", "127.0.0.1:0"]);
        command.arg("--data-dir").arg(self.data()).arg("--model-dir").arg(&self.model);
        command.env("LODESTONE_ADMIN_KEY", KEY).envs(variables.iter().copied());
        let mut server = Server::run(match group {
            Some(group) => group.around(&command),
            None => command,
        });
        let (banner, _) = server.ready();
        (server, banner.client(KEY))
    }
}

/// Asks for something that works.
fn ask(client: &Client, method: &str, path: &str, body: Value) -> Value {
    let reply = client.call(method, path, &body).expect("an answer");
    assert_eq!(reply.status, 200, "{method} {path}: {}", reply.json());
    reply.json()
}

fn upload(client: &Client, id: &str, content: &str) {
    let body = json!({"file_id": id, "content": content});
    ask(client, "POST", "/upload/upload_text?tenant_id=acme", body);
}

/// Waits until the job of a source has ended.
fn settled(client: &Client, id: &str) -> String {
    let path = format!("/upload/verify_processing?tenant_id=acme&file_id={id}");
    let mut patience = Patience::new();
    loop {
        let reply = client.call("POST", &path, &Value::Null).expect("an answer");
        let status = reply.json();
        // A tenant in a bucket takes its time to open.
        if status["reason"] == "node_behind" {
            let state = (status["reason"].clone(), Value::Null);
            assert!(!patience.is_over(state), "{id}: {status}");
            continue;
        }
        assert_eq!(reply.status, 200, "{path}: {status}");
        if let Some(ended @ ("success" | "errored")) = status["status"].as_str() {
            return ended.to_owned();
        }
        // Others are processed first.
        let others = ask(client, "GET", "/jobs?limit=1", Value::Null)["counts"].clone();
        assert!(!patience.is_over((status.clone(), others)), "{id} is stuck: {status}");
    }
}

/// Ids of the sources in which a word occurs.
fn found(client: &Client, word: &str) -> Vec<String> {
    let body = json!({"tenant_id": "acme", "query": word, "max_chunks": 1001});
    let chunks = ask(client, "POST", "/search/full-text-search", body);
    let chunks = chunks.as_array().expect("an array");
    let id = |chunk: &Value| chunk["source_id"].as_str().expect("an id").to_owned();
    let mut ids: Vec<String> = chunks.iter().map(id).collect();
    ids.sort();
    ids.dedup();
    ids
}

/// Every file below a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let below = walkdir::WalkDir::new(dir).sort_by_file_name().into_iter();
    let entries = below.map(|entry| entry.unwrap_or_else(|error| panic!("{error}")));
    let files = entries.filter(|entry| entry.file_type().is_file());
    files.map(walkdir::DirEntry::into_path).collect()
}
