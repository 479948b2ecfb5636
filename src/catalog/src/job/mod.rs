//! The durable promise to process one source: its data. The catalog keeps the queue.
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
//! - `queue`: limits of the queue, and what goes in and out of a claim

pub mod queue;
pub mod record;

pub use queue::{
    Claim, ClaimLimits, Duty, FetchedOriginal, Outcome, QueueLimits, Settled, Settlement, Submitted,
};
pub use record::{ClaimedJob, JobRow, MetadataChange, NewJob};
