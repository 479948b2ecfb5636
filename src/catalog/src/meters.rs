//! Measurements of the stages and outcomes of jobs.

use std::time::Instant;

use lodestone_metrics::{Counter, Gauge, Histogram, Labelled, Registry, STAGE_SECONDS};
use lodestone_types::{JobStatus, Stage};

/// All stages, in processing order.
const STAGES: [Stage; 6] = [
    Stage::Validating,
    Stage::Parsing,
    Stage::Chunking,
    Stage::Embedding,
    Stage::Graph,
    Stage::Indexing,
];
/// Index of waiting jobs in the queue depth gauges.
const QUEUED: usize = 0;
/// Outcomes of a claimed job: final, or queued again.
const ENDS: [&str; 3] = ["success", "errored", "requeued"];

/// Meters of jobs.
#[derive(Debug, Clone)]
pub(super) struct JobMeters {
    stage_seconds: Labelled<Histogram, 6>,
    /// Waiting jobs, then sources in each stage.
    depth: Labelled<Gauge, 7>,
    ends: Labelled<Counter, 3>,
    cancelled: Counter,
}

impl Default for JobMeters {
    fn default() -> Self {
        let names = STAGES.map(Stage::as_str);
        let mut depths = [JobStatus::Queued.as_str(); 7];
        depths[1..].copy_from_slice(&names);
        Self {
            stage_seconds: Labelled::new("stage", names, || Histogram::new(STAGE_SECONDS)),
            depth: Labelled::new("stage", depths, Gauge::default),
            ends: Labelled::new("outcome", ENDS, Counter::default),
            cancelled: Counter::default(),
        }
    }
}

impl JobMeters {
    /// Registers the meters.
    pub(super) fn enter(&self, registry: &mut Registry) {
        let help = "Seconds that a source spent in a stage of ingestion, including waits";
        registry.enter("ingest_stage_seconds", help, &self.stage_seconds);
        let help = "Jobs waiting for a worker, and sources in each stage of ingestion";
        registry.enter("ingest_queue_depth", help, &self.depth);
        let help = "Jobs finished by a worker, by outcome; requeued ones are retried";
        registry.enter("ingest_jobs_total", help, &self.ends);
        let help = "Jobs cancelled by a deletion while a worker was processing them";
        registry.enter("ingest_jobs_cancelled_total", help, &self.cancelled);
    }

    /// Records the number of jobs waiting for a worker.
    pub(super) fn queued(&self, jobs: u64) {
        self.depth.at(QUEUED).set(jobs);
    }

    /// Records that a claimed job enters a stage.
    pub(super) fn begin(&self, stage: Stage) {
        self.depth.at(stage as usize + 1).inc();
    }

    /// Records that a claimed job leaves a stage that it entered at `since`.
    pub(super) fn leave(&self, stage: Stage, since: Instant) {
        self.depth.at(stage as usize + 1).dec();
        self.stage_seconds.at(stage as usize).observe(since.elapsed().as_secs_f64());
    }

    /// Records the state of a claimed job after it was settled.
    pub(super) fn settled(&self, state: JobStatus) {
        let end = match state {
            JobStatus::Success => 0,
            JobStatus::Errored => 1,
            JobStatus::Queued | JobStatus::InProgress => 2,
        };
        self.ends.at(end).inc();
    }

    /// Records that claimed jobs were cancelled.
    pub(super) fn cancelled(&self, jobs: u64) {
        self.cancelled.add(jobs);
    }
}
