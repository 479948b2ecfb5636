//! Embeds passages with the sparse model.

use crate::ingest::{Ingest, IngestError};
use lodestone_embed::{EmbedError, Lane, SparseModel};
use lodestone_storage::collection::{CollectionError, Snapshot};
use lodestone_storage::segment::SparseRow;
use lodestone_types::RequestContext;

impl Ingest {
    /// The sparse model, if any.
    pub(crate) fn sparse(&self) -> Option<&SparseModel> {
        self.sparse.as_deref()
    }

    /// Embeds passages with the sparse model; all `None` without one. When a document changes, even
    /// its unchanged chunks are embedded again: stored postings are ordered by term, so reading a
    /// row's own vector back is not cheap.
    pub(super) fn sparse_rows(
        &self,
        lane: Lane,
        context: &RequestContext,
        passages: &[String],
    ) -> Result<Vec<Option<SparseRow>>, EmbedError> {
        let Some(sparse) = &self.sparse else { return Ok(vec![None; passages.len()]) };
        let model = sparse.id();
        let nodes = self.nodes.as_ref().filter(|_| lane == Lane::Bulk);
        let vectors = match nodes.and_then(|nodes| nodes.embed_sparse(sparse, passages)) {
            Some(vectors) => vectors,
            None => sparse.documents(lane, context, passages.to_vec())?,
        };
        Ok(vectors.into_iter().map(|weights| Some(SparseRow { model, weights })).collect())
    }

    /// Whether visible rows lack vectors of this server's sparse model.
    pub(super) fn lacks_sparse(&self, base: &Snapshot) -> Result<bool, IngestError> {
        let Some(sparse) = self.sparse.as_ref().filter(|_| base.manifest.model().is_some()) else {
            return Ok(false);
        };
        for live in &base.segments {
            let impacts = live.segment.impacts().map_err(CollectionError::from)?;
            let has_rows = u64::from(live.segment.row_count()) > live.dead.rows.len();
            if has_rows && impacts.is_none_or(|impacts| *impacts.model() != sparse.id()) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
