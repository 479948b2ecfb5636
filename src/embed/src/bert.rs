//! The BERT encoder (Devlin et al. 2018) over packed passages. Also covers RoBERTa, which differs
//! only in the offset into its position table.
//!
//! The tokens of all passages of a batch are packed back to back, without padding: dense layers see
//! one matrix (tokens, hidden), attention runs per passage. A batch therefore costs what its tokens
//! cost, whatever their mix of lengths, and the result for a passage does not depend on the lengths
//! of the others.

use std::ops::Range;

use candle_core::{Device, Tensor};

use crate::EmbedError;
use crate::attention::{self, InPlace, InPlaceWith};
use crate::config::{Activation, ModelConfig};
use crate::elementwise::{self, Norm};
use crate::forward::Forward;
use crate::int16;
use crate::pooling;
use crate::precision::{Arithmetic, Precision};
use crate::weights::{Dense, Weights};
use crate::words::Words;

/// A loaded encoder.
#[derive(Debug)]
pub(super) struct Bert {
    config: ModelConfig,
    words: Words,
    /// (window, hidden): position plus first token type.
    positions: Vec<f32>,
    /// Second token type minus the first.
    second_type: Vec<f32>,
    norm: Norm,
    layers: Layers,
}

/// The transformer blocks, in f32 or int16.
#[derive(Debug)]
enum Layers {
    F32(Vec<Layer>),
    Int16(Vec<int16::Layer>),
}

#[derive(Debug)]
struct Layer {
    heads: usize,
    activation: Activation,
    query_key_value: Dense,
    attended: Dense,
    attended_norm: Norm,
    widen: Dense,
    narrow: Dense,
    output_norm: Norm,
}

impl Bert {
    /// Loads the encoder's tensors from `weights`. Falls back to f32, and logs why, if the
    /// processor or the weights do not support the reduced precision that `precision` allows.
    pub fn new(
        config: ModelConfig,
        weights: &Weights,
        precision: Precision,
    ) -> Result<Self, EmbedError> {
        // Every worker is a single thread, so attention's products must not spread over the cores
        // of other workers. The matrix library only parallelises products above this size.
        gemm::set_threading_threshold(usize::MAX);
        let ModelConfig { hidden, norm_epsilon, .. } = config;
        let words = Words::new(&config, weights, "embeddings.word_embeddings")?;
        let positions = weights.positions(&config)?;
        let second_type = weights.second_type(&config)?;
        let norm = weights.norm("embeddings.LayerNorm", hidden, norm_epsilon)?;
        let layers = Layers::new(&config, weights, precision)?;
        Ok(Self { config, words, positions, second_type, norm, layers })
    }

    /// Returns the arithmetic of the transformer blocks.
    pub fn arithmetic(&self) -> Arithmetic {
        match self.layers {
            Layers::F32(_) => Arithmetic::F32,
            Layers::Int16(_) => Arithmetic::Int16,
        }
    }

    /// Returns the states of a packed batch after the last layer, (tokens, hidden), and the token
    /// range of each passage. Tokens of passage i are of the second token type from token
    /// `second_from[i]` on; without `second_from`, all are of the first.
    pub fn states(
        &self,
        batch: &[&[u32]],
        second_from: Option<&[usize]>,
        pause: &mut dyn FnMut(),
    ) -> Result<(Vec<f32>, Vec<Range<usize>>), EmbedError> {
        let (mut states, spans) = self.words.gather(batch)?;
        self.add_positions(&mut states, &spans, second_from);
        let states = self.layers.forward(states, self.config.hidden, &spans, pause)?;
        Ok((states, spans))
    }

    /// Adds positions and token types to the word embeddings and normalises them.
    fn add_positions(
        &self,
        states: &mut [f32],
        spans: &[Range<usize>],
        second_from: Option<&[usize]>,
    ) {
        let hidden = self.config.hidden;
        let mut positions = Vec::with_capacity(states.len());
        for (passage, span) in spans.iter().enumerate() {
            let of_passage = positions.len();
            positions.extend_from_slice(&self.positions[..span.len() * hidden]);
            if let Some(from) = second_from.map(|all| all[passage].min(span.len())) {
                let second = &mut positions[of_passage + from * hidden..];
                elementwise::add_bias(second, &self.second_type);
            }
        }
        let no_bias = vec![0.0; hidden];
        elementwise::add_norm(states, &no_bias, &positions, &self.norm);
    }
}

