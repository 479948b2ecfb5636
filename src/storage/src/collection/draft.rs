//! The next version of a collection, computed from an edit without touching the disk.
//!
//! Damaged segments take part: their sources are known from the lists stored beside them, so a
//! source in such a segment can be removed or replaced like any other.

use std::collections::BTreeMap;
use std::sync::Arc;

use roaring::RoaringBitmap;

use crate::collection::edit::{AddedSegment, Edit, Outcome, Replacement};
use crate::collection::manifest::SegmentEntry;
use crate::collection::quarantine::{KnownContents, QuarantinedSegment};
use crate::collection::snapshot::{LiveSegment, Snapshot};
use crate::collection::source_list::SourceList;
use crate::collection::{Collection, CollectionError};
use crate::segment::{Segment, SegmentError, TombstoneSet};
use lodestone_types::{
    CollectionId, RowId, SegmentId, Sequence, SourceId, SourceRecord, SubTenantId,
};

/// The segments of the next version, before their tombstones are written.
#[derive(Debug)]
pub(super) struct Draft {
    collection: CollectionId,
    pub(super) segments: Vec<DraftSegment>,
    pub(super) outcome: Outcome,
}

/// A segment in the next version.
#[derive(Debug)]
pub(super) struct DraftSegment {
    part: Part,
    pub(super) dead: TombstoneSet,
}

/// Origin of a segment of the draft.
#[derive(Debug)]
enum Part {
    /// A new segment.
    Fresh(Arc<Segment>),
    /// An open segment of the base.
    Open(Arc<LiveSegment>),
    /// A segment of the base that cannot be read, and the list of its sources.
    Lost(Arc<QuarantinedSegment>, Arc<SourceList>),
}

/// A segment of the next snapshot.
#[derive(Debug)]
pub(super) enum NextSegment {
    /// Readable, and searched.
    Live(Arc<LiveSegment>),
    /// Still damaged.
    Lost(Arc<QuarantinedSegment>),
}

impl DraftSegment {
    fn fresh(segment: &Arc<Segment>) -> Self {
        Self { part: Part::Fresh(Arc::clone(segment)), dead: TombstoneSet::default() }
    }

    fn of_base(live: &Arc<LiveSegment>) -> Self {
        Self { part: Part::Open(Arc::clone(live)), dead: live.dead.clone() }
    }

    /// Uses an open segment with these dead rows.
    pub(super) fn with_dead(live: &Arc<LiveSegment>, dead: TombstoneSet) -> Self {
        Self { part: Part::Open(Arc::clone(live)), dead }
    }

    fn of_lost(lost: &Arc<QuarantinedSegment>, known: &KnownContents) -> Self {
        let part = Part::Lost(Arc::clone(lost), Arc::clone(&known.sources));
        Self { part, dead: known.dead.clone() }
    }

    /// Whether its tombstones differ from those on disk.
    pub(super) fn is_changed(&self) -> bool {
        match &self.part {
            Part::Fresh(_) => !self.dead.rows.is_empty() || !self.dead.sources.is_empty(),
            Part::Open(live) => live.dead != self.dead,
            Part::Lost(lost, _) => lost.known.as_ref().is_none_or(|known| known.dead != self.dead),
        }
    }

    /// The segment's entry in the base manifest; for a fresh segment, a new one.
    ///
    /// # Errors
    /// As [`Collection::fresh_entry`].
    pub(super) fn entry(&self, of: &Collection) -> Result<SegmentEntry, CollectionError> {
        match &self.part {
            Part::Fresh(segment) => of.fresh_entry(segment),
            Part::Open(live) => Ok(live.entry.clone()),
            Part::Lost(lost, _) => Ok(lost.entry.clone()),
        }
    }

