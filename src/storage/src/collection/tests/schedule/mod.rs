//! Random schedules of processes on one bucket. Each call of the store is one step, and before each
//! step a seed decides which process continues. Any of them may sleep for long, end, or get no
//! answer: the requested change then happens at once, not at all, or later.
//!
//! - `store`: the bucket, which decides whose turn it is
//! - `log`: the commit log alone, many schedules
//! - `whole`: collections with segments, fewer schedules

mod log;
mod store;
mod whole;

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;

use super::*;

/// Pseudo-random numbers (xorshift64).
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    /// The numbers of process `number` in schedule `seed`.
    fn of(seed: u64, number: usize) -> Self {
        Self((seed * 64 + number as u64 + 1).wrapping_mul(0x2545_F491_4F6C_DD1D))
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}