impl Forward for Bert {
    fn forward(
        &self,
        batch: &[&[u32]],
        pause: &mut dyn FnMut(),
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let hidden = self.config.hidden;
        let (states, spans) = self.states(batch, None, pause)?;
        spans
            .iter()
            .map(|span| {
                let states = &states[span.start * hidden..span.end * hidden];
                pooling::unit(self.config.pooling.sum(states, hidden))
            })
            .collect()
    }
}

impl Layers {
    fn new(
        config: &ModelConfig,
        weights: &Weights,
        precision: Precision,
    ) -> Result<Self, EmbedError> {
        let layer = |at| int16::Layer::new(config, weights, at);
        if let Some(layers) = int16::layers(config, precision, layer)? {
            return Ok(Self::Int16(layers));
        }
        let layers = (0..config.layers).map(|at| Layer::new(config, weights, at));
        Ok(Self::F32(layers.collect::<Result<_, _>>()?))
    }

    /// Runs all blocks over the states of a packed batch.
    fn forward(
        &self,
        mut states: Vec<f32>,
        hidden: usize,
        spans: &[Range<usize>],
        pause: &mut dyn FnMut(),
    ) -> Result<Vec<f32>, EmbedError> {
        match self {
            Self::Int16(layers) => {
                let mut scratch = int16::Scratch::default();
                for layer in layers {
                    layer.forward(&mut states, spans, &mut scratch);
                    pause();
                }
                Ok(states)
            }
            Self::F32(layers) => {
                let shape = (states.len() / hidden, hidden);
                let mut states = Tensor::from_vec(states, shape, &Device::Cpu)?;
                for layer in layers {
                    states = layer.forward(&states, spans)?;
                    pause();
                }
                Ok(states.flatten_all()?.to_vec1()?)
            }
        }
    }
}

impl Layer {
    fn new(config: &ModelConfig, weights: &Weights, index: usize) -> Result<Self, EmbedError> {
        let ModelConfig { hidden, intermediate, norm_epsilon, .. } = *config;
        let at = |part: &str| format!("encoder.layer.{index}.{part}");
        Ok(Self {
            heads: config.heads,
            activation: config.activation,
            query_key_value: weights.query_key_value(
                &at("attention.self"),
                hidden,
                config.head(),
            )?,
            attended: weights.dense(&at("attention.output.dense"), hidden, hidden)?,
            attended_norm: weights.norm(&at("attention.output.LayerNorm"), hidden, norm_epsilon)?,
            widen: weights.dense(&at("intermediate.dense"), hidden, intermediate)?,
            narrow: weights.dense(&at("output.dense"), intermediate, hidden)?,
            output_norm: weights.norm(&at("output.LayerNorm"), hidden, norm_epsilon)?,
        })
    }

    fn forward(&self, states: &Tensor, spans: &[Range<usize>]) -> Result<Tensor, EmbedError> {
        let fused = states.apply_op1_no_bwd(&self.query_key_value.weight)?;
        fused.inplace_op1(&InPlace(|rows: &mut [f32]| {
            elementwise::add_bias(rows, &self.query_key_value.bias);
        }))?;
        let context = attention::mixed(&fused, spans, self.heads, None)?;
        let attended = context.apply_op1_no_bwd(&self.attended.weight)?;
        let add_norm = |rows: &mut [f32], residual: &[f32]| {
            elementwise::add_norm(rows, &self.attended.bias, residual, &self.attended_norm);
        };
        attended.inplace_op2(states, &InPlaceWith(add_norm))?;

        let wide = attended.apply_op1_no_bwd(&self.widen.weight)?;
        wide.inplace_op1(&InPlace(|rows: &mut [f32]| {
            elementwise::add_bias_activate(rows, &self.widen.bias, self.activation);
        }))?;
        let output = wide.apply_op1_no_bwd(&self.narrow.weight)?;
        let add_norm = |rows: &mut [f32], residual: &[f32]| {
            elementwise::add_norm(rows, &self.narrow.bias, residual, &self.output_norm);
        };
        output.inplace_op2(&attended, &InPlaceWith(add_norm))?;
        Ok(output)
    }
}
