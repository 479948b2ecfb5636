//! The forward pass on a GPU, with a CPU fallback.
//!
//! Out of scope: kernels and their launches (`compute::cuda::encoder`), and the queue in front of
//! the model. Embedding never depends on the device: if anything fails there, the CPU computes the
//! same batch, and a counter is incremented.
//!
//! ```text
//! forward --(device active?)-- no --------------------------------------> CPU, batch by batch
//!            '- yes -> weights: copied to the device once -- error -----> CPU for a while
//!                      check: passages compared to the CPU -- wrong ----> CPU from now on
//!                      stream: a queue of work with scratch memory of its size class
//!                      forward: launches every layer, copies the vectors back
//!                      checked: finite, of length 1 -- no --------------> CPU
//! ```
//!
//! Invariants
//! - Memory on the device holds f16, arithmetic is f32; vectors differ from the CPU's by a cosine
//!   of at least [`COSINE_MIN`]. Rounding to f16 has a relative error of up to 2^-11 for each
//!   component of a state. Over the six layers of all-MiniLM-L6-v2 that results in a cosine of 1 -
//!   1e-6 on the texts of the tests, so a model of two dozen layers stays within the limit.
//! - Memory is freed only after waiting for the work that uses it.
//! - The host also keeps the weights as f16, for a device that was lost and comes back.
//!
//! Supports BERT and RoBERTa without dense layers after pooling; `model` leaves all others to the
//! CPU.
//!
//! In builds with the feature `candle-cuda`, `candle` runs models on the GPU that have no kernels
//! here or whose vectors differ from the CPU's; [`with_fallback`] decides when the model is loaded.
//!
//! Children: `weights`: the weights on host and device; `forward`: the layers for one batch;
//! `check`: verification of the device; `choice`: kernels or candle; `fallback`: the CPU fallback

mod check;
mod choice;
mod fallback;
mod forward;
mod weights;

pub(super) use check::check;
pub(super) use choice::with_fallback;
pub(super) use fallback::{CpuFallback, OnDevice};

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::config::ModelConfig;
use crate::device::forward::EncoderStream;
use crate::device::weights::{DeviceWeights, HostWeights};
use lodestone_compute::cuda::DeviceError;
use lodestone_compute::cuda::cache::MEMORY_PAUSE_MILLIS;
use lodestone_compute::cuda::encoder::Packed;
use lodestone_compute::cuda::manager::{ActiveDevice, DeviceManager};
use lodestone_compute::cuda::workspace::Scratch;
use lodestone_types::{Timestamp, limits};

/// Minimum cosine between a device's vector and the CPU's.
pub const COSINE_MIN: f32 = 0.9999;

/// Maximum number of idle streams that are kept.
const STREAMS_MAX: usize = 4;
/// Maximum difference of a vector's squared length from 1.
const SQUARE_SLACK: f32 = 1e-3;

/// Limits of the model's use of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceLimits {
    /// Maximum tokens of a bulk batch. A query waits for the batches in progress: an estimated 2 ms
    /// per batch on an H200, at the default size and with all-MiniLM-L6-v2.
    pub batch_tokens: usize,
    /// Tokens of the batch that a new device must compute correctly before it is used; 0 disables
    /// the check.
    pub check_tokens: usize,
    /// Allocation policy of scratch memory.
    pub scratch: Scratch,
}

impl Default for DeviceLimits {
    fn default() -> Self {
        let batch_tokens = limits::EMBED_DEVICE_BATCH_TOKENS;
        Self { batch_tokens, check_tokens: batch_tokens, scratch: Scratch::default() }
    }
}

/// Vectors that a device computes for a batch, one per passage.
pub(super) type Vectors = Result<Vec<Vec<f32>>, DeviceError>;

/// Processor and implementation that compute embeddings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// The CPU.
    Cpu,
    /// A GPU, with the project's own kernels.
    Kernels,
    /// A GPU, with candle.
    Candle,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cpu => "the CPU",
            Self::Kernels => "the GPU with our own kernels",
            Self::Candle => "the GPU with candle",
        })
    }
}

/// A device for the model.
#[derive(Debug, Clone)]
pub struct EmbedDevice {
    /// Opens the device, and reopens it after it was lost.
    pub manager: Arc<DeviceManager>,
    /// Limits of its use.
    pub limits: DeviceLimits,
}

/// A model on a device, with the CPU as fallback.
#[derive(Debug)]
pub(super) struct DeviceBert {
    fallback: CpuFallback,
    config: ModelConfig,
    weights: HostWeights,
    device: EmbedDevice,
    state: Mutex<DeviceState>,
}

/// The model's weights and streams on the active device.
#[derive(Debug)]
struct Resident {
    active: Arc<ActiveDevice>,
    weights: DeviceWeights,
    streams: Mutex<Vec<EncoderStream>>,
}

/// State of the model on the device.
#[derive(Debug, Default)]
enum DeviceState {
    #[default]
    Absent,
    Ready(Arc<Resident>),
    /// Not copied to this device again before the given time, because memory ran out or another
    /// error occurred.
    Paused(Arc<ActiveDevice>, DeviceError, Timestamp),
    /// The check found that this device computes wrong vectors.
    Refused(Arc<ActiveDevice>, DeviceError),
}

