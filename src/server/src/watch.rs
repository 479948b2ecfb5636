//! Metrics of the server: counts of requests, and the text that a scrape gets.
//!
//! A scrape reads counters, and gauges that a blocking task refreshes for it. It waits for that
//! task a moment at most: where the catalog is slow or the disk hangs, it shows the numbers of the
//! refresh before, and the task goes on. There is one such task at a time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::routing::get;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, StatusCode};
use parking_lot::Mutex;
use schemars::{Schema, SchemaGenerator};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval_at, timeout};

use crate::error::ApiError;
use crate::last_hour::{ENTRY, Hour, Minute, Sums};
use crate::listen::{Certificates, ListenSettings, Stop, serve};
use crate::reply::Reply;
use lodestone_engine::Engine;
use lodestone_metrics::{Counter, Family, Histogram, REQUEST_SECONDS, Registry};

/// Time for which a scrape waits for fresh gauges.
const REFRESH_WAIT: Duration = Duration::from_millis(250);
/// Connections to a listener for metrics.
const CONNECTIONS_MAX: usize = 16;
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Classes of statuses, by their first digit.
const CLASSES: [&str; 6] = ["other", "1xx", "2xx", "3xx", "4xx", "5xx"];
static METHODS: [Method; 7] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
];

/// Counts of requests. Clones share them.
#[derive(Debug, Clone)]
pub struct HttpMeters {
    requests: Family<Counter, 3>,
    seconds: Family<Histogram, 2>,
}

impl Default for HttpMeters {
    fn default() -> Self {
        let seconds = Family::new(|| Histogram::new(REQUEST_SECONDS));
        Self { requests: Family::default(), seconds }
    }
}

impl HttpMeters {
    /// Counts a request of the route with this template whose answer begins after `seconds`.
    pub fn answered(&self, method: &Method, route: &'static str, status: StatusCode, seconds: f64) {
        let known = METHODS.iter().find(|known| *known == method);
        let method = ("method", known.map_or("other", method_name).into());
        let class = CLASSES.get(usize::from(status.as_u16() / 100)).unwrap_or(&CLASSES[0]);
        let route = ("route", route.into());
        let status = ("status", (*class).into());
        self.seconds.with([method.clone(), route.clone()]).observe(seconds);
        self.requests.with([method, route, status]).inc();
    }

    fn enter(&self, registry: &mut Registry) {
        let help = "Requests by method, path template and class of the status";
        registry.enter("http_requests_total", help, &self.requests);
        let help = "Seconds from the head of a request to the head of its answer";
        registry.enter("http_request_duration_seconds", help, &self.seconds);
    }
}

/// The name of one of the known methods, which are constants.
fn method_name(method: &'static Method) -> &'static str {
    method.as_str()
}

/// Everything that a scrape shows.
#[derive(Debug)]
pub struct Watch {
    engine: Arc<Engine>,
    registry: Registry,
    http: HttpMeters,
    /// Held while gauges are refreshed.
    refreshing: Mutex<()>,
    hour: Mutex<Hour>,
}

impl Watch {
    /// The metrics of an engine, of the server in front of it and of its certificate.
    pub fn new(engine: Arc<Engine>, certificates: Option<&Certificates>) -> Self {
        let (mut registry, http) = (Registry::default(), HttpMeters::default());
        http.enter(&mut registry);
        engine.enter_meters(&mut registry);
        if let Some(certificates) = certificates {
            certificates.enter(&mut registry);
        }
        let (refreshing, hour) = (Mutex::new(()), Mutex::new(Hour::begin()));
        Self { engine, registry, http, refreshing, hour }
    }

    /// The counts of requests.
    pub fn http(&self) -> &HttpMeters {
        &self.http
    }

    /// The text for a scrape.
    pub async fn text(self: Arc<Self>) -> MetricsText {
        let watch = Arc::clone(&self);
        let refreshed = tokio::task::spawn_blocking(move || {
            if let Some(_only) = watch.refreshing.try_lock() {
                watch.engine.refresh_gauges();
            }
        });
        if timeout(REFRESH_WAIT, refreshed).await.is_err() {
            tracing::debug!("a scrape shows gauges of an earlier moment");
        }
        MetricsText(self.registry.text())
    }

    /// The last hour, oldest minute first; the last one is still running.
    pub async fn hour(self: Arc<Self>) -> Vec<Minute> {
        let sums = Sums::of(&Arc::clone(&self).text().await.0);
        self.hour.lock().entries(self.engine.clock().now(), Instant::now(), &sums)
    }

    /// Ends a minute of the last hour each minute, for as long as it is polled.
    pub async fn keep_hour(self: Arc<Self>) {
        let mut minutes = interval_at(tokio::time::Instant::now() + ENTRY, ENTRY);
        minutes.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            minutes.tick().await;
            let sums = Sums::of(&Arc::clone(&self).text().await.0);
            self.hour.lock().turn(self.engine.clock().now(), Instant::now(), sums);
        }
    }
}

/// Metrics in the text format of Prometheus.
#[derive(Debug, Clone)]
pub struct MetricsText(String);

/// Metrics as they are sent.
pub(crate) fn text_response(text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(TEXT));
    response
}

impl Reply for MetricsText {
    const MEDIA_TYPES: &'static [&'static str] = &["text/plain"];

    fn schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "string"})
    }

    fn into_response(self) -> Result<Response, ApiError> {
        Ok(text_response(self.0))
    }
}

/// Serves metrics without a key on a listener of their own, if there is one.
///
/// # Errors
/// A listener that is none to the runtime.
pub fn serve_metrics(
    listener: Option<std::net::TcpListener>,
    metrics: Router,
    stop: &watch::Receiver<Stop>,
) -> std::io::Result<()> {
    let Some(listener) = listener else { return Ok(()) };
    let listener = TcpListener::from_std(listener)?;
    let limits = ListenSettings { connections_max: CONNECTIONS_MAX, ..Default::default() };
    tokio::spawn(serve(listener, None, metrics, limits, stop.clone()));
    Ok(())
}

/// The service of a listener for metrics alone, which asks for no key.
pub fn metrics_router(watch: Arc<Watch>) -> Router {
    let scrape = move || async move { text_response(watch.text().await.0) };
    Router::new().route("/metrics", get(scrape))
}
