//! Searches, conversations, and the vectors of embeddings tenants.

use std::collections::BTreeMap;

use crate::ingest::{AcceptedVectors, IngestError};
use crate::query::{FullTextRequest, QueryError, RetrieveRequest, Retrieved, VectorHit};
use crate::{Engine, EngineError, Place};
use lodestone_storage::collection::Snapshot;
use lodestone_types::id::SessionId;
use lodestone_types::{ErrorKind, RetrievedChunk, SourceId, Triplet};

impl Engine {
    /// Reads one snapshot. Where a block turns out to be damaged at its first use, its segment is
    /// quarantined, and the rest is read once more: the answer then says that it is incomplete.
    pub(super) fn read<T>(
        &self,
        place: &Place,
        read: impl Fn(&Snapshot) -> Result<T, QueryError>,
    ) -> Result<T, EngineError> {
        match read(&place.collection.snapshot()) {
            Err(error) if error.is_damage() && self.ingest.quarantine(&place.collection) > 0 => {
                Ok(read(&place.collection.snapshot())?)
            }
            result => Ok(result?),
        }
    }

    /// Passes on the result of a change that had to read rows. Damage is quarantined; the change
    /// was not made.
    pub(super) fn noticed<T>(
        &self,
        place: &Place,
        result: Result<T, IngestError>,
    ) -> Result<T, IngestError> {
        if result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Corrupt) {
            self.ingest.quarantine(&place.collection);
        }
        result
    }

    /// Hybrid search.
    ///
    /// # Errors
    /// As [`crate::query::Query::retrieve`].
    pub fn retrieve(
        &self,
        place: &Place,
        request: &RetrieveRequest,
    ) -> Result<Retrieved, EngineError> {
        let schema = place.tenant.schema.as_ref();
        let now = self.clock.now();
        self.read(place, |snapshot| {
            self.query.retrieve(snapshot, &place.sub_tenant, schema, request, now)
        })
    }

    /// Search for whole words.
    ///
    /// # Errors
    /// As [`crate::query::Query::full_text`].
    pub fn full_text(
        &self,
        place: &Place,
        request: &FullTextRequest,
    ) -> Result<Vec<RetrievedChunk>, EngineError> {
        let schema = place.tenant.schema.as_ref();
        self.read(place, |snapshot| {
            self.query.full_text(snapshot, &place.sub_tenant, schema, request)
        })
    }

    /// What sources state.
    ///
    /// # Errors
    /// As [`crate::query::Query::relations_of`].
    pub fn relations_of(
        &self,
        place: &Place,
        sources: &[SourceId],
        limit: usize,
    ) -> Result<Vec<Option<Vec<Triplet>>>, EngineError> {
        self.read(place, |snapshot| {
            self.query.relations_of(snapshot, &place.sub_tenant, sources, limit)
        })
    }

    /// Adds a turn to a session.
    ///
    /// # Errors
    /// What the catalog says.
    pub fn remember(
        &self,
        place: &Place,
        session: &SessionId,
        question: &str,
        answer: &str,
    ) -> Result<(), EngineError> {
        let (collection, sub_tenant) = (place.tenant.collection, &place.sub_tenant);
        let (question, answer) = (question.to_owned(), answer.to_owned());
        Ok(self.catalog.append_turn(collection, sub_tenant, session, question, answer)?)
    }

    /// Stores a batch of client vectors; searchable on return.
    ///
    /// # Errors
    /// As [`crate::ingest::Ingest::upload_vectors`].
    pub fn upload_vectors(
        &self,
        place: &Place,
        batch: Option<SourceId>,
        vectors: Vec<Vec<f32>>,
    ) -> Result<AcceptedVectors, EngineError> {
        let Place { tenant, sub_tenant, collection, .. } = place;
        Ok(self.ingest.upload_vectors(tenant, collection, sub_tenant, batch, vectors)?)
    }

    /// Replaces single vectors of a batch, all or none.
    ///
    /// # Errors
    /// As [`crate::ingest::Ingest::update_vectors`].
    pub fn update_vectors(
        &self,
        place: &Place,
        batch: &SourceId,
        vectors: &BTreeMap<u32, Vec<f32>>,
    ) -> Result<(), EngineError> {
        let Place { sub_tenant, collection, .. } = place;
        let updated = self.ingest.update_vectors(collection, sub_tenant, batch, vectors);
        Ok(self.noticed(place, updated)?)
    }

    /// Deletes single vectors in one step; says which existed.
    ///
    /// # Errors
    /// As [`crate::ingest::Ingest::delete_vectors`].
    pub fn delete_vectors(
        &self,
        place: &Place,
        chunks: &[(SourceId, u32)],
    ) -> Result<Vec<bool>, EngineError> {
        let Place { sub_tenant, collection, .. } = place;
        Ok(self.ingest.delete_vectors(collection, sub_tenant, chunks)?)
    }

    /// The nearest stored vectors of each query.
    ///
    /// # Errors
    /// As [`crate::query::Query::nearest_vectors`].
    pub fn nearest_vectors(
        &self,
        place: &Place,
        queries: &[Vec<f32>],
        max_chunks: usize,
    ) -> Result<Vec<Vec<VectorHit>>, EngineError> {
        self.read(place, |snapshot| {
            self.query.nearest_vectors(snapshot, &place.sub_tenant, queries, max_chunks)
        })
    }

    /// Stored vectors, bit for bit.
    ///
    /// # Errors
    /// As [`crate::query::Query::vectors_by_id`].
    pub fn vectors_by_id(
        &self,
        place: &Place,
        chunks: &[(SourceId, u32)],
    ) -> Result<Vec<Option<Vec<f32>>>, EngineError> {
        self.read(place, |snapshot| self.query.vectors_by_id(snapshot, &place.sub_tenant, chunks))
    }
}
