//! Metrics of the server: request counters, and the text returned to a scrape.
//!
//! A scrape reads counters, which are always current, and gauges, which a blocking task refreshes.
//! It waits for that task only briefly: if the catalog is slow or the disk hangs, it reports the
//! gauges of the previous refresh while the task continues. At most one such task runs at a time.

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

/// Time that a scrape waits for fresh gauges.
const REFRESH_WAIT: Duration = Duration::from_millis(250);
/// Maximum number of connections to the metrics listener.
const CONNECTIONS_MAX: usize = 16;
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Status classes, indexed by the first digit.
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

/// Request counters and latencies. Clones share them.
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
    /// Records a request to the route template `route`, whose response began after `seconds`.
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
        let help = "Requests by method, path template and status class";
        registry.enter("http_requests_total", help, &self.requests);
        let help = "Seconds from the headers of a request to the headers of its response";
        registry.enter("http_request_duration_seconds", help, &self.seconds);
    }
}

/// Returns the name of a known method with a static lifetime.
fn method_name(method: &'static Method) -> &'static str {
    method.as_str()
}

/// All metrics of the process.
#[derive(Debug)]
pub struct Watch {
    engine: Arc<Engine>,
    registry: Registry,
    http: HttpMeters,
    /// Held while the gauges are being refreshed.
    refreshing: Mutex<()>,
    hour: Mutex<Hour>,
}

impl Watch {
    /// Creates the metrics of an engine, of the server in front of it and of its certificates.
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

    /// Returns the request metrics.
    pub fn http(&self) -> &HttpMeters {
        &self.http
    }

    /// Returns the text for a scrape.
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

    /// Returns the last hour, oldest minute first, ending with the minute in progress.
    pub async fn hour(self: Arc<Self>) -> Vec<Minute> {
        let sums = Sums::of(&Arc::clone(&self).text().await.0);
        self.hour.lock().entries(self.engine.clock().now(), Instant::now(), &sums)
    }

    /// Completes an entry of the last hour every minute, for as long as it is polled.
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

/// Metrics in the Prometheus text format.
#[derive(Debug, Clone)]
pub struct MetricsText(String);

/// Builds the response that carries metrics.
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

/// Serves metrics without a key on a separate listener, if there is one.
///
/// # Errors
/// If the runtime cannot register the listener.
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

/// Returns the router of a listener that serves only metrics, without a key.
pub fn metrics_router(watch: Arc<Watch>) -> Router {
    let scrape = move || async move { text_response(watch.text().await.0) };
    Router::new().route("/metrics", get(scrape))
}