    /// Converts the segment for the next snapshot; `entry` is its entry in the new manifest.
    pub(super) fn into_next(self, entry: SegmentEntry) -> NextSegment {
        let is_changed = self.is_changed();
        let live = |segment: &Arc<Segment>, dead| {
            let segment = Arc::clone(segment);
            NextSegment::Live(Arc::new(LiveSegment::new(entry.clone(), segment, dead)))
        };
        match self.part {
            Part::Fresh(segment) => live(&segment, self.dead),
            Part::Open(base) if !is_changed => NextSegment::Live(base),
            Part::Open(base) => live(&base.segment, self.dead),
            Part::Lost(lost, _) if !is_changed => NextSegment::Lost(lost),
            Part::Lost(lost, sources) => {
                let known = Some(KnownContents { sources, dead: self.dead });
                let is_away = lost.is_away;
                NextSegment::Lost(Arc::new(QuarantinedSegment { entry, known, is_away }))
            }
        }
    }

    /// The segment's id.
    pub(super) fn id(&self) -> SegmentId {
        match &self.part {
            Part::Fresh(segment) => segment.id(),
            Part::Open(live) => live.segment.id(),
            Part::Lost(lost, _) => lost.id(),
        }
    }

    /// The open segment, or the list of its sources if it cannot be read.
    fn contents(&self) -> Result<&Segment, &SourceList> {
        match &self.part {
            Part::Fresh(segment) => Ok(segment),
            Part::Open(live) => Ok(&live.segment),
            Part::Lost(_, list) => Err(list),
        }
    }

    fn source_count(&self) -> u32 {
        match self.contents() {
            Ok(segment) => segment.source_count(),
            Err(list) => list.sources().len() as u32,
        }
    }

    fn source_key(&self, source: u32) -> (&str, &str) {
        match self.contents() {
            Ok(segment) => segment.source_key(source),
            Err(list) => {
                let record = &list.sources()[source as usize].record;
                (record.sub_tenant.as_str(), record.id.as_str())
            }
        }
    }

    fn sequence(&self, source: u32) -> Sequence {
        match self.contents() {
            Ok(segment) => segment.sequence(source),
            Err(list) => list.sources()[source as usize].record.sequence,
        }
    }

    fn record(&self, source: u32) -> Result<SourceRecord, SegmentError> {
        match self.contents() {
            Ok(segment) => segment.record(source),
            Err(list) => Ok(list.sources()[source as usize].record.clone()),
        }
    }

    pub(super) fn has_live_sources(&self) -> bool {
        self.dead.sources.len() < u64::from(self.source_count())
    }

    fn alive(&self, sub_tenant: &str, id: &str) -> Option<u32> {
        let source = match self.contents() {
            Ok(segment) => segment.find_source_named(sub_tenant, id),
            Err(list) => list.find(sub_tenant, id),
        }?;
        (!self.dead.sources.contains(source)).then_some(source)
    }

    fn kill(&mut self, source: u32) {
        self.dead.sources.insert(source);
        let rows: RoaringBitmap = match self.contents() {
            Ok(segment) => segment.rows_of(source).iter().copied().collect(),
            Err(list) => list.sources()[source as usize].rows().collect(),
        };
        self.dead.rows |= rows;
    }
}

