//! Durability of the real binary when it is killed under load at random moments.

mod kill_loop;
#[path = "../process/mod.rs"]
mod process;
