//! The forward pass as the queue sees it, and the sizes of its batches.

use std::fmt;

use crate::{EmbedError, Engine};

/// A forward pass that workers run: token ids to vectors.
pub(super) trait Forward: Send + Sync + fmt::Debug {
    /// Returns one unit vector per passage, in order. Single-threaded. Calls `pause` from time to
    /// time; the queue may run other batches inside that call.
    fn forward(
        &self,
        batch: &[&[u32]],
        pause: &mut dyn FnMut(),
    ) -> Result<Vec<Vec<f32>>, EmbedError>;

    /// Returns the batch policy for now; `usual` is the queue's default.
    fn policy(&self, usual: BatchPolicy) -> BatchPolicy {
        usual
    }

    /// Returns the engine that currently computes.
    fn engine(&self) -> Engine {
        Engine::Cpu
    }

    /// Returns the counters of the device, if there is one.
    fn device_counts(&self) -> DeviceCounts {
        DeviceCounts::default()
    }
}

/// Sizes of batches, and the number of workers that compute them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BatchPolicy {
    /// Maximum number of tokens of a batch.
    pub batch: usize,
    /// Minimum number of tokens of a batch when waiting work is split between idle workers.
    pub share: usize,
    /// Maximum number of workers computing bulk batches at a time; queries use any idle one.
    pub workers: usize,
}

/// Batches that a device computed, and batches that fell back to the CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DeviceCounts {
    pub batches: u64,
    pub fallbacks: u64,
}
