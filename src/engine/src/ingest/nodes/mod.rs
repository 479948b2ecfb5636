//! Ingest nodes: other processes that parse and embed for this one.
//!
//! ```text
//! ingest thread -> embed | parse -> the usable node with the fewest tasks -> answer, checked
//!                     |                  '- fails: the next node
//!                     '- no node, or none with room: this machine does it
//! thread "node-N"   GET /ingest every two seconds: is it usable, and for what?
//! ```
//! Nodes are stateless: jobs, documents and rows stay with this process, which alone decides and
//! writes. A node that is killed, hangs, is unreachable or returns nonsense costs the time until
//! that is noticed; its tasks are done elsewhere.
//!
//! Invariants: a node gets tasks only after it has described itself with this process's key, and
//! only for models that both have; a failed task makes a node unusable until its next successful
//! probe; no task waits for a node that has failed two consecutive probes.
//!
//! - `node`: one node and its state; `wire`: the messages; `serving`: the node's side

mod node;
mod serving;
pub mod wire;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::ingest::stopping::Stopping;
use crate::nodes::{RELEASE, headers};
use crate::settings::{InvalidSetting, NodeSettings};
use lodestone_embed::{Embedder, SparseModel, SparseVector};
use lodestone_extract::Format;
use lodestone_extract::sandbox::{Drawn, Parsed, Parser, parsed_from_bytes};
use lodestone_fetch::Authorities;
use lodestone_metrics::{Counter, Family, Gauge, Labelled, Registry};
use lodestone_types::limits::SPARSE_TERMS_MAX;
pub use node::describe;
use node::{Failure, Node};
pub use serving::NodeService;
use wire::{Description, EmbedTask, ParseTask, TASKS_MAX};

/// Interval between probes of a node.
const LOOK: Duration = Duration::from_secs(2);
/// Maximum bytes of a parsed document in an answer.
const PARSED_BYTES_MAX: u64 = 256 << 20;
/// Maximum bytes of a token with its weight in JSON.
const SPARSE_TERM_BYTES: usize = 32;
const JSON: &str = "application/json";

/// The ingest nodes of this process.
#[derive(Debug)]
pub struct IngestNodes {
    nodes: Vec<Node>,
    /// Fingerprints of this process's models, to recognize nodes that have none of them.
    models: Vec<String>,
    stopping: Stopping,
    meters: NodeMeters,
}

#[derive(Debug)]
struct NodeMeters {
    embedded: Labelled<Counter, 2>,
    parsed: Labelled<Counter, 2>,
    failed: Counter,
    usable: Gauge,
    /// Whether each node is usable, by address.
    each_usable: Family<Gauge, 1>,
}

impl Default for NodeMeters {
    fn default() -> Self {
        let by_place = || Labelled::new("place", ["node", "here"], Counter::default);
        let (failed, usable, each_usable) = Default::default();
        Self { embedded: by_place(), parsed: by_place(), failed, usable, each_usable }
    }
}

