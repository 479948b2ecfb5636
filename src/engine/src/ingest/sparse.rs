//! Vectors of a sparse model.

use crate::ingest::{Ingest, IngestError};
use lodestone_embed::{EmbedError, Lane, SparseModel};
use lodestone_storage::collection::{CollectionError, Snapshot};
use lodestone_storage::segment::SparseRow;
use lodestone_types::RequestContext;

impl Ingest {
    /// The sparse model, if there is one.
    pub(crate) fn sparse(&self) -> Option<&SparseModel> {
        self.sparse.as_deref()
    }

    /// The vectors of passages by the sparse model; `None` for each where there is no such model.
    /// They are made anew for a changed document, also of chunks that did not change: postings are
    /// in the order of terms, not of rows.
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

    /// Whether visible rows lack vectors of the sparse model of this server.
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