impl Draft {
    /// Applies `edit` to `base`. Pure: writes nothing.
    ///
    /// # Errors
    /// [`CollectionError::Quarantined`] if a damaged segment prevents the edit; malformed records.
    pub(super) fn new(base: &Snapshot, edit: &Edit) -> Result<Self, CollectionError> {
        let mut draft = Self {
            collection: CollectionId(base.manifest.collection),
            segments: of_base(base)?,
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

    /// Puts the output at the position of its first input. Sources and rows that died in the inputs
    /// since the merge read them are marked dead in the output too. The cost depends on what died,
    /// not on what was merged, because writers are waiting.
    fn replace(&mut self, replacement: &Replacement) {
        let mut output = DraftSegment::fresh(&replacement.segment);
        let (mut first_row, mut first_source, mut place) = (0, 0, self.segments.len());
        for read in &replacement.inputs {
            let rows = first_row..first_row + read.live_rows() as u32;
            let sources = first_source..first_source + read.live_sources() as u32;
            (first_row, first_source) = (rows.end, sources.end);
            match self.segments.iter().position(|now| now.id() == read.segment.id()) {
                Some(at) => {
                    place = place.min(at);
                    let now = &self.segments[at].dead;
                    output.dead.rows |= moved(&now.rows, &read.dead.rows, rows.start);
                    output.dead.sources |= moved(&now.sources, &read.dead.sources, sources.start);
                }
                // It has lost all its rows meanwhile, or another merge has taken them.
                None => {
                    output.dead.rows.insert_range(rows);
                    output.dead.sources.insert_range(sources);
                }
            }
        }
        let is_input = |id| replacement.inputs.iter().any(|read| read.segment.id() == id);
        self.segments.insert(place, output);
        self.segments.retain(|segment| !is_input(segment.id()));
    }

    fn remove(&mut self, sub_tenant: &SubTenantId, id: &SourceId) -> Result<(), SegmentError> {
        for segment in &mut self.segments {
            let Some(source) = segment.alive(sub_tenant.as_str(), id.as_str()) else { continue };
            let record = segment.record(source)?;
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
    ) -> Result<(), CollectionError> {
        for segment in &mut self.segments {
            let Some(source) = segment.alive(sub_tenant.as_str(), id.as_str()) else { continue };
            let Ok(open) = segment.contents() else {
                // The index of each row is unknown in a segment that cannot be read.
                let collection = self.collection;
                return Err(CollectionError::Quarantined { collection, segments: 1 });
            };
            let rows = open.rows_of(source).to_vec();
            let by_index: BTreeMap<u32, u32> =
                rows.iter().map(|row| (open.index(RowId(*row)), *row)).collect();
            for index in indices {
                let Some(row) = by_index.get(index) else { continue };
                if segment.dead.rows.insert(*row) {
                    self.outcome.removed_chunks.push((id.clone(), *index));
                }
            }
            if rows.iter().all(|row| segment.dead.rows.contains(*row)) {
                segment.dead.sources.insert(source);
                let record = segment.record(source)?;
                self.outcome.orphan(record.raw_key);
                self.outcome.removed.push((sub_tenant.clone(), id.clone()));
            }
        }
        Ok(())
    }

    fn empty_sub_tenant(&mut self, sub_tenant: &SubTenantId) -> Result<(), SegmentError> {
        let memories = sub_tenant.of_memories();
        for segment in &mut self.segments {
            for source in 0..segment.source_count() {
                let scope = segment.source_key(source).0;
                let is_of = scope == sub_tenant.as_str() || scope == memories.as_str();
                if !is_of || segment.dead.sources.contains(source) {
                    continue;
                }
                let record = segment.record(source)?;
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
                let Some(at) = older.alive(key.0.as_str(), key.1.as_str()) else {
                    continue;
                };
                if older.sequence(at) > record.sequence {
                    fresh.kill(source);
                    self.outcome.outdated.push(record.sequence);
                    if older.record(at)?.raw_key != record.raw_key {
                        self.outcome.orphan(record.raw_key.clone());
                    }
                    continue;
                }
                let replaced = older.record(at)?;
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

/// The segments of the base in manifest order, including damaged ones.
fn of_base(base: &Snapshot) -> Result<Vec<DraftSegment>, CollectionError> {
    let mut segments = Vec::with_capacity(base.manifest.segments.len());
    for entry in &base.manifest.segments {
        if let Some(live) = base.segments.iter().find(|live| live.entry.id == entry.id) {
            segments.push(DraftSegment::of_base(live));
            continue;
        }
        let lost = base.damaged.iter().find(|lost| lost.entry.id == entry.id);
        match lost.and_then(|lost| Some((lost, lost.known.as_ref()?))) {
            Some((lost, known)) => segments.push(DraftSegment::of_lost(lost, known)),
            None => {
                let collection = CollectionId(base.manifest.collection);
                return Err(CollectionError::Quarantined { collection, segments: 1 });
            }
        }
    }
    Ok(segments)
}

/// Maps numbers that died since a merge read their segment to their numbers in the output, where
/// the survivors of that read are numbered consecutively from `first`.
fn moved(now: &RoaringBitmap, read: &RoaringBitmap, first: u32) -> RoaringBitmap {
    (now - read).iter().map(|died| first + died - read.rank(died) as u32).collect()
}
