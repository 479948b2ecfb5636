//! Snapshots: open manifests. A query uses exactly one, which keeps its files mapped.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;
use roaring::RoaringBitmap;

use crate::collection::QuarantinedSegment;
use crate::collection::kept::Owner;
use crate::collection::manifest::{Manifest, SegmentEntry};
use crate::segment::{Segment, SegmentError, TombstoneSet};
use lodestone_text::{KnownCounts, ScopeStats, TermCounts, TextError, TextQuery};
use lodestone_types::{RowId, Sequence, SourceId, SourceRecord, SubTenantId, split_chunk_id};

/// Most scopes cached per segment; the least recently used are evicted.
const SCOPES_MAX: usize = 256;

/// A segment together with its dead rows, as of one or more versions.
#[derive(Debug)]
pub struct LiveSegment {
    /// The segment's entry in the manifest.
    pub entry: SegmentEntry,
    /// The open segment file.
    pub segment: Arc<Segment>,
    /// Its dead rows and sources.
    pub dead: TombstoneSet,
    scopes: RwLock<BTreeMap<SubTenantId, Arc<ScopeRows>>>,
    /// Number of uses of scopes so far, as the clock for eviction.
    uses: AtomicU64,
    pub(super) kept: OnceLock<Owner>,
}

/// The live rows of one sub-tenant in one segment.
#[derive(Debug)]
pub struct ScopeRows {
    /// The live rows.
    pub rows: RoaringBitmap,
    /// Whether the scope covers every row of the segment, so that no mask is needed.
    pub is_whole_segment: bool,
    stats: OnceLock<ScopeStats>,
    counts: KnownCounts,
    /// Value of the segment's `uses` at the last use.
    last_use: AtomicU64,
}

impl ScopeRows {
    /// The mask to search under; `None` if every row of the segment is in the scope.
    pub fn mask(&self) -> Option<&RoaringBitmap> {
        (!self.is_whole_segment).then_some(&self.rows)
    }
}

impl LiveSegment {
    /// Combines a segment with its tombstones.
    pub fn new(entry: SegmentEntry, segment: Arc<Segment>, dead: TombstoneSet) -> Self {
        let (scopes, uses, kept) = (RwLock::default(), AtomicU64::new(0), OnceLock::new());
        Self { entry, segment, dead, scopes, uses, kept }
    }

    /// The live rows of a sub-tenant. If there are any, they are cached for the life of this value,
    /// unless evicted by more recently used scopes.
    pub fn scope(&self, sub_tenant: &SubTenantId) -> Arc<ScopeRows> {
        let now = self.uses.fetch_add(1, Ordering::Relaxed);
        if let Some(scope) = self.scopes.read().get(sub_tenant) {
            scope.last_use.store(now, Ordering::Relaxed);
            return Arc::clone(scope);
        }
        let rows = self.segment.rows_of_sub_tenant(sub_tenant) - &self.dead.rows;
        let is_whole_segment = rows.len() == u64::from(self.segment.row_count());
        let (stats, last_use) = (OnceLock::new(), AtomicU64::new(now));
        let counts = KnownCounts::default();
        let scope = Arc::new(ScopeRows { rows, is_whole_segment, stats, counts, last_use });
        if !scope.rows.is_empty() {
            let mut scopes = self.scopes.write();
            if scopes.len() >= SCOPES_MAX {
                let last_use = |scope: &ScopeRows| scope.last_use.load(Ordering::Relaxed);
                let oldest = scopes.iter().min_by_key(|(_, scope)| last_use(scope));
                let oldest = oldest.map(|(name, _)| name.clone());
                oldest.and_then(|name| scopes.remove(&name));
            }
            scopes.insert(sub_tenant.clone(), Arc::clone(&scope));
        }
        scope
    }

    #[cfg(test)]
    pub(super) fn kept_scopes(&self) -> usize {
        self.scopes.read().len()
    }

