//! The forward pass as the queue sees it, and the sizes of its batches.

use std::fmt;

use crate::{EmbedError, Engine};

/// A forward pass that runs on the workers: token ids to vectors.
pub(super) trait Forward: Send + Sync + fmt::Debug {
    /// One vector of length 1 for each passage, in order. Single-threaded. Calls `pause` now and
    /// then; other batches may run inside that call.
    fn forward(
        &self,
        batch: &[&[u32]],
        pause: &mut dyn FnMut(),
    ) -> Result<Vec<Vec<f32>>, EmbedError>;

    /// Its batch policy at the moment, where the queue's `usual` one does not suit it.
    fn policy(&self, usual: BatchPolicy) -> BatchPolicy {
        usual
    }

    /// The engine that computes at the moment.
    fn engine(&self) -> Engine {
        Engine::Cpu
    }

    /// Counters of a device, where there is one.
    fn device_counts(&self) -> DeviceCounts {
        DeviceCounts::default()
    }
}

/// Sizes of batches, and the number of workers in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BatchPolicy {
    /// Tokens of a batch at most.
    pub batch: usize,
    /// Tokens of a batch at least, before waiting work is shared out between idle workers.
    pub share: usize,
    /// Workers in bulk batches at the same time; queries find any that is idle.
    pub workers: usize,
}

/// Batches that a device computed, and that it failed to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DeviceCounts {
    pub batches: u64,
    pub fallbacks: u64,
}
