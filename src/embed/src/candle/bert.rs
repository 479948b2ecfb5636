//! The encoder in candle's layers, over passages padded to the longest of a group.

use candle_core::{D, Device, Module, Tensor};
use candle_nn::{Embedding, LayerNorm, Linear, ops};

use crate::EmbedError;
use crate::config::{Activation, ModelConfig, Pooling};
use crate::weights::Weights;

/// Subtracted from the score of a padding key, so that its weight becomes 0 in f32.
const SHUT: f64 = 1e9;

/// The encoder on one of candle's devices.
#[derive(Debug)]
pub(super) struct PaddedBert {
    device: Device,
    pooling: Pooling,
    vocabulary: usize,
    window: usize,
    first_position: u32,
    words: Embedding,
    places: Embedding,
    /// The first token type, (hidden).
    first_type: Tensor,
    norm: LayerNorm,
    layers: Vec<Layer>,
}

#[derive(Debug)]
struct Layer {
    heads: usize,
    activation: Activation,
    query: Linear,
    key: Linear,
    value: Linear,
    attended: Linear,
    attended_norm: LayerNorm,
    widen: Linear,
    narrow: Linear,
    output_norm: LayerNorm,
}

/// Loads tensors from a file and copies them to the device.
struct Source<'a> {
    weights: &'a Weights<'a>,
    device: &'a Device,
    epsilon: f64,
}

impl Source<'_> {
    fn table(&self, name: &str, rows: usize, width: usize) -> Result<Tensor, EmbedError> {
        let table = self.weights.matrix(&format!("{name}.weight"), rows, width)?;
        Ok(table.to_device(self.device)?)
    }

    fn vector(&self, numbers: Vec<f32>) -> Result<Tensor, EmbedError> {
        let count = numbers.len();
        Ok(Tensor::from_vec(numbers, count, self.device)?)
    }

    fn linear(&self, name: &str, inputs: usize, outputs: usize) -> Result<Linear, EmbedError> {
        let bias = self.vector(self.weights.vector(&format!("{name}.bias"), outputs)?)?;
        Ok(Linear::new(self.table(name, outputs, inputs)?, Some(bias)))
    }

    fn norm(&self, name: &str, width: usize) -> Result<LayerNorm, EmbedError> {
        let norm = self.weights.norm(name, width, self.epsilon as f32)?;
        let (scale, shift) = (self.vector(norm.scale)?, self.vector(norm.shift)?);
        Ok(LayerNorm::new(scale, shift, self.epsilon))
    }

    fn layer(&self, config: &ModelConfig, index: usize) -> Result<Layer, EmbedError> {
        let ModelConfig { hidden, intermediate, heads, activation, .. } = *config;
        let at = |part: &str| format!("encoder.layer.{index}.{part}");
        let linear = |part: &str, inputs, outputs| self.linear(&at(part), inputs, outputs);
        Ok(Layer {
            heads,
            activation,
            query: linear("attention.self.query", hidden, hidden)?,
            key: linear("attention.self.key", hidden, hidden)?,
            value: linear("attention.self.value", hidden, hidden)?,
            attended: linear("attention.output.dense", hidden, hidden)?,
            attended_norm: self.norm(&at("attention.output.LayerNorm"), hidden)?,
            widen: linear("intermediate.dense", hidden, intermediate)?,
            narrow: linear("output.dense", intermediate, hidden)?,
            output_norm: self.norm(&at("output.LayerNorm"), hidden)?,
        })
    }
}

impl PaddedBert {
    /// Loads the encoder's tensors from `weights` to `device`.
    ///
    /// # Errors
    /// As [`Weights`], or errors of candle.
    pub fn new(
        config: &ModelConfig,
        weights: &Weights,
        device: Device,
    ) -> Result<Self, EmbedError> {
        let ModelConfig { hidden, pooling, vocabulary, .. } = *config;
        let source = Source { weights, device: &device, epsilon: f64::from(config.norm_epsilon) };
        let table = |part: &str, rows| source.table(&format!("embeddings.{part}"), rows, hidden);
        let words = table("word_embeddings", vocabulary)?;
        let places = table("position_embeddings", config.positions)?;
        let types = table("token_type_embeddings", config.token_types)?;
        let layers = (0..config.layers).map(|index| source.layer(config, index));
        Ok(Self {
            pooling,
            vocabulary,
            window: config.window(),
            first_position: config.first_position() as u32,
            words: Embedding::new(words, hidden),
            places: Embedding::new(places, hidden),
            first_type: types.get(0)?,
            norm: source.norm("embeddings.LayerNorm", hidden)?,
            layers: layers.collect::<Result<_, _>>()?,
            device,
        })
    }

