//! Vectors of passages that were compared with a question before: the same chunks answer many
//! questions.

use std::collections::HashMap;

use parking_lot::Mutex;
use xxhash_rust::xxh3::Xxh3;

use crate::answer::candidates::Candidate;
use lodestone_types::{CollectionId, RetrievedChunk};

/// Vectors of the younger half at most: both are some 13 MiB at 384 numbers a vector.
const HALF_MAX: usize = 4096;

/// Hash of a passage, its tenant and sub-tenant: nobody can tell by the time of an answer what
/// another tenant stores.
pub(super) type PassageKey = u128;

/// The last vectors that were used. Those not used while [`HALF_MAX`] others were leave.
#[derive(Debug, Default)]
pub(super) struct PassageVectors(Mutex<Halves>);

#[derive(Debug, Default)]
struct Halves {
    younger: HashMap<PassageKey, Vec<f32>>,
    older: HashMap<PassageKey, Vec<f32>>,
}

/// The key of a candidate out of `chunks`.
pub(super) fn key_of(
    tenant: Option<CollectionId>,
    candidate: &Candidate,
    chunks: &[&RetrievedChunk],
) -> PassageKey {
    let sub_tenant = chunks[candidate.hit].source.sub_tenant.as_str();
    let mut hash = Xxh3::new();
    for part in [
        tenant.map_or(0, |tenant| tenant.0.as_u128()).to_le_bytes().as_slice(),
        &(sub_tenant.len() as u64).to_le_bytes(),
        sub_tenant.as_bytes(),
        candidate.compared.as_bytes(),
    ] {
        hash.update(part);
    }
    hash.digest128()
}

impl PassageVectors {
    /// The vector of a passage, where it is known.
    pub(super) fn get(&self, key: PassageKey) -> Option<Vec<f32>> {
        let mut halves = self.0.lock();
        if let Some(vector) = halves.younger.get(&key) {
            return Some(vector.clone());
        }
        let vector = halves.older.remove(&key)?;
        halves.insert(key, vector.clone());
        Some(vector)
    }

    /// Keeps the vector of a passage.
    pub(super) fn keep(&self, key: PassageKey, vector: &[f32]) {
        self.0.lock().insert(key, vector.to_vec());
    }
}

impl Halves {
    fn insert(&mut self, key: PassageKey, vector: Vec<f32>) {
        if self.younger.len() >= HALF_MAX {
            self.older = std::mem::take(&mut self.younger);
        }
        self.younger.insert(key, vector);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::answer::tests::chunk;
    use crate::answer::{Answer, Answerer, SourceOrder};
    use lodestone_embed::{EmbedError, Embedder, EmbedderDouble, HashEmbedder, Lane};
    use lodestone_types::{RequestContext, SubTenantId};

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

    /// A passage is read once for its tenant and sub-tenant, and the answer is the same.
    #[test]
    fn passages_are_read_once_for_each_tenant() {
        let model = Arc::new(Counting::default());
        let answerer = Answerer::new(Arc::clone(&model) as Arc<dyn Embedder>);
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
        assert_eq!(*model.0.lock(), [3, 1, 1]);
        assert_eq!(first, ask("2", "How many litres does the blue pump lift?", &chunks));
        let mut north = chunks.clone();
        Arc::make_mut(&mut north[0].source).sub_tenant = SubTenantId::parse("north").unwrap();
        ask("1", "What does the red pump lift?", &north);
        assert_eq!(*model.0.lock(), [3, 1, 1, 3, 3]);
    }

    #[test]
    fn what_is_used_stays_and_the_number_is_bounded() {
        let vectors = PassageVectors::default();
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
