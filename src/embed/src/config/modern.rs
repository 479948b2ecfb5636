//! Parses the `config.json` of a ModernBERT model.
//!
//! Two formats exist: `global_attn_every_n_layers` with `global_rope_theta` and `local_rope_theta`,
//! and, since version 5 of transformers, `layer_types` with `rope_parameters`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::EmbedError;
use crate::config::{Activation, Family, ModelConfig, Pooling, activation, parsed};

const FULL: &str = "full_attention";
const SLIDING: &str = "sliding_attention";

/// The options of ModernBERT that [`ModelConfig`] does not cover.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModernConfig {
    /// Number of tokens on either side that a token of a local layer attends to.
    pub reach: usize,
    /// For each layer, whether it attends to the whole passage.
    pub is_global: Vec<bool>,
    /// Base of the rotary angles in global layers.
    pub global_theta: f64,
    /// Base of the rotary angles in local layers.
    pub local_theta: f64,
    /// Whether the dense layers of attention have biases.
    pub attention_bias: bool,
    /// Whether the two dense layers of the feed-forward block have biases.
    pub wide_bias: bool,
    /// Whether layer norms have biases.
    pub norm_bias: bool,
}

/// The fields of `config.json` in use, with ModernBERT's own defaults.
#[derive(Debug, Deserialize)]
struct RawConfig {
    vocab_size: usize,
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    max_position_embeddings: usize,
    hidden_activation: Value,
    #[serde(default = "norm_eps")]
    norm_eps: f64,
    #[serde(default = "local_attention")]
    local_attention: usize,
    #[serde(default = "every")]
    global_attn_every_n_layers: usize,
    #[serde(default = "global_theta")]
    global_rope_theta: f64,
    /// `null` means the base of the global layers.
    #[serde(default = "local_theta")]
    local_rope_theta: Option<f64>,
    layer_types: Option<Vec<String>>,
    rope_parameters: Option<BTreeMap<String, Option<RawRope>>>,
    rope_scaling: Option<Value>,
    #[serde(default)]
    attention_bias: bool,
    #[serde(default)]
    mlp_bias: bool,
    #[serde(default)]
    norm_bias: bool,
}

#[derive(Debug, Deserialize)]
struct RawRope {
    rope_type: Option<String>,
    rope_theta: Option<f64>,
}

fn norm_eps() -> f64 {
    1e-5
}

fn local_attention() -> usize {
    128
}

fn every() -> usize {
    3
}

fn global_theta() -> f64 {
    160_000.0
}

fn local_theta() -> Option<f64> {
    Some(10_000.0)
}

/// The fields of `config.json` that describe the heads on top of the encoder.
#[derive(Debug, Deserialize)]
pub(crate) struct HeadConfig {
    pub classifier_pooling: Option<String>,
    classifier_activation: Option<Value>,
    #[serde(default)]
    pub classifier_bias: bool,
    #[serde(default = "yes")]
    pub decoder_bias: bool,
}

fn yes() -> bool {
    true
}

impl HeadConfig {
    pub fn activation(&self) -> Result<Activation, EmbedError> {
        let named = self.classifier_activation.as_ref();
        named.map_or(Ok(Activation::Gelu), |value| activation("classifier_activation", value))
    }
}

impl ModernConfig {
    /// Returns the number of tokens on either side that a token of layer `index` attends to; `None`
    /// if it attends to the whole passage.
    pub fn reach_of(&self, index: usize) -> Option<usize> {
        (!self.is_global[index]).then_some(self.reach)
    }

    /// Parses a `config.json` that is known to be of this family.
    pub fn parse(config: &[u8], pooling: Pooling) -> Result<ModelConfig, EmbedError> {
        let raw: RawConfig = parsed(config)?;
        let modern = Self {
            reach: raw.local_attention / 2,
            is_global: raw.is_global()?,
            global_theta: raw.theta(FULL, raw.global_rope_theta)?,
            local_theta: raw
                .theta(SLIDING, raw.local_rope_theta.unwrap_or(raw.global_rope_theta))?,
            attention_bias: raw.attention_bias,
            wide_bias: raw.mlp_bias,
            norm_bias: raw.norm_bias,
        };
        let head = raw.hidden_size / raw.num_attention_heads.max(1);
        if !head.is_multiple_of(2) {
            let (found, expected) = (format!("heads of {head} numbers"), "heads of an even number");
            return Err(EmbedError::Unsupported { field: "num_attention_heads", found, expected });
        }
        Ok(ModelConfig {
            hidden: raw.hidden_size,
            layers: raw.num_hidden_layers,
            heads: raw.num_attention_heads,
            intermediate: raw.intermediate_size,
            vocabulary: raw.vocab_size,
            positions: raw.max_position_embeddings,
            token_types: 1,
            norm_epsilon: raw.norm_eps as f32,
            activation: activation("hidden_activation", &raw.hidden_activation)?,
            pooling,
            family: Family::Modern(modern),
        })
    }
}

impl RawConfig {
    fn is_global(&self) -> Result<Vec<bool>, EmbedError> {
        let unsupported =
            |field, found, expected| Err(EmbedError::Unsupported { field, found, expected });
        let Some(types) = &self.layer_types else {
            let every = self.global_attn_every_n_layers;
            if every == 0 {
                return unsupported("global_attn_every_n_layers", "0".to_owned(), "1 or more");
            }
            // `check_sizes` refuses more than 64 layers later.
            return Ok((0..self.num_hidden_layers.min(64)).map(|at| at % every == 0).collect());
        };
        let is_known = |kind: &String| kind == FULL || kind == SLIDING;
        if types.len() != self.num_hidden_layers || !types.iter().all(is_known) {
            let expected = "full_attention or sliding_attention for each layer";
            return unsupported("layer_types", format!("{types:?}"), expected);
        }
        Ok(types.iter().map(|kind| kind == FULL).collect())
    }

    /// Returns the rotary base for layers of a kind, or `usual` if the file gives none for it.
    fn theta(&self, kind: &str, usual: f64) -> Result<f64, EmbedError> {
        let raw = self.rope_parameters.as_ref().and_then(|all| all.get(kind)?.as_ref());
        let rope_type = raw.and_then(|raw| raw.rope_type.as_deref()).unwrap_or("default");
        if rope_type != "default" || self.rope_scaling.is_some() {
            let found = format!("{rope_type}, rope_scaling {:?}", self.rope_scaling);
            let expected = "default, without scaling";
            return Err(EmbedError::Unsupported { field: "rope_type", found, expected });
        }
        let theta = raw.and_then(|raw| raw.rope_theta).unwrap_or(usual);
        if theta.is_finite() && theta >= 1.0 {
            return Ok(theta);
        }
        let found = theta.to_string();
        Err(EmbedError::Unsupported { field: "rope_theta", found, expected: "1 or more" })
    }
}
