//! Vectors of texts that were embedded lately: people ask again and turn pages, an answer reads the
//! question that its search has read, and the same chunks answer many questions.

use std::collections::HashMap;

use parking_lot::Mutex;
use xxhash_rust::xxh3::Xxh3;

use lodestone_embed::{EmbedError, Embedder, Lane, Role};
use lodestone_types::{CollectionId, RequestContext};

/// Vectors of the younger half at most: both are some 13 MiB at 384 numbers a vector.
const HALF_MAX: usize = 4096;

/// Hash of a text, its tenant and sub-tenant, and the model: nobody can tell by the time of an
/// answer what another tenant stores or asks.
type Key = u128;

/// The last vectors that were used. Those not used while [`HALF_MAX`] others were leave.
#[derive(Debug, Default)]
pub(crate) struct RecentVectors(Mutex<Halves>);

#[derive(Debug, Default)]
struct Halves {
    younger: HashMap<Key, Vec<f32>>,
    older: HashMap<Key, Vec<f32>>,
}

/// A text with the sub-tenant that asks it or stores it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnedText<'a> {
    pub(crate) sub_tenant: &'a str,
    pub(crate) role: Role,
    pub(crate) text: &'a str,
}

impl RecentVectors {
    /// The vectors of texts, in their order. Blocking: one call of the
    /// model for those that are not known.
    ///
    /// # Errors
    /// As [`Embedder::embed_as`].
    pub(crate) fn embed(
        &self,
        model: &dyn Embedder,
        lane: Lane,
        context: &RequestContext,
        texts: &[OwnedText<'_>],
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let keys: Vec<Key> =
            texts.iter().map(|text| key_of(model.fingerprint(), context.tenant(), *text)).collect();
        let mut vectors: Vec<_> = keys.iter().map(|key| self.get(*key)).collect();
        let missing = texts.iter().zip(&vectors).filter(|(_, vector)| vector.is_none());
        let missing: Vec<_> = missing.map(|(one, _)| (one.role, one.text.to_owned())).collect();
        if !missing.is_empty() {
            let mut made = model.embed_as(lane, context, missing)?.into_iter();
            for (key, vector) in keys.into_iter().zip(&mut vectors) {
                if vector.is_none() {
                    *vector = made.next();
                    self.keep(key, vector.as_ref().expect("a vector for each text"));
                }
            }
        }
        Ok(vectors.into_iter().flatten().collect())
    }

    fn get(&self, key: Key) -> Option<Vec<f32>> {
        let mut halves = self.0.lock();
        if let Some(vector) = halves.younger.get(&key) {
            return Some(vector.clone());
        }
        let vector = halves.older.remove(&key)?;
        halves.insert(key, vector.clone());
        Some(vector)
    }

    fn keep(&self, key: Key, vector: &[f32]) {
        self.0.lock().insert(key, vector.to_vec());
    }
}

impl Halves {
    fn insert(&mut self, key: Key, vector: Vec<f32>) {
        if self.younger.len() >= HALF_MAX {
            self.older = std::mem::take(&mut self.younger);
        }
        self.younger.insert(key, vector);
    }
}

fn key_of(model: &str, tenant: Option<CollectionId>, owned: OwnedText<'_>) -> Key {
    let OwnedText { sub_tenant, role, text } = owned;
    let mut hash = Xxh3::new();
    hash.update(&tenant.map_or(0, |tenant| tenant.0.as_u128()).to_le_bytes());
    hash.update(&[u8::from(role == Role::Query)]);
    for part in [model, sub_tenant, text] {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.digest128()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::answer::tests::chunk;
    use crate::answer::{Answer, Answerer, SourceOrder};
    use lodestone_embed::{EmbedderDouble, HashEmbedder};
    use lodestone_types::{RetrievedChunk, SubTenantId};

    /// The test model, with the number of texts of each call.
    #[derive(Debug, Default)]
    struct Counting(Mutex<Vec<usize>>);

    impl EmbedderDouble for Counting {
        fn embed_within(
            &self,
            lane: Lane,
            context: &RequestContext,
            texts: Vec<String>,
        ) -> Result<Vec<Vec<f32>>, EmbedError> {
            self.0.lock().push(texts.len());
            HashEmbedder.embed_within(lane, context, texts)
        }
    }

    /// A text is read once for its tenant and sub-tenant, and the answer is the same.
    #[test]
    fn texts_are_read_once_for_each_tenant() {
        let model = Arc::new(Counting::default());
        let answerer = Answerer::new(Arc::clone(&model));
        let text = "The blue pump lifts 42 litres. The red pump lifts 17 litres.";
        let chunks = [chunk("pumps", 0, text, 0.9)];
        let ask = |tenant: &str, question: &str, chunks: &[RetrievedChunk]| -> Answer {
            let tenant = tenant.repeat(32).parse().unwrap();
            let context = RequestContext::default().of_tenant(tenant);
            answerer.answer(&context, question, chunks, &[], SourceOrder::ByUse).unwrap()
        };
        let first = ask("1", "How many litres does the blue pump lift?", &chunks);
        let again = ask("1", "How many litres does the blue pump lift?", &chunks);
        assert_eq!(first, again);
        ask("1", "What does the red pump lift?", &chunks);
        assert_eq!(*model.0.lock(), [3, 1]);
        assert_eq!(first, ask("2", "How many litres does the blue pump lift?", &chunks));
        let mut north = chunks.clone();
        Arc::make_mut(&mut north[0].source).sub_tenant = SubTenantId::parse("north").unwrap();
        ask("1", "What does the red pump lift?", &north);
        assert_eq!(*model.0.lock(), [3, 1, 3, 3]);
    }

    #[test]
    fn what_is_used_stays_and_the_number_is_bounded() {
        let vectors = RecentVectors::default();
        let used = 0;
        vectors.keep(used, &[0.5]);
        for key in 1..=(5 * HALF_MAX as u128) {
            vectors.keep(key, &[1.0]);
            if key % 1000 == 0 {
                assert_eq!(vectors.get(used), Some(vec![0.5]), "{key}");
            }
        }
        assert_eq!((vectors.get(1), vectors.get(7)), (None, None));
        let halves = vectors.0.lock();
        assert!(halves.younger.len() + halves.older.len() <= 2 * HALF_MAX);
    }
}
