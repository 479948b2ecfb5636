//! The model by candle's own layers: on a GPU where our own kernels do not serve, and beside the
//! other forward passes as an independent computation of the same.
//!
//! Not here: our own forward passes, on the CPU (`bert`, `int16`) and on a GPU (`device`). They pad
//! nothing, and put into one kernel what is several here.
//!
//! ```text
//! batch --(by length)--> groups of passages, padded: at most so many tokens each
//!            '-> bert: words + places -> layers -> masked mean -> vectors of length 1
//! ```
//! A build with the feature `candle-cuda` has candle for GPUs. There `device` asks for it where
//! there are no kernels for a model (a head of 48 numbers, say), where its weights are beyond f16,
//! and where our kernels computed something else than the CPU. It passes the same check before it
//! is used. candle is linked with CUDA's libraries then, and such a program does not start without
//! them. In any other build there is no GPU here, and the CPU embeds.
//!
//! Invariants
//! - f32 throughout. What a group holds is padded to its longest passage; padding has no weight in
//!   attention nor in the mean.
//! - candle lives in the context that our driver room holds. Where that was lost, so was candle's
//!   memory: it is not touched again, and the CPU embeds for as long as the server runs.
//!
//! Children: `bert`: the forward pass

mod bert;

use std::sync::Arc;

use candle_core::{Device, utils};

use crate::candle::bert::PaddedBert;
use crate::config::ModelConfig;
use crate::device::{Behind, DeviceLimits, EmbedDevice, Engine, OnDevice, Vectors, check, checked};
use crate::weights::Weights;
use lodestone_compute::cuda::DeviceError;
use lodestone_compute::cuda::live::Live;

/// The model on a GPU by candle, with the CPU's behind it.
#[derive(Debug)]
pub(super) struct ByCandle {
    bert: PaddedBert,
    behind: Behind,
    device: EmbedDevice,
    /// As long as this is the device that there is, candle's memory is there.
    live: Arc<Live>,
}

impl ByCandle {
    /// The model on `device`, once it was found to embed as the CPU does.
    ///
    /// # Errors
    /// Why candle does not embed.
    pub fn open(
        config: &ModelConfig,
        behind: Behind,
        weights: &Weights,
        device: EmbedDevice,
    ) -> Result<Self, String> {
        if !utils::cuda_is_available() {
            return Err("this build has candle without GPUs".to_owned());
        }
        let live = device.supply.live().map_err(|error| error.to_string())?;
        let card = Device::new_cuda(live.device().traits().ordinal);
        let card = card.map_err(|error| error.to_string())?;
        let bert = PaddedBert::new(config, weights, card).map_err(|error| error.to_string())?;
        let DeviceLimits { batch_tokens, check_tokens, .. } = device.limits;
        let run = |batch: &[&[u32]]| run(&bert, batch, batch_tokens, &mut || {});
        let checked = check(config, behind.bert(), check_tokens, &run);
        checked.map_err(|error| error.to_string())?;
        Ok(Self { bert, behind, device, live })
    }
}

impl OnDevice for ByCandle {
    const ENGINE: Engine = Engine::Candle;

    fn behind(&self) -> &Behind {
        &self.behind
    }

    fn batch_tokens(&self) -> usize {
        self.device.limits.batch_tokens
    }

    fn on_device(&self, batch: &[&[u32]], pause: &mut dyn FnMut()) -> Vectors {
        if !Arc::ptr_eq(&self.device.supply.live()?, &self.live) {
            return Err(DeviceError::Lost { reason: "candle's memory is gone".to_owned() });
        }
        run(&self.bert, batch, self.device.limits.batch_tokens, pause).and_then(checked)
    }
}

/// The vectors of a batch, group by group. Calls `pause` after each.
fn run(bert: &PaddedBert, batch: &[&[u32]], tokens: usize, pause: &mut dyn FnMut()) -> Vectors {
    let mut vectors = vec![Vec::new(); batch.len()];
    for group in groups(batch, tokens) {
        let passages: Vec<&[u32]> = group.iter().map(|at| batch[*at]).collect();
        let found = bert.forward(&passages).map_err(|error| {
            let reason = error.to_string();
            DeviceError::Refused { action: "embed", reason }
        })?;
        group.into_iter().zip(found).for_each(|(at, vector)| vectors[at] = vector);
        pause();
    }
    Ok(vectors)
}

/// Passages by length, the longest first, in groups that padded to their longest have at most
/// `tokens` tokens, or one passage.
fn groups(batch: &[&[u32]], tokens: usize) -> Vec<Vec<usize>> {
    let mut by_length: Vec<usize> = (0..batch.len()).collect();
    by_length.sort_by_key(|at| std::cmp::Reverse(batch[*at].len()));
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for at in by_length {
        match groups.last_mut() {
            Some(group) if (group.len() + 1) * batch[group[0]].len() <= tokens => group.push(at),
            _ => groups.push(vec![at]),
        }
    }
    groups
}

#[cfg(test)]
mod tests;
