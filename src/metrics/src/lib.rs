//! Counters, gauges and histograms, and their output in the Prometheus text format.
//!
//! Each part of the server keeps its metrics in a struct of its own, which it registers with the
//! single [`Registry`] at start-up. There is no global state: two engines in one process count
//! separately.
//!
//! ```text
//! embed, catalog, engine, server: counter.inc(), histogram.observe()
//!                                         | shared handles
//! GET /metrics: Registry::text() ---------+--> text format 0.0.4
//! ```
//! Invariants:
//! - Label values are words of this program, or addresses from its settings, never names of
//!   tenants, sources or keys, so the number of series is bounded.
//! - Counting costs one atomic addition. A histogram has its own lock, held for one observation or
//!   one read of its numbers and never while working, so a scrape does not wait for anything that
//!   ingestion does.
//! - Names follow Prometheus conventions: base units, and a `_total` suffix for counters.

#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Prefix of all metric names.
const PREFIX: &str = "lodestone";

/// Buckets for request durations in seconds: a search takes milliseconds, a generated answer a
/// minute.
pub const REQUEST_SECONDS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];
/// Buckets in seconds for a part of a search, or for a wait for the model.
pub const LEG_SECONDS: [f64; 13] =
    [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];
/// Buckets in seconds for ingestion stages, which take minutes for large documents.
pub const STAGE_SECONDS: [f64; 12] =
    [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0, 600.0];
/// Buckets for the tokens of a model batch: powers of two up to the largest batch of a GPU.
pub const BATCH_TOKENS: [f64; 13] =
    [8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 65536.0];

/// A monotonically increasing count. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Counter(Arc<AtomicU64>);

impl Counter {
    /// Adds one.
    pub fn inc(&self) {
        self.add(1);
    }

    /// Adds `count`.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Overwrites the count with one that is kept elsewhere.
    pub fn set(&self, count: u64) {
        self.0.store(count, Ordering::Relaxed);
    }

    /// The current count.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Metric for Counter {
    const KIND: &'static str = "counter";

    fn write(&self, name: &str, labels: &[Label], text: &mut String) {
        sample(text, name, "", labels, self.get());
    }
}

/// A value that can go up and down. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Gauge(Arc<AtomicU64>);

