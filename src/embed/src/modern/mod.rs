//! The ModernBERT encoder (Warner et al. 2024) over packed passages.
//!
//! Out of scope: pooling and the layers after it (`sentence`, `cross`), and the blocks in 16-bit
//! integers (`int16`). There are no GPU kernels for it: it always runs on the CPU, which is logged.
//!
//! ```text
//! words -> norm -> layers: states + attention(norm(states)), then states + wide(norm(states))
//!               -> norm
//! attention  rotary positions; global layers (by default every third) attend to the whole passage,
//!            the others to the tokens within reach
//! wide       activation(first half) x second half
//! ```
//! Norms precede the layers, and most norms and dense layers have no biases. In f32, local layers
//! compute the scores of the whole passage and zero the weights beyond their reach: at a window of
//! 256 tokens and a reach of 64 that wastes a little of attention, itself a small part of the
//! total.
//!
//! Children: `layer`: a block in f32; `rotation`: rotary position embeddings

mod layer;
mod rotation;

pub(crate) use layer::norm;
pub(crate) use rotation::Rotation;

use std::ops::Range;

use crate::EmbedError;
use crate::config::{ModelConfig, ModernConfig};
use crate::elementwise::{self, Norm};
use crate::int16::{self, ModernLayer};
use crate::precision::{Arithmetic, Precision};
use crate::weights::Weights;
use crate::words::Words;
use layer::Layer;

/// A loaded encoder.
#[derive(Debug)]
pub(crate) struct ModernBert {
    words: Words,
    norm: Norm,
    global: Rotation,
    local: Rotation,
    /// For each layer, whether it attends to the whole passage.
    is_global: Vec<bool>,
    layers: Layers,
    final_norm: Norm,
}

/// The transformer blocks, in f32 or int16.
#[derive(Debug)]
enum Layers {
    F32(Vec<Layer>),
    Int16(Vec<ModernLayer>),
}

impl ModernBert {
    /// Loads the encoder's tensors from `weights`; `precision` is treated as for BERT.
    pub fn new(
        config: &ModelConfig,
        modern: &ModernConfig,
        weights: &Weights,
        precision: Precision,
    ) -> Result<Self, EmbedError> {
        // As for BERT: every worker is a single thread.
        gemm::set_threading_threshold(usize::MAX);
        let norm = |name: &str| layer::norm(config, modern, weights, name);
        let words = Words::new(config, weights, "embeddings.tok_embeddings")?;
        let first_norm = norm("embeddings.norm")?;
        let rotation = |theta| Rotation::new(config.window(), config.head(), theta);
        let fast = |at| ModernLayer::new(config, modern, weights, at);
        let layers = match int16::layers(config, precision, fast)? {
            Some(layers) => Layers::Int16(layers),
            None => {
                let exact = |at| Layer::new(config, modern, weights, at);
                Layers::F32((0..config.layers).map(exact).collect::<Result<_, _>>()?)
            }
        };
        Ok(Self {
            words,
            norm: first_norm,
            global: rotation(modern.global_theta),
            local: rotation(modern.local_theta),
            is_global: modern.is_global.clone(),
            layers,
            final_norm: norm("final_norm")?,
        })
    }

    /// Returns the arithmetic of the transformer blocks.
    pub fn arithmetic(&self) -> Arithmetic {
        match self.layers {
            Layers::F32(_) => Arithmetic::F32,
            Layers::Int16(_) => Arithmetic::Int16,
        }
    }

    /// Returns the states of a packed batch after the last layer, (tokens, hidden), and the token
    /// range of each passage.
    pub fn states(
        &self,
        batch: &[&[u32]],
        pause: &mut dyn FnMut(),
    ) -> Result<(Vec<f32>, Vec<Range<usize>>), EmbedError> {
        let (mut states, spans) = self.words.gather(batch)?;
        elementwise::normalise(&mut states, &self.norm);
        let mut scratch = int16::Scratch::default();
        for (at, is_global) in self.is_global.iter().enumerate() {
            let rotation = if *is_global { &self.global } else { &self.local };
            match &self.layers {
                Layers::F32(layers) => layers[at].forward(&mut states, &spans, rotation)?,
                Layers::Int16(layers) => {
                    layers[at].forward(&mut states, &spans, rotation, &mut scratch);
                }
            }
            pause();
        }
        elementwise::normalise(&mut states, &self.final_norm);
        Ok((states, spans))
    }
}