impl IngestNodes {
    /// Creates the nodes of the settings; `None` if they name none. None is probed yet.
    ///
    /// # Errors
    /// An invalid address or key.
    pub fn new<'a>(
        settings: &NodeSettings,
        authorities: &Authorities,
        models: impl Iterator<Item = &'a Arc<dyn Embedder>>,
    ) -> Result<Option<Arc<Self>>, InvalidSetting> {
        if settings.ingest_nodes().next().is_none() {
            return Ok(None);
        }
        let headers = headers(settings)?;
        let node = |url| Node::new(url, authorities, &headers);
        let nodes: Vec<Node> = settings.ingest_nodes().map(node).collect::<Result<_, _>>()?;
        let is_twice = |at: usize| nodes[..at].iter().any(|other| other.base() == nodes[at].base());
        if let Some(at) = (0..nodes.len()).find(|at| is_twice(*at)) {
            let problem = format!("names {} twice", nodes[at].base());
            return Err(InvalidSetting { name: "ingest-nodes", problem });
        }
        let models = models.map(|model| model.fingerprint().to_owned()).collect();
        let (stopping, meters) = Default::default();
        Ok(Some(Arc::new(Self { nodes, models, stopping, meters })))
    }

    /// Number of tasks that the nodes can take at once; as many threads are needed to wait for
    /// them.
    pub fn tasks_max(&self) -> usize {
        self.nodes.len() * TASKS_MAX
    }

    /// Starts one probing thread per node.
    pub fn start(self: &Arc<Self>) -> Vec<JoinHandle<()>> {
        let spawn = |at: usize| {
            let nodes = Arc::clone(self);
            let builder = std::thread::Builder::new().name(format!("node-{at}"));
            builder.spawn(move || nodes.watch(at)).expect("the system provides threads at start")
        };
        (0..self.nodes.len()).map(spawn).collect()
    }

    /// Aborts the tasks in progress and ends the threads.
    pub fn stop(&self) {
        self.stopping.set();
        self.nodes.iter().for_each(Node::abort);
    }

    /// Registers the metrics.
    pub fn enter_meters(&self, registry: &mut Registry) {
        let help = "Passages of documents embedded, on ingest nodes and locally";
        registry.enter("ingest_node_passages_total", help, &self.meters.embedded);
        let help =
            "Documents parsed, on ingest nodes and locally, excluding those that need no parser";
        registry.enter("ingest_node_documents_total", help, &self.meters.parsed);
        let help = "Tasks that failed on an ingest node and were done elsewhere";
        registry.enter("ingest_node_failures_total", help, &self.meters.failed);
        let help = "Number of usable ingest nodes";
        registry.enter("ingest_nodes_usable", help, &self.meters.usable);
        let help = "Whether each ingest node is usable";
        registry.enter("ingest_node_usable", help, &self.meters.each_usable);
    }

    /// Whether some node is not usable, or only in part.
    pub fn has_problem(&self) -> bool {
        self.nodes.iter().any(Node::has_problem)
    }

    /// Embeds passages on a node; `None` if this machine has to embed them.
    pub fn embed(&self, model: &dyn Embedder, texts: &[String]) -> Option<Vec<Vec<f32>>> {
        let (fingerprint, dimension) = (model.fingerprint(), model.dimension());
        let serves = |node: &Description| node.models.iter().any(|known| known == fingerprint);
        let bytes = (texts.len() * dimension * 4) as u64;
        let read = |answer: &[u8]| wire::vectors_from_bytes(answer, texts.len(), dimension);
        let vectors = task(fingerprint, texts)
            .and_then(|task| self.ask(wire::EMBED, JSON, serves, || task.clone(), bytes, read));
        self.meters.embedded.at(usize::from(vectors.is_none())).add(texts.len() as u64);
        vectors
    }

    /// Embeds passages with a node's sparse model; `None` if this machine has to do it.
    pub fn embed_sparse(&self, model: &SparseModel, texts: &[String]) -> Option<Vec<SparseVector>> {
        let fingerprint = model.fingerprint();
        let serves = |node: &Description| node.sparse.as_deref() == Some(fingerprint);
        let read = |answer: &[u8]| wire::sparse_from_bytes(answer, texts.len());
        let bytes = (texts.len() * SPARSE_TERMS_MAX * SPARSE_TERM_BYTES) as u64;
        let task = task(fingerprint, texts)?;
        self.ask(wire::SPARSE, JSON, serves, || task.clone(), bytes, read)
    }

    fn parse(&self, format: Format, bytes: &[u8]) -> Option<Parsed> {
        let task = serde_json::to_value(ParseTask { format }).unwrap_or_default();
        let target = format!("{}?format={}", wire::PARSE, task["format"].as_str()?);
        let read = |answer: &[u8]| {
            parsed_from_bytes(answer).ok_or_else(|| "it is not a parsed document".to_owned())
        };
        let media = "application/octet-stream";
        let serves = |node: &Description| node.version == RELEASE;
        let parsed = self.ask(&target, media, serves, || bytes.to_vec(), PARSED_BYTES_MAX, read);
        self.meters.parsed.at(usize::from(parsed.is_none())).inc();
        parsed
    }

    /// Sends a task to one node after the other until one answers it; `None` if no node has room
    /// for it or all of them fail.
    fn ask<T>(
        &self,
        target: &str,
        media: &'static str,
        serves: impl Fn(&Description) -> bool,
        body: impl Fn() -> Vec<u8>,
        bytes_max: u64,
        read: impl Fn(&[u8]) -> Result<T, String>,
    ) -> Option<T> {
        let mut tried = Vec::new();
        while let Some(at) = self.freest(&serves, &tried) {
            let node = &self.nodes[at];
            let Some(turn) = node.take() else { continue };
            tried.push(at);
            let answer = turn.run(target, media, body(), bytes_max);
            match answer.and_then(|bytes| read(&bytes).map_err(Failure::Useless)) {
                Ok(answer) => return Some(answer),
                Err(Failure::Busy) => {}
                // The task was aborted by this process.
                Err(_) if self.stopping.is_set() => return None,
                Err(failure) => {
                    self.meters.failed.inc();
                    node.failed(failure);
                }
            }
        }
        None
    }

    /// The usable node with the fewest tasks among those with room for another.
    fn freest(&self, serves: &impl Fn(&Description) -> bool, except: &[usize]) -> Option<usize> {
        let others = (0..self.nodes.len()).filter(|at| !except.contains(at));
        let with_room = others.filter_map(|at| Some((self.nodes[at].tasks(serves)?, at)));
        with_room.min().map(|(_, at)| at)
    }

    fn watch(&self, at: usize) {
        let node = &self.nodes[at];
        let is_usable = self.meters.each_usable.with([("node", node.base().to_owned().into())]);
        while !self.stopping.is_set() {
            node.look(&self.models);
            is_usable.set(u64::from(node.is_usable()));
            let usable = self.nodes.iter().filter(|node| node.is_usable()).count();
            self.meters.usable.set(usable as u64);
            self.stopping.wait(LOOK);
        }
    }
}

/// Encodes the body of a task; `None` if it exceeds what a node accepts.
fn task(model: &str, texts: &[String]) -> Option<Vec<u8>> {
    let task = EmbedTask { model: model.to_owned(), texts: texts.to_vec() };
    let task = serde_json::to_vec(&task).expect("plain data always prints");
    (task.len() <= wire::EMBED_BYTES_MAX).then_some(task)
}

/// A parser that sends documents to ingest nodes while one of them has room.
#[derive(Debug)]
pub struct NodeParser {
    /// The nodes.
    pub nodes: Arc<IngestNodes>,
    /// The parser of this machine.
    pub own: Arc<dyn Parser>,
}

impl Parser for NodeParser {
    fn parse(&self, format: Format, bytes: &[u8]) -> Parsed {
        // Plain formats are parsed faster than they could be sent.
        let elsewhere = if format.is_plain() { None } else { self.nodes.parse(format, bytes) };
        elsewhere.unwrap_or_else(|| self.own.parse(format, bytes))
    }

    fn draw(&self, format: Format, bytes: &[u8], drawing: &lodestone_extract::Drawing) -> Drawn {
        self.own.draw(format, bytes, drawing)
    }
}
