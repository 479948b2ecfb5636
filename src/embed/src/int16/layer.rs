//! A transformer block of BERT over packed passages in int16, equivalent to that of `bert` in f32.
//!
//! ```text
//! states                     codes        head by head: query, key, value -> context
//!        + context x weights -> norm -> codes     share by share of the feed-forward layer
//!        + share x weights   -> norm
//! ```
//!
//! The feed-forward layer's activations are never in memory as a whole: one head's queries, keys
//! and values, and one share of the activations stay in a level-2 cache for enough tokens that the
//! time to read the weights does not matter.

use std::ops::Range;

use crate::EmbedError;
use crate::config::{Activation, ModelConfig};
use crate::elementwise::{self, Norm};
use crate::int16::heads::{Heads, Scratch, blocks};
use crate::int16::machine::activate;
use crate::int16::product::Dense;
use crate::weights::Weights;

/// Feed-forward activations computed at a time: with their codes, 1.5 KiB per token.
const SHARE: usize = 256;

/// A block: attention and two dense layers.
#[derive(Debug)]
pub(crate) struct Layer {
    activation: Activation,
    heads: Heads,
    attended: Dense,
    attended_norm: Norm,
    widen: Dense,
    narrow: Vec<Dense>,
    output_norm: Norm,
}

impl Layer {
    /// Loads the tensors of block `index` from `weights`. Requires that `missing` returned `None`.
    pub fn new(config: &ModelConfig, weights: &Weights, index: usize) -> Result<Self, EmbedError> {
        let ModelConfig { hidden, intermediate, norm_epsilon, .. } = *config;
        let at = |part: &str| format!("encoder.layer.{index}.{part}");
        let dense = |part: &str, inputs: usize, outputs: usize| {
            let name = at(part);
            let (weight, bias) = weights.plain(&name, (inputs, outputs), true)?;
            Dense::named(&name, (&weight, bias), inputs)
        };
        let name = at("attention.self");
        let fused = weights.plain_query_key_value(&name, hidden, config.head())?;
        let narrow = at("output.dense");
        let narrow_plain = weights.plain(&narrow, (intermediate, hidden), true)?;
        Ok(Self {
            activation: config.activation,
            heads: Heads::new(config, &name, fused)?,
            attended: dense("attention.output.dense", hidden, hidden)?,
            attended_norm: weights.norm(&at("attention.output.LayerNorm"), hidden, norm_epsilon)?,
            widen: dense("intermediate.dense", hidden, intermediate)?,
            narrow: shares(&narrow, narrow_plain)?,
            output_norm: weights.norm(&at("output.LayerNorm"), hidden, norm_epsilon)?,
        })
    }

    /// Applies the block to the states of a packed batch in place, several passages at a time.
    pub fn forward(&self, states: &mut [f32], spans: &[Range<usize>], scratch: &mut Scratch) {
        let hidden = self.attended.outputs();
        for spans in blocks(spans) {
            let (first, last) = (&spans[0], &spans[spans.len() - 1]);
            let states = &mut states[first.start * hidden..last.end * hidden];
            self.heads.dense().encode(states, &mut scratch.codes);
            self.heads.mix(spans, None, |_| {}, scratch);
            self.attended.encode(&scratch.context, &mut scratch.codes);
            self.attended.add_product(&scratch.codes, states);
            self.wide(states, scratch);
        }
    }

    /// Applies the rest of the block to the sums of attention and residual: norm, feed-forward,
    /// norm.
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

/// Splits the second feed-forward layer by its inputs, `SHARE` each; the first part adds the bias.
pub(super) fn shares(
    name: &str,
    (weights, bias): (Vec<f32>, Vec<f32>),
) -> Result<Vec<Dense>, EmbedError> {
    let hidden = bias.len();
    let mut bias = Some(bias);
    let share = |rows: &[f32]| {
        let bias = bias.take().unwrap_or_else(|| vec![0.0; hidden]);
        Dense::named(name, (rows, bias), rows.len() / hidden)
    };
    weights.chunks(SHARE * hidden).map(share).collect()
}
