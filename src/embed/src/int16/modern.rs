//! A transformer block of ModernBERT over packed passages in int16, equivalent to that of `modern`
//! in f32.
//!
//! ```text
//! norm(states)   codes        head by head: query and key rotated, value -> context
//!                             + context x weights -> states
//! norm(states)   codes        activation(a share of the first half) x that of the second -> codes
//!                             + share x weights   -> states
//! ```

use std::ops::Range;

use crate::EmbedError;
use crate::config::{Activation, ModelConfig, ModernConfig};
use crate::elementwise::{self, Norm};
use crate::int16::heads::{Heads, Scratch, blocks};
use crate::int16::layer::shares;
use crate::int16::machine::activate;
use crate::int16::product::Dense;
use crate::modern::{Rotation, norm};
use crate::weights::Weights;

/// Attention and a gated feed-forward layer.
#[derive(Debug)]
pub(crate) struct ModernLayer {
    activation: Activation,
    /// `None` for a global layer, which attends to the whole passage.
    reach: Option<usize>,
    /// `None` in the first block, whose input is already normalised.
    attention_norm: Option<Norm>,
    heads: Heads,
    attended: Dense,
    wide_norm: Norm,
    widen: Dense,
    /// The second feed-forward layer, split by its inputs.
    narrow: Vec<Dense>,
}

impl ModernLayer {
    /// Loads the tensors of block `index` from `weights`. Requires that `missing` returned `None`.
    pub fn new(
        config: &ModelConfig,
        modern: &ModernConfig,
        weights: &Weights,
        index: usize,
    ) -> Result<Self, EmbedError> {
        let ModelConfig { hidden, intermediate, .. } = *config;
        let at = |part: &str| format!("layers.{index}.{part}");
        let norm = |part: &str| norm(config, modern, weights, &at(part));
        let dense = |part: &str, inputs: usize, outputs: usize, has_bias| {
            let name = at(part);
            let (weight, bias) = weights.plain(&name, (inputs, outputs), has_bias)?;
            Dense::named(&name, (&weight, bias), inputs)
        };
        let (bias, wide_bias) = (modern.attention_bias, modern.wide_bias);
        let attention_norm = (index > 0).then(|| norm("attn_norm")).transpose()?;
        let name = at("attn.Wqkv");
        let fused = weights.plain_query_key_value_in_one(&name, hidden, config.head(), bias)?;
        let narrow = at("mlp.Wo");
        let narrow_plain = weights.plain(&narrow, (intermediate, hidden), wide_bias)?;
        Ok(Self {
            activation: config.activation,
            reach: modern.reach_of(index),
            attention_norm,
            heads: Heads::new(config, &name, fused)?,
            attended: dense("attn.Wo", hidden, hidden, bias)?,
            wide_norm: norm("mlp_norm")?,
            widen: dense("mlp.Wi", hidden, 2 * intermediate, wide_bias)?,
            narrow: shares(&narrow, narrow_plain)?,
        })
    }

    /// Applies the block to the states of a packed batch in place, several passages at a time.
    pub fn forward(
        &self,
        states: &mut [f32],
        spans: &[Range<usize>],
        rotation: &Rotation,
        scratch: &mut Scratch,
    ) {
        let hidden = self.attended.outputs();
        for spans in blocks(spans) {
            let (first, last) = (&spans[0], &spans[spans.len() - 1]);
            let states = &mut states[first.start * hidden..last.end * hidden];
            let dense = self.heads.dense();
            match &self.attention_norm {
                Some(norm) => dense.encode_apart(states, &mut scratch.codes, |row| {
                    elementwise::normalise(row, norm);
                }),
                None => dense.encode(states, &mut scratch.codes),
            }
            self.heads.mix(spans, self.reach, |rows| rotation.turn(rows, 1), scratch);
            self.attended.encode(&scratch.context, &mut scratch.codes);
            self.attended.add_product(&scratch.codes, states);
            self.wide(states, scratch);
        }
    }

    /// Adds the output of the feed-forward layer to the states.
    fn wide(&self, states: &mut [f32], scratch: &mut Scratch) {
        let Scratch { codes, share, gates, share_codes, .. } = scratch;
        self.widen.encode_apart(states, codes, |row| {
            elementwise::normalise(row, &self.wide_norm);
        });
        let intermediate = self.widen.outputs() / 2;
        let mut start = 0;
        for narrow in &self.narrow {
            let columns = start..start + narrow.inputs();
            self.widen.multiply(codes, columns.clone(), share);
            start = columns.end;
            let columns = intermediate + columns.start..intermediate + columns.end;
            self.widen.multiply(codes, columns, gates);
            let mut gates = gates.chunks_exact(narrow.inputs());
            narrow.encode_changed(share, share_codes, |row| {
                activate(row, self.activation);
                let gates = gates.next().expect("as many rows");
                elementwise::multiply(row, gates);
            });
            narrow.add_product(share_codes, states);
        }
    }
}
