//! Matrix products with constant weights, which dominate the model's run time.
//!
//! The matrix library used by candle repacks its operands on every call and uses few of the
//! multipliers at these shapes. Since weights never change, they are packed once, when the model is
//! loaded, into panels as wide as the registers of the inner loop:
//!
//! ```text
//! weights (inputs, outputs)  ->  panel 0 | panel 1 | ...     each (inputs, panel width),
//!                                                            the last one padded with zeros
//! states  (tokens, inputs)   ->  strips of STRIP tokens, each (inputs, STRIP), block by block
//! ```
//!
//! The inner loop holds STRIP x panel width sums in registers and makes one pass over the inputs
//! (Goto and van de Geijn 2008). A sum always runs over the inputs in order, whatever the number of
//! tokens, so the result for a token does not depend on its batch.

use candle_core::{CpuStorage, CustomOp1, Layout, Shape};
use pulp::{Arch, Simd, WithSimd};

/// Tokens whose sums are held in registers: with four registers of weights, 24 of the 32 registers
/// of AVX-512; with two, 12 of the 16 of AVX2.
const STRIP: usize = 6;
/// Tokens packed at a time: at 1,536 inputs they take 590 kB, which fits a level-2 cache.
const BLOCK: usize = 96;

/// The weights of a dense layer, packed for the vector width of this machine.
#[derive(Debug)]
pub(super) struct Packed {
    inputs: usize,
    outputs: usize,
    panel_width: usize,
    panels: Vec<f32>,
}

impl Packed {
    /// Packs `weights`, (inputs, outputs) in row-major order.
    pub fn new(weights: &[f32], inputs: usize, outputs: usize) -> Self {
        assert_eq!(weights.len(), inputs * outputs, "the caller has checked the shape");
        let panel_width = Arch::new().dispatch(PanelWidth);
        let mut panels = vec![0.0; outputs.div_ceil(panel_width) * inputs * panel_width];
        for (number, panel) in panels.chunks_exact_mut(inputs * panel_width).enumerate() {
            let first = number * panel_width;
            let width = panel_width.min(outputs - first);
            for (row, source) in panel.chunks_exact_mut(panel_width).zip(weights.chunks(outputs)) {
                row[..width].copy_from_slice(&source[first..first + width]);
            }
        }
        Self { inputs, outputs, panel_width, panels }
    }

    /// Multiplies `states`, (tokens, inputs), by the weights: (tokens, outputs).
    pub fn multiply(&self, states: &[f32]) -> Vec<f32> {
        assert_eq!(states.len() % self.inputs, 0, "whole tokens");
        let mut output = vec![0.0; states.len() / self.inputs * self.outputs];
        Arch::new().dispatch(Multiply { states, weights: self, output: &mut output });
        output
    }
}

/// Makes [`Packed::multiply`] available as an operation on candle tensors.
impl CustomOp1 for Packed {
    fn name(&self) -> &'static str {
        "packed product"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
    ) -> candle_core::Result<(CpuStorage, Shape)> {
        let (tokens, inputs) = layout.shape().dims2()?;
        let Some((start, end)) = layout.contiguous_offsets() else {
            candle_core::bail!("the states are not contiguous");
        };
        if inputs != self.inputs {
            candle_core::bail!("{inputs} inputs for weights of {}", self.inputs);
        }
        let output = self.multiply(&storage.as_slice::<f32>()?[start..end]);
        Ok((CpuStorage::F32(output), (tokens, self.outputs).into()))
    }
}

/// Returns the number of weight registers in the inner loop.
const fn registers<S: Simd>() -> usize {
    if S::REGISTER_COUNT >= 32 { 4 } else { 2 }
}

struct PanelWidth;

impl WithSimd for PanelWidth {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        registers::<S>() * S::F32_LANES
    }
}

struct Multiply<'a> {
    states: &'a [f32],
    weights: &'a Packed,
    output: &'a mut [f32],
}

impl WithSimd for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if registers::<S>() == 4 {
            multiply::<S, 4>(simd, self.states, self.weights, self.output);
        } else {
            multiply::<S, 2>(simd, self.states, self.weights, self.output);
        }
    }
}

