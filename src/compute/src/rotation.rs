//! A random rotation that is cheap to apply: random signs and Hadamard transforms.
//!
//! 1-bit codes are precise if the components of a vector are of similar size, which a random
//! rotation achieves for any vector. A dense rotation costs d^2 products per vector; this one costs
//! about 4 d log d additions:
//!
//! ```text
//! four rounds of: random signs -> Hadamard transform of a power of two of the components,
//!                 alternately the first and the last -> sums and differences of the two halves
//! ```
//!
//! Each step is orthogonal, so lengths and dot products are preserved. If the width is a power of
//! two, the last step is skipped. Sources: fast Johnson-Lindenstrauss transforms (Ailon and
//! Chazelle 2009); butterflies between the halves as in Kac's walk.

use std::f32::consts::FRAC_1_SQRT_2;

/// The width of rotated vectors is a multiple of this.
const WIDTH_MULTIPLE: usize = 64;
/// Rounds: after two, a single large component still shows in the result; four mix it in.
const ROUNDS: usize = 4;

/// Returns the number of components of a rotated vector of `dimension` components.
pub fn rotated_width(dimension: usize) -> usize {
    dimension.next_multiple_of(WIDTH_MULTIPLE)
}

/// Seed of the random signs of every rotation. Codes depend on the rotation that made them, so
/// another seed requires another section kind.
const SEED: u64 = 0x6c6f_6465_7374_6f6e;

/// The rotation for one dimension, equal in all segments so that codes survive merges.
#[derive(Debug, Clone, PartialEq)]
pub struct Rotation {
    dimension: usize,
    /// Signs of each round, one per component.
    signs: Vec<f32>,
}

impl Rotation {
    /// Creates the rotation for `dimension` components.
    pub fn new(dimension: usize) -> Self {
        let width = rotated_width(dimension);
        let mut state = SEED;
        let signs = (0..width * ROUNDS)
            .map(|_| if splitmix(&mut state) >> 63 == 0 { 1.0 } else { -1.0 })
            .collect();
        Self { dimension, signs }
    }

    /// Returns the number of components of a rotated vector.
    pub fn width(&self) -> usize {
        rotated_width(self.dimension)
    }

    /// Returns the number of components of a vector before rotation.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Returns the signs of each round, one per component.
    pub(super) fn signs(&self) -> &[f32] {
        &self.signs
    }

    /// Rotates `vector` (`dimension` values) into `rotated` (`width` values).
    ///
    /// # Panics
    /// If a slice has another length.
    pub fn apply(&self, vector: &[f32], rotated: &mut [f32]) {
        assert_eq!((vector.len(), rotated.len()), (self.dimension, self.width()));
        rotated[..vector.len()].copy_from_slice(vector);
        rotated[vector.len()..].fill(0.0);
        let signs = &self.signs;
        // Dispatched to the widest registers of the machine.
        pulp::Arch::new().dispatch(|| rotate(signs, rotated));
    }
}

#[inline(always)]
fn rotate(signs: &[f32], rotated: &mut [f32]) {
    let width = rotated.len();
    let power = 1 << width.ilog2();
    let scale = 1.0 / (power as f32).sqrt();
    for (round, signs) in signs.chunks_exact(width).enumerate() {
        rotated.iter_mut().zip(signs).for_each(|(value, sign)| *value *= sign);
        let first = if round % 2 == 0 { 0 } else { width - power };
        let part = &mut rotated[first..first + power];
        hadamard(part);
        part.iter_mut().for_each(|value| *value *= scale);
        if power < width {
            butterflies(rotated, width / 2);
            rotated.iter_mut().for_each(|value| *value *= FRAC_1_SQRT_2);
        }
    }
}

/// Values per register: butterflies between neighbours this close stay within a register.
const NEAR: usize = 16;
const _: () = assert!(WIDTH_MULTIPLE.is_multiple_of(NEAR));

/// Computes the unnormalised Hadamard transform of a power of two of values, in place.
#[inline(always)]
fn hadamard(values: &mut [f32]) {
    for near in values.as_chunks_mut().0 {
        *near = near_butterflies::<1>(near);
        *near = near_butterflies::<2>(near);
        *near = near_butterflies::<4>(near);
        *near = near_butterflies::<8>(near);
    }
    let mut half = NEAR;
    while half < values.len() {
        butterflies(values, half);
        half *= 2;
    }
}

/// Computes [`butterflies`] within one register.
#[inline(always)]
fn near_butterflies<const HALF: usize>(values: &[f32; NEAR]) -> [f32; NEAR] {
    std::array::from_fn(|at| {
        let own = if at & HALF == 0 { values[at] } else { -values[at] };
        values[at ^ HALF] + own
    })
}

/// Replaces neighbouring runs of `half` values by their sums and differences.
#[inline(always)]
fn butterflies(values: &mut [f32], half: usize) {
    for pair in values.chunks_exact_mut(2 * half) {
        let (low, high) = pair.split_at_mut(half);
        for (a, b) in low.iter_mut().zip(high) {
            (*a, *b) = (*a + *b, *a - *b);
        }
    }
}

/// Returns the next number of a SplitMix64 sequence (Steele, Lea and Flood 2014).
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rotated(vector: &[f32]) -> Vec<f32> {
        let rotation = Rotation::new(vector.len());
        let mut rotated = vec![9.0; rotation.width()];
        rotation.apply(vector, &mut rotated);
        rotated
    }

    fn dot(a: &[f32], b: &[f32]) -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    }

    #[test]
    fn lengths_and_angles_stay() {
        for dimension in [1_usize, 2, 63, 64, 65, 100, 384, 768, 1000, 1536, 3024] {
            let a: Vec<f32> = (0..dimension).map(|i| (i as f32 * 0.7).sin() + 0.2).collect();
            let b: Vec<f32> = (0..dimension).map(|i| (i as f32 * 1.3).cos()).collect();
            let (ra, rb) = (rotated(&a), rotated(&b));
            assert_eq!(ra.len(), dimension.next_multiple_of(64));
            let size = (dot(&a, &a) * dot(&b, &b)).sqrt();
            assert!((dot(&a, &b) - dot(&ra, &rb)).abs() < 1e-5 * size, "{dimension}");
            assert!((dot(&a, &a) - dot(&ra, &ra)).abs() < 1e-5 * dot(&a, &a), "{dimension}");
        }
    }

    /// One large component must not dominate: after rotation no component exceeds a few times its
    /// share, whatever the width.
    #[test]
    fn a_single_component_spreads_over_all() {
        for dimension in [64, 384, 768, 1000] {
            for place in [0, dimension / 3, dimension - 1] {
                let mut vector = vec![0.0; dimension];
                vector[place] = 1.0;
                let rotated = rotated(&vector);
                let share = 1.0 / (rotated.len() as f32).sqrt();
                let largest = rotated.iter().fold(0.0_f32, |a, b| a.max(b.abs()));
                assert!(largest < 6.0 * share, "{dimension} {place}: {largest} for {share}");
            }
        }
    }
}
