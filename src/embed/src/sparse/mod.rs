//! Sparse models: map texts to weights over the tokens of a vocabulary, which are indexed like
//! words. A masked language model predicts for each token of a text which others could take its
//! position (SPLADE, Formal et al. 2021).
//!
//! Out of scope: the postings of such weights (`text`), and the search over them (`engine`).
//!
//! ```text
//! document -> tokens -> encoder -> head: logits over the vocabulary for each token
//!                    -> log(1 + max(0, logit)), the maximum over the tokens
//! query    -> as a document or, without the encoder, its tokens with weights from a table
//! ```
//!
//! - `parts`: the steps that a directory describes; `head`: maps token states to logits

mod head;
mod parts;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::config::{ModelConfig, Pooling};
use crate::files::ModelFiles;
use crate::fingerprints::fingerprint;
use crate::forward::Forward;
use crate::model::{self, BOUNDS, check_prompts};
use crate::precision::{Arithmetic, Precision};
use crate::prompts::{PROMPTS, Prompts, Role};
use crate::queue::Queue;
use crate::sentence::Encoder;
use crate::tokens::Tokeniser;
use crate::weights::Weights;
use crate::{EmbedError, Lane};
use head::Head;
use lodestone_types::{RequestContext, limits};
use parts::{Activation, Parts, Pool};

/// Token ids of a vocabulary with their weights. Weights are positive; ids ascend.
pub type SparseVector = Vec<(u32, f32)>;

/// Tokens whose logits are computed at a time: 32 MB for a vocabulary of 250,000.
const SLAB_TOKENS: usize = 32;

/// A sparse model with its worker threads.
#[derive(Debug)]
pub struct SparseModel {
    name: String,
    fingerprint: String,
    arithmetic: Arithmetic,
    tokeniser: Tokeniser,
    prompts: Prompts,
    /// Tokenizer and weights for queries; `None` if the encoder also processes queries.
    table: Option<(Tokeniser, Vec<f32>)>,
    queue: Queue,
}

impl SparseModel {
    /// Loads a model and starts `workers` threads for it, each of which computes single-threaded.
    ///
    /// # Errors
    /// [`EmbedError`] naming the malformed, missing or unsupported part of the files; a model that
    /// is not a sparse encoder is unsupported.
    pub fn load(
        files: &ModelFiles,
        workers: usize,
        precision: Precision,
    ) -> Result<Self, EmbedError> {
        let parts = Parts::of(files)?;
        let config = ModelConfig::parse(&files.config, Pooling::Mean)?;
        let tokeniser = Tokeniser::parse(&files.tokenizer, config.vocabulary, config.window())?;
        let prompts = Prompts::parse(files.parts.get(PROMPTS).map(Vec::as_slice))?;
        check_prompts(&prompts, &tokeniser)?;
        let table = parts.table(files, &config)?;
        let weights = Weights::parse(&files.weights)?;
        let mut more = format!("\nsparse {:?} {:?}", parts.pool, parts.activation);
        if !prompts.document.is_empty() {
            more.push_str(&format!("\ndocuments behind {:?}", prompts.document));
        }
        let fingerprint = fingerprint(&config, files, &more, &[]);
        let head = Head::new(&config, &files.config, &weights)?;
        let encoder = Encoder::new(&config, &weights, precision)?;
        let arithmetic = encoder.arithmetic();
        let (pool, activation) = (parts.pool, parts.activation);
        let expander = Expander { encoder, head, pool, activation };
        let queue = Queue::start(Arc::new(expander), workers, BOUNDS);
        let name = files.name.clone();
        Ok(Self { name, fingerprint, arithmetic, tokeniser, prompts, table, queue })
    }

    /// Returns the model's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a hexadecimal SHA-256 over everything that determines the vector of a document.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Returns the fingerprint as bytes.
    pub fn id(&self) -> [u8; 32] {
        let mut id = [0; 32];
        hex::decode_to_slice(&self.fingerprint, &mut id).expect("SHA-256 in hexadecimal digits");
        id
    }

    /// Returns the arithmetic of the encoder.
    pub fn arithmetic(&self) -> Arithmetic {
        self.arithmetic
    }

    /// Whether the encoder processes queries too, as opposed to a table of weights.
    pub fn reads_queries(&self) -> bool {
        self.table.is_none()
    }