    /// Computes one unit vector per passage.
    ///
    /// # Errors
    /// Errors of candle, or [`EmbedError::Compute`] for unknown tokens and passages that do not fit
    /// the window: not every device checks its reads.
    pub fn forward(&self, passages: &[&[u32]]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let length = passages.iter().map(|ids| ids.len()).max().unwrap_or(0);
        let (mut ids, mut kept) = (Vec::new(), Vec::new());
        for passage in passages {
            let is_whole = (1..=self.window).contains(&passage.len())
                && passage.iter().all(|id| (*id as usize) < self.vocabulary);
            if !is_whole {
                let problem = format!("a passage of {} tokens, or unknown ones", passage.len());
                return Err(EmbedError::Compute { problem });
            }
            ids.extend_from_slice(passage);
            kept.resize(ids.len(), 1.0_f32);
            ids.resize(ids.len() + length - passage.len(), 0);
            kept.resize(ids.len(), 0.0);
        }
        Ok(self.padded(ids, kept, (passages.len(), length))?.to_vec2()?)
    }

    /// Computes vectors, (passages, hidden), from padded ids and a mask that is 0 for padding.
    fn padded(
        &self,
        ids: Vec<u32>,
        kept: Vec<f32>,
        shape: (usize, usize),
    ) -> candle_core::Result<Tensor> {
        let (passages, length) = shape;
        let ids = Tensor::from_vec(ids, shape, &self.device)?;
        let kept = Tensor::from_vec(kept, shape, &self.device)?;
        let first = self.first_position;
        let places = Tensor::arange(first, first + length as u32, &self.device)?;
        let places = self.places.forward(&places)?.broadcast_add(&self.first_type)?;
        let states = self.words.forward(&ids)?.broadcast_add(&places)?;
        let mut states = self.norm.forward(&states)?;
        // 0 for a token, very negative for padding.
        let shut = kept.affine(SHUT, -SHUT)?.reshape((passages, 1, 1, length))?;
        for layer in &self.layers {
            states = layer.forward(&states, &shut)?;
        }
        let pooled = match self.pooling {
            Pooling::First => states.narrow(1, 0, 1)?.squeeze(1)?,
            // No division by the number of tokens, since the vector is normalised below.
            Pooling::Mean => states.broadcast_mul(&kept.unsqueeze(D::Minus1)?)?.sum(1)?,
        };
        let lengths = pooled.sqr()?.sum_keepdim(D::Minus1)?.sqrt()?;
        pooled.broadcast_div(&lengths)
    }
}

impl Layer {
    /// Applies the layer to states, (passages, length, hidden); `shut` is added to attention
    /// scores.
    fn forward(&self, states: &Tensor, shut: &Tensor) -> candle_core::Result<Tensor> {
        let context = self.attention(states, shut)?;
        let attended = (self.attended.forward(&context)? + states)?;
        let attended = self.attended_norm.forward(&attended)?;
        let wide = self.widen.forward(&attended)?;
        let wide = match self.activation {
            Activation::Gelu => wide.gelu_erf()?,
            Activation::GeluTanh => wide.gelu()?,
            Activation::Relu => wide.relu()?,
            Activation::Silu => wide.silu()?,
        };
        self.output_norm.forward(&(self.narrow.forward(&wide)? + attended)?)
    }

    fn attention(&self, states: &Tensor, shut: &Tensor) -> candle_core::Result<Tensor> {
        let (passages, length, hidden) = states.dims3()?;
        let head = hidden / self.heads;
        let split = |layer: &Linear| {
            let parts = layer.forward(states)?.reshape((passages, length, self.heads, head))?;
            parts.transpose(1, 2)?.contiguous()
        };
        let (query, key, value) = (split(&self.query)?, split(&self.key)?, split(&self.value)?);
        let scale = 1.0 / (head as f64).sqrt();
        let scores = (query.matmul(&key.t()?)? * scale)?.broadcast_add(shut)?;
        let context = ops::softmax_last_dim(&scores)?.matmul(&value)?;
        context.transpose(1, 2)?.contiguous()?.reshape((passages, length, hidden))
    }
}
