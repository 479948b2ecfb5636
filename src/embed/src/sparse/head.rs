//! The head of a masked language model: maps token states to logits over the vocabulary.
//!
//! ```text
//! BERT        norm(activation(cls.predictions.transform)) -> decoder
//! RoBERTa     norm(gelu(lm_head.dense))                   -> lm_head.decoder
//! ModernBERT  norm(activation(head.dense))                -> decoder
//! ```
//! If the file has no decoder, its weights are tied to the word embedding table.

use crate::EmbedError;
use crate::config::{Activation, Family, HeadConfig, ModelConfig, parsed};
use crate::elementwise::{self, Norm};
use crate::modern;
use crate::weights::{Dense, Weights};

/// The layers after the encoder.
#[derive(Debug)]
pub(super) struct Head {
    dense: Dense,
    activation: Activation,
    norm: Norm,
    decoder: Dense,
}

/// Names of the decoder's tensors in a file.
struct Decoder {
    name: &'static str,
    /// The word embedding table, used if the file has no decoder.
    words: &'static str,
    biases: &'static [&'static str],
}

impl Head {
    /// Loads the tensors of the head from `weights`; `raw` is the contents of `config.json`.
    ///
    /// # Errors
    /// [`EmbedError::MissingTensor`] for a model without such a head.
    pub fn new(config: &ModelConfig, raw: &[u8], weights: &Weights) -> Result<Self, EmbedError> {
        let (hidden, epsilon) = (config.hidden, config.norm_epsilon);
        let dense = |name, has_bias| weights.dense_with(name, (hidden, hidden), has_bias);
        let words = "embeddings.word_embeddings";
        Ok(match &config.family {
            Family::Bert => Self {
                dense: dense("cls.predictions.transform.dense", true)?,
                activation: config.activation,
                norm: weights.norm("cls.predictions.transform.LayerNorm", hidden, epsilon)?,
                decoder: Decoder {
                    name: "cls.predictions.decoder",
                    words,
                    biases: &["cls.predictions.bias", "cls.predictions.decoder.bias"],
                }
                .load(config, weights)?,
            },
            Family::Roberta { .. } => Self {
                dense: dense("lm_head.dense", true)?,
                activation: Activation::Gelu,
                norm: weights.norm("lm_head.layer_norm", hidden, epsilon)?,
                decoder: Decoder {
                    name: "lm_head.decoder",
                    words,
                    biases: &["lm_head.bias", "lm_head.decoder.bias"],
                }
                .load(config, weights)?,
            },
            Family::Modern(modern) => {
                let raw: HeadConfig = parsed(raw)?;
                Self {
                    dense: dense("head.dense", raw.classifier_bias)?,
                    activation: raw.activation()?,
                    norm: modern::norm(config, modern, weights, "head.norm")?,
                    decoder: Decoder {
                        name: "decoder",
                        words: "embeddings.tok_embeddings",
                        biases: if raw.decoder_bias { &["decoder.bias"] } else { &[] },
                    }
                    .load(config, weights)?,
                }
            }
        })
    }

    /// Returns the size of the vocabulary.
    pub fn vocabulary(&self) -> usize {
        self.decoder.bias.len()
    }

    /// Returns logits, (tokens, vocabulary), for states, (tokens, hidden).
    pub fn logits(&self, states: &[f32]) -> Vec<f32> {
        let mut states = self.dense.forward(states);
        elementwise::activate(&mut states, self.activation);
        elementwise::normalise(&mut states, &self.norm);
        self.decoder.forward(&states)
    }
}

impl Decoder {
    fn load(self, config: &ModelConfig, weights: &Weights) -> Result<Dense, EmbedError> {
        let is_own = weights.contains(&format!("{}.weight", self.name));
        let name = if is_own { self.name } else { self.words };
        let mut dense = weights.dense_with(name, (config.hidden, config.vocabulary), false)?;
        if let Some(usual) = self.biases.first() {
            let bias = self.biases.iter().find(|bias| weights.contains(bias)).unwrap_or(usual);
            dense.bias = weights.vector(bias, config.vocabulary)?;
        }
        Ok(dense)
    }
}
