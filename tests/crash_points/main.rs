//! Durability on a disk of the test's own: power cuts, failing devices.
//!
//! - `points`: the power fails at every operation; `injected`: a device fails once
//! - `workload`: the steps of both on a collection, and the expected contents afterwards

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "all of this is a test")]

mod injected;
mod points;
mod workload;

/// Each recovery allocates and frees tables of megabytes, which this one keeps at hand.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
