//! `lodestone serve --role ingest`: runs models and parsers for a server, and holds no data.

use std::error::Error;
use std::fmt::Write as _;
use std::future::pending;
use std::sync::Arc;

use lodestone_engine::ingest::nodes::NodeService;
use lodestone_engine::settings::Settings;
use lodestone_engine::take_device;
use lodestone_extract::sandbox::Sandbox;
use lodestone_io::{Disk, RealDisk, raise_file_limit};
use lodestone_server::{ListenSettings, ingest_node, serve, serve_metrics, stop_on_signals};
use lodestone_types::Secret;
use lodestone_types::{Clock, SystemClock};

use crate::cli::arguments::PARSE;
use crate::cli::model::reranker;
use crate::cli::serve::{certificates, embedder, listen, other_embedders};

/// Runs the node until a signal stops it.
pub fn run(settings: &Settings, key: &Secret) -> Result<(), Box<dyn Error>> {
    let certificates = certificates(settings)?;
    let listener = listen(settings.listen)?;
    let for_metrics = settings.watch.metrics_listen.map(listen).transpose()?;
    raise_file_limit();
    let (disk, clock): (Arc<dyn Disk>, Arc<dyn Clock>) =
        (Arc::new(RealDisk), Arc::new(SystemClock));
    let device = take_device(settings, &disk, &clock)?;
    let mut models = vec![embedder(settings, device.embedding.clone())?];
    models.extend(other_embedders(settings, &device)?);
    let sparse = reranker::load_sparse(settings)?.map(Arc::new);
    let parser = Arc::new(Sandbox::of_this_program(PARSE));
    let name = device.backend.device().to_owned();
    let scheme = if certificates.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}", listener.local_addr()?);
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<10} {value}");
    };
    line("version", env!("CARGO_PKG_VERSION"));
    line("url", &url);
    line("role", "ingest: parses and embeds for a server with --ingest-nodes, stores no data");
    line("device", &format!("{name}, {} threads", settings.embed_threads));
    for model in &models {
        line("model", &format!("{}, {} dimensions", model.name(), model.dimension()));
    }
    if let Some(sparse) = &sparse {
        line("sparse", sparse.name());
    }
    let service = Arc::new(NodeService::new(key, models, sparse, parser, &name));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let stop = stop_on_signals(pending())?;
        if let Some(certificates) = &certificates {
            certificates.watch()?;
        }
        let (router, metrics) = ingest_node(Arc::clone(&service));
        serve_metrics(for_metrics, metrics, &stop)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let limits = ListenSettings::of(settings);
        eprint!("\nLodestone\n{text}\n\n");
        let drained = serve(listener, certificates, router, limits, stop).await;
        tracing::info!(drained, "stopped");
        Ok::<_, Box<dyn Error>>(())
    })?;
    service.close();
    Ok(())
}
