//! The CPU fallback of a model on a device.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::EmbedError;
use crate::bert::Bert;
use crate::device::{Engine, Vectors};
use crate::forward::{BatchPolicy, DeviceCounts, Forward};
use lodestone_compute::cuda::DeviceError;

/// Bulk batches in flight: one computes while the next is packed and copied.
const IN_FLIGHT: usize = 2;
/// Waiting work below this size is not split between them, because it would not fill the device.
const SHARE_TOKENS: usize = 4096;

/// The model on the CPU, and counters of the device's batches.
#[derive(Debug)]
pub(crate) struct CpuFallback {
    bert: Arc<Bert>,
    /// Batch policy on the CPU: size of a batch, and workers computing at a time.
    cpu: BatchPolicy,
    is_up: AtomicBool,
    batches: AtomicU64,
    fallbacks: AtomicU64,
}

impl CpuFallback {
    /// Creates the fallback; `cpu` is the batch policy while the device is unavailable.
    pub fn new(bert: Arc<Bert>, cpu: BatchPolicy) -> Self {
        let (batches, fallbacks) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { bert, cpu, is_up: AtomicBool::new(true), batches, fallbacks }
    }

    /// Returns the model on the CPU.
    pub fn bert(&self) -> &Bert {
        &self.bert
    }

    /// Whether the device succeeded with its last batch.
    fn is_up(&self) -> bool {
        self.is_up.load(Relaxed)
    }

    /// Returns the device's vectors, or computes them on the CPU if the device failed.
    fn settle(
        &self,
        by_device: Vectors,
        batch: &[&[u32]],
        pause: &mut dyn FnMut(),
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        match by_device {
            Ok(vectors) => {
                self.batches.fetch_add(1, Relaxed);
                if !self.is_up.swap(true, Relaxed) {
                    tracing::info!("embedding on the GPU again");
                }
                return Ok(vectors);
            }
            Err(error) => self.fell_back(&error),
        }
        let mut vectors = Vec::with_capacity(batch.len());
        for part in parts(batch, self.cpu.batch) {
            vectors.extend(self.bert.forward(part, pause)?);
        }
        Ok(vectors)
    }

    /// Counts a fallback. Logs only when the device stops working, not for every batch.
    pub fn fell_back(&self, error: &DeviceError) {
        self.fallbacks.fetch_add(1, Relaxed);
        if self.is_up.swap(false, Relaxed) {
            let reason = error.to_string();
            tracing::warn!(reason, "embedding on the GPU failed: using the CPU");
        }
    }

    /// Returns the batch policy: of the device, with batches of up to `batch_tokens`, while it
    /// works.
    fn policy(&self, batch_tokens: usize) -> BatchPolicy {
        if !self.is_up() {
            return self.cpu;
        }
        let batch = batch_tokens.max(1);
        BatchPolicy { batch, share: SHARE_TOKENS.min(batch), workers: IN_FLIGHT }
    }

    /// Returns the counters of the device.
    fn counts(&self) -> DeviceCounts {
        let (batches, fallbacks) = (self.batches.load(Relaxed), self.fallbacks.load(Relaxed));
        DeviceCounts { batches, fallbacks }
    }
}

/// A model on a device, with a CPU fallback.
pub(crate) trait OnDevice: Send + Sync + fmt::Debug {
    /// The engine that computes while the device works.
    const ENGINE: Engine;

    /// Returns the CPU fallback.
    fn fallback(&self) -> &CpuFallback;

    /// Returns the maximum number of tokens of a batch.
    fn batch_tokens(&self) -> usize;

    /// Computes the vectors of a batch on the device. Calls `pause` from time to time.
    fn on_device(&self, batch: &[&[u32]], pause: &mut dyn FnMut()) -> Vectors;
}

impl<D: OnDevice> Forward for D {
    fn forward(
        &self,
        batch: &[&[u32]],
        pause: &mut dyn FnMut(),
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let by_device = self.on_device(batch, pause);
        self.fallback().settle(by_device, batch, pause)
    }

    fn policy(&self, _: BatchPolicy) -> BatchPolicy {
        self.fallback().policy(self.batch_tokens())
    }

    fn engine(&self) -> Engine {
        if self.fallback().is_up() { D::ENGINE } else { Engine::Cpu }
    }

    fn device_counts(&self) -> DeviceCounts {
        self.fallback().counts()
    }
}

/// Splits passages into runs of at most `tokens` tokens, or of one passage.
fn parts<'a, 'b>(batch: &'a [&'b [u32]], tokens: usize) -> Vec<&'a [&'b [u32]]> {
    let (mut parts, mut first, mut filled) = (Vec::new(), 0, 0);
    for (at, ids) in batch.iter().enumerate() {
        if at > first && filled + ids.len() > tokens {
            parts.push(&batch[first..at]);
            (first, filled) = (at, 0);
        }
        filled += ids.len();
    }
    parts.push(&batch[first..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_batch_is_cut_for_the_cpu() {
        let ids = [0; 10];
        let batch = [&ids[..4], &ids[..4], &ids[..3], &ids, &ids[..1]];
        let lengths: Vec<usize> = parts(&batch, 8).iter().map(|part| part.len()).collect();
        assert_eq!(lengths, [2, 1, 1, 1]);
        assert_eq!(parts(&batch, 1000).len(), 1);
    }
}
