//! Texts to weights of the tokens of a vocabulary, by which they are found like by words: a masked
//! language model says for each token of a text what else might stand there (SPLADE, Formal et al.
//! 2021).
//!
//! Not here: the postings of such weights (`text`), and the search over them (`engine`).
//!
//! ```text
//! document -> tokens -> encoder -> head: logits of the vocabulary for each token
//!                    -> log(1 + max(0, logit)), the greatest over the tokens
//! query    -> the same, or, without the encoder: its tokens with the weights of a table
//! ```
//!
//! - `parts`: the steps that a directory describes; `head`: from token states to logits

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

/// Tokens of a vocabulary with their weights, which are greater than 0, ascending by token.
pub type SparseVector = Vec<(u32, f32)>;

/// Tokens whose logits are computed at once: with 250,000 tokens in the vocabulary they take 32 MB.
const SLAB_TOKENS: usize = 32;

/// A sparse model with its worker threads.
#[derive(Debug)]
pub struct SparseModel {
    name: String,
    fingerprint: String,
    arithmetic: Arithmetic,
    tokeniser: Tokeniser,
    prompts: Prompts,
    /// Tokenizer and weights of queries; `None` where the encoder reads them too.
    table: Option<(Tokeniser, Vec<f32>)>,
    queue: Queue,
}

impl SparseModel {
    /// Loads a model and starts `workers` threads for it, each of which computes on its own.
    ///
    /// # Errors
    /// [`EmbedError`] naming the malformed, missing or unsupported part of the files; a model that
    /// is no sparse encoder is unsupported.
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

    /// The model's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Hexadecimal SHA-256 over everything that decides the vector of a document.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The bytes of [`Self::fingerprint`].
    pub fn id(&self) -> [u8; 32] {
        let mut id = [0; 32];
        hex::decode_to_slice(&self.fingerprint, &mut id).expect("SHA-256 in hexadecimal digits");
        id
    }

    /// Arithmetic of the encoder.
    pub fn arithmetic(&self) -> Arithmetic {
        self.arithmetic
    }

    /// Whether the encoder reads queries, too, and not a table of weights in its place.
    pub fn reads_queries(&self) -> bool {
        self.table.is_none()
    }

    /// The vectors of documents, in their order, each of its [`limits::SPARSE_TERMS_MAX`] heaviest
    /// tokens at most. Blocks as [`crate::Embedder::embed_within`].
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

    /// The vector of a query, of its [`limits::SPARSE_QUERY_TERMS_MAX`] heaviest tokens at most.
    ///
    /// # Errors
    /// As [`crate::Embedder::embed_within`] in the lane of queries.
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

    /// As [`crate::Embedder::close`].
    pub fn close(&self) {
        self.queue.close();
    }
}

/// Tokens and weights as the queue carries them, one number after the other. A token is below 2^20
/// (`config`), which a float holds exactly.
fn pairs(numbers: &[f32]) -> SparseVector {
    numbers.as_chunks::<2>().0.iter().map(|[token, weight]| (*token as u32, *weight)).collect()
}

/// The `max` heaviest tokens, ascending by token; of equal ones the first.
fn heaviest(mut vector: SparseVector, max: usize) -> SparseVector {
    if vector.len() > max {
        vector.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        vector.truncate(max);
        vector.sort_unstable_by_key(|(token, _)| *token);
    }
    vector
}

/// The encoder with its head, as a forward pass. The vector of a passage are its tokens and weights
/// as [`pairs`] reads them.
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
    /// Weights of the vocabulary for the states of one passage. Logarithms rise, so that the
    /// greatest logit has the greatest weight.
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
