//! Whether a device computes as the CPU does: looked at once, before the model is used there.
//!
//! A driver, a compiler or a card that is wrong would be wrong in every vector that is stored.

use crate::compute::cuda::DeviceError;
use crate::embed::device::{COSINE_MIN, DeviceBert, Resident, SQUARE_SLACK};
use crate::embed::queue::Forward;

/// Tokens of the passages: the shortest, one beyond a tile of attention, and the whole window.
const LENGTHS: [usize; 3] = [1, 70, usize::MAX];

impl DeviceBert {
    /// Compares vectors of the device with the CPU's: a few passages, over and over until they are
    /// a batch of the size that the device will get, so that the kernels of such batches run.
    ///
    /// # Errors
    /// What the device says, or [`DeviceError::NoDevice`] if it computes something else.
    pub(super) fn check(&self, resident: &Resident) -> Result<(), DeviceError> {
        let tokens = self.device.limits.check_tokens;
        if tokens == 0 {
            return Ok(());
        }
        let window = self.config.window().min(tokens);
        let passages: Vec<Vec<u32>> =
            (0..).zip(LENGTHS).map(|(salt, length)| self.ids(length.min(window), salt)).collect();
        let passages: Vec<&[u32]> = passages.iter().map(Vec::as_slice).collect();
        let wanted = self.bert.forward(&passages, &mut || {});
        let wanted = wanted.map_err(|error| none(&error.to_string()))?;
        let round: usize = passages.iter().map(|ids| ids.len()).sum();
        for rounds in [1, (tokens / round).max(1)] {
            let got = self.run(resident, &passages.repeat(rounds), &mut || {})?;
            let rows = got.chunks_exact(self.config.hidden);
            for (got, wanted) in rows.zip(wanted.iter().cycle()) {
                let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
                let cosine = dot(got, wanted);
                // What is not a number is not near.
                let is_near = cosine >= COSINE_MIN && (dot(got, got) - 1.0).abs() < SQUARE_SLACK;
                if !is_near {
                    return Err(none(&format!("its vectors differ from the CPU's, to {cosine}")));
                }
            }
        }
        Ok(())
    }

    /// Ids from all over the vocabulary.
    fn ids(&self, length: usize, salt: usize) -> Vec<u32> {
        let id = |at: usize| (at * 7919 + salt * 104_729) % self.config.vocabulary;
        (0..length).map(|at| id(at) as u32).collect()
    }
}

fn none(fault: &str) -> DeviceError {
    DeviceError::NoDevice { reason: format!("the GPU is not used for the model: {fault}") }
}
