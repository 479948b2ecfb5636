//! Durability on a simulated disk: power cuts and failing devices.
//!
//! - `points`: the power fails at every operation; `injected`: a device fails once
//! - `workload`: the steps of both on a collection, and the expected contents after them

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "all of this is a test")]

mod injected;
mod points;
mod workload;

/// Each recovery allocates and frees tables of several megabytes, which this allocator retains.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
