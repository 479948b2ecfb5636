//! Filter conditions whose values have another type than everything stored.

use crate::query::{Query, QueryError};
use lodestone_storage::collection::Snapshot;
use lodestone_storage::filter::{RequestFilter, TypeMismatch, mismatches};
use lodestone_storage::segment::SegmentError;
use lodestone_types::{RequestContext, SubTenantId, TenantSchema};

impl Query {
    /// The conditions of a filter that match nothing in a scope because of the types of their
    /// values. Meant for searches without results, since it may read all values of the keys
    /// concerned.
    ///
    /// # Errors
    /// [`QueryError::Filter`] for an invalid filter; [`QueryError::Stopped`]; errors of the disk.
    pub fn mismatches(
        &self,
        context: &RequestContext,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        schema: Option<&TenantSchema>,
        filter: &RequestFilter,
    ) -> Result<Vec<TypeMismatch>, QueryError> {
        let filter = filter.for_schema(schema).map_err(QueryError::Filter)?;
        if filter.is_all() {
            return Ok(Vec::new());
        }
        context.check()?;
        let live: Vec<_> =
            snapshot.segments.iter().map(|live| (live, live.scope(sub_tenant))).collect();
        let segments: Vec<_> =
            live.iter().map(|(live, scope)| (live.segment.columns(), &scope.rows)).collect();
        Ok(mismatches(filter, &segments).map_err(SegmentError::from)?)
    }
}
