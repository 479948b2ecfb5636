//! The model on a GPU: token ids of a batch to vectors, with the CPU's model behind it.
//!
//! Not here: kernels and their launches (`compute::cuda::encoder`), the queue before the model.
//! Nothing here is needed to embed a text: whatever goes wrong on the device, the CPU computes the
//! same batch, and a counter rises.
//!
//! ```text
//! forward --(device there?)-- no -------------------------------------> CPU, batch by batch
//!            '- yes -> weights: copied to the device once
//!                      check: some passages beside the CPU -- wrong ----> CPU from now on
//!                      track: a queue of work with scratch memory of its size class
//!                      forward: every layer launched, vectors copied back
//!                      checked: finite, of length 1 -- no ---------------> CPU
//! ```
//!
//! Invariants
//! - f16 in the device's memory and f32 between; vectors differ from the CPU's by a cosine of at
//!   least [`COSINE_MIN`]. Rounding to f16 puts up to 2^-11 of a number on each number of a state;
//!   what that comes to over the six layers of all-MiniLM-L6-v2 is a cosine of 1 - 1e-6 on the
//!   texts of the tests, so there is room for a model of two dozen layers.
//! - Memory is freed only after the work that uses it was waited for.
//! - The weights stay in the host's memory as f16 too, for a device that was lost and came back.
//!
//! Where this computes something else than the CPU, or has no kernels for a model, `candle` may
//! embed on the GPU in builds that have it; [`beside`] decides at the start.
//!
//! Children: `weights`: what is copied; `forward`: a batch through the layers; `check`: whether the
//! device is right; `behind`: the CPU's model

mod behind;
mod check;
mod forward;
mod weights;

pub(super) use behind::{Behind, OnDevice};
pub(super) use check::check;

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::bert::Bert;
use crate::candle::ByCandle;
use crate::config::ModelConfig;
use crate::device::forward::Track;
use crate::device::weights::{DeviceWeights, HostWeights};
use crate::queue::{Forward, Pace};
use crate::weights::Weights;
use lodestone_compute::cuda::DeviceError;
use lodestone_compute::cuda::encoder::{HEADS, HIDDEN_MAX, Packed, WIDTH_STEP};
use lodestone_compute::cuda::live::{Live, Supply};
use lodestone_compute::cuda::workspace::Scratch;
use lodestone_types::limits;

/// What the cosine between a device's vector and the CPU's is at least.
pub const COSINE_MIN: f32 = 0.9999;

/// Tracks that are kept.
const TRACKS_MAX: usize = 4;
/// How far the square of a vector's length may be from 1.
const SQUARE_SLACK: f32 = 1e-3;

/// How the model uses a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceLimits {
    /// Tokens of a bulk batch. A query waits for what is under way: some 2 ms of an H200 a batch,
    /// by estimate, at the default and with all-MiniLM-L6-v2.
    pub batch_tokens: usize,
    /// Tokens of the batch that a fresh device must get right before it is used; 0 for none.
    pub check_tokens: usize,
    /// How large scratch memory is.
    pub scratch: Scratch,
}

impl Default for DeviceLimits {
    fn default() -> Self {
        let batch_tokens = limits::EMBED_DEVICE_BATCH_TOKENS;
        Self { batch_tokens, check_tokens: batch_tokens, scratch: Scratch::default() }
    }
}

/// What a device makes of a batch: a vector for each passage.
pub(super) type Vectors = Result<Vec<Vec<f32>>, DeviceError>;

/// What embeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// The CPU.
    Cpu,
    /// A GPU, by the project's own kernels.
    Kernels,
    /// A GPU, by candle.
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
    /// Where the device comes from, and comes back from after it was lost.
    pub supply: Arc<Supply>,
    /// How it is used.
    pub limits: DeviceLimits,
}

/// The model on a device, over the one on the CPU.
#[derive(Debug)]
pub(super) struct DeviceBert {
    behind: Behind,
    config: ModelConfig,
    weights: HostWeights,
    device: EmbedDevice,
    standing: Mutex<Standing>,
}

/// The model on a device that lives.
#[derive(Debug)]
struct Resident {
    live: Arc<Live>,
    weights: DeviceWeights,
    tracks: Mutex<Vec<Track>>,
}

/// Where the model stands.
#[derive(Debug, Default)]
enum Standing {
    #[default]
    Nowhere,
    Ready(Arc<Resident>),
    /// This device computes something else.
    Refused(Arc<Live>, DeviceError),
}

/// The model on `device`, with `bert` behind it: by our own kernels where there are some for the
/// model and they are right, otherwise by candle where this build has it for GPUs and it is right.
/// `None` where there is nothing on the device to ask for.
pub(super) fn beside(
    config: &ModelConfig,
    bert: &Arc<Bert>,
    weights: &Weights,
    device: EmbedDevice,
    cpu: Pace,
) -> Option<Arc<dyn Forward>> {
    let behind = || Behind::new(Arc::clone(bert), cpu);
    let host = match unsupported(config) {
        None => HostWeights::new(config, weights).map_err(|error| error.to_string()),
        Some(reason) => Err(reason),
    };
    let own = host.map(|host| DeviceBert::new(behind(), config.clone(), host, device.clone()));
    let reason = match &own {
        Ok(own) => own.refusal().map(|error| error.to_string()),
        Err(reason) => Some(reason.clone()),
    };
    if let Some(reason) = reason {
        match ByCandle::open(config, behind(), weights, device) {
            Ok(candle) => {
                tracing::info!(reason, "candle embeds on the GPU, not our kernels");
                return Some(Arc::new(candle));
            }
            Err(candle) => {
                tracing::warn!(
                    reason,
                    candle,
                    "no kernels and no candle on the GPU: the CPU embeds"
                );
            }
        }
    }
    // Kernels that are wrong on this device may be right on the one that comes after it.
    own.ok().map(|own| Arc::new(own) as Arc<dyn Forward>)
}