impl DeviceBert {
    /// Creates the model and tries to copy the weights to the device; on an error the CPU computes.
    fn new(
        fallback: CpuFallback,
        config: ModelConfig,
        weights: HostWeights,
        device: EmbedDevice,
    ) -> Self {
        let model = Self { fallback, config, weights, device, state: Mutex::default() };
        match model.resident() {
            Ok(resident) => {
                let (device, bytes) =
                    (&resident.active.device().traits().name, model.weights.bytes());
                tracing::info!(device, bytes, "loaded the embedding model on the GPU");
            }
            Err(error) => model.fallback.fell_back(&error),
        }
        model
    }

    /// Returns the error of a failed check, if the check failed.
    fn refusal(&self) -> Option<DeviceError> {
        match &*self.state.lock() {
            DeviceState::Refused(_, reason) => Some(reason.clone()),
            DeviceState::Ready(_) | DeviceState::Absent | DeviceState::Paused(..) => None,
        }
    }

    /// Returns the model on the active device. Copies and checks it if necessary, one caller at a
    /// time.
    fn resident(&self) -> Result<Arc<Resident>, DeviceError> {
        let active = self.device.manager.active()?;
        let mut state = self.state.lock();
        let now = self.device.manager.now();
        match &*state {
            DeviceState::Ready(resident) if Arc::ptr_eq(&resident.active, &active) => {
                return Ok(Arc::clone(resident));
            }
            DeviceState::Refused(refused, reason) if Arc::ptr_eq(refused, &active) => {
                return Err(reason.clone());
            }
            DeviceState::Paused(paused, reason, until)
                if Arc::ptr_eq(paused, &active) && now < *until =>
            {
                return Err(reason.clone());
            }
            _ => *state = DeviceState::Absent,
        }
        let brought = self.bring(&active);
        *state = match &brought {
            Ok(resident) => DeviceState::Ready(Arc::clone(resident)),
            Err(error @ DeviceError::NoDevice { .. }) => {
                DeviceState::Refused(active, error.clone())
            }
            Err(error) => {
                let until = self.device.manager.now().plus_millis(MEMORY_PAUSE_MILLIS);
                DeviceState::Paused(active, error.clone(), until)
            }
        };
        brought
    }

    /// Copies the model to a device and checks the vectors that it computes there.
    fn bring(&self, active: &Arc<ActiveDevice>) -> Result<Arc<Resident>, DeviceError> {
        let uploaded = self.weights.upload(active.device());
        let weights = uploaded.inspect_err(|error| self.device.manager.report(active, error))?;
        let (active, streams) = (Arc::clone(active), Mutex::default());
        let fresh = Arc::new(Resident { active, weights, streams });
        let run = |batch: &[&[u32]]| self.run(&fresh, batch, &mut || {});
        check(&self.config, self.fallback.bert(), self.device.limits.check_tokens, &run)?;
        Ok(fresh)
    }

    /// Computes the vectors of a batch on the device.
    fn run(&self, resident: &Resident, batch: &[&[u32]], pause: &mut dyn FnMut()) -> Vectors {
        let packed = Packed::new(batch, self.config.vocabulary, self.config.window())?;
        let device = resident.active.device();
        let kept = take_stream(&mut resident.streams.lock(), &packed);
        let stream = match kept {
            Some(stream) => Ok(stream),
            None => EncoderStream::new(device, self.device.limits.scratch),
        };
        let done = stream.and_then(|mut stream| {
            let vectors = stream.run(device, &self.config, &resident.weights, &packed, pause)?;
            let mut streams = resident.streams.lock();
            if streams.len() < STREAMS_MAX {
                streams.push(stream);
            }
            Ok(vectors)
        });
        let vectors =
            done.inspect_err(|error| self.device.manager.report(&resident.active, error))?;
        Ok(vectors.chunks_exact(self.config.hidden).map(<[f32]>::to_vec).collect())
    }
}

impl OnDevice for DeviceBert {
    const ENGINE: Engine = Engine::Kernels;

    fn fallback(&self) -> &CpuFallback {
        &self.fallback
    }

    fn batch_tokens(&self) -> usize {
        self.device.limits.batch_tokens
    }

    fn on_device(&self, batch: &[&[u32]], pause: &mut dyn FnMut()) -> Vectors {
        let resident = self.resident()?;
        checked(self.run(&resident, batch, pause)?)
    }
}

/// Takes the smallest stream whose memory fits the batch, otherwise any.
fn take_stream(streams: &mut Vec<EncoderStream>, packed: &Packed) -> Option<EncoderStream> {
    let size =
        |stream: &EncoderStream| if stream.fits(packed) { stream.tokens() } else { usize::MAX };
    let best = (0..streams.len()).min_by_key(|at| size(&streams[*at]))?;
    Some(streams.swap_remove(best))
}

/// Returns the vectors, or an error if one is not of length 1, which happens on f16 overflow.
pub(super) fn checked(vectors: Vec<Vec<f32>>) -> Vectors {
    for vector in &vectors {
        let square: f32 = vector.iter().map(|x| x * x).sum();
        // False for NaN.
        let is_unit = (square - 1.0).abs() < SQUARE_SLACK;
        if !is_unit {
            let reason = format!("a vector of squared length {square}");
            return Err(DeviceError::Refused { action: "embed", reason });
        }
    }
    Ok(vectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_another_length_are_refused() {
        assert_eq!(checked(vec![vec![0.6, 0.8], vec![0.0, 1.0]]).unwrap().len(), 2);
        for bad in [0.0, 0.9, f32::NAN, f32::INFINITY] {
            assert!(checked(vec![vec![0.6, 0.8], vec![0.0, bad]]).is_err(), "{bad}");
        }
    }
}