    /// Returns the vectors of documents, in order, each limited to its [`limits::SPARSE_TERMS_MAX`]
    /// heaviest tokens. Blocks as [`crate::Embedder::embed_within`] does.
    ///
    /// # Errors
    /// As [`crate::Embedder::embed_within`].
    pub fn documents(
        &self,
        lane: Lane,
        context: &RequestContext,
        texts: Vec<String>,
    ) -> Result<Vec<SparseVector>, EmbedError> {
        let texts = texts.into_iter().map(|text| (Role::Document, text)).collect();
        let vectors = self.expand(lane, context, texts)?;
        let bounded = |vector: &Vec<f32>| heaviest(pairs(vector), limits::SPARSE_TERMS_MAX);
        Ok(vectors.iter().map(bounded).collect())
    }

    /// Returns the vector of a query, limited to its [`limits::SPARSE_QUERY_TERMS_MAX`] heaviest
    /// tokens.
    ///
    /// # Errors
    /// As [`crate::Embedder::embed_within`] in the query lane.
    pub fn query(&self, context: &RequestContext, text: &str) -> Result<SparseVector, EmbedError> {
        let max = limits::SPARSE_QUERY_TERMS_MAX;
        if let Some((tokeniser, weights)) = &self.table {
            let text = self.prompts.before(Role::Query, text);
            let content = tokeniser.content(&text, tokeniser.window())?;
            let mut ids = content.get_ids().to_vec();
            ids.sort_unstable();
            ids.dedup();
            let weight = |id: u32| Some((id, *weights.get(id as usize)?));
            let known = ids.into_iter().filter_map(weight).filter(|(_, weight)| *weight > 0.0);
            return Ok(heaviest(known.collect(), max));
        }
        let texts = vec![(Role::Query, text.to_owned())];
        let vectors = self.expand(Lane::Query, context, texts)?;
        Ok(heaviest(pairs(&vectors[0]), max))
    }

    fn expand(
        &self,
        lane: Lane,
        context: &RequestContext,
        texts: Vec<(Role, String)>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let read = (&self.tokeniser, &self.prompts);
        model::embed(&self.queue, read, lane, context, texts)
    }

    /// Closes the queue, as [`crate::Embedder::close`] does.
    pub fn close(&self) {
        self.queue.close();
    }
}

/// Decodes alternating token ids and weights, the form in which the queue carries a sparse vector.
/// Ids are below 2^20 (`config`), so f32 represents them exactly.
fn pairs(numbers: &[f32]) -> SparseVector {
    numbers.as_chunks::<2>().0.iter().map(|[token, weight]| (*token as u32, *weight)).collect()
}

/// Keeps the `max` heaviest tokens, ascending by token; of equal weights the lower tokens.
fn heaviest(mut vector: SparseVector, max: usize) -> SparseVector {
    if vector.len() > max {
        vector.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        vector.truncate(max);
        vector.sort_unstable_by_key(|(token, _)| *token);
    }
    vector
}

/// The encoder with its head, as a forward pass. The vector of a passage is in the form that
/// [`pairs`] decodes.
#[derive(Debug)]
struct Expander {
    encoder: Encoder,
    head: Head,
    pool: Pool,
    activation: Activation,
}

impl Forward for Expander {
    fn forward(
        &self,
        batch: &[&[u32]],
        pause: &mut dyn FnMut(),
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let head =
            |states: &[f32], hidden, pause: &mut dyn FnMut()| self.weights(states, hidden, pause);
        self.encoder.each(batch, None, pause, head)
    }
}

impl Expander {
    /// Computes the vocabulary weights of one passage from its states. Since the activation is
    /// monotonic, the largest logit has the largest weight.
    fn weights(
        &self,
        states: &[f32],
        hidden: usize,
        pause: &mut dyn FnMut(),
    ) -> Result<Vec<f32>, EmbedError> {
        let vocabulary = self.head.vocabulary();
        let mut pooled = vec![0.0_f32; vocabulary];
        for slab in states.chunks(SLAB_TOKENS * hidden) {
            let logits = self.head.logits(slab);
            for row in logits.chunks_exact(vocabulary) {
                match self.pool {
                    Pool::Max => {
                        pooled.iter_mut().zip(row).for_each(|(most, x)| *most = most.max(*x));
                    }
                    Pool::Sum => pooled
                        .iter_mut()
                        .zip(row)
                        .for_each(|(sum, x)| *sum += self.activation.of(x.max(0.0))),
                }
            }
            pause();
        }
        let mut vector = Vec::new();
        for (token, value) in pooled.iter().enumerate().filter(|(_, value)| **value > 0.0) {
            let weight = match self.pool {
                Pool::Max => self.activation.of(*value),
                Pool::Sum => *value,
            };
            if !weight.is_finite() {
                let problem = format!("token {token} has the weight {weight}");
                return Err(EmbedError::Compute { problem });
            }
            vector.extend([token as f32, weight]);
        }
        Ok(vector)
    }
}
