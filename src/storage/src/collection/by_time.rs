//! Sources in listing order: newest upload first, ties by id.

use std::cmp::Reverse;

use crate::collection::{FoundSource, Snapshot};
use lodestone_types::{SourceId, SubTenantId, Timestamp};

impl<'a> FoundSource<'a> {
    /// Upload time of the source.
    pub fn uploaded_at(&self) -> Timestamp {
        self.live.segment.uploaded_at(self.source)
    }

    /// The source's id, as stored.
    pub fn id(&self) -> &'a str {
        self.live.segment.source_key(self.source).1
    }

    /// Sort key of the source in a listing.
    fn place(&self) -> (Reverse<Timestamp>, &'a str) {
        (Reverse(self.uploaded_at()), self.id())
    }
}

impl Snapshot {
    /// The visible sources of a sub-tenant, newest upload first, ties by id; with `after`, only
    /// those behind that position, whether or not a source still exists there. Lazy: reads no
    /// records, and visits only the sources that the caller takes.
    pub fn newest_first<'a>(
        &'a self,
        sub_tenant: &SubTenantId,
        after: Option<(Timestamp, &SourceId)>,
    ) -> impl Iterator<Item = FoundSource<'a>> + use<'a> {
        let after = after.map(|(at, id)| (Reverse(at), id.as_str()));
        let parts = self.segments.iter().map(|live| {
            let order = live.segment.newest_first(sub_tenant);
            let is_before = |source: &u32| {
                after.is_some_and(|after| FoundSource { live, source: *source }.place() <= after)
            };
            let rest = order[order.partition_point(is_before)..].iter();
            let alive = rest.filter(|source| !live.dead.sources.contains(**source));
            alive.map(|source| FoundSource { live, source: *source }).peekable()
        });
        let mut parts: Vec<_> = parts.collect();
        std::iter::from_fn(move || {
            let heads = parts.iter_mut().enumerate();
            let heads = heads.filter_map(|(at, part)| Some((part.peek()?.place(), at)));
            let (_, first) = heads.min()?;
            parts[first].next()
        })
    }

    /// Number of visible sources of a sub-tenant. The cost grows with the number of dead sources.
    pub fn source_count(&self, sub_tenant: &SubTenantId) -> u64 {
        let of_segment = |live: &crate::collection::LiveSegment| {
            let all = live.segment.newest_first(sub_tenant).len() as u64;
            let is_its = |source: &u32| live.segment.source_key(*source).0 == sub_tenant.as_str();
            all - live.dead.sources.iter().filter(is_its).count() as u64
        };
        self.segments.iter().map(|live| of_segment(live)).sum()
    }
}
