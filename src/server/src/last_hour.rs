//! Per-minute history of the last hour for figures that the metrics report only as totals since the
//! start, so that a status page works without a metrics collector.
//!
//! ```text
//! every minute: metrics text -> totals -> difference to the previous minute -> one entry of 60
//! ```
//! The metrics text is parsed because every part of the server already reports its counters there.
//! An entry takes a few hundred bytes, and the history is lost when the process ends.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;

use lodestone_types::Timestamp;

/// Time covered by one entry.
pub const ENTRY: Duration = Duration::from_secs(60);
/// Number of entries kept.
const ENTRIES_MAX: usize = 60;

/// Activity of the server in one minute, or in the elapsed part of it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Minute {
    /// End time in epoch seconds.
    pub at: String,
    /// Length in seconds.
    pub seconds: f64,
    /// Number of requests answered.
    pub requests: u64,
    /// Number of requests answered with status 5xx.
    pub faults: u64,
    /// Number of sources that became searchable.
    pub processed: u64,
    /// Number of sources whose processing failed.
    pub errored: u64,
    /// Number of tokens processed by the embedding model.
    pub tokens: u64,
    /// Durations of hybrid searches; null if there were none.
    pub searches: Option<Times>,
    /// Durations of answers; null if there were none.
    pub answers: Option<Times>,
}

/// Durations in milliseconds, as precise as the buckets of the histogram.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Times {
    /// Number of durations.
    pub count: u64,
    /// Median.
    pub median_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
}

/// Response of `metrics/hour`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LastHour {
    /// Minutes, oldest first; the last one is still running.
    pub minutes: Vec<Minute>,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
}

/// Totals since the server started.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Sums {
    requests: u64,
    faults: u64,
    processed: u64,
    errored: u64,
    tokens: u64,
    searches: Buckets,
    answers: Buckets,
}

/// Upper bounds of a histogram in seconds, each with the cumulative count of observations.
type Buckets = Vec<(f64, u64)>;

impl Sums {
    /// Parses the totals from the metrics text.
    pub(crate) fn of(text: &str) -> Self {
        let mut sums = Self::default();
        for line in text.lines() {
            let Some((series, value)) = line.rsplit_once(' ') else { continue };
            let Ok(value) = value.parse::<u64>() else { continue };
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let is = |label: &str| labels.contains(label);
            match name {
                "lodestone_http_requests_total" => {
                    sums.requests += value;
                    sums.faults += if is("status=\"5xx\"") { value } else { 0 };
                }
                "lodestone_ingest_jobs_total" if is("outcome=\"success\"") => {
                    sums.processed += value;
                }
                "lodestone_ingest_jobs_total" if is("outcome=\"errored\"") => sums.errored += value,
                "lodestone_embed_tokens_total" => sums.tokens += value,
                "lodestone_search_seconds_bucket" if is("leg=\"retrieve\"") => {
                    sums.searches.extend(bound(labels).map(|bound| (bound, value)));
                }
                "lodestone_search_seconds_bucket" if is("leg=\"answer\"") => {
                    sums.answers.extend(bound(labels).map(|bound| (bound, value)));
                }
                _ => {}
            }
        }
        sums
    }

    /// Returns the entry for the `seconds` that have passed since `before`.
    fn since(&self, before: &Self, at: Timestamp, seconds: f64) -> Minute {
        Minute {
            at: at.to_string(),
            seconds,
            requests: self.requests.saturating_sub(before.requests),
            faults: self.faults.saturating_sub(before.faults),
            processed: self.processed.saturating_sub(before.processed),
            errored: self.errored.saturating_sub(before.errored),
            tokens: self.tokens.saturating_sub(before.tokens),
            searches: times(&self.searches, &before.searches),
            answers: times(&self.answers, &before.answers),
        }
    }
}

/// Parses the upper bound from the labels of a bucket.
fn bound(labels: &str) -> Option<f64> {
    let (_, rest) = labels.split_once("le=\"")?;
    let (bound, _) = rest.split_once('"')?;
    // `+Inf` parses as infinity.
    bound.parse().ok()
}

fn times(now: &Buckets, before: &Buckets) -> Option<Times> {
    let earlier = |at: usize| before.get(at).map_or(0, |(_, count)| *count);
    let counts = now.iter().enumerate();
    let grown: Buckets =
        counts.map(|(at, (bound, count))| (*bound, count.saturating_sub(earlier(at)))).collect();
    let count = grown.last().map_or(0, |(_, count)| *count);
    let at = |share| 1000.0 * quantile(&grown, share * count as f64);
    (count > 0).then(|| Times { count, median_ms: at(0.5), p95_ms: at(0.95) })
}

