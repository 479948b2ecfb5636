//! The BERT encoder (Devlin et al. 2018) over packed passages.
//!
//! The tokens of all passages of a batch lie one behind the other, without padding: dense
//! layers see one matrix (tokens, hidden), attention runs passage by passage. So a batch costs
//! what its tokens cost, whatever their mix of lengths, and a passage's numbers do not depend
//! on its neighbours' lengths.

use std::ops::Range;

use candle_core::{CpuStorage, Device, InplaceOp1, InplaceOp2, Layout, Tensor};

use crate::EmbedError;
use crate::config::{Activation, ModelConfig, Pooling};
use crate::elementwise::{self, Norm};
use crate::forward::Forward;
use crate::int16;
use crate::precision::{Arithmetic, Precision};
use crate::weights::{Dense, Weights};

/// A loaded encoder.
#[derive(Debug)]
pub(super) struct Bert {
    config: ModelConfig,
    /// (vocabulary, hidden).
    words: Vec<f32>,
    /// (window, hidden): position plus the first token type.
    positions: Vec<f32>,
    /// Difference of the second token type from the first.
    second_type: Vec<f32>,
    norm: Norm,
    layers: Layers,
}

/// The blocks in the arithmetic that they are computed in.
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
    /// Takes the encoder's tensors out of `weights`. Where `precision` asks for less than f32 and
    /// there are no instructions or no codes for it, f32 it is, and the log says why.
    pub fn new(
        config: ModelConfig,
        weights: &Weights,
        precision: Precision,
    ) -> Result<Self, EmbedError> {
        // Every worker is one thread; attention's products must not spread over the others'
        // cores. The matrix library only splits products above this size.
        gemm::set_threading_threshold(usize::MAX);
        let ModelConfig { hidden, norm_epsilon, .. } = config;
        let words =
            weights.table("embeddings.word_embeddings.weight", config.vocabulary, hidden)?;
        let positions = weights.positions(&config)?;
        let second_type = weights.second_type(&config)?;
        let norm = weights.norm("embeddings.LayerNorm", hidden, norm_epsilon)?;
        let layers = Layers::new(&config, weights, precision)?;
        Ok(Self { config, words, positions, second_type, norm, layers })
    }

    /// Arithmetic of the blocks.
    pub fn arithmetic(&self) -> Arithmetic {
        match self.layers {
            Layers::F32(_) => Arithmetic::F32,
            Layers::Int16(_) => Arithmetic::Int16,
        }
    }

    /// The states of a packed batch behind the last layer, (tokens, hidden), and the tokens of each
    /// passage. Passage i is of the second token type from its token `second_from[i]` on; without
    /// that all are of the first.
    pub fn states(
        &self,
        batch: &[&[u32]],
        second_from: Option<&[usize]>,
        pause: &mut dyn FnMut(),
    ) -> Result<(Vec<f32>, Vec<Range<usize>>), EmbedError> {
        let mut spans: Vec<Range<usize>> = Vec::with_capacity(batch.len());
        let mut tokens = 0;
        for ids in batch {
            spans.push(tokens..tokens + ids.len());
            tokens += ids.len();
        }
        let states = self.embeddings(batch, second_from, tokens)?;
        let states = self.layers.forward(states, self.config.hidden, &spans, pause)?;
        Ok((states, spans))
    }

    /// (tokens, hidden) of the packed batch before the first layer.
    fn embeddings(
        &self,
        batch: &[&[u32]],
        second_from: Option<&[usize]>,
        tokens: usize,
    ) -> Result<Vec<f32>, EmbedError> {
        let hidden = self.config.hidden;
        let mut states = Vec::with_capacity(tokens * hidden);
        let mut positions = Vec::with_capacity(tokens * hidden);
        for (passage, ids) in batch.iter().enumerate() {
            if ids.is_empty() || ids.len() > self.config.window() {
                let problem = format!("a passage of {} tokens", ids.len());
                return Err(EmbedError::Compute { problem });
            }
            for id in *ids {
                let start = *id as usize * hidden;
                let word = self.words.get(start..start + hidden).ok_or_else(|| {
                    EmbedError::Compute { problem: format!("token {id} is not in the vocabulary") }
                })?;
                states.extend_from_slice(word);
            }
            let of_passage = positions.len();
            positions.extend_from_slice(&self.positions[..ids.len() * hidden]);
            if let Some(from) = second_from.map(|all| all[passage].min(ids.len())) {
                let second = &mut positions[of_passage + from * hidden..];
                elementwise::add_bias(second, &self.second_type);
            }
        }
        let no_bias = vec![0.0; hidden];
        elementwise::add_norm(&mut states, &no_bias, &positions, &self.norm);
        Ok(states)
    }

    fn pool(&self, states: &[f32]) -> Result<Vec<f32>, EmbedError> {
        let hidden = self.config.hidden;
        let mut pooled = match self.config.pooling {
            Pooling::First => states[..hidden].to_vec(),
            Pooling::Mean => {
                let mut sum = vec![0.0; hidden];
                elementwise::add_rows(&mut sum, states);
                sum
            }
        };
        // The mean's division is left to this: it changes the length only.
        let square: f64 = pooled.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
        if !(square.is_finite() && square > 0.0) {
            let problem = format!("a vector of squared length {square}");
            return Err(EmbedError::Compute { problem });
        }
        let inverse = (1.0 / square.sqrt()) as f32;
        for x in &mut pooled {
            *x *= inverse;
        }
        Ok(pooled)
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
            .map(|span| self.pool(&states[span.start * hidden..span.end * hidden]))
            .collect()
    }
}

