//! Searches, and the vectors of tenants that store embeddings.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Instant;

use crate::ingest::{AcceptedVectors, IngestError, NewVectors};
use crate::meters::Leg;
use crate::query::{
    FoundWords, FullTextRequest, QueryError, RetrieveRequest, Retrieved, TypeMismatch, VectorHit,
    VectorPage, VectorScroll, VectorSearch,
};
use crate::stage::stage;
use crate::{Engine, EngineError, TenantAccess};
use lodestone_embed::SparseModel;
use lodestone_storage::collection::{Collection, Snapshot};
use lodestone_storage::filter::RequestFilter;
use lodestone_types::{ErrorKind, RequestContext, SourceId, Triplet};

impl Engine {
    /// The sparse model, if any.
    pub fn sparse(&self) -> Option<&SparseModel> {
        self.ingest.sparse()
    }

    /// Scores the relevance of the leading passages to a query with the reranker, from 0 to 1.
    /// Scores as many passages as the reranker reads in one batch, but at least one; `None` without
    /// a reranker.
    ///
    /// # Errors
    /// Errors of the reranker; a request that was canceled or ran out of time.
    pub fn relevance(
        &self,
        context: &RequestContext,
        query: &str,
        passages: &[&str],
    ) -> Result<Option<Vec<f32>>, EngineError> {
        let Some(reranker) = &self.reranker else { return Ok(None) };
        match reranker.score(context, None, query, passages) {
            Ok(read) => Ok(Some(read.scores.into_iter().map(lodestone_rank::settle).collect())),
            Err(error) => {
                context.check().map_err(QueryError::from)?;
                Err(error.into())
            }
        }
    }

    /// Runs `read` on a snapshot. If a segment turns out to be damaged, quarantines it and reads
    /// the rest again; the answer then says that it is incomplete. Bytes that changed after they
    /// were verified can cause a panic, which is treated as damage if any is found and resumed
    /// otherwise.
    pub(super) fn read<T>(
        &self,
        access: &TenantAccess,
        read: impl Fn(&Snapshot) -> Result<T, QueryError>,
    ) -> Result<T, EngineError> {
        let collection = &access.collection;
        // Terminates, because each further round has at least one segment less.
        loop {
            let snapshot = collection.snapshot();
            let result = catch_unwind(AssertUnwindSafe(|| {
                let found = read(&snapshot)?;
                snapshot.check()?;
                Ok::<T, QueryError>(found)
            }));
            let may_be_damage = match &result {
                Ok(result) => result.as_ref().is_err_and(QueryError::is_damage),
                Err(_panic) => true,
            };
            let has_less = || {
                // Another request may have quarantined it already.
                collection.snapshot().damaged.len() > snapshot.damaged.len()
                    || self.ingest.quarantine(collection) > 0
            };
            if may_be_damage && has_less() {
                continue;
            }
            return Ok(result.unwrap_or_else(|panic| resume_unwind(panic))?);
        }
    }

    /// Returns `found` unless a segment of the snapshot it was read from is damaged. The segment is
    /// then quarantined, and the request may be repeated.
    pub(super) fn sound<T>(
        &self,
        collection: &Arc<Collection>,
        snapshot: &Snapshot,
        found: T,
    ) -> Result<T, EngineError> {
        if let Err(error) = snapshot.check() {
            self.ingest.quarantine(collection);
            return Err(QueryError::from(error).into());
        }
        Ok(found)
    }