/// Estimates the value below which `rank` observations lie, by linear interpolation within the
/// bucket; beyond the last finite bound, that bound.
fn quantile(buckets: &Buckets, rank: f64) -> f64 {
    let (mut low, mut below) = (0.0, 0.0);
    for (bound, count) in buckets {
        let count = *count as f64;
        if count >= rank {
            let share = if count > below { (rank - below) / (count - below) } else { 0.0 };
            return if bound.is_finite() { low + (bound - low) * share } else { low };
        }
        (low, below) = (*bound, count);
    }
    low
}

/// The entries kept so far, and the start of the entry in progress.
#[derive(Debug)]
pub(crate) struct Hour {
    minutes: VecDeque<Minute>,
    since: Instant,
    before: Sums,
}

impl Hour {
    pub(crate) fn begin() -> Self {
        Self { minutes: VecDeque::new(), since: Instant::now(), before: Sums::default() }
    }

    /// Completes the entry in progress and starts the next.
    pub(crate) fn turn(&mut self, at: Timestamp, now: Instant, sums: Sums) {
        self.minutes.push_back(self.running(at, now, &sums));
        if self.minutes.len() > ENTRIES_MAX {
            self.minutes.pop_front();
        }
        (self.since, self.before) = (now, sums);
    }

    /// Returns all entries, including the one in progress.
    pub(crate) fn entries(&self, at: Timestamp, now: Instant, sums: &Sums) -> Vec<Minute> {
        self.minutes.iter().cloned().chain([self.running(at, now, sums)]).collect()
    }

    fn running(&self, at: Timestamp, now: Instant, sums: &Sums) -> Minute {
        let seconds = now.saturating_duration_since(self.since).as_secs_f64();
        sums.since(&self.before, at, seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(requests: u64, faults: u64, fast: u64, all: u64) -> String {
        format!(
            "# HELP lodestone_http_requests_total Requests.\n\
             lodestone_http_requests_total{{method=\"GET\",status=\"2xx\"}} {requests}\n\
             lodestone_http_requests_total{{method=\"GET\",status=\"5xx\"}} {faults}\n\
             lodestone_embed_tokens_total {all}\n\
             lodestone_search_seconds_sum{{leg=\"retrieve\"}} 0.75\n\
             lodestone_search_seconds_bucket{{leg=\"retrieve\",le=\"0.01\"}} {fast}\n\
             lodestone_search_seconds_bucket{{leg=\"retrieve\",le=\"0.1\"}} {all}\n\
             lodestone_search_seconds_bucket{{leg=\"retrieve\",le=\"+Inf\"}} {all}\n\
             lodestone_search_seconds_bucket{{leg=\"fuse\",le=\"+Inf\"}} 99\n"
        )
    }

    #[test]
    fn an_entry_counts_from_the_end_of_the_one_before() {
        let mut hour = Hour::begin();
        let (start, at) = (hour.since, Timestamp(1_000));
        hour.turn(at, start + ENTRY, Sums::of(&text(10, 1, 4, 4)));
        let now = start + ENTRY + Duration::from_secs(30);
        let entries = hour.entries(at, now, &Sums::of(&text(16, 1, 5, 14)));
        let counts: Vec<_> = entries.iter().map(|one| (one.requests, one.faults)).collect();
        assert_eq!(counts, [(11, 1), (6, 0)]);
        assert_eq!((entries[0].seconds, entries[1].seconds), (60.0, 30.0));
        assert_eq!((entries[1].tokens, entries[1].answers.is_none()), (10, true));
        // One of ten is below 10 ms and nine are between 10 and 100: the fifth is 4/9 of the way.
        let times = entries[1].searches.as_ref().unwrap();
        assert_eq!((times.count, times.median_ms.round()), (10, 50.0));
        assert_eq!(times.p95_ms.round(), 95.0);
        assert_eq!(entries[0].searches.as_ref().unwrap().median_ms.round(), 5.0);
    }

    #[test]
    fn an_hour_is_kept() {
        let mut hour = Hour::begin();
        for minute in 1..=200 {
            let now = hour.since + ENTRY;
            hour.turn(Timestamp(minute), now, Sums::of(&text(minute, 0, 0, 0)));
        }
        assert_eq!(hour.minutes.len(), ENTRIES_MAX);
        assert!(hour.minutes.iter().all(|one| one.requests == 1 && one.searches.is_none()));
    }
}
