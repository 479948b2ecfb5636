//! The trait of embedders, which the rest of the server uses.

use std::fmt;
use std::ops::Range;
use std::time::{Duration, Instant};

use crate::{EmbedError, EmbedMeters, Role};
use lodestone_types::RequestContext;

/// Priority of an embedding call, and the role of its texts unless [`Embedder::embed_as`] tells
/// another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// A query that a user waits for: goes before everything else.
    Query,
    /// The many texts of an answer or of a memory that a user waits for: goes before documents.
    Answer,
    /// Documents being ingested: fills the machine when nobody waits.
    Bulk,
}

impl Lane {
    pub(super) const ALL: [Self; 3] = [Self::Query, Self::Answer, Self::Bulk];

    /// The role of its texts: those of the query lane are queries.
    pub fn role(self) -> Role {
        match self {
            Self::Query => Role::Query,
            Self::Answer | Self::Bulk => Role::Document,
        }
    }

    /// Its name in measurements.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Answer => "answer",
            Self::Bulk => "bulk",
        }
    }
}

/// Counters of the model's work since it was loaded. They only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct EmbedStats {
    /// Seconds of worker threads inside the forward pass, summed over workers.
    pub model_seconds: f64,
    /// Tokens through the model, framing included.
    pub tokens: u64,
    /// Texts through the model.
    pub passages: u64,
    /// Batches that a GPU computed.
    pub device_batches: u64,
    /// Batches for a GPU that the CPU computed instead.
    pub device_fallbacks: u64,
}

/// A model that gives no vectors for now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failing {
    /// The first failure since it last answered.
    pub since: Instant,
    /// The reason, without addresses.
    pub problem: String,
}

/// Text to vectors. Blocking: call it from a thread that may wait.
///
/// The same text gives the same vector, alone or with others, but for float rounding (API 8.22).
pub trait Embedder: Send + Sync + fmt::Debug {
    /// Numbers in a vector.
    fn dimension(&self) -> usize;

    /// The model's name on the wire.
    fn name(&self) -> &str;

    /// Hexadecimal hash over everything that decides a vector. Vectors are comparable only when
    /// the fingerprints of their embedders are equal.
    fn fingerprint(&self) -> &str;

    /// Why it gives no vectors for now; `None` where nothing is known to be wrong.
    fn failing(&self) -> Option<Failing> {
        None
    }

    /// Byte ranges of the tokens of `text`: whole text, nothing cut, no framing tokens. Starts
    /// never descend; neighbours share bytes where one character becomes several tokens.
    /// Takes time linear in the text.
    fn token_offsets(&self, text: &str) -> Vec<Range<usize>>;

    /// Byte ranges of the words of `text` that the vocabulary does not hold, not even in pieces.
    fn unknown(&self, _text: &str) -> Vec<Range<usize>> {
        Vec::new()
    }

    /// Tokens of `text` that the model reads, framing left out, and whether it cuts the rest.
    fn tokens_read(&self, text: &str) -> (usize, bool) {
        (self.token_offsets(text).len(), false)
    }

    /// The text of ids of the model's vocabulary; `None` where it lacks one of them.
    fn text_of_tokens(&self, _ids: &[u32]) -> Option<String> {
        None
    }

    /// Whether the first numbers of a vector are one by themselves, so many of them.
    fn may_shorten_to(&self, dimension: usize) -> bool {
        dimension == self.dimension()
    }

    /// Whether its vocabulary is made for many scripts, some of which it reads letter by letter.
    fn is_multilingual(&self) -> bool {
        false
    }

    /// Share of the letters of `text` that the model cannot read: those of unknown words, and
    /// those outside ASCII that are a token each. A model knows its own languages by words and
    /// pieces of words, and spells what it does not know, unless it is made for many scripts. 0
    /// for a text without letters.
    fn unread_share(&self, text: &str) -> f32 {
        if text.is_ascii() {
            return 0.0;
        }
        let letters = |range: Range<usize>| text[range].chars().filter(|c| c.is_alphabetic());
        let all = letters(0..text.len()).count();
        let is_spelt = |range: &Range<usize>| {
            let mut own = letters(range.clone());
            own.next().is_some_and(|c| !c.is_ascii()) && own.next().is_none()
        };
        let spelt = match self.is_multilingual() {
            true => 0,
            false => self.token_offsets(text).into_iter().filter(is_spelt).count(),
        };
        let in_unknown = |range: Range<usize>| match letters(range).count() {
            // Counted above, unless it is ASCII, of which no vocabulary lacks a letter.
            0 | 1 if !self.is_multilingual() => 0,
            count => count,
        };
        let unknown: usize = self.unknown(text).into_iter().map(in_unknown).sum();
        if all == 0 { 0.0 } else { ((spelt + unknown) as f32 / all as f32).min(1.0) }
    }

    /// One vector of length 1 for each text, in the order of the texts. A text longer than the
    /// model's window is cut there. Blocks until all are done or the request is over; in lanes
    /// other than [`Lane::Query`] also while the queue is full. In each lane tenants take turns.
    ///
    /// # Errors
    /// [`EmbedError::Overloaded`] when too many queries of the tenant wait,
    /// [`EmbedError::Stopped`] when the request is over, [`EmbedError::Closed`] after
    /// [`Embedder::close`], otherwise errors of the model. On an error no vector is returned.
    fn embed_within(
        &self,
        lane: Lane,
        context: &RequestContext,
        texts: Vec<String>,
    ) -> Result<Vec<Vec<f32>>, EmbedError>;

    /// Vectors of texts with roles of their own, which models with prompts tell apart.
    ///
    /// # Errors
    /// As [`Self::embed_within`].
    fn embed_as(
        &self,
        lane: Lane,
        context: &RequestContext,
        texts: Vec<(Role, String)>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.embed_within(lane, context, texts.into_iter().map(|(_, text)| text).collect())
    }

    /// Vectors of texts for the server's own work, which has no deadline.
    ///
    /// # Errors
    /// As [`Self::embed_within`].
    fn embed(&self, lane: Lane, texts: Vec<String>) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.embed_within(lane, &RequestContext::default(), texts)
    }

    /// Counters of the work so far.
    fn stats(&self) -> EmbedStats;

    /// Measurements of its queue, where it has one.
    fn meters(&self) -> Option<&EmbedMeters> {
        None
    }

    /// Whether its weights are in memory.
    fn is_loaded(&self) -> bool {
        true
    }

    /// Time since its last use, where its weights are in memory and may leave it.
    fn idle_for(&self) -> Option<Duration> {
        None
    }

    /// Has weights leave the memory that were not used for `idle`, where they may: the next use
    /// loads them again. Returns whether they did.
    fn unload(&self, _idle: Duration) -> bool {
        false
    }

    /// Fails everything that still waits and refuses what comes later; the batches in progress
    /// are finished. May be called more than once.
    fn close(&self);
}
