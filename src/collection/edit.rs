//! What a commit changes, as operations: they can be applied again to another head.

use std::collections::BTreeMap;
use std::sync::Arc;

use roaring::RoaringBitmap;

use crate::collection::CollectionError;
use crate::collection::manifest::SegmentEntry;
use crate::collection::snapshot::{LiveSegment, Snapshot};
use crate::segment::{Segment, SegmentError, TombstoneSet};
use crate::types::{RowId, SegmentId, Sequence, SourceId, SubTenantId};

/// A published segment file that is to become visible.
#[derive(Debug, Clone)]
pub struct AddedSegment {
    /// The file, open.
    pub segment: Arc<Segment>,
    /// Sources in it that must not become visible: their jobs were cancelled meanwhile.
    pub withheld: Vec<(SubTenantId, SourceId)>,
}

/// A merged segment that takes the place of its inputs.
#[derive(Debug, Clone)]
pub struct Replacement {
    /// The inputs, in merge order.
    pub inputs: Vec<SegmentId>,
    /// The output.
    pub segment: Arc<Segment>,
    /// For each row of the output, the position of its input and its row there.
    pub origins: Vec<(u32, RowId)>,
}

/// A set of changes that become visible in one step.
#[derive(Debug, Clone, Default)]
pub struct Edit {
    /// New segments. A source in one replaces the visible source of the same name, unless that
    /// one has a higher sequence.
    pub add: Vec<AddedSegment>,
    /// Sources to remove.
    pub remove_sources: Vec<(SubTenantId, SourceId)>,
    /// Chunks to remove, by source and index; a source without chunks left is removed.
    pub remove_chunks: Vec<(SubTenantId, SourceId, Vec<u32>)>,
    /// A sub-tenant to empty.
    pub remove_sub_tenant: Option<SubTenantId>,
    /// A merge to publish.
    pub replace: Option<Replacement>,
    /// Jobs whose rows are in `add`.
    pub applied: Vec<Sequence>,
    /// Fingerprint of the model behind the vectors of `add`.
    pub embedding: Option<String>,
}

/// What became of an edit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Keys of uploads that no visible source refers to any more.
    pub orphaned_uploads: Vec<String>,
    /// Sources that were visible and are not.
    pub removed: Vec<(SubTenantId, SourceId)>,
    /// Added sources that lost against a later operation.
    pub outdated: Vec<Sequence>,
    /// Chunks that were removed by index.
    pub removed_chunks: Vec<(SourceId, u32)>,
}

impl Outcome {
    /// Client vectors have no upload.
    fn orphan(&mut self, raw_key: String) {
        if !raw_key.is_empty() {
            self.orphaned_uploads.push(raw_key);
        }
    }
}

/// The segments of the next version, before their tombstones are written.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) segments: Vec<DraftSegment>,
    pub(super) outcome: Outcome,
}

#[derive(Debug)]
pub(super) struct DraftSegment {
    pub(super) segment: Arc<Segment>,
    pub(super) dead: TombstoneSet,
    /// The same segment in the base, if it was there.
    pub(super) base: Option<Arc<LiveSegment>>,
}

impl DraftSegment {
    fn fresh(segment: &Arc<Segment>) -> Self {
        Self { segment: Arc::clone(segment), dead: TombstoneSet::default(), base: None }
    }

    /// Whether its tombstones differ from those on disk.
    pub(super) fn is_changed(&self) -> bool {
        match &self.base {
            Some(base) => base.dead != self.dead,
            None => !self.dead.rows.is_empty() || !self.dead.sources.is_empty(),
        }
    }

    pub(super) fn entry(&self) -> SegmentEntry {
        match &self.base {
            Some(base) => base.entry.clone(),
            None => SegmentEntry::fresh(self.segment.meta()),
        }
    }

    fn has_live_sources(&self) -> bool {
        self.dead.sources.len() < u64::from(self.segment.source_count())
    }

    fn has_alive(&self, (sub_tenant, id): (&str, &str)) -> bool {
        let found = self.segment.find_source_named(sub_tenant, id);
        found.is_some_and(|source| !self.dead.sources.contains(source))
    }

    fn alive(&self, key: (&SubTenantId, &SourceId)) -> Option<u32> {
        let source = self.segment.find_source(key.0, key.1)?;
        (!self.dead.sources.contains(source)).then_some(source)
    }

    fn kill(&mut self, source: u32) {
        self.dead.sources.insert(source);
        self.dead.rows.extend(self.segment.rows_of(source).iter().copied());
    }
}

