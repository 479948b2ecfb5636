//! The product's router: the table of routes over one engine, and the console.

use std::sync::Arc;

use axum::Router;
use tokio::sync::watch;

use crate::app::App;
use crate::console;
use crate::frame::{Frame, HttpSettings, router};
use crate::listen::Stop;
use crate::listen::pace::Pace;
use crate::routes;
use lodestone_engine::Engine;
use lodestone_types::{RandomIds, SystemClock};

/// Every operation of the product, over `engine`, and the console. Requests that only wait end when
/// `stop` says so.
pub fn product_router(engine: Arc<Engine>, stop: watch::Receiver<Stop>) -> Router {
    let settings = engine.settings();
    let http = HttpSettings {
        rate_limit: settings.rate_limit,
        cors_origins: settings.cors_origins.clone(),
        pace: Pace::of(settings),
        ..HttpSettings::default()
    };
    let (spills, memory) = (Arc::clone(engine.spills()), Arc::clone(engine.memory()));
    let app = App::new(engine, stop);
    let frame = Frame {
        keys: Arc::new(app.clone()),
        app,
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        spills,
        memory,
        settings: http,
    };
    router(routes::table(), console::router(), frame)
}
