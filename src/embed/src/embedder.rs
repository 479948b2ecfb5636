//! The [`Embedder`] trait, through which the rest of the server embeds texts.

use std::fmt;
use std::ops::Range;
use std::time::{Duration, Instant};

use crate::{EmbedError, EmbedMeters, Role};
use lodestone_types::RequestContext;

/// Priority of an embedding call. Also decides the role of its texts, unless [`Embedder::embed_as`]
/// gives them explicitly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Queries that a user waits for; served before everything else.
    Query,
    /// The many texts of an answer or a memory that a user waits for; served before documents.
    Answer,
    /// Documents being ingested; uses the capacity that the other lanes leave.
    Bulk,
}

impl Lane {
    pub(super) const ALL: [Self; 3] = [Self::Query, Self::Answer, Self::Bulk];

    /// Returns the default role of the lane's texts: queries in the query lane, otherwise
    /// documents.
    pub fn role(self) -> Role {
        match self {
            Self::Query => Role::Query,
            Self::Answer | Self::Bulk => Role::Document,
        }
    }

    /// Returns the lane's name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Answer => "answer",
            Self::Bulk => "bulk",
        }
    }
}

/// Counters of the work done since the model was loaded. They never decrease.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct EmbedStats {
    /// Seconds that worker threads spent in the forward pass, summed over workers.
    pub model_seconds: f64,
    /// Tokens processed, including framing tokens.
    pub tokens: u64,
    /// Texts processed.
    pub passages: u64,
    /// Batches that a GPU computed.
    pub device_batches: u64,
    /// Batches meant for a GPU that the CPU computed instead.
    pub device_fallbacks: u64,
}

/// Describes a model that currently fails to produce vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failing {
    /// Time of the first failure since the last success.
    pub since: Instant,
    /// The reason, without network addresses.
    pub problem: String,
}

/// An embedding model: turns texts into vectors. Calls block, so call it from a thread that may
/// wait.
///
/// A text has one vector, whether it is embedded alone or with others, up to float rounding.
pub trait Embedder: Send + Sync + fmt::Debug {
    /// Returns the number of components of a vector.
    fn dimension(&self) -> usize;

    /// Returns the model's name as used in the API.
    fn name(&self) -> &str;

    /// Returns a hexadecimal hash over everything that determines a vector. Vectors are comparable
    /// only if the fingerprints of their embedders are equal.
    fn fingerprint(&self) -> &str;

    /// Describes the current failure; `None` if no problem is known.
    fn failing(&self) -> Option<Failing> {
        None
    }

    /// Returns the byte ranges of the tokens of the whole `text`, without truncation and without
    /// framing tokens. Starts never decrease; neighbours overlap if one character becomes several
    /// tokens. Takes time linear in the length of the text.
    fn token_offsets(&self, text: &str) -> Vec<Range<usize>>;

    /// Returns the byte ranges of words that the vocabulary cannot represent, not even in pieces.
    fn unknown(&self, _text: &str) -> Vec<Range<usize>> {
        Vec::new()
    }

    /// Returns the number of tokens of `text` that the model reads, without framing tokens, and
    /// whether it truncates the text.
    fn tokens_read(&self, text: &str) -> (usize, bool) {
        (self.token_offsets(text).len(), false)
    }

    /// Decodes token ids of the model's vocabulary; `None` if one of them is not in it.
    fn text_of_tokens(&self, _ids: &[u32]) -> Option<String> {
        None
    }

    /// Whether the first `dimension` components of a vector are themselves a valid embedding, as in
    /// models with Matryoshka training.
    fn may_shorten_to(&self, dimension: usize) -> bool {
        dimension == self.dimension()
    }

    /// Whether the vocabulary covers many scripts. Such a model may read some of them letter by
    /// letter.
    fn is_multilingual(&self) -> bool {
        false
    }

    /// Returns the share of the letters of `text`, 0 to 1, that the model cannot read: letters of
    /// unknown words, and non-ASCII letters that are tokens of their own. A model represents
    /// languages that it was trained on by words and word pieces and spells out the rest; for a
    /// model of many scripts, spelling is no sign of an unknown language. Returns 0 for a text
    /// without letters.
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
            // Already counted as spelt, unless it is ASCII, and no vocabulary lacks an ASCII
            // letter.
            0 | 1 if !self.is_multilingual() => 0,
            count => count,
        };
        let unknown: usize = self.unknown(text).into_iter().map(in_unknown).sum();
        if all == 0 { 0.0 } else { ((spelt + unknown) as f32 / all as f32).min(1.0) }
    }

    /// Embeds texts: returns one unit vector per text, in the order of the texts. A text longer
    /// than the model's window is truncated. Blocks until all are done or the request is over; in
    /// lanes other than [`Lane::Query`] also while the queue is full. Tenants take turns within
    /// each lane.
    ///
    /// # Errors
    /// [`EmbedError::Overloaded`] if too many queries of the tenant are waiting,
    /// [`EmbedError::Stopped`] if the request is over, [`EmbedError::Closed`] after
    /// [`Embedder::close`], otherwise errors of the model. On an error, no vector is returned.
    fn embed_within(
        &self,
        lane: Lane,
        context: &RequestContext,
        texts: Vec<String>,
    ) -> Result<Vec<Vec<f32>>, EmbedError>;

    /// Embeds texts with an explicit role each, which matters to models that have prompts.
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

    /// Embeds texts for the server's own work, which has no deadline.
    ///
    /// # Errors
    /// As [`Self::embed_within`].
    fn embed(&self, lane: Lane, texts: Vec<String>) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.embed_within(lane, &RequestContext::default(), texts)
    }

    /// Returns the counters of the work done so far.
    fn stats(&self) -> EmbedStats;

    /// Returns the metrics of the queue, if there is one.
    fn meters(&self) -> Option<&EmbedMeters> {
        None
    }

    /// Whether the weights are in memory.
    fn is_loaded(&self) -> bool {
        true
    }

    /// Returns the time since the last use, if the weights are in memory and can be unloaded.
    fn idle_for(&self) -> Option<Duration> {
        None
    }

    /// Unloads weights that were idle for at least `idle`, if the embedder supports it; the next
    /// use reloads them. Returns whether it unloaded them.
    fn unload(&self, _idle: Duration) -> bool {
        false
    }

    /// Fails all waiting work and refuses new calls; batches in progress are completed. May be
    /// called more than once.
    fn close(&self);
}
