//! Dense layers over codes: weights packed once, products in i32, scaled back to f32.
//!
//! ```text
//! weights (inputs, outputs) -> panel 0 | panel 1 | ...  each for every 2 inputs: PANEL x 2 codes
//! codes   (tokens, inputs)  as they lie, STRIP tokens at once
//! ```

use std::ops::Range;

use crate::embed::int16::machine;
use crate::embed::int16::quantize::Codes;

/// Tokens whose sums are in registers at once: with two registers of outputs, 24 of 32.
pub(super) const STRIP: usize = 12;
/// Outputs of a panel: two registers. A panel of 384 inputs takes 24 KiB and stays in a level-1
/// cache.
pub(super) const PANEL: usize = 32;
/// Inputs that one multiplication takes.
const STEP: usize = 2;
/// The codes of a panel for one step.
pub(super) type PanelStep = [i16; PANEL * STEP];

/// The largest code of a weight: 12 bits with the sign. What is left of the 31 bits of a sum goes
/// to the states.
const WEIGHT_MAX: f32 = 2047.0;
/// Codes of states need at least this many values for the promised cosine; layers so wide that
/// their sums leave less are not computed here.
const LIMIT_MIN: i64 = 1024;

/// The weights of a dense layer as codes.
#[derive(Debug)]
pub(super) struct Dense {
    inputs: usize,
    outputs: usize,
    panels: Vec<PanelStep>,
    /// What a code of each output is worth; zeros behind the last.
    steps: Vec<f32>,
    limit: i16,
    /// One number for each output; added by whatever follows the product.
    pub bias: Vec<f32>,
}

impl Dense {
    /// Rounds `weights`, (inputs, outputs) row by row, all of them finite.
    ///
    /// # Errors
    /// Why there are no codes for them.
    pub fn new(
        weights: &[f32],
        inputs: usize,
        outputs: usize,
        bias: Vec<f32>,
    ) -> Result<Self, String> {
        assert_eq!(weights.len(), inputs * outputs, "the caller has checked the shape");
        if weights.iter().any(|weight| !weight.is_finite()) {
            return Err("a weight that is not finite".to_owned());
        }
        let mut largest = vec![0.0_f32; outputs];
        for row in weights.chunks_exact(outputs) {
            for (largest, weight) in largest.iter_mut().zip(row) {
                *largest = largest.max(weight.abs());
            }
        }
        let mut steps: Vec<f32> = largest.iter().map(|largest| largest / WEIGHT_MAX).collect();
        steps.resize(outputs.next_multiple_of(PANEL), 0.0);
        let panel_steps = inputs.div_ceil(STEP);
        let mut panels = vec![[0; PANEL * STEP]; steps.len() / PANEL * panel_steps];
        let mut sums = vec![0_i64; outputs];
        for (input, row) in weights.chunks_exact(outputs).enumerate() {
            for (output, weight) in row.iter().enumerate() {
                let step = steps[output];
                let code = if step < f32::MIN_POSITIVE { 0.0 } else { (weight / step).round() };
                let code = code.clamp(-WEIGHT_MAX, WEIGHT_MAX) as i16;
                sums[output] += i64::from(code.unsigned_abs());
                let place = output / PANEL * panel_steps + input / STEP;
                panels[place][output % PANEL * STEP + input % STEP] = code;
            }
        }
        let limit = limit(&sums)?;
        Ok(Self { inputs, outputs, panels, steps, limit, bias })
    }

    /// Rounds `states` (tokens, inputs) to codes that this layer takes.
    pub fn encode(&self, states: &[f32], codes: &mut Codes) {
        codes.begin(states.len() / self.inputs, self.inputs);
        codes.set(0, states, self.inputs, self.limit);
    }

    /// The same, each row after `change`, which finds it in the nearest cache and leaves it there.
    pub fn encode_changed(
        &self,
        states: &mut [f32],
        codes: &mut Codes,
        change: impl Fn(&mut [f32]),
    ) {
        codes.begin(states.len() / self.inputs, self.inputs);
        for (at, row) in states.chunks_exact_mut(self.inputs).enumerate() {
            change(row);
            codes.set(at, row, self.inputs, self.limit);
        }
    }

    /// `codes` times the weights into `output`, (tokens, outputs).
    pub fn multiply(&self, codes: &Codes, output: &mut Vec<f32>) {
        assert_eq!(codes.stride(), self.inputs.next_multiple_of(STEP), "encoded by this layer");
        output.resize(codes.steps().len() * self.outputs, 0.0);
        machine::multiply(self, codes, output);
    }

    /// The layer panel by panel: codes, what a code of each output is worth, and the outputs.
    pub(super) fn panels(
        &self,
    ) -> impl Iterator<Item = (&[PanelStep], &[f32; PANEL], Range<usize>)> {
        let codes = self.panels.chunks_exact(self.inputs.div_ceil(STEP));
        let steps = self.steps.as_chunks::<PANEL>().0;
        codes.zip(steps).enumerate().map(|(number, (codes, steps))| {
            let first = number * PANEL;
            (codes, steps, first..self.outputs.min(first + PANEL))
        })
    }

    /// Numbers of a row of the product.
    pub(super) fn outputs(&self) -> usize {
        self.outputs
    }
}

/// The largest code of a state with which no sum leaves i32.
fn limit(sums: &[i64]) -> Result<i16, String> {
    let widest = sums.iter().copied().max().unwrap_or(0).max(1);
    let limit = (i64::from(i32::MAX) / widest).min(i64::from(i16::MAX));
    if limit < LIMIT_MIN {
        return Err(format!("weights whose codes sum up to {widest}, too many for 32 bits"));
    }
    Ok(limit as i16)
}