    /// The sources of some rows, ascending.
    pub fn sources_of(&self, rows: &RoaringBitmap) -> Vec<u32> {
        let mut sources: Vec<u32> =
            rows.iter().map(|row| self.segment.source_of(RowId(row))).collect();
        sources.sort_unstable();
        sources.dedup();
        sources
    }

    /// Row and token counts of a scope, for BM25. Computed once per cached scope.
    pub fn scope_stats<'a>(&self, scope: &'a ScopeRows) -> &'a ScopeStats {
        scope.stats.get_or_init(|| self.segment.text_index().scope_stats(scope.mask()))
    }

    /// Number of rows in a scope that contain each term of a query. The counts of common words are
    /// cached with the scope.
    ///
    /// # Errors
    /// [`TextError::Damaged`] if postings cannot be read.
    pub fn term_counts<Q: TextQuery>(
        &self,
        query: &Q,
        scope: &ScopeRows,
    ) -> Result<TermCounts, TextError> {
        self.segment.text_index().term_counts_with(query, scope.mask(), &scope.counts)
    }

    /// Number of live rows.
    pub fn live_rows(&self) -> u64 {
        u64::from(self.segment.row_count()) - self.dead.rows.len()
    }

    /// Number of live sources.
    pub fn live_sources(&self) -> u64 {
        u64::from(self.segment.source_count()) - self.dead.sources.len()
    }
}

/// One version of a collection, open for reading.
#[derive(Debug)]
pub struct Snapshot {
    /// The manifest of the version.
    pub manifest: Manifest,
    /// The segments, oldest first, without damaged ones.
    pub segments: Vec<Arc<LiveSegment>>,
    /// Segments that cannot be read; results from this snapshot are incomplete if there are any.
    pub damaged: Vec<Arc<QuarantinedSegment>>,
}

/// Location of a visible source.
#[derive(Debug, Clone, Copy)]
pub struct FoundSource<'a> {
    /// The segment that holds all its live rows.
    pub live: &'a Arc<LiveSegment>,
    /// The source's position in the segment.
    pub source: u32,
}

/// Location of a visible client vector.
#[derive(Debug, Clone, Copy)]
pub struct FoundChunk<'a> {
    /// The source, which is the batch of the vector.
    pub found: FoundSource<'a>,
    /// The vector's row.
    pub row: RowId,
}

impl FoundChunk<'_> {
    /// Id of the batch, and the vector's index in it.
    pub fn place(&self) -> (&str, u32) {
        let segment = &self.found.live.segment;
        (segment.source_key(self.found.source).1, segment.index(self.row))
    }
}

impl FoundSource<'_> {
    /// Decodes the source's record.
    ///
    /// # Errors
    /// [`SegmentError::Damaged`] if stored bytes are malformed.
    pub fn record(&self) -> Result<SourceRecord, SegmentError> {
        self.live.segment.record(self.source)
    }

    /// The source's live rows, ascending by chunk index.
    pub fn rows(&self) -> Vec<u32> {
        let rows = self.live.segment.rows_of(self.source).iter().copied();
        rows.filter(|row| !self.live.dead.rows.contains(*row)).collect()
    }
}

impl Snapshot {
    /// Checks that everything read through this snapshot so far was intact. Call it before a result
    /// is passed on or stored, see [`Segment::check`].
    ///
    /// # Errors
    /// Damage of any segment.
    pub fn check(&self) -> Result<(), SegmentError> {
        self.segments.iter().try_for_each(|live| live.segment.check())
    }

