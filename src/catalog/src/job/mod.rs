//! Data of jobs. A job is the durable promise to process one source; the catalog keeps the queue.
//!
//! ```text
//! NewJob --submit--> queued --claim--> in_progress --settle--> success
//!                      ^ |                 |                   errored
//!                      | +-- superseded    +-- cancel: the row is gone, and `live` says so
//!                      +---- faulted, released, interrupted; errored, when a client retries it
//! ```
//!
//! Invariants:
//! - A job returned by `submit` survives any crash until it is settled, superseded or cancelled.
//! - At most one job of a source is claimed at a time; of two accepted jobs the later one wins.
//! - The only legal transitions are those of [`lodestone_types::JobState::after`].
//! - A cancelled job is never published: the publisher asks `live` while holding the collection's
//!   lock.
//!
//! - `record`: a job when submitted, when claimed by a worker, and as shown in listings
//! - `queue`: limits of the queue, parameters and results of claims

pub mod queue;
pub mod record;

pub use queue::{
    Claim, ClaimLimits, Duty, FetchedOriginal, Outcome, QueueLimits, Settled, Settlement, Submitted,
};
pub use record::{ClaimedJob, JobRow, MetadataChange, NewJob};
