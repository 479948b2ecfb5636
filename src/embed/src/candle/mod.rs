//! The model built from candle's own layers: used on a GPU where our own kernels do not apply, and
//! in tests as an independent implementation of the other forward passes.
//!
//! Out of scope: our own forward passes, on the CPU (`bert`, `int16`) and on a GPU (`device`).
//! Unlike candle, they need no padding and fuse several operations into one kernel.
//!
//! ```text
//! batch --(by length)--> groups of passages, padded, of a bounded number of tokens
//!            '-> bert: words + positions -> layers -> masked mean -> unit vectors
//! ```
//! This module is compiled only for tests and with the feature `candle-cuda`. With the feature,
//! `device` uses candle on the GPU if there are no kernels for a model (such as one with heads of
//! 48 components), if its weights exceed the range of f16, or if our kernels failed the check.
//! candle must pass the same check. The program then links to CUDA's libraries and does not start
//! without them.
//!
//! Invariants
//! - All arithmetic is f32. The passages of a group are padded to its longest passage; padding has
//!   no weight in attention or in the mean.
//! - candle uses the context that `compute::cuda::driver` holds. If that context is lost, so is
//!   candle's memory: it is never touched again, and the CPU computes until the server restarts.
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

/// Computes the vectors of a batch, group by group. Calls `pause` after each group.
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

/// Sorts passages by length, longest first, into groups that have at most `tokens` tokens after
/// padding, or a single passage.
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
