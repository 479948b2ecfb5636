//! Counters, gauges and histograms, and the text in which Prometheus reads them.
//!
//! Each part of the server has a struct of its own with what it measures, and enters it into the
//! one [`Registry`] at the start. There is no global state: two engines in one process count apart.
//!
//! ```text
//! embed, catalog, engine, server: counter.inc(), histogram.observe()
//!                                         | shared handles
//! GET /metrics: Registry::text() ---------+--> text format 0.0.4
//! ```
//! Invariants:
//! - Values of labels are words of this program: never names of tenants, sources or keys, so the
//!   number of series has a bound.
//! - Counting costs an atomic addition. A histogram has a lock of its own, which is held for one
//!   observation or one reading of its numbers and never around work: a scrape waits for nothing
//!   that ingestion does.
//! - Names are those of Prometheus: base units, `_total` behind counters. That is the text format
//!   0.0.4, which every scraper reads, where the library's own is `OpenMetrics`.

#![forbid(unsafe_code)]

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, text};
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Metric;

pub use prometheus_client::metrics::family::Family;
pub use prometheus_client::metrics::histogram::Histogram;

/// Prefix of every name.
const PREFIX: &str = "lodestone";

/// Bounds for seconds of a request: a search takes milliseconds, an answer of a generator a minute.
pub const REQUEST_SECONDS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];
/// Bounds for seconds of a part of a search, or of a wait for the model.
pub const LEG_SECONDS: [f64; 13] =
    [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];
/// Bounds for seconds of a stage of ingestion: large documents take minutes.
pub const STAGE_SECONDS: [f64; 12] =
    [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0, 600.0];
/// Bounds for tokens of a batch through the model: powers of two up to the largest of a GPU.
pub const BATCH_TOKENS: [f64; 13] =
    [8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 65536.0];

/// A number that only grows. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Counter(std::sync::Arc<AtomicU64>);

impl Counter {
    /// Adds one.
    pub fn inc(&self) {
        self.add(1);
    }

    /// Adds `count`.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Takes over a count that is kept elsewhere.
    pub fn set(&self, count: u64) {
        self.0.store(count, Ordering::Relaxed);
    }

    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl TypedMetric for Counter {
    const TYPE: MetricType = MetricType::Counter;
}

impl EncodeMetric for Counter {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        // As a gauge, because the library would put a second `_total` behind the name.
        encoder.encode_gauge(&self.get())
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

/// A number as it is now. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Gauge(std::sync::Arc<AtomicU64>);

impl Gauge {
    /// Sets it.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Adds one.
    pub fn inc(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes one away; 0 stays 0.
    pub fn dec(&self) {
        let less = |value: u64| value.checked_sub(1);
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl TypedMetric for Gauge {
    const TYPE: MetricType = MetricType::Gauge;
}

impl EncodeMetric for Gauge {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_gauge(&self.get())
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

/// One metric for each value of a label, all made beforehand: each is there from the first scrape,
/// and finding one takes no lock.
#[derive(Debug, Clone)]
pub struct Labelled<M, const N: usize> {
    label: &'static str,
    values: [&'static str; N],
    metrics: [M; N],
}

impl<M, const N: usize> Labelled<M, N> {
    /// A metric for each of `values`.
    pub fn new(label: &'static str, values: [&'static str; N], make: impl Fn() -> M) -> Self {
        Self { label, values, metrics: std::array::from_fn(|_| make()) }
    }

    /// The metric of the value at `index`.
    ///
    /// # Panics
    /// If there is no such value.
    pub fn at(&self, index: usize) -> &M {
        &self.metrics[index]
    }
}

impl<M: EncodeMetric + TypedMetric, const N: usize> EncodeMetric for Labelled<M, N> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (value, metric) in self.values.iter().zip(&self.metrics) {
            metric.encode(encoder.encode_family(&[(self.label, *value)])?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        M::TYPE
    }
}

/// Everything that is measured.
#[derive(Debug)]
pub struct Registry(prometheus_client::registry::Registry);

impl Default for Registry {
    fn default() -> Self {
        Self(prometheus_client::registry::Registry::with_prefix(PREFIX))
    }
}

impl Registry {
    /// Enters a metric under its name without the prefix, with one sentence that says what it is,
    /// without its full stop. The handle is shared with the metric given.
    pub fn enter(&mut self, name: &str, help: &str, metric: &(impl Metric + Clone)) {
        self.0.register(name, help, metric.clone());
    }

    /// All metrics in the text format 0.0.4.
    pub fn text(&self) -> String {
        let mut written = String::new();
        text::encode_registry(&mut written, &self.0).expect("a text takes what is written to it");
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_what_prometheus_reads() {
        let mut registry = Registry::default();
        let counter = Labelled::new("cache", ["keys", "tenants"], Counter::default);
        let (gauge, seconds) = (Gauge::default(), Histogram::new([0.5, 1.0]));
        registry.enter("cache_hits_total", "Answers from a cache", &counter);
        registry.enter("queue_depth", "Jobs that wait", &gauge);
        registry.enter("search_seconds", "Time of searches", &seconds);
        counter.at(1).add(3);
        gauge.dec();
        gauge.inc();
        seconds.observe(0.75);
        let expected = "\
            # HELP lodestone_cache_hits_total Answers from a cache.\n\
            # TYPE lodestone_cache_hits_total counter\n\
            lodestone_cache_hits_total{cache=\"keys\"} 0\n\
            lodestone_cache_hits_total{cache=\"tenants\"} 3\n\
            # HELP lodestone_queue_depth Jobs that wait.\n\
            # TYPE lodestone_queue_depth gauge\n\
            lodestone_queue_depth 1\n\
            # HELP lodestone_search_seconds Time of searches.\n\
            # TYPE lodestone_search_seconds histogram\n\
            lodestone_search_seconds_sum 0.75\n\
            lodestone_search_seconds_count 1\n\
            lodestone_search_seconds_bucket{le=\"0.5\"} 0\n\
            lodestone_search_seconds_bucket{le=\"1.0\"} 1\n\
            lodestone_search_seconds_bucket{le=\"+Inf\"} 1\n";
        assert_eq!(registry.text(), expected);
    }
}
