//! The GPU: a backend whose answers are the CPU's, bit for bit, for less.
//!
//! It finds which rows may win by T1; T2, the filter and every policy stay where they are. Nothing
//! here is needed to answer a query: whatever goes wrong on a device, the CPU does it instead, and
//! a counter rises.
//!
//! ```text
//! candidates --(pays?)-- no ----------------------------------------------> CPU
//!                '- yes -> Supply: the device, unless it was lost lately --> CPU
//!                          Residency: the rows, if they fit ---------------> CPU
//!                          Together: with the queries of others
//!                          search: sample -> threshold -> collect -> select, or probe: lists
//!                          judged on the host, as on the CPU
//! ```
//!
//! Invariants
//! - A [`Launch`] is made by a launcher of this room alone, after every extent in it was checked
//!   against a live buffer; memory is freed only after the work that uses it was waited for.
//! - Rows on the device belong to an identity whose bytes never change.
//! - Queries, masks and results cross the bus through page-locked memory, of which there is a fixed
//!   amount (`driver::staging`); where there is none, through pageable memory, and it is counted.
//! - No call panics because a library is missing, and none blocks on another request's upload.
//! - A fresh device answers a few questions beside the CPU before it is used (`check`).
//!
//! Children
//! - `device`: what a device can do; `error`: what it can fail at
//! - `driver`: a real card (cudarc); `compile`: NVRTC; both only with the feature `cuda`
//! - `modules`: kernel sources, and the cache of their machine code
//! - `numbers`: rows and queries as codes or halves, and why a search takes halves
//! - `resident`: which rows stand on the device; `live`: the device while it lives, and after
//! - `together`: queries of concurrent requests in one run
//! - `workspace`: a queue with scratch memory; `reach`: launches in the making
//! - `encoder`: launchers of the embedding model's kernels
//! - `pass`, `scan` (G1), `batch` (G2), `gather` (G3), `select`: launchers; `search`: a run of them
//! - `one_bit` over `lists` (G4, G5): launchers of a search through lists
//! - `assign`, `encode` (G6): launchers of builds; `held`: rows on the device meanwhile
//! - `backend`: the trait's implementation; `answers`: its searches, and what answers instead;
//!   `check`: is the device right; `counters`

mod answers;
pub mod assign;
pub mod backend;
mod batch;
pub mod check;
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
pub mod lists;
pub mod live;
pub mod modules;
pub mod numbers;
pub mod one_bit;
mod pass;
mod reach;
pub mod resident;
mod scan;
pub mod search;
mod select;
pub mod together;
pub mod workspace;

pub use backend::{CudaBackend, CudaLimits, CudaParts};
pub use device::{
    Buffer, Capability, Device, DeviceMemory, DeviceSource, DeviceTraits, Extent, Launch, Queue,
    Release,
};
pub use error::DeviceError;
