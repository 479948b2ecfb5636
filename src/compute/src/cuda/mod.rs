//! The GPU backend: finds candidates by T1, with results bit-identical to the CPU's, in less time.
//!
//! T2, filters and all policy stay on the host. No query depends on the device: if anything fails
//! there, the CPU takes over, and a counter is incremented.
//!
//! ```text
//! candidates --(pays?)-- no ---------------------------------------------> CPU
//!      '- yes: SearchRequest
//!               -> DeviceManager: the device, unless recently lost --------> CPU fallback
//!               -> DeviceCache:   the rows, if they fit -------------------> CPU fallback
//!               -> QueryBatcher:  batches it with queries of other requests
//!               -> search: sample -> threshold -> collect -> select
//!               -> best hits, chosen on the host as on the CPU
//! ```
//!
//! Invariants
//! - Only this crate's launch builder makes a [`Launch`], after checking every extent in it against
//!   a live buffer; memory is freed only after the work that uses it has ended.
//! - A launcher fails with [`DeviceError::Shape`] before anything runs, or with an error of the
//!   device.
//! - Rows on the device belong to an identity whose bytes never change.
//! - Queries, masks and results cross the bus through page-locked memory, of which there is a fixed
//!   amount (`driver::staging`); if none is left, through pageable memory, which is counted.
//! - No call panics because a library is missing, and none waits for the upload of a segment.
//! - A newly opened device must reproduce the CPU's answers to a few queries before it is used
//!   (`check`).
//!
//! Children
//! - `backend`: implements the trait; `request`: its searches and their CPU fallback;
//!   `search_request`: a search request, and the selection of its hits
//! - `batcher`: batches queries of concurrent requests; `search`: one run over resident rows
//! - `chosen`: the rows that a run visits; `pass`, `scan`, `batch`, `gather`, `select`: launchers
//!   of a search
//! - `assign`, `encode`: launchers of builds; `held`: rows on the device during a build
//! - `encoder`: launchers of the embedding model's kernels
//! - `numbers`: rows and queries as codes or halves, and why a search uses halves
//! - `manager`: opens the device, and reopens it after a loss; `cache`: segments on the device;
//!   `uploads`: copies segments to the device
//! - `workspace`: a queue with scratch memory; `launch`: the launch builder
//! - `device`: the traits of a device; `error`: its errors; `check`: verifies a device; `counters`
//! - `modules`: kernel sources, and the cache of their machine code
//! - `driver`: a real card (cudarc); `compile`: NVRTC; both only with the feature `cuda`

pub mod assign;
pub mod backend;
mod batch;
pub mod batcher;
pub mod cache;
pub mod check;
mod chosen;
#[cfg(feature = "cuda")]
pub mod compile;
pub mod counters;
pub mod device;
#[cfg(feature = "cuda")]
pub mod driver;
pub mod encode;
pub mod encoder;
pub mod error;
pub mod gather;
mod held;
mod launch;
pub mod manager;
pub mod modules;
pub mod numbers;
mod pass;
mod request;
mod scan;
pub mod search;
mod search_request;
mod select;
mod uploads;
pub mod workspace;

pub use backend::{CudaBackend, CudaLimits, CudaParts};
pub use device::{
    Buffer, Capability, Device, DeviceMemory, DeviceSource, DeviceTraits, Extent, Launch, Queue,
    Release,
};
pub use error::DeviceError;
