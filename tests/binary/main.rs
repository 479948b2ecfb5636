//! Tests of the binary as an operator uses it: started, stopped, killed, and called over real
//! sockets.
//!
//! - `archives`: exports and imports, interrupted by kills and on a full disk
//! - `backups`: backups under load, damaged backups, and the results of restoring them; `buckets`:
//!   backups in an object store that fails
//! - `bodies`: memory consumed by hostile request bodies
//! - `lifecycle`: the first key, a second process, stopping, and restarting after a kill
//! - `shared_store`: data in a bucket, through lost machines and a failing store; `s3`: the store;
//!   `other_stores`: the buckets of other clouds; `verified_buckets`: the findings of `lodestone
//!   verify` in buckets; `roles`: store credentials that expire
//! - `query_nodes`: additional processes that answer from the bucket; `ingest_nodes`: processes
//!   that parse and embed for another one; `later_release`: data written by a later release
//! - `standby`: processes that wait to take over from the writer
//! - `shared_searches`: searches of large tenants split over query nodes; `secure_nodes`: nodes
//!   that talk over TLS; `tenant_plans`: limits of tenants that apply on all nodes
//! - `sockets`: slow clients and event streams
//! - `memory`: hostile clients on a small machine
//! - `models`: a reranker installed, listed and used; `hub`: models from a model hub; `published`:
//!   small versions of the models that the documentation names
//! - `remote_model`: an embedding model served by another server
//! - `sparse`: a sparse model next to the embedding model
//! - `reembed`: switching to another embedding model under load and kills
//! - `settings`: settings from the environment, and the contents of the log
//! - `tls`: certificates at the start, changed certificates, and clients without TLS
//! - `streams`: events one by one, clients that disconnect, and equal answers under concurrency
//! - `fairness`: searches of one tenant next to answers of another; clients that disconnect
//! - `damage`: the findings of `lodestone verify`; `catalogs`: outdated, empty and damaged catalogs
//! - `unreadable`: segments damaged under a running server
//! - `full_disk`: disks without a free byte or inode
//! - `documents`: files of all formats, including hostile ones, parsed by sandboxed children
//! - `client`: the interactive commands: tables, JSON, profiles, failures and hostile text
//! - `cluster`: the processes of the compose file over a bucket
//! - `importers`: data of other products, imported through a kill
//! - `ingest`: the `ingest` command, through changes and kills
//! - `image`: the recipe of the container image
//! - `vector_stores`: files and vector stores through kills, a lost catalog and a backup
//! - `watch`: metrics, logs and traces; `webhooks`: failing receivers, and job events
//! - `stand_in`: a scripted server that the program calls
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

/// A data directory and a model, used by one server after another.
struct Installation {
    dir: TempDir,
    model: PathBuf,
}

impl Installation {
    /// Creates an installation with a fresh data directory, or returns `None` without a model.
    fn new(test: &str) -> Option<Self> {
        let model = process::model::first_layer_dir(test)?;
        Some(Self { dir: TempDir::new().expect("a temporary directory"), model })
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Starts a server; returns it, ready, with a client that uses the admin key.
    fn start(&self) -> (Server, Client) {
        self.start_with(&[])
    }

    /// Starts a server with additional environment variables.
    fn start_with(&self, variables: &[(&str, &str)]) -> (Server, Client) {
        self.start_in(None, variables)
    }

    /// Starts a server in a memory control group.
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

/// Sends a request that must succeed; returns its body. While a server is still fetching the tenant
/// from its bucket for another request, repeats it, as clients do.
fn ask(client: &Client, method: &str, path: &str, body: Value) -> Value {
    let mut patience = Patience::new();
    loop {
        let reply = client.call(method, path, &body).expect("an answer");
        let told = reply.json();
        if told["reason"] != "node_behind" || patience.is_over(()) {
            assert_eq!(reply.status, 200, "{method} {path}: {told}");
            return told;
        }
    }
}

fn upload(client: &Client, id: &str, content: &str) {
    let body = json!({"file_id": id, "content": content});
    ask(client, "POST", "/upload/upload_text?tenant_id=acme", body);
}

/// Waits until the job of a source has finished; returns its status.
fn settled(client: &Client, id: &str) -> String {
    let path = format!("/upload/verify_processing?tenant_id=acme&file_id={id}");
    let mut patience = Patience::new();
    loop {
        let status = ask(client, "POST", &path, Value::Null);
        if let Some(ended @ ("success" | "errored")) = status["status"].as_str() {
            return ended.to_owned();
        }
        // Progress of other jobs counts as progress too, as they are processed first.
        let others = ask(client, "GET", "/jobs?limit=1", Value::Null)["counts"].clone();
        assert!(!patience.is_over((status.clone(), others)), "{id} is stuck: {status}");
    }
}

/// The ids of the sources in which a word occurs.
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

/// All files below a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let below = walkdir::WalkDir::new(dir).sort_by_file_name().into_iter();
    let entries = below.map(|entry| entry.unwrap_or_else(|error| panic!("{error}")));
    let files = entries.filter(|entry| entry.file_type().is_file());
    files.map(walkdir::DirEntry::into_path).collect()
}
