//! A block of the encoder over packed passages, as `bert` has it in f32.
//!
//! ```text
//! states                     codes        one head after the other: query, key, value -> context
//!        + context x weights -> norm -> codes     a share of the wide layer after the other
//!        + share x weights   -> norm
//! ```
//!
//! The wide layer is never in memory as a whole: a head's part of queries, keys and values and a
//! share of the wide layer's numbers stay in a level-2 cache for so many tokens that the time to
//! read the weights does not matter.

use std::ops::Range;

use crate::EmbedError;
use crate::config::{Activation, ModelConfig};
use crate::elementwise::{self, Norm};
use crate::int16::Attention;
use crate::int16::machine::{activate, attend};
use crate::int16::product::Dense;
use crate::int16::quantize::Codes;
use crate::weights::Weights;

/// Tokens that go through the block at once, or the passage that reaches beyond them.
const BLOCK: usize = 192;
/// Numbers of the wide layer that are there at once: with their codes, 1.5 KiB a token.
const SHARE: usize = 256;

/// A block: attention and two dense layers.
#[derive(Debug)]
pub(crate) struct Layer {
    heads: usize,
    activation: Activation,
    query_key_value: Dense,
    attended: Dense,
    attended_norm: Norm,
    widen: Dense,
    /// The wide layer's numbers back to narrow ones, `SHARE` inputs each; the first adds the bias.
    narrow: Vec<Dense>,
    output_norm: Norm,
}

/// Memory that one forward pass uses over and over.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    codes: Codes,
    /// (tokens, 3, head) of one head.
    of_head: Vec<f32>,
    context: Vec<f32>,
    share: Vec<f32>,
    share_codes: Codes,
    attention: Attention,
}

impl Layer {
    /// Takes the tensors of block `index` out of `weights`. Only where `missing` returns `None`.
    pub fn new(config: &ModelConfig, weights: &Weights, index: usize) -> Result<Self, EmbedError> {
        let ModelConfig { hidden, intermediate, norm_epsilon, .. } = *config;
        let at = |part: &str| format!("encoder.layer.{index}.{part}");
        let encode = |name: &str, weight: &[f32], inputs: usize, bias: Vec<f32>| {
            Dense::new(weight, inputs, bias)
                .map_err(|problem| EmbedError::Compute { problem: format!("{name}: {problem}") })
        };
        let dense = |part: &str, inputs: usize, outputs: usize| {
            let name = at(part);
            let (weight, bias) = weights.plain(&name, inputs, outputs)?;
            encode(&name, &weight, inputs, bias)
        };
        let name = at("attention.self");
        let (fused, fused_bias) = weights.plain_query_key_value(&name, hidden, config.head())?;
        let [fused, fused_bias] = [fused, fused_bias].map(|rows| by_head(&rows, config));
        let narrow_name = at("output.dense");
        let (narrow, narrow_bias) = weights.plain(&narrow_name, intermediate, hidden)?;
        let share = |(number, rows): (usize, &[f32])| {
            let bias = if number == 0 { narrow_bias.clone() } else { vec![0.0; hidden] };
            encode(&narrow_name, rows, rows.len() / hidden, bias)
        };
        Ok(Self {
            heads: config.heads,
            activation: config.activation,
            query_key_value: encode(&name, &fused, hidden, fused_bias)?,
            attended: dense("attention.output.dense", hidden, hidden)?,
            attended_norm: weights.norm(&at("attention.output.LayerNorm"), hidden, norm_epsilon)?,
            widen: dense("intermediate.dense", hidden, intermediate)?,
            narrow: narrow
                .chunks(SHARE * hidden)
                .enumerate()
                .map(share)
                .collect::<Result<_, _>>()?,
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
            let states = &mut states[start * hidden..end * hidden];
            self.attention(states, start, &spans[from..to], scratch);
            self.wide(states, scratch);
            from = to;
        }
    }

    /// Attention over the passages at `spans`, whose states begin with token `first`.
    fn attention(
        &self,
        states: &mut [f32],
        first: usize,
        spans: &[Range<usize>],
        scratch: &mut Scratch,
    ) {
        let hidden = self.attended.outputs();
        let head = hidden / self.heads;
        let Scratch { codes, of_head, context, attention, .. } = scratch;
        context.resize(states.len(), 0.0);
        self.query_key_value.encode(states, codes);
        for number in 0..self.heads {
            let columns = number * 3 * head..(number + 1) * 3 * head;
            self.query_key_value.multiply(codes, columns, of_head);
            for span in spans {
                let (start, end) = (span.start - first, span.end - first);
                let rows = &of_head[start * 3 * head..end * 3 * head];
                let context = &mut context[start * hidden..end * hidden];
                attend(rows, head, context, (number * head, hidden), attention);
            }
        }
        self.attended.encode(context, codes);
        self.attended.add_product(codes, states);
    }

    /// From the sums that attention leaves to the block's states.
    fn wide(&self, states: &mut [f32], scratch: &mut Scratch) {
        let Scratch { codes, share, share_codes, .. } = scratch;
        self.widen.encode_changed(states, codes, |row| {
            elementwise::normalise(row, &self.attended_norm);
        });
        let mut start = 0;
        for narrow in &self.narrow {
            let columns = start..start + narrow.inputs();
            start = columns.end;
            self.widen.multiply(codes, columns, share);
            narrow.encode_changed(share, share_codes, |row| activate(row, self.activation));
            narrow.add_product(share_codes, states);
        }
        elementwise::normalise(states, &self.output_norm);
    }
}

/// Rows of (3, heads, head) as (heads, 3, head), so that a head's numbers are neighbours.
fn by_head(rows: &[f32], config: &ModelConfig) -> Vec<f32> {
    let (hidden, head) = (config.hidden, config.head());
    let mut turned = Vec::with_capacity(rows.len());
    for row in rows.chunks_exact(3 * hidden) {
        for number in 0..config.heads {
            for part in row.chunks_exact(hidden) {
                turned.extend_from_slice(&part[number * head..(number + 1) * head]);
            }
        }
    }
    turned
}
