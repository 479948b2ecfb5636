//! The whole service: the table of routes over one engine, and the console.

use std::sync::Arc;

use axum::Router;
use tokio::sync::watch;

use crate::app::App;
use crate::console;
use crate::frame::{Frame, HttpSettings, router};
use crate::listen::pace::Pace;
use crate::listen::{Certificates, Stop};
use crate::nodes::share_router;
use crate::routes;
use crate::watch::{Watch, metrics_router};
use lodestone_engine::Engine;
use lodestone_types::{RandomIds, SystemClock};

/// The HTTP services over one engine.
#[derive(Debug)]
pub struct Product {
    /// All operations of the API, and the console.
    pub router: Router,
    /// Metrics without a key, for a listener that only the operator can reach.
    pub metrics: Router,
    /// Metrics shown by both; the last hour is recorded while [`Watch::keep_hour`] is polled.
    pub watch: Arc<Watch>,
}

/// Returns the main router of [`Product::new`].
pub fn product_router(engine: Arc<Engine>, stop: watch::Receiver<Stop>) -> Router {
    Product::new(engine, stop, None).router
}

impl Product {
    /// Builds the services over `engine`, behind a listener with or without TLS certificates.
    /// `stop` ends requests that are merely waiting.
    pub fn new(
        engine: Arc<Engine>,
        stop: watch::Receiver<Stop>,
        certificates: Option<Arc<Certificates>>,
    ) -> Self {
        let settings = engine.settings();
        let http = HttpSettings {
            rate_limit: settings.rate_limit,
            cors_origins: settings.cors_origins.clone(),
            pace: Pace::of(settings),
            has_access_log: settings.watch.access_log,
            is_recording: settings.watch.collector().is_some(),
            change_delay: engine.followers_delay(),
            writer_name: engine.writer_name().map(|name| name.to_string()),
            has_tls: certificates.is_some(),
            ..HttpSettings::default()
        };
        let (writer, peers) = (engine.way_to_writer(), engine.peers().cloned());
        let pages = console::router().merge(share_router(&engine));
        let (spills, memory) = (Arc::clone(engine.spills()), Arc::clone(engine.memory()));
        let app = App::with_certificates(engine, stop, certificates);
        let watch = Arc::clone(&app.watch);
        let frame = Frame {
            keys: Arc::new(app.clone()),
            app,
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            spills,
            memory,
            meters: watch.http().clone(),
            writer,
            peers,
            settings: http,
        };
        let router = router(routes::table(), pages, frame);
        Self { router, metrics: metrics_router(Arc::clone(&watch)), watch }
    }
}