    /// Passes on the result of a change that had to read rows. If it failed because of damage, the
    /// damaged segments are quarantined; the change was not made.
    pub(super) fn noticed<T>(
        &self,
        access: &TenantAccess,
        result: Result<T, IngestError>,
    ) -> Result<T, IngestError> {
        if result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Corrupt) {
            self.ingest.quarantine(&access.collection);
        }
        result
    }

    /// Runs a hybrid search.
    ///
    /// # Errors
    /// See [`crate::query::Query::retrieve`].
    pub fn retrieve(
        &self,
        access: &TenantAccess,
        request: &RetrieveRequest,
    ) -> Result<Retrieved, EngineError> {
        let _stage = stage!("retrieve");
        let schema = access.tenant.schema.as_ref();
        let now = self.clock.now();
        let found = self.read(access, |snapshot| {
            let TenantAccess { sub_tenant, context, .. } = access;
            self.query.retrieve(context, snapshot, sub_tenant, schema, request, now)
        })?;
        self.meters.retrieved(&found);
        self.tell_slow_search(access, &found);
        Ok(found)
    }

    /// Runs a search for whole words.
    ///
    /// # Errors
    /// See [`crate::query::Query::full_text`].
    pub fn full_text(
        &self,
        access: &TenantAccess,
        request: &FullTextRequest,
    ) -> Result<FoundWords, EngineError> {
        let _stage = stage!("full_text");
        let (schema, begun) = (access.tenant.schema.as_ref(), Instant::now());
        let found = self.read(access, |snapshot| {
            self.query.full_text(&access.context, snapshot, &access.sub_tenant, schema, request)
        })?;
        self.meters.ended(Leg::FullText, begun);
        self.tell_slow(access, "full_text", begun);
        Ok(found)
    }

    /// The conditions of a filter that can match nothing because their values have the wrong type;
    /// explains searches that found nothing.
    ///
    /// # Errors
    /// See [`crate::query::Query::mismatches`].
    pub fn mismatches(
        &self,
        access: &TenantAccess,
        filter: &RequestFilter,
    ) -> Result<Vec<TypeMismatch>, EngineError> {
        let TenantAccess { tenant, sub_tenant, context, .. } = access;
        let schema = tenant.schema.as_ref();
        self.read(access, |snapshot| {
            self.query.mismatches(context, snapshot, sub_tenant, schema, filter)
        })
    }

    /// The graph statements of sources; none of a source that is accepted but not visible yet.
    ///
    /// # Errors
    /// See [`crate::query::Query::relations_of`] and [`Self::source`].
    pub fn relations_of(
        &self,
        access: &TenantAccess,
        sources: &[SourceId],
        limit: usize,
    ) -> Result<Vec<Option<Vec<Triplet>>>, EngineError> {
        let mut found = self.read(access, |snapshot| {
            self.query.relations_of(snapshot, &access.sub_tenant, sources, limit)
        })?;
        for (id, triplets) in sources.iter().zip(&mut found) {
            if triplets.is_none() && self.source(access, id)?.is_some() {
                *triplets = Some(Vec::new());
            }
        }
        Ok(found)
    }

    /// Stores a batch of client vectors, searchable on return.
    ///
    /// # Errors
    /// See [`crate::ingest::Ingest::upload_vectors`].
    pub fn upload_vectors(
        &self,
        access: &TenantAccess,
        batch: Option<SourceId>,
        vectors: impl Into<NewVectors>,
    ) -> Result<AcceptedVectors, EngineError> {
        let TenantAccess { tenant, sub_tenant, collection, .. } = access;
        let uploaded =
            self.ingest.upload_vectors(tenant, collection, sub_tenant, batch, vectors.into());
        Ok(self.noticed(access, uploaded)?)
    }

    /// Replaces individual vectors of a batch atomically; returns the batch.
    ///
    /// # Errors
    /// See [`crate::ingest::Ingest::update_vectors`].
    pub fn update_vectors(
        &self,
        access: &TenantAccess,
        vectors: &[(String, Vec<f32>)],
    ) -> Result<SourceId, EngineError> {
        let TenantAccess { sub_tenant, collection, .. } = access;
        let updated = self.ingest.update_vectors(collection, sub_tenant, vectors);
        Ok(self.noticed(access, updated)?)
    }

    /// Deletes individual vectors atomically; returns for each whether it existed.
    ///
    /// # Errors
    /// See [`crate::ingest::Ingest::delete_vectors`].
    pub fn delete_vectors(
        &self,
        access: &TenantAccess,
        chunks: &[String],
    ) -> Result<Vec<bool>, EngineError> {
        let TenantAccess { sub_tenant, collection, .. } = access;
        let deleted = self.ingest.delete_vectors(collection, sub_tenant, chunks);
        Ok(self.noticed(access, deleted)?)
    }

    /// Finds the nearest stored vectors of each query by the tenant's metric.
    ///
    /// # Errors
    /// See [`crate::query::Query::nearest_vectors`].
    pub fn nearest_vectors(
        &self,
        access: &TenantAccess,
        search: &VectorSearch,
    ) -> Result<Vec<Vec<VectorHit>>, EngineError> {
        let _stage = stage!("vectors");
        let begun = Instant::now();
        let found = self.read(access, |snapshot| {
            let TenantAccess { tenant, sub_tenant, context, .. } = access;
            let metric = tenant.mode.metric().unwrap_or_default();
            self.query.nearest_vectors(context, snapshot, sub_tenant, metric, search)
        })?;
        self.meters.ended(Leg::Vectors, begun);
        self.tell_slow(access, "vectors", begun);
        Ok(found)
    }

    /// Returns stored vectors, bit for bit.
    ///
    /// # Errors
    /// See [`crate::query::Query::vectors_by_id`].
    pub fn vectors_by_id(
        &self,
        access: &TenantAccess,
        chunks: &[String],
    ) -> Result<Vec<Option<Vec<f32>>>, EngineError> {
        self.read(access, |snapshot| self.query.vectors_by_id(snapshot, &access.sub_tenant, chunks))
    }

    /// Returns a page of the stored vectors, ordered by batch and position.
    ///
    /// # Errors
    /// See [`crate::query::Query::scroll_vectors`].
    pub fn scroll_vectors(
        &self,
        access: &TenantAccess,
        scroll: &VectorScroll,
    ) -> Result<VectorPage, EngineError> {
        self.read(access, |snapshot| {
            let TenantAccess { sub_tenant, context, .. } = access;
            self.query.scroll_vectors(context, snapshot, sub_tenant, scroll)
        })
    }
}
