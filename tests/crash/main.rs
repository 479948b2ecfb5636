//! Durability of the real binary: killed under load, at random moments.

mod kill_loop;
#[path = "../process/mod.rs"]
mod process;
