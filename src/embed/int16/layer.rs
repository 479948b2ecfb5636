//! A block of the encoder over packed passages, as `bert` has it in f32.

use std::ops::Range;

use crate::embed::EmbedError;
use crate::embed::config::{Activation, ModelConfig};
use crate::embed::elementwise::{self, Norm};
use crate::embed::int16::machine::{Attention, add_bias_activate, attend};
use crate::embed::int16::product::Dense;
use crate::embed::int16::quantize::Codes;
use crate::embed::weights::Weights;

/// Tokens that go through the block at once, or the passage that reaches beyond them: 1,536
/// numbers of each take 590 kB, which stay in a level-2 cache.
const BLOCK: usize = 96;

/// A block: attention and two dense layers.
#[derive(Debug)]
pub(in crate::embed) struct Layer {
    heads: usize,
    activation: Activation,
    query_key_value: Dense,
    attended: Dense,
    attended_norm: Norm,
    widen: Dense,
    narrow: Dense,
    output_norm: Norm,
}

/// Memory that one forward pass uses over and over.
#[derive(Debug, Default)]
pub(in crate::embed) struct Scratch {
    codes: Codes,
    fused: Vec<f32>,
    context: Vec<f32>,
    attended: Vec<f32>,
    wide: Vec<f32>,
    output: Vec<f32>,
    attention: Attention,
}

impl Layer {
    /// Takes the tensors of block `index` out of `weights`. Only where `missing` misses nothing.
    pub fn new(config: &ModelConfig, weights: &Weights, index: usize) -> Result<Self, EmbedError> {
        let ModelConfig { hidden, intermediate, norm_epsilon, .. } = *config;
        let at = |part: &str| format!("encoder.layer.{index}.{part}");
        let encode = |name: &str, inputs: usize, outputs: usize, (weight, bias): (Vec<f32>, _)| {
            Dense::new(&weight, inputs, outputs, bias)
                .map_err(|problem| EmbedError::Compute { problem: format!("{name}: {problem}") })
        };
        let dense = |part: &str, inputs: usize, outputs: usize| {
            let name = at(part);
            encode(&name, inputs, outputs, weights.plain(&name, inputs, outputs)?)
        };
        let name = at("attention.self");
        let fused = weights.plain_query_key_value(&name, hidden, config.head())?;
        Ok(Self {
            heads: config.heads,
            activation: config.activation,
            query_key_value: encode(&name, hidden, 3 * hidden, fused)?,
            attended: dense("attention.output.dense", hidden, hidden)?,
            attended_norm: weights.norm(&at("attention.output.LayerNorm"), hidden, norm_epsilon)?,
            widen: dense("intermediate.dense", hidden, intermediate)?,
            narrow: dense("output.dense", intermediate, hidden)?,
            output_norm: weights.norm(&at("output.LayerNorm"), hidden, norm_epsilon)?,
        })
    }

    /// Replaces the states of a packed batch by those behind the block, some passages at once.
    pub fn forward(&self, states: &mut [f32], spans: &[Range<usize>], scratch: &mut Scratch) {
        let hidden = self.attended.outputs();
        let mut from = 0;
        while from < spans.len() {
            let start = spans[from].start;
            let filled = spans[from..].iter().position(|span| span.end - start >= BLOCK);
            let to = filled.map_or(spans.len(), |at| from + at + 1);
            let end = spans[to - 1].end;
            self.pass(&mut states[start * hidden..end * hidden], start, &spans[from..to], scratch);
            from = to;
        }
    }

    /// The block over the passages at `spans`, whose states begin with token `first`.
    fn pass(
        &self,
        states: &mut [f32],
        first: usize,
        spans: &[Range<usize>],
        scratch: &mut Scratch,
    ) {
        let hidden = self.attended.outputs();
        let Scratch { codes, fused, context, attended, wide, output, attention } = scratch;
        self.query_key_value.encode(states, codes);
        self.query_key_value.multiply(codes, fused);
        elementwise::add_bias(fused, &self.query_key_value.bias);
        context.resize(states.len(), 0.0);
        for span in spans {
            let span = (span.start - first) * hidden..(span.end - first) * hidden;
            let fused = &fused[3 * span.start..3 * span.end];
            attend(fused, self.heads, hidden / self.heads, &mut context[span], attention);
        }
        let blocks = states.chunks_mut(BLOCK * hidden).zip(context.chunks(BLOCK * hidden));
        for (states, context) in blocks {
            self.attended.encode(context, codes);
            self.attended.multiply(codes, attended);
            elementwise::add_norm(attended, &self.attended.bias, states, &self.attended_norm);
            self.widen.encode(attended, codes);
            self.widen.multiply(codes, wide);
            self.narrow.encode_changed(wide, codes, |row| {
                add_bias_activate(row, &self.widen.bias, self.activation);
            });
            self.narrow.multiply(codes, output);
            elementwise::add_norm(output, &self.narrow.bias, attended, &self.output_norm);
            states.copy_from_slice(output);
        }
    }
}
