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
//! Children: `weights`: what is copied; `forward`: a batch through the layers; `check`: whether the
//! device is right

mod check;
mod forward;
mod weights;

pub(super) use weights::HostWeights;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use crate::compute::cuda::DeviceError;
use crate::compute::cuda::encoder::{HEADS, HIDDEN_MAX, Packed, WIDTH_STEP};
use crate::compute::cuda::live::{Live, Supply};
use crate::compute::cuda::workspace::Scratch;
use crate::embed::EmbedError;
use crate::embed::bert::Bert;
use crate::embed::config::ModelConfig;
use crate::embed::device::forward::Track;
use crate::embed::device::weights::DeviceWeights;
use crate::embed::queue::{DeviceCounts, Forward, Pace};
use crate::types::limits;

/// What the cosine between a device's vector and the CPU's is at least.
pub const COSINE_MIN: f32 = 0.9999;

/// Bulk batches in flight: one computes while the next is packed and copied.
const IN_FLIGHT: usize = 2;
/// Less than this is not shared out between them: it would not fill the device.
const SHARE_TOKENS: usize = 4096;
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
    bert: Bert,
    config: ModelConfig,
    weights: HostWeights,
    device: EmbedDevice,
    /// Tokens of a batch on the CPU, and workers that may be in one.
    cpu: Pace,
    standing: Mutex<Standing>,
    is_up: AtomicBool,
    batches: AtomicU64,
    fallbacks: AtomicU64,
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

/// Why there is no kernel for a model, if there is none.
pub(super) fn unsupported(config: &ModelConfig) -> Option<String> {
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
    /// Copies `weights` to the device. `bert` is the same model on the CPU, `cpu` the pace while
    /// there is no device.
    pub fn new(
        bert: Bert,
        config: ModelConfig,
        weights: HostWeights,
        device: EmbedDevice,
        cpu: Pace,
    ) -> Self {
        let model = Self {
            bert,
            config,
            weights,
            device,
            cpu,
            standing: Mutex::default(),
            is_up: AtomicBool::new(true),
            batches: AtomicU64::new(0),
            fallbacks: AtomicU64::new(0),
        };
        match model.resident() {
            Ok(resident) => {
                let (device, bytes) =
                    (&resident.live.device().traits().name, model.weights.bytes());
                tracing::info!(device, bytes, "the embedding model is on the GPU");
            }
            Err(error) => model.fell_back(&error),
        }
        model
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
        let checked = self.check(&fresh);
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

    /// The vectors of a batch as the device computes them, one behind the other.
    fn run(
        &self,
        resident: &Resident,
        batch: &[&[u32]],
        pause: &mut dyn FnMut(),
    ) -> Result<Vec<f32>, DeviceError> {
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
        done.inspect_err(|error| self.give_up(&resident.live, error))
    }

    fn on_device(
        &self,
        batch: &[&[u32]],
        pause: &mut dyn FnMut(),
    ) -> Result<Vec<Vec<f32>>, DeviceError> {
        let resident = self.resident()?;
        checked(self.run(&resident, batch, pause)?, self.config.hidden)
    }

    /// One line when the device stops being used, not one a batch.
    fn fell_back(&self, error: &DeviceError) {
        self.fallbacks.fetch_add(1, Relaxed);
        if self.is_up.swap(false, Relaxed) {
            let reason = error.to_string();
            tracing::warn!(reason, "the GPU does not embed: the CPU does");
        }
    }
}

impl Forward for DeviceBert {
    fn forward(
        &self,
        batch: &[&[u32]],
        pause: &mut dyn FnMut(),
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        match self.on_device(batch, pause) {
            Ok(vectors) => {
                self.batches.fetch_add(1, Relaxed);
                if !self.is_up.swap(true, Relaxed) {
                    tracing::info!("the GPU embeds again");
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

    fn pace(&self, _: Pace) -> Pace {
        if !self.is_up.load(Relaxed) {
            return self.cpu;
        }
        let batch = self.device.limits.batch_tokens.max(1);
        Pace { batch, share: SHARE_TOKENS.min(batch), workers: IN_FLIGHT }
    }

    fn device_counts(&self) -> DeviceCounts {
        let (batches, fallbacks) = (self.batches.load(Relaxed), self.fallbacks.load(Relaxed));
        DeviceCounts { batches, fallbacks }
    }
}

/// The smallest track that has room for a batch, else any.
fn take_track(tracks: &mut Vec<Track>, packed: &Packed) -> Option<Track> {
    let room = |track: &Track| if track.has_room(packed) { track.tokens() } else { usize::MAX };
    let best = (0..tracks.len()).min_by_key(|at| room(&tracks[*at]))?;
    Some(tracks.swap_remove(best))
}

/// Passages in runs of at most `tokens` tokens, or of one passage.
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

/// Vectors of `hidden` numbers, unless one is not of length 1: numbers beyond f16 end so.
fn checked(vectors: Vec<f32>, hidden: usize) -> Result<Vec<Vec<f32>>, DeviceError> {
    let rows = vectors.chunks_exact(hidden);
    for row in rows.clone() {
        let square: f32 = row.iter().map(|x| x * x).sum();
        // What is not a number is not within.
        let is_unit = (square - 1.0).abs() < SQUARE_SLACK;
        if !is_unit {
            let reason = format!("a vector of squared length {square}");
            return Err(DeviceError::Refused { action: "embed", reason });
        }
    }
    Ok(rows.map(<[f32]>::to_vec).collect())
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

    #[test]
    fn vectors_of_another_length_are_refused() {
        assert_eq!(checked(vec![0.6, 0.8, 0.0, 1.0], 2).unwrap().len(), 2);
        for bad in [0.0, 0.9, f32::NAN, f32::INFINITY] {
            assert!(checked(vec![0.6, 0.8, 0.0, bad], 2).is_err(), "{bad}");
        }
    }
}
