//! Durability: power cuts, failing devices, killed processes.
//!
//! - `every_sync`: the power fails at every sync in turn; `injected`: a device fails once
//! - `workload`: the steps of both on a collection, and the expected contents afterwards
//! - `kill_loop`: the real binary under load, killed at random moments

mod every_sync;
mod injected;
mod kill_loop;
#[path = "../process/mod.rs"]
mod process;
mod workload;
