//! The ModernBERT encoder (Warner et al. 2024) over packed passages, in f32.
//!
//! Not here: pooling and the layers behind it (`sentence`, `cross`). There is no 16-bit mode and
//! there are no GPU kernels for it: the CPU computes it in f32, and the log says so.
//!
//! ```text
//! words -> norm -> layers: states + attention(norm(states)), then states + wide(norm(states))
//!               -> norm
//! attention  rotary positions; every third layer over the whole passage, the others over the
//!            tokens within reach
//! wide       activation(first half) x second half
//! ```
//! Norms come before the layers, and most of them and the dense layers have no biases. The scores
//! of local layers are computed for the whole passage, and those beyond the reach get no weight: at
//! a window of 256 tokens and a reach of 64 that costs a little of attention, which is little of
//! the whole.
//!
//! Children: `config`: its `config.json`; `layer`: a block; `rotation`: rotary positions

mod config;
mod layer;
mod rotation;

pub(crate) use config::ModernConfig;
pub(crate) use layer::norm;

use std::ops::Range;

use crate::EmbedError;
use crate::config::ModelConfig;
use crate::elementwise::{self, Norm};
use crate::weights::Weights;
use crate::words::Words;
use layer::Layer;
use rotation::Rotation;

/// A loaded encoder.
#[derive(Debug)]
pub(crate) struct ModernBert {
    words: Words,
    norm: Norm,
    global: Rotation,
    local: Rotation,
    layers: Vec<Layer>,
    final_norm: Norm,
}

impl ModernBert {
    /// Takes the encoder's tensors out of `weights`.
    pub fn new(
        config: &ModelConfig,
        modern: &ModernConfig,
        weights: &Weights,
    ) -> Result<Self, EmbedError> {
        // As for BERT: every worker is one thread.
        gemm::set_threading_threshold(usize::MAX);
        let norm = |name: &str| layer::norm(config, modern, weights, name);
        let rotation = |theta| Rotation::new(config.window(), config.head(), theta);
        let layers = (0..config.layers).map(|at| Layer::new(config, modern, weights, at));
        Ok(Self {
            words: Words::new(config, weights, "embeddings.tok_embeddings")?,
            norm: norm("embeddings.norm")?,
            global: rotation(modern.global_theta),
            local: rotation(modern.local_theta),
            layers: layers.collect::<Result<_, _>>()?,
            final_norm: norm("final_norm")?,
        })
    }

    /// The states of a packed batch behind the last layer, (tokens, hidden), and the tokens of each
    /// passage.
    pub fn states(
        &self,
        batch: &[&[u32]],
        pause: &mut dyn FnMut(),
    ) -> Result<(Vec<f32>, Vec<Range<usize>>), EmbedError> {
        let (mut states, spans) = self.words.gather(batch)?;
        elementwise::normalise(&mut states, &self.norm);
        for layer in &self.layers {
            let rotation = if layer.is_global() { &self.global } else { &self.local };
            layer.forward(&mut states, &spans, rotation)?;
            pause();
        }
        elementwise::normalise(&mut states, &self.final_norm);
        Ok((states, spans))
    }
}
