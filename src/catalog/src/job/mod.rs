//! The durable promise to process one source: its data, and the queue as a trait.
//!
//! This module stores nothing. The catalog keeps the queue in SQLite; a scaled-out server can keep
//! it elsewhere. Pipelines and their workers see only [`JobQueue`].
//!
//! ```text
//! NewJob --submit--> queued --claim--> in_progress --settle--> success
//!                      ^ |                 |                   errored
//!                      | +-- superseded    +-- cancel: the row is gone, and `live` says so
//!                      +---- faulted, released, interrupted; errored, when a client retries it
//! ```
//!
//! Invariants:
//! - A job that `submit` returned is there after any crash, until it is settled, superseded or
//!   canceled.
//! - Of one source at most one job is claimed at a time; of two accepted the later one wins.
//! - The legal moves are those of [`lodestone_types::JobState::after`], and no others.
//! - A canceled job is never published: the publisher asks `live` under the collection's lock.
//!
//! - `record`: a job on its way in, in a worker's hands, and as listings show it
//! - `queue`: the trait, its error, and what goes in and out of a claim

pub mod queue;
pub mod record;

pub use queue::{
    Claim, ClaimLimits, Duty, FetchedOriginal, JobError, JobQueue, Outcome, QueueLimits, Settled,
    Settlement, Submitted,
};
pub use record::{ClaimedJob, JobRow, MetadataChange, NewJob};
