//! Looks up the word embeddings of a packed batch.

use std::ops::Range;

use crate::EmbedError;
use crate::config::ModelConfig;
use crate::weights::Weights;

/// The word embedding table of an encoder.
#[derive(Debug)]
pub(super) struct Words {
    /// (vocabulary, hidden).
    table: Vec<f32>,
    hidden: usize,
    window: usize,
}

impl Words {
    /// Takes the table `name` out of `weights`.
    pub fn new(config: &ModelConfig, weights: &Weights, name: &str) -> Result<Self, EmbedError> {
        let (hidden, window) = (config.hidden, config.window());
        let table = weights.table(&format!("{name}.weight"), config.vocabulary, hidden)?;
        Ok(Self { table, hidden, window })
    }

    /// Returns the embeddings of a batch, (tokens, hidden), and the token range of each passage.
    ///
    /// # Errors
    /// [`EmbedError::Compute`] for an empty passage, one longer than the window, or an unknown
    /// token.
    pub fn gather(&self, batch: &[&[u32]]) -> Result<(Vec<f32>, Vec<Range<usize>>), EmbedError> {
        let hidden = self.hidden;
        let tokens: usize = batch.iter().map(|ids| ids.len()).sum();
        let mut spans: Vec<Range<usize>> = Vec::with_capacity(batch.len());
        let mut states = Vec::with_capacity(tokens * hidden);
        for ids in batch {
            if ids.is_empty() || ids.len() > self.window {
                let problem = format!("a passage of {} tokens", ids.len());
                return Err(EmbedError::Compute { problem });
            }
            let first = states.len() / hidden;
            spans.push(first..first + ids.len());
            for id in *ids {
                let start = *id as usize * hidden;
                let word = self.table.get(start..start + hidden).ok_or_else(|| {
                    EmbedError::Compute { problem: format!("token {id} is not in the vocabulary") }
                })?;
                states.extend_from_slice(word);
            }
        }
        Ok((states, spans))
    }
}
