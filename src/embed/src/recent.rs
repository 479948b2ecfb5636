//! A cache of the vectors of recently embedded texts. It pays off because users repeat queries and
//! page through results, an answer embeds the question that its search embedded, and different
//! questions retrieve the same chunks.

use std::collections::HashMap;

use parking_lot::Mutex;
use xxhash_rust::xxh3::Xxh3;

use crate::{EmbedError, Embedder, Lane, Role};
use lodestone_types::{CollectionId, RequestContext};

/// Maximum number of vectors of the younger half. Both halves together take about 13 MiB at 384
/// components per vector.
const HALF_MAX: usize = 4096;

/// Hash of a text, its tenant, sub-tenant and role, and the model. Keys are per tenant so that
/// response times reveal nothing about the texts of other tenants.
type Key = u128;

/// The most recently used vectors. A vector is evicted if it goes unused while `HALF_MAX` others
/// are inserted.
#[derive(Debug, Default)]
pub struct RecentVectors(Mutex<Halves>);

#[derive(Debug, Default)]
struct Halves {
    younger: HashMap<Key, Vec<f32>>,
    older: HashMap<Key, Vec<f32>>,
}

/// A text with the sub-tenant that asks or stores it.
#[derive(Debug, Clone, Copy)]
pub struct OwnedText<'a> {
    /// The sub-tenant.
    pub sub_tenant: &'a str,
    /// Whether it is a query or part of a document.
    pub role: Role,
    /// The text.
    pub text: &'a str,
}

impl RecentVectors {
    /// Returns the vectors of texts, in order. Blocks: embeds all texts that are not cached in one
    /// call of the model.
    ///
    /// # Errors
    /// As [`Embedder::embed_as`].
    pub fn embed(
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
    use super::*;

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