    /// Finds a visible source.
    pub fn find(&self, sub_tenant: &SubTenantId, id: &SourceId) -> Option<FoundSource<'_>> {
        self.find_named(sub_tenant.as_str(), id.as_str())
    }

    /// Like [`Self::find`], for names as returned by [`Segment::source_key`].
    pub(super) fn find_named(&self, sub_tenant: &str, id: &str) -> Option<FoundSource<'_>> {
        self.segments.iter().rev().find_map(|live| {
            let source = live.segment.find_source_named(sub_tenant, id)?;
            let is_dead = live.dead.sources.contains(source);
            (!is_dead).then_some(FoundSource { live, source })
        })
    }

    /// Finds the live row of a client vector by its chunk id: the id that the client gave it, or
    /// else the one derived from batch and index.
    ///
    /// # Errors
    /// Malformed stored bytes.
    pub fn find_chunk(
        &self,
        sub_tenant: &SubTenantId,
        chunk_id: &str,
    ) -> Result<Option<FoundChunk<'_>>, SegmentError> {
        // Ids are stored in one normal form. A derived id may be too long to be a given one.
        if let Ok(name) = SourceId::parse(chunk_id)
            && let Some(found) = self.find_own_chunk(sub_tenant, &name)?
        {
            return Ok(Some(found));
        }
        let Some((batch, index)) = split_chunk_id(chunk_id) else { return Ok(None) };
        let Some(found) = self.find(sub_tenant, &batch) else { return Ok(None) };
        let segment = &found.live.segment;
        let rows = segment.rows_of(found.source);
        let Ok(at) = rows.binary_search_by_key(&index, |row| segment.index(RowId(*row))) else {
            return Ok(None);
        };
        let row = RowId(rows[at]);
        let is_dead = found.live.dead.rows.contains(row.0);
        let has_own_id = segment.has_chunk_ids() && segment.payload(row)?.id.is_some();
        Ok((!is_dead && !has_own_id).then_some(FoundChunk { found, row }))
    }

    /// Finds the client vector that was given this id.
    fn find_own_chunk(
        &self,
        sub_tenant: &SubTenantId,
        name: &SourceId,
    ) -> Result<Option<FoundChunk<'_>>, SegmentError> {
        for live in &self.segments {
            for row in live.segment.rows_named(name.as_str())? - &live.dead.rows {
                let source = live.segment.source_of(RowId(row));
                if live.segment.source_key(source).0 == sub_tenant.as_str() {
                    let found = FoundSource { live, source };
                    return Ok(Some(FoundChunk { found, row: RowId(row) }));
                }
            }
        }
        Ok(None)
    }

    /// All visible sources of a sub-tenant, in no particular order.
    pub fn sources<'a>(
        &'a self,
        sub_tenant: &'a SubTenantId,
    ) -> impl Iterator<Item = FoundSource<'a>> {
        self.all_sources()
            .filter(|found| found.live.segment.source_key(found.source).0 == sub_tenant.as_str())
    }

    /// All visible sources of all sub-tenants, in no particular order.
    pub fn all_sources(&self) -> impl Iterator<Item = FoundSource<'_>> {
        self.segments.iter().flat_map(|live| {
            let all = 0..live.segment.source_count();
            let alive = all.filter(|source| !live.dead.sources.contains(*source));
            alive.map(move |source| FoundSource { live, source })
        })
    }

    /// The highest sequence of all sources, including those in damaged segments as far as known.
    /// Visits every source only if an older release wrote the manifest.
    pub fn newest_sequence(&self) -> Sequence {
        if let Some(newest) = self.manifest.newest_sequence {
            return Sequence(newest);
        }
        let visible = self.all_sources().map(|found| found.live.segment.sequence(found.source));
        let lost = self.damaged.iter().flat_map(|segment| segment.lost());
        let applied = self.manifest.applied.iter().copied().map(Sequence);
        let all = visible.chain(lost.map(|record| record.sequence)).chain(applied);
        all.max().unwrap_or(Sequence(0))
    }

    /// Number of live rows of a sub-tenant.
    pub fn rows_in(&self, sub_tenant: &SubTenantId) -> u64 {
        self.segments.iter().map(|live| live.scope(sub_tenant).rows.len()).sum()
    }

    /// Number of live rows of all sub-tenants.
    pub fn rows(&self) -> u64 {
        self.segments.iter().map(|live| live.live_rows()).sum()
    }
}
