//! `lodestone doctor`: reports the parts that a server with these settings would run on, and
//! problems.

mod nodes;

use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use lodestone_answer::generate::{Generator, OpenAiGenerator};
use lodestone_catalog::Catalog;
use lodestone_compute::{ComputeBackend, SimdBackend};
use lodestone_embed::{
    Arithmetic, DeviceLimits, EmbedDevice, Embedder, Engine, Model, ModelFiles, Precision,
};
use lodestone_engine::backup::{BackupError, Opener, wait};
use lodestone_engine::settings::{DeviceChoice, Settings};
use lodestone_engine::{
    CATALOG_NAME, EmbeddingServer, Probed, RemoteEmbedder, open_cuda, probe_store,
};
use lodestone_extract::Format;
use lodestone_extract::sandbox::{Parser, Sandbox, has_landlock};
use lodestone_io::{DataDir, Disk, IoError, RealDisk};
use lodestone_rank::Reranker;
use lodestone_storage::collection::count_foreign_models;
use lodestone_types::{Clock, SystemClock};

use crate::cli::arguments::PARSE;
use crate::cli::counted;
use crate::cli::model::{prompts, reranker};
use crate::cli::serve::certificates;

const SECONDS_PER_DAY: u64 = 86_400;

/// Checks every part needed at start and prints a line for each.
///
/// # Errors
/// The number of parts that would prevent a server from starting.
pub fn run(settings: &Settings) -> Result<(), Box<dyn Error>> {
    settings.validate()?;
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let (device, embedding) = device(settings, &disk);
    let (model, fingerprint) = match model(settings, embedding) {
        Ok((found, fingerprint)) => (Ok(found), Some(fingerprint)),
        Err(problem) => (Err(problem), None),
    };
    // An ingest node holds no data and answers no questions.
    let is_server = !settings.store.nodes.is_ingest_node();
    let data = is_server.then(|| data(&*disk, &settings.data_dir, fingerprint.as_deref()));
    let is_running = data.as_ref().is_some_and(|(_, is_running)| *is_running);
    let listen = |address| listen(address, is_running);
    let of_server = |find: fn(&Settings) -> Finding| is_server.then(|| find(settings));
    let parts = [
        ("version", Some(Ok(env!("CARGO_PKG_VERSION").to_owned()))),
        ("processor", Some(Ok(processor()))),
        ("memory", Some(Ok(memory()))),
        ("device", Some(device)),
        ("model", Some(model)),
        ("reranker", of_server(found_reranker)),
        ("parsers", Some(parsers())),
        ("generator", of_server(generator)),
        ("data", data.map(|(found, _)| found)),
        ("store", of_server(store)),
        ("backups", of_server(backups)),
        ("listen", Some(listen(settings.listen))),
        ("tls", Some(tls(settings))),
        ("metrics", Some(settings.watch.metrics_listen.map_or_else(by_key, listen))),
    ];
    let parts = parts.into_iter().filter_map(|(name, found)| Some((name, found?)));
    let sparse = found_sparse(settings).transpose().map(|found| ("sparse", found));
    let writer = nodes::writer(settings).transpose().map(|found| ("writer", found));
    let nodes = nodes::found(settings, fingerprint.as_deref()).into_iter();
    let nodes = nodes.map(|found| ("node", Ok(found)));
    let mut problems = 0;
    for (name, found) in parts.chain(sparse).chain(writer).chain(nodes) {
        match found {
            Ok(found) => println!("  {name:<10} {found}"),
            Err(problem) => {
                problems += 1;
                println!("! {name:<10} {problem}");
            }
        }
    }
    match problems {
        0 => {
            if is_running {
                println!("  a server runs on this data directory");
            }
            Ok(())
        }
        1 => Err("a server would not start or not work: see the line marked !".into()),
        _ => {
            Err(format!("a server would not start or not work: {problems} problems, marked !")
                .into())
        }
    }
}

type Finding = Result<String, String>;