/// Why there is no kernel for a model, if there is none.
fn unsupported(config: &ModelConfig) -> Option<String> {
    let ModelConfig { hidden, intermediate, .. } = *config;
    if !HEADS.contains(&config.head()) {
        return Some(format!("heads of {} numbers, not 32 or 64", config.head()));
    }
    if hidden > HIDDEN_MAX {
        return Some(format!("states of {hidden} numbers, more than {HIDDEN_MAX}"));
    }
    let is_whole = intermediate.is_multiple_of(WIDTH_STEP);
    (!is_whole).then(|| format!("{intermediate} intermediate numbers, not a multiple of 8"))
}

impl DeviceBert {
    /// Copies `weights` to the device.
    fn new(behind: Behind, config: ModelConfig, weights: HostWeights, device: EmbedDevice) -> Self {
        let model = Self { behind, config, weights, device, standing: Mutex::default() };
        match model.resident() {
            Ok(resident) => {
                let (device, bytes) =
                    (&resident.live.device().traits().name, model.weights.bytes());
                tracing::info!(device, bytes, "the embedding model is on the GPU");
            }
            Err(error) => model.behind.fell_back(&error),
        }
        model
    }

    /// What the device computed otherwise than the CPU, if it did.
    fn refusal(&self) -> Option<DeviceError> {
        match &*self.standing.lock() {
            Standing::Refused(_, reason) => Some(reason.clone()),
            Standing::Ready(_) | Standing::Nowhere => None,
        }
    }

    /// The model on the device as it is now; copied there and checked if need be, by one caller.
    fn resident(&self) -> Result<Arc<Resident>, DeviceError> {
        let live = self.device.supply.live()?;
        let mut standing = self.standing.lock();
        match &*standing {
            Standing::Ready(resident) if Arc::ptr_eq(&resident.live, &live) => {
                return Ok(Arc::clone(resident));
            }
            Standing::Refused(refused, reason) if Arc::ptr_eq(refused, &live) => {
                return Err(reason.clone());
            }
            Standing::Ready(_) | Standing::Refused(..) | Standing::Nowhere => {}
        }
        *standing = Standing::Nowhere;
        let uploaded = self.weights.upload(live.device());
        let weights = uploaded.inspect_err(|error| self.give_up(&live, error))?;
        let fresh = Arc::new(Resident { live, weights, tracks: Mutex::default() });
        let run = |batch: &[&[u32]]| self.run(&fresh, batch, &mut || {});
        let tokens = self.device.limits.check_tokens;
        let checked = check(&self.config, self.behind.bert(), tokens, &run);
        *standing = match &checked {
            Ok(()) => Standing::Ready(Arc::clone(&fresh)),
            // These may be otherwise for the next batch.
            Err(DeviceError::Lost { .. } | DeviceError::OutOfMemory { .. }) => Standing::Nowhere,
            Err(error) => Standing::Refused(Arc::clone(&fresh.live), error.clone()),
        };
        checked.map(|()| fresh)
    }

    fn give_up(&self, live: &Arc<Live>, error: &DeviceError) {
        if matches!(error, DeviceError::Lost { .. }) {
            self.device.supply.lost(live, error);
        }
    }

    /// The vectors of a batch as the device computes them.
    fn run(&self, resident: &Resident, batch: &[&[u32]], pause: &mut dyn FnMut()) -> Vectors {
        let packed = Packed::new(batch, self.config.vocabulary, self.config.window())?;
        let device = resident.live.device();
        let kept = take_track(&mut resident.tracks.lock(), &packed);
        let track = match kept {
            Some(track) => Ok(track),
            None => Track::new(device, self.device.limits.scratch),
        };
        let done = track.and_then(|mut track| {
            let vectors = track.run(device, &self.config, &resident.weights, &packed, pause)?;
            let mut tracks = resident.tracks.lock();
            if tracks.len() < TRACKS_MAX {
                tracks.push(track);
            }
            Ok(vectors)
        });
        let vectors = done.inspect_err(|error| self.give_up(&resident.live, error))?;
        Ok(vectors.chunks_exact(self.config.hidden).map(<[f32]>::to_vec).collect())
    }
}

impl OnDevice for DeviceBert {
    const ENGINE: Engine = Engine::Kernels;

    fn behind(&self) -> &Behind {
        &self.behind
    }

    fn batch_tokens(&self) -> usize {
        self.device.limits.batch_tokens
    }

    fn on_device(&self, batch: &[&[u32]], pause: &mut dyn FnMut()) -> Vectors {
        let resident = self.resident()?;
        checked(self.run(&resident, batch, pause)?)
    }
}

/// The smallest track that has room for a batch, else any.
fn take_track(tracks: &mut Vec<Track>, packed: &Packed) -> Option<Track> {
    let room = |track: &Track| if track.has_room(packed) { track.tokens() } else { usize::MAX };
    let best = (0..tracks.len()).min_by_key(|at| room(&tracks[*at]))?;
    Some(tracks.swap_remove(best))
}

/// The vectors, unless one is not of length 1: numbers beyond f16 end so.
pub(super) fn checked(vectors: Vec<Vec<f32>>) -> Vectors {
    for vector in &vectors {
        let square: f32 = vector.iter().map(|x| x * x).sum();
        // What is not a number is not within.
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
