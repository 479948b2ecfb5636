//! Measurements of the stages and the ends of jobs.

use std::time::Instant;

use lodestone_metrics::{Counter, Gauge, Histogram, Labelled, Registry, STAGE_SECONDS};
use lodestone_types::{JobStatus, Stage};

/// Every stage, in the order of a job.
const STAGES: [Stage; 6] = [
    Stage::Validating,
    Stage::Parsing,
    Stage::Chunking,
    Stage::Embedding,
    Stage::Graph,
    Stage::Indexing,
];
/// Position of jobs that wait for a worker among the stages of the queue.
const QUEUED: usize = 0;
/// Ends of a claimed job: for good, or queued again.
const ENDS: [&str; 3] = ["success", "errored", "requeued"];

/// Measurements of jobs.
#[derive(Debug, Clone)]
pub(super) struct JobMeters {
    stage_seconds: Labelled<Histogram, 6>,
    /// Jobs that wait, then sources in each stage.
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
    /// Enters them into a registry.
    pub(super) fn enter(&self, registry: &mut Registry) {
        let help = "Seconds that a source spent in a stage of ingestion, waits inside it included";
        registry.enter("ingest_stage_seconds", help, &self.stage_seconds);
        let help = "Jobs that wait for a worker, and sources in each stage of ingestion";
        registry.enter("ingest_queue_depth", help, &self.depth);
        let help = "Jobs that a worker has ended, by outcome; requeued ones are tried again";
        registry.enter("ingest_jobs_total", help, &self.ends);
        let help = "Jobs that a worker had in hands when a deletion cancelled them";
        registry.enter("ingest_jobs_cancelled_total", help, &self.cancelled);
    }

    /// Records the number of jobs that wait for a worker.
    pub(super) fn queued(&self, jobs: u64) {
        self.depth.at(QUEUED).set(jobs);
    }

    /// A claimed job begins a stage.
    pub(super) fn begin(&self, stage: Stage) {
        self.depth.at(stage as usize + 1).inc();
    }

    /// A claimed job leaves a stage that it was in since `since`.
    pub(super) fn leave(&self, stage: Stage, since: Instant) {
        self.depth.at(stage as usize + 1).dec();
        self.stage_seconds.at(stage as usize).observe(since.elapsed().as_secs_f64());
    }

    /// A claimed job was settled: it is in this state now.
    pub(super) fn settled(&self, state: JobStatus) {
        let end = match state {
            JobStatus::Success => 0,
            JobStatus::Errored => 1,
            JobStatus::Queued | JobStatus::InProgress => 2,
        };
        self.ends.at(end).inc();
    }

    /// Claimed jobs were cancelled.
    pub(super) fn cancelled(&self, jobs: u64) {
        self.cancelled.add(jobs);
    }
}