/// Reports the device that would be used, and why not the other one; also returns the GPU if the
/// model would run on it.
fn device(settings: &Settings, disk: &Arc<dyn Disk>) -> (Finding, Option<EmbedDevice>) {
    if settings.device == DeviceChoice::Cpu {
        let found = "CPU, set by LODESTONE_DEVICE; GPUs were not probed".to_owned();
        return (Ok(found), None);
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    match open_cuda(settings, disk, &clock, Arc::new(SimdBackend)) {
        Ok(cuda) => {
            let memory = cuda.memory().map(|memory| {
                let (free, total) = (gib(memory.free_bytes), gib(memory.total_bytes));
                format!("{free} of {total} GiB free")
            });
            let memory = memory.unwrap_or_else(|error| error.to_string());
            let found = format!("{}, {memory}; its results match the CPU's", cuda.device());
            let embedding =
                EmbedDevice { manager: cuda.manager(), limits: DeviceLimits::default() };
            (Ok(found), Some(embedding))
        }
        Err(error) if settings.device == DeviceChoice::Cuda => {
            let found = format!("LODESTONE_DEVICE is cuda, but no GPU can be used: {error}");
            (Err(found), None)
        }
        Err(error) => (Ok(format!("CPU; no GPU can be used: {error}")), None),
    }
}

/// Reports the model of an embedding server, and returns its fingerprint. If the vector width is
/// known, a server starts even when the embedding server does not respond.
fn remote_model(settings: &Settings, server: EmbeddingServer) -> Result<(String, String), String> {
    let place = server.url.clone();
    let authorities = settings.tls.authorities().map_err(|error| error.to_string())?;
    let model = RemoteEmbedder::connect(server, &authorities);
    let model = model.map_err(|error| format!("{place}: {error}"))?;
    let found = match model.look() {
        Ok(()) => "it answers".to_owned(),
        Err(problem) => format!("{problem}; until then keyword search only, and uploads wait"),
    };
    let (name, dimension) = (model.name(), model.dimension());
    let found = format!("{name}, {dimension} dimensions, at {place}: {found}");
    Ok((found, model.fingerprint().to_owned()))
}

/// Reports the model and the arithmetic that it embeds with, and returns its fingerprint.
fn model(settings: &Settings, embedding: Option<EmbedDevice>) -> Result<(String, String), String> {
    if let Some(server) = settings.embedding.server().map_err(|error| error.to_string())? {
        return remote_model(settings, server);
    }
    let dir = settings.model_dir.display();
    let files = ModelFiles::read(&settings.model_dir, &|path| std::fs::read(path));
    let files = files.map_err(|error| format!("{dir}: {error}"))?;
    let asked = settings.embedding_precision;
    let model = Model::load_on(&files, 1, asked, embedding);
    let model = model.map_err(|error| format!("{dir}: {error}"))?;
    let arithmetic = match (asked, model.arithmetic()) {
        (Precision::Auto, Arithmetic::F32) => "f32 (nothing faster for it here)".to_owned(),
        (Precision::Auto | Precision::F32, found) => found.to_string(),
    };
    let place = match model.engine() {
        Engine::Cpu => format!("{arithmetic} on the CPU"),
        engine => format!("by {engine}, behind it {arithmetic} on the CPU"),
    };
    let (name, dimension) = (model.name(), model.dimension());
    let prompts = prompts(&model);
    let found = format!("{name}, {dimension} dimensions{prompts}, {place}, in {dir}");
    model.close();
    Ok((found, model.fingerprint().to_owned()))
}

/// Reports the reranker used by accurate searches. A server starts without one.
fn found_reranker(settings: &Settings) -> Finding {
    let Some(model) = reranker::load(settings)? else {
        let place = settings.reranker_path();
        return Ok(format!("none in {}: accurate searches are not reranked", place.display()));
    };
    model.close();
    let place = settings.reranker_path();
    Ok(format!("{}, on the CPU, in {}", model.name(), place.display()))
}

/// Reports the sparse model used by searches, if there is one.
fn found_sparse(settings: &Settings) -> Result<Option<String>, String> {
    let Some(model) = reranker::load_sparse(settings)? else { return Ok(None) };
    let place = settings.sparse_path();
    model.close();
    let (name, arithmetic) = (model.name(), model.arithmetic());
    Ok(Some(format!("{name}, {arithmetic} on the CPU, in {}", place.display())))
}

/// Whether a child process can drop the privileges that a parser must not have and still work.
fn parsers() -> Finding {
    let read = Sandbox::of_this_program(PARSE).parse(Format::Html, b"<p>well</p>");
    match read {
        Ok(_) if has_landlock() => {
            Ok("documents are parsed in processes confined by seccomp and Landlock".to_owned())
        }
        Ok(_) => {
            let without = "the kernel has no Landlock, or a system call filter forbids it";
            Ok(format!("documents are parsed in processes confined by seccomp only: {without}"))
        }
        Err(error) => {
            let hint = "the kernel may lack seccomp, or the container may forbid it";
            Err(format!("parsing in a confined process fails: {error}; {hint}"))
        }
    }
}

/// Reports the bucket of the data, after trying the operations that it must support.
fn store(settings: &Settings) -> Finding {
    let authorities = settings.tls.authorities().map_err(|error| error.to_string())?;
    let since = Instant::now();
    match probe_store(settings, &authorities).map_err(|error| error.to_string())? {
        None => Ok("none: the data are in the data directory".to_owned()),
        Some((url, None)) => Ok(format!("{url} contains data, which this node only reads")),
        Some((url, Some(Probed { races, racers }))) => Ok(format!(
            "{url}: of {racers} concurrent requests exactly one created a name, {races} times; \
             {:.1} s",
            since.elapsed().as_secs_f64()
        )),
    }
}

/// Reports the destination of backups. A server starts if the store does not respond, but not
/// without credentials.
fn backups(settings: &Settings) -> Finding {
    let Some(to) = &settings.backups.backup_to else {
        return Ok("none by the server: set a location with --backup-to".to_owned());
    };
    let authorities = settings.tls.authorities().map_err(|error| error.to_string())?;
    settings.backups.check_bucket(&authorities).map_err(|error| error.to_string())?;
    let opener = Opener { settings: settings.backups.bucket.clone(), authorities };
    match opener.open(to, Box::new(wait)) {
        Ok(_) => Ok(format!("in {to}")),
        Err(BackupError::Refused { .. }) => Ok(format!("in {to}, no backups yet")),
        Err(error) => Ok(format!("backups are currently not possible: {error}")),
    }
}

/// Reports whether the generator responds. A server starts even if it does not.
fn generator(settings: &Settings) -> Finding {
    let Some(llm) = settings.generator().map_err(|error| error.to_string())? else {
        return Ok("none: answers are extracted from the documents".to_owned());
    };
    // In a container, the loopback address is the container itself.
    let is_local = ["//localhost", "//127.", "//[::1]"].iter().any(|at| llm.base_url.contains(at));
    let authorities = settings.tls.authorities().map_err(|error| error.to_string())?;
    let generator = OpenAiGenerator::new(llm).trusting(&authorities);
    let name = format!("{} at {}", generator.model(), generator.place());
    let problem = match generator.look() {
        Ok(found) => return Ok(format!("{name}: {found}")),
        Err(problem) => problem,
    };
    let hint = match is_local && is_in_container() {
        true => "; inside a container, localhost is the container itself, not its host",
        false => "",
    };
    match settings.llm_fallback {
        true => Ok(format!("{name}: {problem}{hint}; until then answers are extracted")),
        false => Err(format!("{name}: {problem}{hint}")),
    }
}

/// Reports the data directory, and whether a server is using it. Counts the tenants whose vectors
/// were computed by a model with another fingerprint.
fn data(disk: &dyn Disk, dir: &Path, fingerprint: Option<&str>) -> (Finding, bool) {
    match DataDir::check_free(dir) {
        Ok(()) => (free_data(disk, dir, fingerprint), false),
        Err(error @ IoError::InUse { .. }) => (Ok(error.to_string()), true),
        Err(error) => (Err(error.to_string()), false),
    }
}

/// Reports a directory that no server is using, or the one in which it would be created.
fn free_data(disk: &dyn Disk, dir: &Path, fingerprint: Option<&str>) -> Finding {
    let standing = dir.ancestors().find(|path| path.exists());
    let standing = standing.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_new = standing != dir;
    let free = disk.free_bytes(standing).map_err(|error| error.to_string())?;
    try_write(standing)
        .map_err(|error| format!("{} is not writable: {error}", standing.display()))?;
    let is_used = |below: &str| disk.list(&dir.join(below)).is_ok_and(|found| !found.is_empty());
    Catalog::check(&dir.join(CATALOG_NAME), is_used).map_err(|error| error.to_string())?;
    let note = if is_new { ", created at the first start" } else { "" };
    let foreign = fingerprint.map_or(0, |print| count_foreign_models(disk, dir, print));
    let models = match foreign {
        0 => String::new(),
        tenants => format!(
            "; {} with vectors made by another model: keyword search only, no uploads",
            counted(tenants as u64, "tenant")
        ),
    };
    Ok(format!("{}{note}; {} GiB free{models}", dir.display(), gib(free)))
}

/// Writes a file, syncs it and removes it.
fn try_write(dir: &Path) -> std::io::Result<()> {
    let path = dir.join(format!(".lodestone-doctor-{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
    let written = file.write_all(b"lodestone doctor\n").and_then(|()| file.sync_all());
    written.and(std::fs::remove_file(&path))
}

/// Whether this process runs in a container, whose loopback address cannot be reached from outside.
fn is_in_container() -> bool {
    ["/.dockerenv", "/run/.containerenv"].iter().any(|mark| Path::new(mark).exists())
        || std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

/// Reports the certificate of the listener, after checking the trusted authorities.
fn tls(settings: &Settings) -> Finding {
    settings.tls.authorities().map_err(|error| error.to_string())?;
    let found = certificates(settings).map_err(|error| error.to_string())?;
    let Some(found) = found else { return Ok("none: plain HTTP".to_owned()) };
    let seconds = (found.expires().saturating_mul(1000)).saturating_sub(SystemClock.now().0) / 1000;
    let file = settings.tls.tls_cert.as_deref().unwrap_or(Path::new("")).display();
    Ok(format!("{file}, valid for {}", counted(seconds / SECONDS_PER_DAY, "day")))
}

fn by_key() -> Finding {
    Ok("/metrics with a key; --metrics-listen serves it without one".to_owned())
}

fn listen(address: SocketAddr, is_running: bool) -> Finding {
    let note = match address.ip().is_loopback() && is_in_container() {
        true => "; it cannot be reached from outside the container",
        false => "",
    };
    match std::net::TcpListener::bind(address) {
        Ok(_) => Ok(format!("{address}, free{note}")),
        Err(error) if is_running && error.kind() == std::io::ErrorKind::AddrInUse => {
            Ok(format!("{address}, in use, probably by the running server{note}"))
        }
        Err(error) => Err(format!("{address}: {error}; is another program listening there?")),
    }
}

fn processor() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{}, {cores} threads", std::env::consts::ARCH)
}

/// Returns the memory reported by the Linux kernel; unknown elsewhere.
fn memory() -> String {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    match (kib("MemAvailable:"), kib("MemTotal:")) {
        (Some(free), Some(total)) => {
            format!("{} of {} GiB available", gib(free << 10), gib(total << 10))
        }
        _ => "unknown".to_owned(),
    }
}

fn gib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / (1_u64 << 30) as f64)
}
