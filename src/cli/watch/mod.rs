//! The log of a server, and the traces that it sends to a collector.
//!
//! ```text
//! tracing -> log: text or JSON on standard error          (RUST_LOG decides)
//!         -> spans of requests and stages -> queue -> exporter thread -> OTLP/HTTP
//!                                                       (only with a collector)
//! ```
//! Stages are spans with the target `lodestone_stage`. The log never shows them. Without a
//! collector nothing is interested in them, which `tracing` determines once per call site, so that
//! a stage costs a single comparison.
//!
//! - `spans`: from `tracing` to finished spans; `otlp`: finished spans as JSON; `exporter`: the
//!   thread that sends them

mod exporter;
mod otlp;
mod spans;

use std::io::IsTerminal;

use lodestone_engine::settings::{LogFormat, WatchSettings};
use lodestone_fetch::Authorities;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

pub use exporter::Exporter;
use spans::SpanLayer;

/// Target of stage spans.
const STAGES: &str = "lodestone_stage";
/// Target of the span around a request.
const REQUESTS: &str = "lodestone_request";
/// Levels of targets that `RUST_LOG` does not mention, whatever its default level is.
const ALWAYS: [(&str, LevelFilter); 3] = [
    ("lodestone_audit", LevelFilter::INFO),
    (REQUESTS, LevelFilter::ERROR),
    (STAGES, LevelFilter::OFF),
];

/// Starts the log and, if a collector is configured, the trace exporter.
pub fn start(settings: &WatchSettings, authorities: &Authorities) -> Option<Exporter> {
    let is_text = match settings.log_format {
        LogFormat::Auto => std::io::stderr().is_terminal(),
        LogFormat::Text => true,
        LogFormat::Json => false,
    };
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match is_text {
        true => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
        false => lines.json().with_span_list(false).boxed(),
    };
    let exporter = settings.collector().map(|url| Exporter::start(url, settings, authorities));
    let spans = exporter.as_ref().map(|exporter| {
        let wanted = [STAGES, REQUESTS].map(|target| (target, tracing::Level::INFO));
        SpanLayer::new(exporter.queue()).with_filter(Targets::new().with_targets(wanted))
    });
    tracing_subscriber::registry().with(lines.with_filter(filter())).with(spans).init();
    exporter
}

/// Writes warnings and errors to standard error, for commands that work on data without a server.
pub fn show_warnings() {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_max_level(LevelFilter::WARN)
        .with_target(false)
        .without_time()
        .init();
}

/// Returns the filter of `RUST_LOG`, or level info by default.
fn filter() -> Targets {
    let text = std::env::var("RUST_LOG").unwrap_or_default();
    let given = text.parse().ok().filter(|_| !text.is_empty());
    let filter = given.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    filter.with_targets(ALWAYS.into_iter().filter(|(target, _)| !text.contains(target)))
}
