//! An embedder without a model, for tests of all crates.

use std::fmt;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;
use xxhash_rust::xxh3::xxh3_64;

use crate::{EmbedError, EmbedStats, Embedder, Lane};
use lodestone_types::RequestContext;

/// Number of components of a vector of [`HashEmbedder`].
const DIMENSION: usize = 64;

/// Hashes a bag of words into 64 components; deterministic and instant.
///
/// **Not a model.** Texts are similar only if they share words, and no setting enables it. It is
/// for tests and benches that need an [`Embedder`] but not semantic vectors.
#[derive(Debug, Clone, Copy, Default)]
pub struct HashEmbedder;

impl HashEmbedder {
    /// Returns the vector of `text`: each word, ignoring case, adds 1 or -1 to a component chosen
    /// by its hash.
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

/// A test double: [`HashEmbedder`] with its own method for embedding.
pub trait EmbedderDouble: Send + Sync + fmt::Debug {
    /// Replaces [`Embedder::embed_within`].
    ///
    /// # Errors
    /// Defined by the double.
    fn embed_within(
        &self,
        lane: Lane,
        context: &RequestContext,
        texts: Vec<String>,
    ) -> Result<Vec<Vec<f32>>, EmbedError>;

    /// Replaces [`Embedder::fingerprint`].
    fn fingerprint(&self) -> &str {
        HashEmbedder.fingerprint()
    }

    /// Replaces [`Embedder::close`].
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
