//! Durability: power cuts, failing devices, killed processes.
//!
//! - `every_sync`: the power fails at every sync in turn; `injected`: a device fails once
//! - `workload`: what both do to a collection, and what they expect of it afterwards
//! - `kill_loop`: the real binary under load, killed at random moments

mod every_sync;
mod injected;
mod kill_loop;
#[path = "../process/mod.rs"]
mod process;
mod workload;
