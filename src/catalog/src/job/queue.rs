//! The queue as a trait, its error, and what goes in and out of a claim.

use std::error::Error;
use std::fmt::Debug;
use std::time::Duration;

use crate::job::{ClaimedJob, NewJob};
use lodestone_types::{
    CollectionId, CommitHead, ErrorKind, Fault, JobEvent, JobStatus, Sequence, Stage, TenantId,
};

/// Limits of the queue. Jobs that are being processed do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLimits {
    /// Jobs waiting in all.
    pub jobs_max: u64,
    /// Bytes of uploads waiting in all.
    pub bytes_max: u64,
    /// Jobs of one collection, so that one tenant cannot fill the queue for all.
    pub collection_jobs_max: u64,
    /// Bytes of one collection.
    pub collection_bytes_max: u64,
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self {
            jobs_max: 200_000,
            bytes_max: 64 << 30,
            collection_jobs_max: 100_000,
            collection_bytes_max: 32 << 30,
        }
    }
}

/// An accepted job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    /// The job's name on the wire.
    pub job_id: String,
    /// Its position in the order of acceptance.
    pub sequence: Sequence,
    /// The version of the source that it makes.
    pub version: u32,
    /// Whether the source existed before.
    pub overwritten: bool,
    /// Keys of originals that nothing refers to any more: uploads that were superseded.
    pub obsolete_raw_keys: Vec<String>,
}

/// Kind of work that a worker claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// Processing of stored originals.
    Process,
    /// Fetching of originals, apart from processing so that slow pages delay no other job.
    Fetch,
}

impl Duty {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Process, Self::Fetch];
}

/// An original that was fetched for a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedOriginal {
    /// Key under which it is stored.
    pub raw_key: String,
    /// Its address after redirects.
    pub url: String,
    /// Media type.
    pub content_type: String,
    /// Bytes.
    pub size_bytes: u64,
    /// SHA-256.
    pub content_hash: [u8; 32],
}

/// Limits of one claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimLimits {
    /// Jobs at most; at least 1 is taken.
    pub jobs: usize,
    /// Bytes of originals at most; one job is taken whatever its size.
    pub bytes: u64,
}

/// Jobs of one collection for one worker: one segment, one commit.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The collection.
    pub collection: CollectionId,
    /// The tenant's name.
    pub tenant: TenantId,
    /// Oldest first; sources differ. A job that failed or was interrupted before comes alone, so
    /// that a document that kills its worker affects no other job.
    pub jobs: Vec<ClaimedJob>,
}

/// Result of processing one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Its rows are visible.
    Published {
        /// Chunks made.
        chunks: u64,
    },
    /// The document is the cause: trying again cannot help.
    Rejected {
        /// The broken rule.
        fault: Fault,
        /// The error in words, for the user.
        message: String,
    },
    /// Another error: the job is tried again, a limited number of times.
    Faulted {
        /// The code of the error.
        fault: Fault,
        /// The error in words, for the user.
        message: String,
    },
    /// Given back unprocessed (shutdown, disk full).
    Released,
}

impl Outcome {
    /// The event of the state machine.
    pub fn event(&self) -> JobEvent {
        match self {
            Self::Published { .. } => JobEvent::Published,
            Self::Rejected { .. } => JobEvent::Rejected,
            Self::Faulted { .. } => JobEvent::Faulted,
            Self::Released => JobEvent::Released,
        }
    }
}

/// The end of one claimed job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The job.
    pub sequence: Sequence,
    /// Its result.
    pub outcome: Outcome,
}

/// Result of [`JobQueue::settle`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    /// The new state of each job, in the order given. Jobs that are gone (canceled) or not in
    /// progress are left out.
    pub states: Vec<(Sequence, JobStatus)>,
    /// Keys of originals that nothing refers to any more: those of replaced versions.
    pub obsolete_raw_keys: Vec<String>,
}

/// Errors of the job queue.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The queue is at its limit.
    #[error("the ingest queue is full: {jobs} jobs with {bytes} bytes are waiting")]
    QueueFull {
        /// Jobs waiting.
        jobs: u64,
        /// Bytes waiting.
        bytes: u64,
    },
    /// The tenant was deleted.
    #[error("collection {collection} does not exist")]
    CollectionUnknown {
        /// The collection.
        collection: CollectionId,
    },
    /// The storage below failed.
    #[error("{source}")]
    Storage {
        /// The caller's remedy.
        kind: ErrorKind,
        /// The error.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl JobError {
    /// The caller's remedy.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::QueueFull { .. } => ErrorKind::Overloaded,
            Self::CollectionUnknown { .. } => ErrorKind::NotFound,
            Self::Storage { kind, source: _ } => *kind,
        }
    }
}

/// The durable queue. Every method blocks; a change is durable (power cut included) on return.
pub trait JobQueue: Send + Sync + Debug {
    /// Accepts a job. Queued jobs of the same source are superseded and vanish; a running one
    /// continues, and this one follows it.
    ///
    /// # Errors
    /// [`JobError::QueueFull`], [`JobError::CollectionUnknown`], storage errors.
    fn submit(&self, job: NewJob) -> Result<Submitted, JobError>;

    /// Takes the oldest jobs of the next collection in turn that wait for this duty, or none.
    ///
    /// # Errors
    /// Storage errors; also before [`Self::requeue_interrupted`], if jobs were interrupted.
    fn claim(&self, duty: Duty, limits: ClaimLimits) -> Result<Option<Claim>, JobError>;

    /// Records the original that was fetched for a claimed job. False where the job is not in
    /// progress any more; nothing refers to the original then.
    ///
    /// # Errors
    /// Storage errors.
    fn fetched(&self, sequence: Sequence, original: FetchedOriginal) -> Result<bool, JobError>;

    /// Records the stage of claimed jobs. In memory only.
    fn set_stage(&self, sequences: &[Sequence], stage: Stage);

    /// The jobs of `sequences` that are still in progress, in the order given. A publisher asks
    /// under the collection's lock, and publishes no other.
    ///
    /// # Errors
    /// Storage errors.
    fn live(&self, sequences: &[Sequence]) -> Result<Vec<Sequence>, JobError>;

    /// The jobs of `claimed`, given with their revision at that time, whose metadata was changed
    /// since: a worker's results for them are outdated.
    ///
    /// # Errors
    /// Storage errors.
    fn amended(&self, claimed: &[(Sequence, u32)]) -> Result<Vec<Sequence>, JobError>;

    /// Records ends of jobs of one collection, and its newest manifest, in one step.
    ///
    /// # Errors
    /// Storage errors.
    fn settle(
        &self,
        collection: CollectionId,
        settlements: Vec<Settlement>,
        head: Option<CommitHead>,
    ) -> Result<Settled, JobError>;

    /// Jobs that were in progress when the server stopped, by collection. The caller settles
    /// those that a manifest already carries, then calls [`Self::requeue_interrupted`].
    ///
    /// # Errors
    /// Storage errors.
    fn interrupted(&self) -> Result<Vec<(CollectionId, Vec<Sequence>)>, JobError>;

    /// Requeues the rest of the interrupted jobs, or ends those interrupted too often. Returns
    /// their number. Claims begin only after this.
    ///
    /// # Errors
    /// Storage errors.
    fn requeue_interrupted(&self) -> Result<usize, JobError>;

    /// Blocks until there may be a job to claim, or for `timeout`; returns whether there may be
    /// one.
    fn wait_for_work(&self, duty: Duty, timeout: Duration) -> bool;
}