#[inline(always)]
fn multiply<S: Simd, const REGISTERS: usize>(
    simd: S,
    states: &[f32],
    weights: &Packed,
    output: &mut [f32],
) {
    let Packed { inputs, outputs, panel_width, panels } = weights;
    let (inputs, outputs, panel_width) = (*inputs, *outputs, *panel_width);
    let mut strips = Vec::new();
    let blocks = states.chunks(BLOCK * inputs).zip(output.chunks_mut(BLOCK * outputs));
    for (block, output) in blocks {
        pack_strips(block, inputs, &mut strips);
        for (number, panel) in panels.chunks_exact(inputs * panel_width).enumerate() {
            let first = number * panel_width;
            let width = panel_width.min(outputs - first);
            let rows = strips.chunks_exact(STRIP * inputs).zip(output.chunks_mut(STRIP * outputs));
            for (strip, rows) in rows {
                let sums = strip_times_panel::<S, REGISTERS>(simd, strip, panel);
                for (row, sums) in rows.chunks_exact_mut(outputs).zip(&sums) {
                    let sums: &[f32] = pulp::bytemuck::cast_slice(sums);
                    row[first..first + width].copy_from_slice(&sums[..width]);
                }
            }
        }
    }
}

/// Computes the sums of STRIP tokens over one panel.
#[inline(always)]
fn strip_times_panel<S: Simd, const REGISTERS: usize>(
    simd: S,
    strip: &[f32],
    panel: &[f32],
) -> [[S::f32s; REGISTERS]; STRIP] {
    let (panel, _) = S::as_simd_f32s(panel);
    let mut sums = [[simd.splat_f32s(0.0); REGISTERS]; STRIP];
    let steps = strip.as_chunks::<STRIP>().0.iter().zip(panel.as_chunks::<REGISTERS>().0);
    for (states, weights) in steps {
        for (sums, state) in sums.iter_mut().zip(states) {
            let state = simd.splat_f32s(*state);
            for (sum, weight) in sums.iter_mut().zip(weights) {
                *sum = simd.mul_add_f32s(state, *weight, *sum);
            }
        }
    }
    sums
}

/// Packs (tokens, inputs) into strips of (inputs, STRIP), padding the last strip with zeros.
#[inline(always)]
fn pack_strips(block: &[f32], inputs: usize, strips: &mut Vec<f32>) {
    let count = (block.len() / inputs).div_ceil(STRIP);
    strips.clear();
    strips.resize(count * STRIP * inputs, 0.0);
    let sources = block.chunks(STRIP * inputs);
    for (strip, source) in strips.chunks_exact_mut(STRIP * inputs).zip(sources) {
        for (place, token) in source.chunks_exact(inputs).enumerate() {
            for (column, state) in strip.as_chunks_mut::<STRIP>().0.iter_mut().zip(token) {
                column[place] = *state;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_plain_sum_at_every_edge() {
        let number = |i: usize, salt: f64| ((i as f64 * 0.61 + salt).sin()) as f32;
        // Around the boundaries of strip, block and panel (16 or 64 wide), and sizes of one.
        for tokens in [1, 5, 6, 7, 95, 96, 97, 193] {
            for (inputs, outputs) in [(1, 1), (3, 15), (32, 16), (20, 65), (7, 130)] {
                let states: Vec<f32> = (0..tokens * inputs).map(|i| number(i, 0.0)).collect();
                let weights: Vec<f32> = (0..inputs * outputs).map(|i| number(i, 1.0)).collect();
                let output = Packed::new(&weights, inputs, outputs).multiply(&states);
                assert_eq!(output.len(), tokens * outputs);
                for (place, found) in output.iter().enumerate() {
                    let (token, column) = (place / outputs, place % outputs);
                    let term = |i: usize| {
                        let state = f64::from(states[token * inputs + i]);
                        state * f64::from(weights[i * outputs + column])
                    };
                    let expected: f64 = (0..inputs).map(term).sum();
                    // n roundings of sums below n, 2^-24 each.
                    let tolerance = (inputs * inputs + 1) as f64 * 6e-8;
                    assert!(
                        (f64::from(*found) - expected).abs() <= tolerance,
                        "{tokens} tokens, {inputs} x {outputs}: {found} for {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_token_gives_the_same_bits_in_any_batch() {
        let weights: Vec<f32> = (0..40 * 70).map(|i| (i as f32 * 0.3).sin()).collect();
        let packed = Packed::new(&weights, 40, 70);
        let states: Vec<f32> = (0..40 * 101).map(|i| (i as f32 * 0.7).cos()).collect();
        let together = packed.multiply(&states);
        for (token, expected) in states.chunks(40).zip(together.chunks(70)) {
            assert_eq!(packed.multiply(token), expected);
        }
    }
}