impl Layers {
    fn new(
        config: &ModelConfig,
        weights: &Weights,
        precision: Precision,
    ) -> Result<Self, EmbedError> {
        let indices = 0..config.layers;
        if precision == Precision::Auto {
            let layers = match int16::missing(config) {
                None => indices.clone().map(|at| int16::Layer::new(config, weights, at)).collect(),
                Some(problem) => Err(EmbedError::Compute { problem }),
            };
            match layers {
                Ok(layers) => return Ok(Self::Int16(layers)),
                Err(EmbedError::Compute { problem: reason }) => {
                    tracing::info!(reason, "the embedding model is computed in f32");
                }
                Err(error) => return Err(error),
            }
        }
        let layers = indices.map(|at| Layer::new(config, weights, at)).collect::<Result<_, _>>()?;
        Ok(Self::F32(layers))
    }

    /// The states of a packed batch behind the last block, from those before the first.
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
        let context = self.attention(states, spans)?;
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

    /// Scaled dot-product attention within each span: (tokens, hidden).
    fn attention(&self, states: &Tensor, spans: &[Range<usize>]) -> Result<Tensor, EmbedError> {
        let (tokens, hidden) = states.dims2()?;
        let heads = self.heads;
        let head = hidden / heads;
        let fused = states.apply_op1_no_bwd(&self.query_key_value.weight)?;
        fused.inplace_op1(&InPlace(|rows: &mut [f32]| {
            elementwise::add_bias(rows, &self.query_key_value.bias);
        }))?;
        let context = Tensor::zeros((tokens, hidden), states.dtype(), &Device::Cpu)?;
        for span in spans {
            let length = span.len();
            // (3, heads, length, head), all of it views of `fused`.
            let parts = fused.narrow(0, span.start, length)?;
            let parts = parts.reshape((length, 3, heads, head))?.permute((1, 2, 0, 3))?;
            let (query, key, value) = (parts.get(0)?, parts.get(1)?, parts.get(2)?);
            let scores = query.matmul(&key.transpose(1, 2)?)?;
            scores.inplace_op1(&InPlace(|rows: &mut [f32]| elementwise::softmax(rows, length)))?;
            let mixed = scores.matmul(&value)?;
            let place = |context: &mut [f32], mixed: &[f32]| {
                let rows = &mut context[span.start * hidden..span.end * hidden];
                interleave_heads(rows, mixed, heads, head);
            };
            context.inplace_op2(&mixed, &InPlaceWith(place))?;
        }
        Ok(context)
    }
}

/// (heads, length, head) into (length, heads, head).
fn interleave_heads(rows: &mut [f32], mixed: &[f32], heads: usize, head: usize) {
    let length = rows.len() / (heads * head);
    for (number, of_head) in mixed.chunks_exact(length * head).enumerate() {
        for (token, numbers) in of_head.chunks_exact(head).enumerate() {
            let start = (token * heads + number) * head;
            rows[start..start + head].copy_from_slice(numbers);
        }
    }
}

/// A function over the numbers of one contiguous tensor, as candle's in-place operation.
struct InPlace<F>(F);

impl<F: Fn(&mut [f32])> InplaceOp1 for InPlace<F> {
    fn name(&self) -> &'static str {
        "in-place"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> candle_core::Result<()> {
        (self.0)(contiguous_mut(storage, layout)?);
        Ok(())
    }
}

/// As [`InPlace`], reading a second contiguous tensor.
struct InPlaceWith<F>(F);

impl<F: Fn(&mut [f32], &[f32])> InplaceOp2 for InPlaceWith<F> {
    fn name(&self) -> &'static str {
        "in-place with"
    }

    fn cpu_fwd(
        &self,
        storage: &mut CpuStorage,
        layout: &Layout,
        other: &CpuStorage,
        other_layout: &Layout,
    ) -> candle_core::Result<()> {
        let Some((start, end)) = other_layout.contiguous_offsets() else {
            candle_core::bail!("the second tensor is not contiguous");
        };
        let other = &other.as_slice::<f32>()?[start..end];
        (self.0)(contiguous_mut(storage, layout)?, other);
        Ok(())
    }
}

fn contiguous_mut<'a>(
    storage: &'a mut CpuStorage,
    layout: &Layout,
) -> candle_core::Result<&'a mut [f32]> {
    let Some((start, end)) = layout.contiguous_offsets() else {
        candle_core::bail!("the tensor is not contiguous");
    };
    match storage {
        CpuStorage::F32(numbers) => Ok(&mut numbers[start..end]),
        _ => candle_core::bail!("the numbers are not f32"),
    }
}
