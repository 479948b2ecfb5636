//! Metrics of the queue in front of the model.

use crate::Lane;
use lodestone_metrics::{BATCH_TOKENS, Histogram, LEG_SECONDS, Labelled, Registry};

/// Metrics of the queue, by lane.
#[derive(Debug, Clone)]
pub struct EmbedMeters {
    batch_tokens: Labelled<Histogram, 3>,
    queue_seconds: Labelled<Histogram, 3>,
}

impl Default for EmbedMeters {
    fn default() -> Self {
        let names = Lane::ALL.map(Lane::as_str);
        Self {
            batch_tokens: Labelled::new("lane", names, || Histogram::new(BATCH_TOKENS)),
            queue_seconds: Labelled::new("lane", names, || Histogram::new(LEG_SECONDS)),
        }
    }
}

impl EmbedMeters {
    /// Registers the metrics.
    pub fn enter(&self, registry: &mut Registry) {
        let help = "Tokens per batch of the embedding model";
        registry.enter("embed_batch_tokens", help, &self.batch_tokens);
        let help = "Seconds that a text waited for the embedding model";
        registry.enter("embed_queue_seconds", help, &self.queue_seconds);
    }

    /// Records the start of a batch of `tokens` tokens, and the waiting times of its texts.
    pub(super) fn begin_batch(
        &self,
        lane: Lane,
        tokens: usize,
        waited_seconds: impl Iterator<Item = f64>,
    ) {
        self.batch_tokens.at(lane as usize).observe(tokens as f64);
        let queue_seconds = self.queue_seconds.at(lane as usize);
        waited_seconds.for_each(|seconds| queue_seconds.observe(seconds));
    }
}
