//! Limits of the queue, and the parameters and results of a claim.

use crate::job::ClaimedJob;
use lodestone_types::{CollectionId, JobErrorCode, JobEvent, JobStatus, Sequence, TenantId};

/// Limits of the queue. Jobs in progress do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLimits {
    /// Total number of waiting jobs.
    pub jobs_max: u64,
    /// Total bytes of waiting uploads.
    pub bytes_max: u64,
    /// Waiting jobs of one collection, so that a single tenant cannot fill the queue.
    pub collection_jobs_max: u64,
    /// Bytes of waiting uploads of one collection.
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

/// Result of submitting a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    /// The job's id on the wire.
    pub job_id: String,
    /// Its position in the order of acceptance.
    pub sequence: Sequence,
    /// The version of the source that the job creates.
    pub version: u32,
    /// Whether the source already existed.
    pub overwritten: bool,
    /// Keys of originals that are no longer referenced because their uploads were superseded.
    pub obsolete_raw_keys: Vec<String>,
}

/// The kind of work that a worker claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// Processing stored originals.
    Process,
    /// Fetching originals; separate from processing, so that slow web pages delay no other job.
    Fetch,
}

impl Duty {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Process, Self::Fetch];
}

/// An original fetched for a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedOriginal {
    /// Key under which it is stored in the blob store.
    pub raw_key: String,
    /// URL after redirects.
    pub url: String,
    /// Media type.
    pub content_type: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// SHA-256 of the content.
    pub content_hash: [u8; 32],
}

/// Limits of one claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimLimits {
    /// Maximum number of jobs; at least one is taken.
    pub jobs: usize,
    /// Maximum bytes of originals and metadata; the first job is taken whatever its size.
    pub bytes: u64,
}

/// Jobs of one collection claimed by one worker, which become one segment and one commit.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The collection.
    pub collection: CollectionId,
    /// The tenant's name.
    pub tenant: TenantId,
    /// The jobs, oldest first, each of a different source. A job that failed or was interrupted
    /// before is claimed alone, so that a document that kills its worker affects no other job.
    pub jobs: Vec<ClaimedJob>,
}

/// Outcome of processing one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The job's rows are visible.
    Published {
        /// Number of chunks created.
        chunks: u64,
    },
    /// The document itself is at fault, so a retry cannot help.
    Rejected {
        /// Code of the error.
        error_code: JobErrorCode,
        /// Message for the user.
        message: String,
    },
    /// Any other error; the job is retried a limited number of times.
    Failed {
        /// The code of the error.
        error_code: JobErrorCode,
        /// Message for the user.
        message: String,
    },
    /// Returned to the queue unprocessed (shutdown, disk full).
    Released,
}

impl Outcome {
    /// The corresponding event of the state machine.
    pub fn event(&self) -> JobEvent {
        match self {
            Self::Published { .. } => JobEvent::Published,
            Self::Rejected { .. } => JobEvent::Rejected,
            Self::Failed { .. } => JobEvent::Failed,
            Self::Released => JobEvent::Released,
        }
    }
}

/// The outcome of one claimed job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The job.
    pub sequence: Sequence,
    /// Its outcome.
    pub outcome: Outcome,
}

/// Result of [`crate::Catalog::settle`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    /// The new state of each job, in the given order. Jobs that were cancelled or are not in
    /// progress are omitted.
    pub states: Vec<(Sequence, JobStatus)>,
    /// Keys of originals that are no longer referenced because their versions were replaced.
    pub obsolete_raw_keys: Vec<String>,
}
