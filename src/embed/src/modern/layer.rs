//! A transformer block of ModernBERT in f32.

use std::ops::Range;

use candle_core::{Device, Tensor};

use crate::EmbedError;
use crate::attention;
use crate::config::{Activation, ModelConfig, ModernConfig};
use crate::elementwise::{self, Norm};
use crate::modern::rotation::Rotation;
use crate::product::Packed;
use crate::weights::{Dense, Weights};

/// Attention and a gated feed-forward layer.
#[derive(Debug)]
pub(super) struct Layer {
    heads: usize,
    activation: Activation,
    /// `None` for a global layer, which attends to the whole passage.
    reach: Option<usize>,
    /// `None` in the first block, whose input is already normalised.
    attention_norm: Option<Norm>,
    query_key_value: Dense,
    attended: Dense,
    wide_norm: Norm,
    widen: Dense,
    narrow: Dense,
}

/// Loads the layer norm `name`; its shift is 0 if the model has none.
pub(crate) fn norm(
    config: &ModelConfig,
    modern: &ModernConfig,
    weights: &Weights,
    name: &str,
) -> Result<Norm, EmbedError> {
    let (hidden, epsilon) = (config.hidden, config.norm_epsilon);
    if modern.norm_bias {
        return weights.norm(name, hidden, epsilon);
    }
    let scale = weights.vector(&format!("{name}.weight"), hidden)?;
    Ok(Norm { scale, shift: vec![0.0; hidden], epsilon })
}

impl Layer {
    /// Loads the tensors of block `index` from `weights`.
    pub fn new(
        config: &ModelConfig,
        modern: &ModernConfig,
        weights: &Weights,
        index: usize,
    ) -> Result<Self, EmbedError> {
        let ModelConfig { hidden, intermediate, .. } = *config;
        let at = |part: &str| format!("layers.{index}.{part}");
        let norm = |part: &str| norm(config, modern, weights, &at(part));
        let dense = |part: &str, widths, has_bias| weights.dense_with(&at(part), widths, has_bias);
        let bias = modern.attention_bias;
        let attention_norm = (index > 0).then(|| norm("attn_norm")).transpose()?;
        let name = at("attn.Wqkv");
        let (fused, fused_bias) =
            weights.plain_query_key_value_in_one(&name, hidden, config.head(), bias)?;
        Ok(Self {
            heads: config.heads,
            activation: config.activation,
            reach: modern.reach_of(index),
            attention_norm,
            query_key_value: Dense {
                weight: Packed::new(&fused, hidden, 3 * hidden),
                bias: fused_bias,
            },
            attended: dense("attn.Wo", (hidden, hidden), bias)?,
            wide_norm: norm("mlp_norm")?,
            widen: dense("mlp.Wi", (hidden, 2 * intermediate), modern.wide_bias)?,
            narrow: dense("mlp.Wo", (intermediate, hidden), modern.wide_bias)?,
        })
    }

    /// Applies the block to the states of a packed batch, (tokens, hidden), in place.
    pub fn forward(
        &self,
        states: &mut [f32],
        spans: &[Range<usize>],
        rotation: &Rotation,
    ) -> Result<(), EmbedError> {
        let hidden = self.wide_norm.scale.len();
        let mut input = states.to_vec();
        if let Some(norm) = &self.attention_norm {
            elementwise::normalise(&mut input, norm);
        }
        let mut fused = self.query_key_value.forward(&input);
        for span in spans {
            let rows = &mut fused[span.start * 3 * hidden..span.end * 3 * hidden];
            rotation.turn(rows, self.heads);
        }
        let fused = Tensor::from_vec(fused, (states.len() / hidden, 3 * hidden), &Device::Cpu)?;
        let context = attention::mixed(&fused, spans, self.heads, self.reach)?;
        let context: Vec<f32> = context.flatten_all()?.to_vec1()?;
        elementwise::add(states, &self.attended.forward(&context));

        input.copy_from_slice(states);
        elementwise::normalise(&mut input, &self.wide_norm);
        let wide = self.widen.forward(&input);
        let gated = elementwise::gate(&wide, self.widen.bias.len(), self.activation);
        elementwise::add(states, &self.narrow.forward(&gated));
        Ok(())
    }
}
