//! Limits of the queue, and the parameters and results of a claim.

use crate::job::ClaimedJob;
use lodestone_types::{CollectionId, JobErrorCode, JobEvent, JobStatus, Sequence, TenantId};

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
    /// Bytes of originals and metadata at most; one job is taken whatever its size.
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
        error_code: JobErrorCode,
        /// The error in words, for the user.
        message: String,
    },
    /// Another error: the job is tried again, a limited number of times.
    Failed {
        /// The code of the error.
        error_code: JobErrorCode,
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
            Self::Failed { .. } => JobEvent::Failed,
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

/// Result of [`crate::Catalog::settle`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    /// The new state of each job, in the order given. Jobs that are gone (canceled) or not in
    /// progress are left out.
    pub states: Vec<(Sequence, JobStatus)>,
    /// Keys of originals that nothing refers to any more: those of replaced versions.
    pub obsolete_raw_keys: Vec<String>,
}
