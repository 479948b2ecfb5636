//! Verifies that a device computes the CPU's vectors, once before the model is used there.
//!
//! A faulty driver, compiler or card would otherwise corrupt every stored vector.

use crate::bert::Bert;
use crate::config::ModelConfig;
use crate::device::{COSINE_MIN, SQUARE_SLACK, Vectors};
use crate::forward::Forward;
use lodestone_compute::cuda::DeviceError;

/// Lengths of the passages in tokens: the shortest, just beyond a tile of attention, the full
/// window.
const LENGTHS: [usize; 3] = [1, 70, usize::MAX];

/// Compares vectors computed by `run` on a device with those of `bert`. Repeats a few passages up
/// to `tokens` tokens, the batch size that the device will receive, so that the kernels of such
/// batches run too. With 0 tokens there is no check.
///
/// # Errors
/// Errors of `run`, or [`DeviceError::NoDevice`] if its vectors differ.
pub(crate) fn check(
    config: &ModelConfig,
    bert: &Bert,
    tokens: usize,
    run: &dyn Fn(&[&[u32]]) -> Vectors,
) -> Result<(), DeviceError> {
    if tokens == 0 {
        return Ok(());
    }
    let window = config.window().min(tokens);
    let passages: Vec<Vec<u32>> =
        (0..).zip(LENGTHS).map(|(salt, length)| ids(config, length.min(window), salt)).collect();
    let passages: Vec<&[u32]> = passages.iter().map(Vec::as_slice).collect();
    let wanted = bert.forward(&passages, &mut || {});
    let wanted = wanted.map_err(|error| none(&error.to_string()))?;
    let round: usize = passages.iter().map(|ids| ids.len()).sum();
    for rounds in [1, (tokens / round).max(1)] {
        let got = run(&passages.repeat(rounds))?;
        for (got, wanted) in got.iter().zip(wanted.iter().cycle()) {
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
            let cosine = dot(got, wanted);
            // False for NaN.
            let is_near = cosine >= COSINE_MIN && (dot(got, got) - 1.0).abs() < SQUARE_SLACK;
            if !is_near {
                return Err(none(&format!("its vectors differ from the CPU's (cosine {cosine})")));
            }
        }
    }
    Ok(())
}

/// Returns ids spread over the whole vocabulary.
fn ids(config: &ModelConfig, length: usize, salt: usize) -> Vec<u32> {
    let id = |at: usize| (at * 7919 + salt * 104_729) % config.vocabulary;
    (0..length).map(|at| id(at) as u32).collect()
}

fn none(reason: &str) -> DeviceError {
    DeviceError::NoDevice { reason: format!("not using the GPU for the model: {reason}") }
}
