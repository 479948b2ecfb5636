//! Query and passage read together: a sequence classifier (Nogueira and Cho 2019) of any family of
//! encoders, such as cross-encoder/ms-marco-MiniLM-L-6-v2, behind [`Reranker`].
//!
//! Not here: the choice of candidates and the weight of their scores (`engine`, `rank`).
//!
//! ```text
//! query, passages -> pairs   [CLS] query [SEP] passage [SEP], cut at the window
//!                 -> queue   workers of its own, the query lane alone
//!                 -> encoder packed batch -> token states
//!                 -> head    state of the first token -> pooler -> classifier -> 0 to 1
//! ```
//!
//! Invariants:
//! - A score depends on its pair only, to the bit: every sum of the encoder runs over one token or
//!   over one pair, in an order that does not change with the batch.
//! - One call reads a bounded number of tokens, and a bounded number of calls wait; others are
//!   refused, and their searches go on without.
//!
//! - `pairs`: two texts to the ids and token types of one; `head`: the layers behind the encoder

mod head;
mod pairs;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

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
use lodestone_rank::{RerankError, Reranker};
use lodestone_types::{RequestContext, limits};
use pairs::Pairs;

/// Tokens of a batch at most: a few pairs, so that workers share the pairs of one search.
const BATCH_TOKENS: usize = limits::EMBED_BATCH_TOKENS / 2;
/// Searches of one tenant that wait at most, by their tokens.
const WAITING_TOKENS_MAX: usize = 4 * limits::RERANK_TOKENS_MAX;

/// Nothing waits in the other lanes.
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
    /// Loads a model and starts `workers` threads for it, each of which computes on its own.
    ///
    /// # Errors
    /// [`EmbedError`] naming the malformed, missing or unsupported part of the files; a model that
    /// does not classify pairs is unsupported.
    pub fn load(files: &ModelFiles, workers: usize) -> Result<Self, EmbedError> {
        let labels = head::labels(&files.config)?;
        let config = ModelConfig::parse(&files.config, Pooling::Mean)?;
        let tokeniser = Tokeniser::parse(&files.tokenizer, config.vocabulary, config.window())?;
        let pairs = Pairs::new(tokeniser, config.token_types)?;
        let weights = Weights::parse(&files.weights)?;
        let fingerprint = fingerprint(&config, files, "", &[]);
        let head = Head::new(&config, &files.config, &weights, labels)?;
        let encoder = Encoder::new(&config, &weights, Precision::F32)?;
        let queue = Queue::start(Arc::new(PairScorer { encoder, head }), workers, BOUNDS);
        Ok(Self { name: files.name.clone(), fingerprint, pairs, queue })
    }

    /// Hexadecimal hash over everything that decides a score.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Tokens that the model has read so far, framing included, and one more for each pair.
    #[cfg(test)]
    fn tokens_read(&self) -> u64 {
        self.queue.stats().tokens
    }

    /// The first passages, as many as may be read for one search, each behind the query.
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
        query: &str,
        passages: &[&str],
    ) -> Result<Vec<f32>, EmbedError> {
        let pairs = self.first_pairs(query, passages)?;
        let reply = self.queue.call(context, pairs.len());
        let waiting = pairs.into_iter().enumerate();
        let waiting = waiting.map(|(index, ids)| QueuedText::new(ids, &reply, index));
        let pushed = self.queue.push(Lane::Query, &reply, waiting.collect());
        let scores = pushed.and_then(|()| reply.wait());
        let scores = scores.inspect_err(|_| self.queue.abandon(&reply))?;
        Ok(scores.into_iter().flatten().collect())
    }
}

impl Reranker for CrossEncoder {
    fn name(&self) -> &str {
        &self.name
    }

    fn score(
        &self,
        context: &RequestContext,
        query: &str,
        passages: &[&str],
    ) -> Result<Vec<f32>, RerankError> {
        self.scores(context, query, passages).map_err(|error| RerankError::new(error.kind(), error))
    }

    fn close(&self) {
        self.queue.close();
    }
}

/// The encoder with its head, as a forward pass. The vector of a pair is its score alone.
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
        let (states, spans) = self.encoder.states(&ids, Some(&second_from), pause)?;
        let hidden = states.len() / spans.last().map_or(1, |span| span.end);
        let score = |span: &Range<usize>| {
            let states = &states[span.start * hidden..span.end * hidden];
            Ok(vec![self.head.score(states, hidden)?])
        };
        spans.iter().map(score).collect()
    }
}
