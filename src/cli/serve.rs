//! `lodestone serve`: settings, model, engine, banner, requests, drain.

use std::error::Error;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{ErrorKind, IsTerminal, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use lodestone_embed::{EmbedDevice, EmbedError, Embedder, Model, ModelFiles};
use lodestone_engine::settings::{NodeSettings, Settings};
use lodestone_engine::{BucketWait, Components, Engine, RemoteEmbedder, TakenDevice, take_device};
use lodestone_extract::sandbox::Sandbox;
use lodestone_io::{Disk, RealDisk, raise_file_limit};
use lodestone_server::{Certificates, ListenSettings, Product, Stop, TlsError};
use lodestone_types::{Clock, SystemClock};
use tokio::runtime::Runtime;

use crate::cli::arguments::PARSE;
use crate::cli::counted;
use crate::cli::ingest_node;
use crate::cli::model::{not_there, reranker};
use crate::cli::waiting;
use crate::cli::watch;
use crate::memory::give_back_freed;

/// Runs the server until a signal stops it.
pub fn run(mut settings: Settings) -> Result<(), Box<dyn Error>> {
    // Dropped last, because that sends the traces still queued.
    let _exporter = watch::start(&settings.watch, &settings.tls.authorities()?);
    give_back_freed()?;
    read_variable_of_clients(&mut settings);
    settings.validate()?;
    if let Some(key) = settings.store.nodes.node_key.clone()
        && settings.store.nodes.is_ingest_node()
    {
        return ingest_node::run(&settings, &key);
    }
    let certificates = certificates(&settings)?;
    // Bound before the catalog is created, because a failure afterwards would lose the first key
    // unseen.
    let listener = listen(settings.listen)?;
    let for_metrics = settings.watch.metrics_listen.map(listen).transpose()?;
    raise_file_limit();
    let (disk, clock): (Arc<dyn Disk>, Arc<dyn Clock>) =
        (Arc::new(RealDisk), Arc::new(SystemClock));
    let device = take_device(&settings, &disk, &clock)?;
    let mut components = Components::real(embedder(&settings, device.embedding.clone())?);
    components.other_embedders = other_embedders(&settings, &device)?;
    require_names(&components)?;
    warn_of_copies(&settings, &components);
    components.reranker = reranker::load(&settings)?.map(|reranker| Arc::new(reranker) as _);
    components.reader = reranker::load_reader(&settings, &*components.embedder)?
        .map(|reader| Arc::new(reader) as _);
    components.sparse = reranker::load_sparse(&settings)?.map(Arc::new);
    components.backend = device.backend;
    components.parser = Arc::new(Sandbox::of_this_program(PARSE));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let listeners = Listeners { listener, certificates, for_metrics };
    let Some(engine) = start(&runtime, &settings, &components, &listeners)? else { return Ok(()) };
    let served = runtime.block_on(serve(Arc::clone(&engine), listeners));
    engine.shut_down();
    served
}

/// The sockets of a server.
pub(super) struct Listeners {
    /// Socket for clients.
    pub(super) listener: TcpListener,
    /// TLS certificates of that socket, if it uses TLS.
    pub(super) certificates: Option<Arc<Certificates>>,
    /// Socket for metrics only.
    pub(super) for_metrics: Option<TcpListener>,
}

/// Starts the engine, after a wait if this is a standby or a query node without data. Returns
/// `None` if a signal stopped it while waiting.
fn start(
    runtime: &Runtime,
    settings: &Settings,
    components: &Components,
    listeners: &Listeners,
) -> Result<Option<Arc<Engine>>, Box<dyn Error>> {
    loop {
        let Some(waiting) = BucketWait::new(settings)? else {
            return Ok(Some(Engine::start(settings.clone(), components.clone())?));
        };
        let Some(signals) = runtime.block_on(waiting::wait(waiting, settings, listeners))? else {
            return Ok(None);
        };
        match Engine::start(settings.clone(), components.clone()) {
            Ok(engine) if *signals.borrow() == Stop::Run => return Ok(Some(engine)),
            Ok(engine) => {
                engine.shut_down();
                return Ok(None);
            }
            Err(error) if error.is_in_use() => tracing::info!(%error, "another one came first"),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Loads the embedding models other than that of new tenants.
pub(super) fn other_embedders(
    settings: &Settings,
    device: &TakenDevice,
) -> Result<Vec<Arc<dyn Embedder>>, Box<dyn Error>> {
    let previous = settings.reembed.previous_model_dir.iter();
    let previous = previous.map(|dir| (dir, "--previous-model-dir"));
    let further = settings.reembed.further_model_dirs.iter();
    let further = further.map(|dir| (dir, "--further-model-dirs"));
    let model = |(dir, flag): (&PathBuf, &str)| {
        let model = on_demand(settings, dir, flag, device.embedding.clone())?;
        Ok(Arc::new(model) as Arc<dyn Embedder>)
    };
    previous.chain(further).map(model).collect()
}

/// Returns the embedding model of new tenants, on an embedding server or on this machine.
pub(super) fn embedder(
    settings: &Settings,
    device: Option<EmbedDevice>,
) -> Result<Arc<dyn Embedder>, Box<dyn Error>> {
    let Some(server) = settings.embedding.server()? else {
        return Ok(Arc::new(load(settings, &settings.model_dir, "--model-dir", device)?));
    };
    let place = server.url.clone();
    let model = RemoteEmbedder::connect(server, &settings.tls.authorities()?);
    Ok(Arc::new(model.map_err(|error| format!("{place}: {error}"))?))
}

/// Refuses different models of the same name, which `reembed --to` could not tell apart.
fn require_names(components: &Components) -> Result<(), String> {
    let mut known = vec![&components.embedder];
    for model in &components.other_embedders {
        let is_other = |one: &&Arc<dyn Embedder>| one.fingerprint() != model.fingerprint();
        if known.iter().filter(|one| one.name() == model.name()).any(is_other) {
            let name = model.name();
            return Err(format!(
                "two different embedding models are named {name}: rename the directory of one"
            ));
        }
        known.push(model);
    }
    Ok(())
}

/// Warns about directories that contain the same model. The first is used, and `reembed --to` does
/// not accept the names of the others.
fn warn_of_copies(settings: &Settings, components: &Components) {
    let Settings { model_dir, reembed, .. } = settings;
    let others = reembed.previous_model_dir.iter().chain(&reembed.further_model_dirs);
    let models = std::iter::once(&components.embedder).chain(&components.other_embedders);
    let loaded: Vec<_> = std::iter::once(model_dir).chain(others).zip(models).collect();
    for (at, (dir, model)) in loaded.iter().enumerate() {
        let is_same = |one: &&(_, &Arc<dyn Embedder>)| one.1.fingerprint() == model.fingerprint();
        if let Some((first, taken)) = loaded[..at].iter().find(is_same) {
            let (dir, first, name) = (dir.display(), first.display(), taken.name());
            tracing::warn!("{dir} contains the same model as {first} and is ignored: {name}");
        }
    }
}

/// Loads an embedding model; `flag` is the setting that names its directory.
fn load(
    settings: &Settings,
    dir: &Path,
    flag: &str,
    device: Option<EmbedDevice>,
) -> Result<Model, Box<dyn Error>> {
    let files = read(dir).map_err(|error| not_there(&error, dir, flag))?;
    let (threads, precision) = (settings.embed_threads, settings.embedding_precision);
    let model = Model::load_on(&files, threads, precision, device);
    Ok(model.map_err(|error| format!("{}: {error}", dir.display()))?)
}

/// Checks an embedding model, whose weights are loaded on first use.
fn on_demand(
    settings: &Settings,
    dir: &Path,
    flag: &str,
    device: Option<EmbedDevice>,
) -> Result<Model, Box<dyn Error>> {
    let (threads, precision) = (settings.embed_threads, settings.embedding_precision);
    let place = dir.to_owned();
    let model = Model::on_demand(move || read(&place), threads, precision, device);
    Ok(model.map_err(|error| match error {
        EmbedError::Unreadable { .. } => not_there(&error, dir, flag),
        error => format!("{}: {error}", dir.display()),
    })?)
}

fn read(dir: &Path) -> Result<ModelFiles, EmbedError> {
    ModelFiles::read(dir, &|path| std::fs::read(path))
}

pub(super) fn listen(address: SocketAddr) -> Result<TcpListener, Box<dyn Error>> {
    let listener = TcpListener::bind(address)
        .map_err(|error| format!("cannot listen on {address}: {error}"))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Loads the TLS certificates of the listener, if it uses TLS.
pub fn certificates(settings: &Settings) -> Result<Option<Arc<Certificates>>, TlsError> {
    let files = settings.tls.certificate();
    files.map(|(certificate, key)| Certificates::read(certificate, key)).transpose()
}

async fn serve(engine: Arc<Engine>, listeners: Listeners) -> Result<(), Box<dyn Error>> {
    let Listeners { listener, certificates, for_metrics } = listeners;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let taken = Arc::new(OnceLock::new());
    let stop =
        lodestone_server::stop_on_signals(takeover(Arc::clone(&engine), Arc::clone(&taken)))?;
    let metrics_address = for_metrics.as_ref().map(TcpListener::local_addr).transpose()?;
    let scheme = if certificates.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}", listener.local_addr()?);
    if let Some(certificates) = &certificates {
        certificates.watch()?;
    }
    eprint!("{}", banner(&engine, &url, metrics_address)?);
    let product = Product::new(Arc::clone(&engine), stop.clone(), certificates.clone());
    tokio::spawn(product.watch.keep_hour());
    lodestone_server::serve_metrics(for_metrics, product.metrics, &stop)?;
    let limits = ListenSettings::of(engine.settings());
    let drained =
        lodestone_server::serve(listener, certificates, product.router, limits, stop).await;
    tracing::info!(drained, "stopped");
    match taken.get() {
        Some(place) => Err(format!("another process has taken over {place}").into()),
        None => Ok(()),
    }
}

/// Completes when another process has taken over the bucket, after storing its address in `taken`.
async fn takeover(engine: Arc<Engine>, taken: Arc<OnceLock<String>>) {
    let waited = tokio::task::spawn_blocking(move || engine.wait_for_takeover()).await;
    match waited {
        Ok(Some(place)) => drop(taken.set(place)),
        Ok(None) | Err(_) => std::future::pending().await,
    }
}

/// Accepts the admin key from the variable used by earlier versions, unless another setting
/// provides it.
fn read_variable_of_clients(settings: &mut Settings) {
    let variable = std::env::var("LODESTONE_API_KEY").unwrap_or_default();
    if settings.admin_key.is_some() || variable.is_empty() {
        return;
    }
    // Any other value is a client's key and deserves no warning.
    if settings.adopt_client_key(&variable) {
        tracing::warn!(
            "LODESTONE_API_KEY is used as the server's admin key: rename it to LODESTONE_ADMIN_KEY"
        );
    }
}

/// Formats the banner line about the generator, without contacting it; `doctor` does that.
fn generator(engine: &Engine) -> String {
    let Some(writer) = engine.writer() else {
        return "none: answers are extracted from the documents".to_owned();
    };
    let generator = writer.generator();
    let (model, place, window) = (generator.model(), generator.place(), generator.context_tokens());
    let otherwise = match engine.settings().llm_fallback {
        true => "extractive answers if it fails",
        false => "no answers if it fails",
    };
    let graph = if engine.settings().llm_graph { "; also extracts the graph" } else { "" };
    format!("{model} at {place}, {window} tokens; {otherwise}{graph}")
}

/// Writes the first key to a file that only the owner of the process can read.
fn write_first_key(path: &Path, key: &str) -> std::io::Result<()> {
    let fresh = path.with_extension("new");
    match std::fs::remove_file(&fresh) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(format!("{key}\n").as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&fresh, path)
}

/// Describes the role of this process among several; `None` if it is the only one.
fn role(nodes: &NodeSettings) -> Option<String> {
    let writers = nodes.writers().collect::<Vec<_>>();
    let mut role = match nodes.only_reads() {
        true => format!("query, {} writes", writers.join(" or ")),
        false if nodes.with_query_nodes => "all, with query nodes".to_owned(),
        false => "all".to_owned(),
    };
    for (count, what, node) in [
        (nodes.query_nodes().count(), "tenants shared by", "query node"),
        (nodes.ingest_nodes().count(), "also parsed and embedded by", "ingest node"),
    ] {
        if count > 0 {
            let _ = write!(role, "; {what} {}", counted(count as u64, node));
        }
    }
    if let Some(rows) = nodes.shared_search_rows {
        let _ = write!(role, ", and searches of {rows} rows or more");
    }
    (role != "all").then_some(role)
}

fn banner(
    engine: &Engine,
    url: &str,
    metrics: Option<SocketAddr>,
) -> Result<String, Box<dyn Error>> {
    let Settings { data_dir, embed_threads, .. } = engine.settings();
    let embedder = engine.embedder();
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<10} {value}");
    };
    line("version", env!("CARGO_PKG_VERSION"));
    line("url", url);
    line("api", &format!("{url}/openapi.json"));
    if let Some(metrics) = metrics {
        line("metrics", &format!("http://{metrics}/metrics, no key required"));
    }
    match &engine.settings().store.store {
        Some(url) => line("data", &format!("{url}, cached in {}", data_dir.display())),
        None => line("data", &data_dir.display().to_string()),
    }
    if let Some(role) = role(&engine.settings().store.nodes) {
        line("role", &role);
    }
    let backend = engine.backend();
    match backend.name() {
        "cuda" => {
            let beside = format!("and {embed_threads} CPU threads");
            line("device", &format!("{}, {beside}", backend.device()))
        }
        _ => line("device", &format!("{}, {embed_threads} threads", backend.device())),
    }
    let place = engine.settings().embedding.embedding_url.as_deref().filter(|url| !url.is_empty());
    let place = place.map_or_else(String::new, |url| format!(", at {url}"));
    line("model", &format!("{}, {} dimensions{place}", embedder.name(), embedder.dimension()));
    for model in engine.models().others() {
        let of = format!("{}, {} dimensions", model.name(), model.dimension());
        line("also", &format!("{of}, for tenants with its vectors"));
    }
    match engine.reranker() {
        Some(reranker) => line("reranker", &format!("{}, for accurate searches", reranker.name())),
        None => line("reranker", "none: see lodestone model install"),
    }
    if engine.reader().is_some() {
        line("reader", "built in, for extractive answers");
    }
    if let Some(sparse) = engine.sparse() {
        line("sparse", &format!("{}, with vectors and keywords", sparse.name()));
    }
    line("generator", &generator(engine));
    let is_seen = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
    match engine.take_first_key() {
        Some(key) if is_seen => {
            line("key", key.expose());
            line("", "shown only once: keep it, the server stores only its hash");
        }
        // Output that is not a terminal may be a log file.
        Some(key) => {
            let path = data_dir.join("admin_key");
            write_first_key(&path, key.expose()).map_err(|error| {
                format!("{}: {error}; set a key with LODESTONE_ADMIN_KEY instead", path.display())
            })?;
            line("key", &format!("in {}", path.display()));
            line("", "readable by its owner only; delete it once the key is stored elsewhere");
        }
        None if engine.settings().admin_key.is_some() => {
            line("access", "with the admin key you set")
        }
        None => line("access", "with existing keys; if all are lost, set one with --admin-key"),
    }
    // The link contains a key, so it must not go to log files, and only a loopback address is
    // printed.
    if is_seen && engine.settings().listen.ip().is_loopback() {
        line("console", &format!("{url}/#sign-in={}", engine.sign_in_key()?.expose()));
        line("", "valid for one sign-in within ten minutes");
    }
    Ok(format!("\nLodestone\n{text}\n"))
}
