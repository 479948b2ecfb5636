//! A cross-encoder: reads query and passage together. A sequence classifier (Nogueira and Cho 2019)
//! on an encoder of any family, such as cross-encoder/ms-marco-MiniLM-L-6-v2, behind [`Reranker`].
//!
//! Out of scope: the choice of candidates and the weight of their scores (`engine`, `rank`).
//!
//! ```text
//! query, passages -> pairs   [CLS] query [SEP] passage [SEP], truncated to the window
//!                 -> queue   its own workers, the query lane only: searches take turns
//!                 -> encoder packed batch -> token states
//!                 -> head    state of the first token -> pooler -> classifier -> 0 to 1
//! ```
//!
//! Invariants:
//! - A score depends on its pair only, to the bit: every sum in the encoder runs over one token or
//!   one pair, in an order that does not depend on the batch.
//! - One call reads a bounded number of tokens, and a bounded number of calls wait; further calls
//!   are refused, and their searches proceed without scores.
//! - At its deadline a call returns the scores computed so far, for the first of its passages.
//!
//! Modules:
//! - `pairs`: encodes two texts as one pair of token ids and types; `head`: the layers after the
//!   encoder
//! - `reader`: the built-in cross-encoder

mod head;
mod pairs;
mod reader;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

use crate::config::{ModelConfig, Pooling};
use crate::fingerprints::fingerprint;
use crate::forward::Forward;
use crate::lanes::QueuedText;
use crate::precision::Precision;
use crate::queue::{Queue, QueueBounds};
use crate::sentence::Encoder;
use crate::tokens::Tokeniser;
use crate::weights::Weights;
use crate::{EmbedError, Lane, ModelFiles};
use head::Head;
use lodestone_rank::{RerankError, Reranker, Verdicts};
use lodestone_types::{RequestContext, limits};
use pairs::Pairs;

/// Maximum tokens of a batch: a few pairs, so that workers share the pairs of one search.
const BATCH_TOKENS: usize = limits::EMBED_BATCH_TOKENS / 2;
/// Maximum waiting tokens of one tenant's searches. They take turns pair by pair, so that all of
/// them have their first passages scored by their deadlines.
const WAITING_TOKENS_MAX: usize = 16 * limits::RERANK_TOKENS_MAX;

/// Nothing waits in the lanes other than that of queries.
const BOUNDS: QueueBounds = QueueBounds {
    batch: BATCH_TOKENS,
    call: BATCH_TOKENS,
    lane: BATCH_TOKENS,
    query: WAITING_TOKENS_MAX,
};

/// A cross-encoder with its worker threads.
#[derive(Debug)]
pub struct CrossEncoder {
    name: String,
    fingerprint: String,
    pairs: Pairs,
    queue: Queue,
}

impl CrossEncoder {
    /// Loads a model and starts `workers` threads for it, each of which computes single-threaded.
    ///
    /// # Errors
    /// [`EmbedError`] naming the malformed, missing or unsupported part of the files; a model that
    /// does not classify pairs is unsupported.
    pub fn load(files: &ModelFiles, workers: usize) -> Result<Self, EmbedError> {
        Self::load_in(files, workers, Precision::F32)
    }

    /// Loads a model like [`Self::load`], at reduced precision if `precision` allows it.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn load_in(
        files: &ModelFiles,
        workers: usize,
        precision: Precision,
    ) -> Result<Self, EmbedError> {
        let labels = head::labels(&files.config)?;
        let config = ModelConfig::parse(&files.config, Pooling::Mean)?;
        let tokeniser = Tokeniser::parse(&files.tokenizer, config.vocabulary, config.window())?;
        let pairs = Pairs::new(tokeniser, config.token_types)?;
        let weights = Weights::parse(&files.weights)?;
        let fingerprint = fingerprint(&config, files, "", &[]);
        let head = Head::new(&config, &files.config, &weights, labels)?;
        let encoder = Encoder::new(&config, &weights, precision)?;
        let queue = Queue::start(Arc::new(PairScorer { encoder, head }), workers, BOUNDS);
        Ok(Self { name: files.name.clone(), fingerprint, pairs, queue })
    }

    /// Returns a hexadecimal hash over everything that determines a score.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Returns the number of tokens read so far, including framing tokens, plus one per pair.
    #[cfg(test)]
    fn tokens_read(&self) -> u64 {
        self.queue.stats().tokens
    }

    /// Pairs the query with the first passages, as many as one search may read.
    fn first_pairs(&self, query: &str, passages: &[&str]) -> Result<Vec<Vec<u32>>, EmbedError> {
        let query = self.pairs.query(query)?;
        let mut pairs = Vec::with_capacity(passages.len());
        let mut tokens = 0;
        for passage in passages {
            let pair = self.pairs.ids(&query, passage)?;
            tokens += pair.len();
            if tokens > limits::RERANK_TOKENS_MAX && !pairs.is_empty() {
                break;
            }
            pairs.push(pair);
        }
        Ok(pairs)
    }

    fn scores(
        &self,
        context: &RequestContext,
        until: Option<Instant>,
        query: &str,
        passages: &[&str],
    ) -> Result<Verdicts, EmbedError> {
        let pairs = self.first_pairs(query, passages)?;
        let count = pairs.len();
        let reply = self.queue.call(context, count);
        let waiting = pairs.into_iter().enumerate();
        let waiting = waiting.map(|(index, ids)| QueuedText::new(ids, &reply, index));
        let pushed = self.queue.push(Lane::Query, &reply, waiting.collect());
        let scores = pushed.and_then(|()| reply.wait_until(until));
        let is_whole = scores.as_ref().is_ok_and(|scores| scores.len() == count);
        if !is_whole {
            self.queue.abandon(&reply);
        }
        let scores = scores?.into_iter().flatten().collect();
        Ok(Verdicts { scores, is_cut_short: !is_whole })
    }

    /// Returns the number of tokens of waiting pairs.
    #[cfg(test)]
    fn waiting(&self) -> usize {
        self.queue.waiting(Lane::Query)
    }
}

impl Reranker for CrossEncoder {
    fn name(&self) -> &str {
        &self.name
    }

    fn score(
        &self,
        context: &RequestContext,
        until: Option<Instant>,
        query: &str,
        passages: &[&str],
    ) -> Result<Verdicts, RerankError> {
        self.scores(context, until, query, passages)
            .map_err(|error| RerankError::new(error.kind(), error))
    }

    fn close(&self) {
        self.queue.close();
    }
}

/// The encoder with its head, as a forward pass. The "vector" of a pair is its score.
#[derive(Debug)]
struct PairScorer {
    encoder: Encoder,
    head: Head,
}

impl Forward for PairScorer {
    fn forward(
        &self,
        batch: &[&[u32]],
        pause: &mut dyn FnMut(),
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let (second_from, ids): (Vec<usize>, Vec<&[u32]>) =
            batch.iter().map(|pair| pairs::split(pair)).unzip();
        self.encoder.each(&ids, Some(&second_from), pause, |states, hidden, _| {
            Ok(vec![self.head.score(states, hidden)?])
        })
    }
}