impl Draft {
    /// Applies `edit` to `base`. Pure: nothing is written.
    pub(super) fn new(base: &Snapshot, edit: &Edit) -> Result<Self, CollectionError> {
        let from_base = |live: &Arc<LiveSegment>| DraftSegment {
            segment: Arc::clone(&live.segment),
            dead: live.dead.clone(),
            base: Some(Arc::clone(live)),
        };
        let mut draft = Self {
            segments: base.segments.iter().map(from_base).collect(),
            outcome: Outcome::default(),
        };
        if let Some(replacement) = &edit.replace {
            draft.replace(replacement);
        }
        for (sub_tenant, id) in &edit.remove_sources {
            draft.remove(sub_tenant, id)?;
        }
        for (sub_tenant, id, indices) in &edit.remove_chunks {
            draft.remove_chunks(sub_tenant, id, indices)?;
        }
        if let Some(sub_tenant) = &edit.remove_sub_tenant {
            draft.empty_sub_tenant(sub_tenant)?;
        }
        for added in &edit.add {
            draft.add(added)?;
        }
        draft.segments.retain(DraftSegment::has_live_sources);
        Ok(draft)
    }

    /// Puts the output in the place of its first input. What died in the inputs since the merge
    /// read them dies in the output too.
    fn replace(&mut self, replacement: &Replacement) {
        let place = |id: &SegmentId| self.segments.iter().position(|s| s.segment.id() == *id);
        let inputs: Vec<Option<usize>> = replacement.inputs.iter().map(place).collect();
        // An input that is gone has lost all its rows meanwhile.
        let dead_of = |input: u32| inputs[input as usize].map(|at| &self.segments[at].dead);
        let mut output = DraftSegment::fresh(&replacement.segment);
        let mut rows = RoaringBitmap::new();
        for (row, (input, origin)) in replacement.origins.iter().enumerate() {
            if dead_of(*input).is_none_or(|dead| dead.rows.contains(origin.0)) {
                rows.insert(row as u32);
            }
        }
        // A source is asked for by its name and not by its rows: it may have none.
        for source in 0..output.segment.source_count() {
            let key = output.segment.source_key(source);
            if !inputs.iter().flatten().any(|at| self.segments[*at].has_alive(key)) {
                output.dead.sources.insert(source);
            }
        }
        output.dead.rows = rows;
        let first = inputs.iter().flatten().min().copied().unwrap_or(self.segments.len());
        self.segments.insert(first, output);
        self.segments.retain(|segment| !replacement.inputs.contains(&segment.segment.id()));
    }

    fn remove(&mut self, sub_tenant: &SubTenantId, id: &SourceId) -> Result<(), SegmentError> {
        for segment in &mut self.segments {
            let Some(source) = segment.alive((sub_tenant, id)) else { continue };
            let record = segment.segment.record(source)?;
            segment.kill(source);
            self.outcome.orphan(record.raw_key);
            self.outcome.removed.push((sub_tenant.clone(), id.clone()));
        }
        Ok(())
    }

    fn remove_chunks(
        &mut self,
        sub_tenant: &SubTenantId,
        id: &SourceId,
        indices: &[u32],
    ) -> Result<(), SegmentError> {
        for segment in &mut self.segments {
            let Some(source) = segment.alive((sub_tenant, id)) else { continue };
            let rows = segment.segment.rows_of(source).to_vec();
            let by_index: BTreeMap<u32, u32> =
                rows.iter().map(|row| (segment.segment.index(RowId(*row)), *row)).collect();
            for index in indices {
                let Some(row) = by_index.get(index) else { continue };
                if segment.dead.rows.insert(*row) {
                    self.outcome.removed_chunks.push((id.clone(), *index));
                }
            }
            if rows.iter().all(|row| segment.dead.rows.contains(*row)) {
                segment.dead.sources.insert(source);
                let record = segment.segment.record(source)?;
                self.outcome.orphan(record.raw_key);
                self.outcome.removed.push((sub_tenant.clone(), id.clone()));
            }
        }
        Ok(())
    }

    fn empty_sub_tenant(&mut self, sub_tenant: &SubTenantId) -> Result<(), SegmentError> {
        for segment in &mut self.segments {
            for source in 0..segment.segment.source_count() {
                let is_of = segment.segment.source_key(source).0 == sub_tenant.as_str();
                if !is_of || segment.dead.sources.contains(source) {
                    continue;
                }
                let record = segment.segment.record(source)?;
                segment.kill(source);
                self.outcome.orphan(record.raw_key);
                self.outcome.removed.push((record.sub_tenant, record.id));
            }
        }
        Ok(())
    }

    fn add(&mut self, added: &AddedSegment) -> Result<(), SegmentError> {
        let mut fresh = DraftSegment::fresh(&added.segment);
        for source in 0..added.segment.source_count() {
            let record = added.segment.record(source)?;
            let key = (record.sub_tenant, record.id);
            if added.withheld.contains(&key) {
                fresh.kill(source);
                continue;
            }
            for older in &mut self.segments {
                let Some(at) = older.alive((&key.0, &key.1)) else { continue };
                if older.segment.sequence(at) > record.sequence {
                    fresh.kill(source);
                    self.outcome.outdated.push(record.sequence);
                    if older.segment.record(at)?.raw_key != record.raw_key {
                        self.outcome.orphan(record.raw_key.clone());
                    }
                    continue;
                }
                let replaced = older.segment.record(at)?;
                older.kill(at);
                if replaced.raw_key != record.raw_key {
                    self.outcome.orphan(replaced.raw_key);
                }
            }
        }
        self.segments.push(fresh);
        Ok(())
    }
}
