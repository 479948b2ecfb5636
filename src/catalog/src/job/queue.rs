//! The queue as a trait, its error, and what goes in and out of a claim.

use std::error::Error;
use std::fmt::Debug;
use std::time::Duration;

use crate::job::{ClaimedJob, NewJob};
use lodestone_types::{
    CollectionId, CommitHead, ErrorKind, Fault, JobEvent, JobStatus, Sequence, Stage, TenantId,
};

/// How much may wait. Jobs that are being processed do not count.
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

/// What `submit` promises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    /// The job's name on the wire.
    pub job_id: String,
    /// Its place in the order of acceptance.
    pub sequence: Sequence,
    /// The version of the source that it makes.
    pub version: u32,
    /// Whether the source existed before.
    pub overwritten: bool,
    /// Keys of originals that nothing refers to any more: uploads that were superseded.
    pub obsolete_raw_keys: Vec<String>,
}

/// What a worker does with what it claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// It processes originals that are there.
    Process,
    /// It fetches originals first. Slow pages keep nobody else waiting.
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
    /// Where it was found in the end.
    pub url: String,
    /// Media type.
    pub content_type: String,
    /// Bytes.
    pub size_bytes: u64,
    /// SHA-256.
    pub content_hash: [u8; 32],
}

/// How much one claim may take.
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
    /// that a document that kills its worker takes no other with it.
    pub jobs: Vec<ClaimedJob>,
}

/// How processing of one job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Its rows are visible.
    Published {
        /// Chunks made.
        chunks: u64,
    },
    /// The document is at fault: trying again cannot help.
    Rejected {
        /// What is wrong with it.
        fault: Fault,
        /// The same in words, for the user.
        message: String,
    },
    /// Something else failed: it is tried again, a limited number of times.
    Faulted {
        /// What failed.
        fault: Fault,
        /// The same in words, for the user.
        message: String,
    },
    /// Given back untouched (shutdown, disk full).
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
    /// How it ended.
    pub outcome: Outcome,
}

/// What `settle` did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    /// The new state of each job, in the order given. Jobs that are gone (canceled) or not in
    /// progress are left out.
    pub states: Vec<(Sequence, JobStatus)>,
    /// Keys of originals that nothing refers to any more: those of replaced versions.
    pub obsolete_raw_keys: Vec<String>,
}

/// Why the queue refused.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// As much waits as may wait.
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
        /// What the caller should do.
        kind: ErrorKind,
        /// The failure.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl JobError {
    /// What the caller should do about it.
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
    /// goes on, and this one follows it.
    ///
    /// # Errors
    /// [`JobError::QueueFull`], [`JobError::CollectionUnknown`], storage failures.
    fn submit(&self, job: NewJob) -> Result<Submitted, JobError>;

    /// Takes the oldest jobs of the next collection in turn that wait for this duty, or none.
    ///
    /// # Errors
    /// Storage failures; also before [`Self::requeue_interrupted`], if jobs were interrupted.
    fn claim(&self, duty: Duty, limits: ClaimLimits) -> Result<Option<Claim>, JobError>;

    /// Notes the original that was fetched for a claimed job. False where the job is not in
    /// progress any more; nothing refers to the original then.
    ///
    /// # Errors
    /// Storage failures.
    fn fetched(&self, sequence: Sequence, original: FetchedOriginal) -> Result<bool, JobError>;

    /// Notes the step of claimed jobs. In memory only.
    fn set_stage(&self, sequences: &[Sequence], stage: Stage);

    /// Those of `sequences` that are still in progress, in the order given. A publisher asks
    /// under the collection's lock, and publishes no other.
    ///
    /// # Errors
    /// Storage failures.
    fn live(&self, sequences: &[Sequence]) -> Result<Vec<Sequence>, JobError>;

    /// Those of `claimed`, given with the revision they had then, whose metadata was changed
    /// since: what a worker has made of them is outdated.
    ///
    /// # Errors
    /// Storage failures.
    fn amended(&self, claimed: &[(Sequence, u32)]) -> Result<Vec<Sequence>, JobError>;

    /// Records ends of jobs of one collection, and its newest manifest, in one step.
    ///
    /// # Errors
    /// Storage failures.
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
    /// Storage failures.
    fn interrupted(&self) -> Result<Vec<(CollectionId, Vec<Sequence>)>, JobError>;

    /// Puts the rest of the interrupted jobs back, or ends those interrupted too often. Returns
    /// how many there were. Claims begin only after this.
    ///
    /// # Errors
    /// Storage failures.
    fn requeue_interrupted(&self) -> Result<usize, JobError>;

    /// Blocks until there may be something to claim, or for `timeout`; says which.
    fn wait_for_work(&self, duty: Duty, timeout: Duration) -> bool;
}