impl Gauge {
    /// Sets the value.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Adds one.
    pub fn inc(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Subtracts one; 0 stays 0.
    pub fn dec(&self) {
        let less = |value: u64| value.checked_sub(1);
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// The current value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Metric for Gauge {
    const KIND: &'static str = "gauge";

    fn write(&self, name: &str, labels: &[Label], text: &mut String) {
        sample(text, name, "", labels, self.get());
    }
}

/// A distribution of observed values: counts per bucket, and their sum. Clones share it.
#[derive(Debug, Clone)]
pub struct Histogram(Arc<Mutex<Observed>>);

#[derive(Debug)]
struct Observed {
    sum: f64,
    count: u64,
    /// Upper bounds in ascending order, each with the number of observations in its bucket, that
    /// is, above the previous bound.
    buckets: Vec<(f64, u64)>,
}

impl Histogram {
    /// Creates a histogram with these upper bounds, in ascending order.
    pub fn new(bounds: impl IntoIterator<Item = f64>) -> Self {
        let buckets = bounds.into_iter().map(|bound| (bound, 0)).collect();
        Self(Arc::new(Mutex::new(Observed { sum: 0.0, count: 0, buckets })))
    }

    /// Records an observation.
    pub fn observe(&self, value: f64) {
        let mut observed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        observed.sum += value;
        observed.count += 1;
        if let Some((_, count)) = observed.buckets.iter_mut().find(|(bound, _)| value <= *bound) {
            *count += 1;
        }
    }
}

impl Metric for Histogram {
    const KIND: &'static str = "histogram";

    fn write(&self, name: &str, labels: &[Label], text: &mut String) {
        let observed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sample(text, name, "_sum", labels, observed.sum);
        sample(text, name, "_count", labels, observed.count);
        let mut below = 0;
        for (bound, count) in &observed.buckets {
            below += count;
            let bound = ("le", format!("{bound:?}").into());
            sample(text, name, "_bucket", &[&[bound], labels].concat(), below);
        }
        let bound = ("le", "+Inf".into());
        sample(text, name, "_bucket", &[&[bound], labels].concat(), observed.count);
    }
}

/// One metric per value of a label, all created up front: each appears from the first scrape on,
/// and accessing one takes no lock.
#[derive(Debug, Clone)]
pub struct Labelled<M, const N: usize> {
    label: &'static str,
    values: [&'static str; N],
    metrics: [M; N],
}

impl<M, const N: usize> Labelled<M, N> {
    /// Creates one metric for each of `values`.
    pub fn new(label: &'static str, values: [&'static str; N], make: impl Fn() -> M) -> Self {
        Self { label, values, metrics: std::array::from_fn(|_| make()) }
    }

    /// Returns the metric of the value at `index`.
    ///
    /// # Panics
    /// If `index` is out of range.
    pub fn at(&self, index: usize) -> &M {
        &self.metrics[index]
    }
}

impl<M: Metric, const N: usize> Metric for Labelled<M, N> {
    const KIND: &'static str = M::KIND;

    fn write(&self, name: &str, labels: &[Label], text: &mut String) {
        for (value, metric) in self.values.iter().zip(&self.metrics) {
            let label = (self.label, (*value).into());
            metric.write(name, &[labels, &[label]].concat(), text);
        }
    }
}

/// One metric per combination of `N` labels, created on first use. Clones share it.
#[derive(Debug, Clone)]
pub struct Family<M, const N: usize> {
    make: fn() -> M,
    metrics: Arc<RwLock<BTreeMap<[Label; N], M>>>,
}

impl<M: Clone + Default, const N: usize> Default for Family<M, N> {
    fn default() -> Self {
        Self::new(M::default)
    }
}

impl<M: Clone, const N: usize> Family<M, N> {
    /// Creates a family whose metrics are created by `make`.
    pub fn new(make: fn() -> M) -> Self {
        Self { make, metrics: Arc::default() }
    }

    /// Returns the metric with these labels, creating it if needed.
    pub fn with(&self, labels: [Label; N]) -> M {
        let known = self.metrics.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(metric) = known.get(&labels) {
            return metric.clone();
        }
        drop(known);
        let mut metrics = self.metrics.write().unwrap_or_else(PoisonError::into_inner);
        metrics.entry(labels).or_insert_with(self.make).clone()
    }
}

impl<M: Metric, const N: usize> Metric for Family<M, N> {
    const KIND: &'static str = M::KIND;

    fn write(&self, name: &str, labels: &[Label], text: &mut String) {
        for (own, metric) in &*self.metrics.read().unwrap_or_else(PoisonError::into_inner) {
            metric.write(name, &[labels, own].concat(), text);
        }
    }
}

/// A label and its value.
pub type Label = (&'static str, Cow<'static, str>);

/// A metric that can be written in the text format.
pub trait Metric: Clone + Send + Sync + 'static {
    /// Metric type in the text format.
    const KIND: &'static str;

    /// Writes the samples under `name`, with `labels` before the metric's own.
    fn write(&self, name: &str, labels: &[Label], text: &mut String);
}

/// Writes one sample line.
fn sample(text: &mut String, name: &str, suffix: &str, labels: &[Label], value: impl fmt::Debug) {
    let label = |(name, value): &Label| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("{name}=\"{value}\"")
    };
    let labels = match labels.iter().map(label).collect::<Vec<_>>().join(",") {
        none if none.is_empty() => none,
        some => format!("{{{some}}}"),
    };
    writeln!(text, "{name}{suffix}{labels} {value:?}").expect("a text takes what is written to it");
}

/// Appends all lines of one metric.
type Writer = Box<dyn Fn(&mut String) + Send + Sync>;

/// All registered metrics.
#[derive(Default)]
pub struct Registry(Vec<Writer>);

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("metrics", &self.0.len()).finish_non_exhaustive()
    }
}

impl Registry {
    /// Registers a metric under its name without the prefix. `help` is a sentence describing it,
    /// without the full stop. The registry shares the handle with the caller.
    pub fn enter<M: Metric>(&mut self, name: &str, help: &str, metric: &M) {
        let (name, metric) = (format!("{PREFIX}_{name}"), metric.clone());
        let head = format!("# HELP {name} {help}.\n# TYPE {name} {}\n", M::KIND);
        self.0.push(Box::new(move |text| {
            text.push_str(&head);
            metric.write(&name, &[], text);
        }));
    }

    /// Renders all metrics in text format 0.0.4.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.0.iter().for_each(|write| write(&mut text));
        text
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
        let family = Family::<Counter, 1>::default();
        registry.enter("events_total", "Events by kind", &family);
        family.with([("kind", "\"late\" \\".into())]).inc();
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
            lodestone_search_seconds_bucket{le=\"+Inf\"} 1\n\
            # HELP lodestone_events_total Events by kind.\n\
            # TYPE lodestone_events_total counter\n\
            lodestone_events_total{kind=\"\\\"late\\\" \\\\\"} 1\n";
        assert_eq!(registry.text(), expected);
    }
}
