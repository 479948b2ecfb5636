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
//! This module is compiled for tests and with the feature `candle-cuda` alone. With the feature,
//! `device` uses candle on the GPU where there are no kernels for a model (a head of 48 numbers,
//! say), where its weights are beyond f16, and where our kernels computed something else than the
//! CPU. It passes the same check before it is used. candle is linked with CUDA's libraries then,
//! and such a program does not start without them.
//!
//! Invariants
//! - f32 throughout. The passages of a group are padded to its longest passage; padding has no
//!   weight in
//!   attention nor in the mean.
//! - candle lives in the context that `compute::cuda::driver` holds. Where that was lost, so was
//!   candle's memory: it is not touched again, and the CPU embeds for as long as the server runs.
//!
//! Children: `bert`: the forward pass; `gpu`: the model on a GPU

mod bert;
#[cfg(feature = "candle-cuda")]
mod gpu;

#[cfg(feature = "candle-cuda")]
pub(super) use gpu::CandleModel;

use crate::candle::bert::PaddedBert;
use crate::device::Vectors;
use lodestone_compute::cuda::DeviceError;

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
