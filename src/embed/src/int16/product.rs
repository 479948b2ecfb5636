//! Dense layers over codes: weights packed once, products summed in i32 and scaled back to f32.
//!
//! ```text
//! weights (inputs, outputs) -> panel 0 | panel 1 | ...  each for every 2 inputs: PANEL x 2 codes
//! codes   (tokens, inputs)  unpacked, STRIP tokens at a time, the remainder in groups of TAIL
//! ```

use std::ops::Range;

use crate::EmbedError;
use crate::int16::panel::{PANEL, Panel, PanelStep, STEP};
use crate::int16::quantize::Codes;
use crate::int16::{LANES, machine};

/// The largest code of a weight: 12 bits with the sign. The states get the remaining bits of a
/// 31-bit sum.
const WEIGHT_MAX: f32 = 2047.0;
/// Smallest acceptable `limit` of states, for the promised cosine. Layers so wide that their sums
/// leave less are not computed in int16.
const LIMIT_MIN: i64 = 1024;

/// The weights of a dense layer as codes. The number of inputs is even, and outputs fill whole
/// panels.
#[derive(Debug)]
pub(super) struct Dense {
    inputs: usize,
    outputs: usize,
    panels: Vec<PanelStep>,
    steps: Vec<f32>,
    bias: Vec<f32>,
    limit: i16,
}

impl Dense {
    /// Rounds `weights`, (inputs, outputs) in row-major order.
    ///
    /// # Errors
    /// The reason why the weights cannot be represented as codes.
    pub fn new(weights: &[f32], inputs: usize, bias: Vec<f32>) -> Result<Self, String> {
        let outputs = bias.len();
        assert_eq!(weights.len(), inputs * outputs, "the caller has checked the shape");
        assert!(inputs.is_multiple_of(STEP) && outputs.is_multiple_of(PANEL), "whole panels");
        if weights.iter().any(|weight| !weight.is_finite()) {
            return Err("a weight that is not finite".to_owned());
        }
        let mut largest = vec![0.0_f32; outputs];
        for row in weights.chunks_exact(outputs) {
            for (largest, weight) in largest.iter_mut().zip(row) {
                *largest = largest.max(weight.abs());
            }
        }
        let steps: Vec<f32> = largest.iter().map(|largest| largest / WEIGHT_MAX).collect();
        let panel_steps = inputs / STEP;
        let mut panels = vec![PanelStep::ZERO; outputs / PANEL * panel_steps];
        let mut sums = vec![0_i64; outputs];
        for (input, row) in weights.chunks_exact(outputs).enumerate() {
            for (output, weight) in row.iter().enumerate() {
                let step = steps[output];
                let code = if step < f32::MIN_POSITIVE { 0.0 } else { (weight / step).round() };
                let code = code.clamp(-WEIGHT_MAX, WEIGHT_MAX) as i16;
                sums[output] += i64::from(code.unsigned_abs());
                let PanelStep(registers) = &mut panels[output / PANEL * panel_steps + input / STEP];
                let lane = output % LANES * STEP + input % STEP;
                registers[output % PANEL / LANES][lane] = code;
            }
        }
        let limit = limit(&sums)?;
        Ok(Self { inputs, outputs, panels, steps, bias, limit })
    }

    /// Rounds the weights of layer `name`, as [`Self::new`] does.
    ///
    /// # Errors
    /// [`EmbedError::Compute`] naming the layer if its weights cannot be represented as codes.
    pub fn named(
        name: &str,
        (weights, bias): (&[f32], Vec<f32>),
        inputs: usize,
    ) -> Result<Self, EmbedError> {
        Self::new(weights, inputs, bias)
            .map_err(|problem| EmbedError::Compute { problem: format!("{name}: {problem}") })
    }

    /// Returns the number of inputs per row.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Returns the number of outputs per row.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Rounds `states`, (tokens, inputs), to this layer's range of codes.
    pub fn encode(&self, states: &[f32], codes: &mut Codes) {
        codes.begin(states.len() / self.inputs, self.inputs);
        codes.set(0, states, self.limit);
    }

    /// Applies `change` to each row in place and rounds it to codes while it is in the level-1
    /// cache.
    pub fn encode_changed(
        &self,
        states: &mut [f32],
        codes: &mut Codes,
        mut change: impl FnMut(&mut [f32]),
    ) {
        codes.begin(states.len() / self.inputs, self.inputs);
        for (at, row) in states.chunks_exact_mut(self.inputs).enumerate() {
            change(row);
            codes.set(at, row, self.limit);
        }
    }

    /// Rounds a changed copy of each row to codes, leaving `states` unmodified.
    pub fn encode_apart(&self, states: &[f32], codes: &mut Codes, change: impl Fn(&mut [f32])) {
        let mut row = vec![0.0; self.inputs];
        codes.begin(states.len() / self.inputs, self.inputs);
        for (at, states) in states.chunks_exact(self.inputs).enumerate() {
            row.copy_from_slice(states);
            change(&mut row);
            codes.set(at, &row, self.limit);
        }
    }

    /// Multiplies `codes` by the weights of `columns`, which are whole panels, and adds the bias:
    /// (tokens, columns).
    pub fn multiply(&self, codes: &Codes, columns: Range<usize>, output: &mut Vec<f32>) {
        assert_eq!(codes.stride(), self.inputs, "encoded by this layer");
        output.resize(codes.steps().len() * columns.len(), 0.0);
        let width = columns.len();
        machine::multiply((self.panels(columns), width), codes, output, false);
    }

    /// Adds the product of `codes` and the weights, and the bias, to `output`, (tokens, outputs).
    pub fn add_product(&self, codes: &Codes, output: &mut [f32]) {
        assert_eq!(codes.stride(), self.inputs, "encoded by this layer");
        let width = self.outputs;
        machine::multiply((self.panels(0..width), width), codes, output, true);
    }

    /// Returns the panels of `columns`, which start and end at panel boundaries.
    fn panels(&self, columns: Range<usize>) -> impl Iterator<Item = Panel<'_>> {
        assert!(columns.start.is_multiple_of(PANEL) && columns.end.is_multiple_of(PANEL));
        let panel_steps = self.inputs / STEP;
        let codes = &self.panels[columns.start / PANEL * panel_steps..];
        let steps = self.steps[columns.clone()].as_chunks::<PANEL>().0;
        let biases = self.bias[columns].as_chunks::<PANEL>().0;
        codes.chunks_exact(panel_steps).zip(steps).zip(biases).map(|((codes, steps), bias)| Panel {
            codes,
            steps,
            bias,
        })
    }
}

/// Returns the largest code of a state for which no sum overflows i32.
fn limit(sums: &[i64]) -> Result<i16, String> {
    let widest = sums.iter().copied().max().unwrap_or(0).max(1);
    let limit = (i64::from(i32::MAX) / widest).min(i64::from(i16::MAX));
    if limit < LIMIT_MIN {
        return Err(format!("weights whose codes sum up to {widest}, too many for 32 bits"));
    }
    Ok(limit as i16)
}
