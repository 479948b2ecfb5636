//! An embedder without a model, for tests of every crate.

use std::fmt;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;
use xxhash_rust::xxh3::xxh3_64;

use crate::{EmbedError, EmbedStats, Embedder, Lane};
use lodestone_types::RequestContext;

/// Numbers in a vector of [`HashEmbedder`].
const DIMENSION: usize = 64;

/// A bag of words hashed into 64 numbers, deterministic and instant.
///
/// **Not a model.** Texts that share words are near each other and nothing else is; no setting
/// leads here. It is for tests and benches that need an [`Embedder`] and not its meaning.
#[derive(Debug, Clone, Copy, Default)]
pub struct HashEmbedder;

impl HashEmbedder {
    /// The vector of `text`: each word, without case, adds 1 or -1 at a place of its hash.
    pub fn vector(text: &str) -> Vec<f32> {
        let mut vector = vec![0.0f32; DIMENSION];
        for word in text.unicode_words() {
            let hash = xxh3_64(word.to_lowercase().as_bytes());
            let sign = if hash >> 63 == 0 { 1.0 } else { -1.0 };
            vector[(hash % DIMENSION as u64) as usize] += sign;
        }
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        if length == 0.0 {
            vector[0] = 1.0;
            return vector;
        }
        for x in &mut vector {
            *x /= length;
        }
        vector
    }
}

impl Embedder for HashEmbedder {
    fn dimension(&self) -> usize {
        DIMENSION
    }

    fn name(&self) -> &str {
        "hashing-test-double"
    }

    fn fingerprint(&self) -> &str {
        "hashing-test-double-1"
    }

    fn token_offsets(&self, text: &str) -> Vec<Range<usize>> {
        text.unicode_word_indices().map(|(start, word)| start..start + word.len()).collect()
    }

    fn embed_within(
        &self,
        _: Lane,
        _: &RequestContext,
        texts: Vec<String>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        Ok(texts.iter().map(|text| Self::vector(text)).collect())
    }

    fn stats(&self) -> EmbedStats {
        EmbedStats::default()
    }

    fn close(&self) {}
}

/// A test double: [`HashEmbedder`] with a method of its own in place of its embedding.
pub trait EmbedderDouble: Send + Sync + fmt::Debug {
    /// In place of [`Embedder::embed_within`].
    ///
    /// # Errors
    /// The double's.
    fn embed_within(
        &self,
        lane: Lane,
        context: &RequestContext,
        texts: Vec<String>,
    ) -> Result<Vec<Vec<f32>>, EmbedError>;

    /// In place of [`Embedder::fingerprint`].
    fn fingerprint(&self) -> &str {
        HashEmbedder.fingerprint()
    }

    /// In place of [`Embedder::close`].
    fn close(&self) {}
}

impl<T: EmbedderDouble> Embedder for T {
    fn dimension(&self) -> usize {
        HashEmbedder.dimension()
    }

    fn name(&self) -> &str {
        HashEmbedder.name()
    }

    fn fingerprint(&self) -> &str {
        EmbedderDouble::fingerprint(self)
    }

    fn token_offsets(&self, text: &str) -> Vec<Range<usize>> {
        HashEmbedder.token_offsets(text)
    }

    fn embed_within(
        &self,
        lane: Lane,
        context: &RequestContext,
        texts: Vec<String>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        EmbedderDouble::embed_within(self, lane, context, texts)
    }

    fn stats(&self) -> EmbedStats {
        HashEmbedder.stats()
    }

    fn close(&self) {
        EmbedderDouble::close(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_words_bring_texts_together() {
        let texts = ["Red apples fall", "red APPLES, fall!", "quiet winter night", ""];
        let vectors: Vec<_> = texts.iter().map(|text| HashEmbedder::vector(text)).collect();
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
        assert!((dot(&vectors[0], &vectors[1]) - 1.0).abs() < 1e-6);
        assert!(dot(&vectors[0], &vectors[2]) < 0.9);
        assert!((dot(&vectors[3], &vectors[3]) - 1.0).abs() < 1e-6);
        assert_eq!(HashEmbedder.token_offsets("a bc"), [0..1, 2..4]);
    }
}
