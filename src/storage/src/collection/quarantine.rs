//! Quarantine of damaged segments: detection, and their sources as far as they are known.
//!
//! A damaged segment stays in the manifest. Its sources are not visible, but they are known from
//! the list stored beside it, and its tombstones still apply: a source in it can be deleted,
//! replaced, or rebuilt from its original. The commit that removes its last live source also
//! removes the segment from the manifest. A segment without a readable list stays until an operator
//! repairs it; meanwhile the collection refuses writes, because a commit could not tell what it
//! replaces.
//!
//! A segment of which only the local copy is known to be damaged is out of service in the same way
//! until it can be fetched again. Its sources are not rebuilt, since they are not lost.

use std::sync::Arc;

use parking_lot::MutexGuard;

use crate::collection::manifest::SegmentEntry;
use crate::collection::open::is_damage;
use crate::collection::snapshot::{LiveSegment, Snapshot};
use crate::collection::source_list::{self, ListedSource, SourceList};
use crate::collection::{Collection, CollectionError, WriterState, layout};
use crate::segment::{Segment, TombstoneSet};
use lodestone_io::store::Key;
use lodestone_types::{CollectionId, ErrorKind, SegmentId, SourceId, SourceRecord, SubTenantId};

/// A segment that cannot be read.
#[derive(Debug)]
pub struct QuarantinedSegment {
    /// Its entry in the manifest.
    pub entry: SegmentEntry,
    pub(super) known: Option<KnownContents>,
    /// Whether only a local copy is known to be damaged, and the segment could not be fetched.
    pub(super) is_away: bool,
}

/// Sources and tombstones of a damaged segment.
#[derive(Debug)]
pub(super) struct KnownContents {
    pub(super) sources: Arc<SourceList>,
    pub(super) dead: TombstoneSet,
}

impl QuarantinedSegment {
    /// The segment's id.
    pub fn id(&self) -> SegmentId {
        SegmentId(self.entry.id)
    }

    /// Whether it is known which sources it held, and which of them are live.
    pub fn is_known(&self) -> bool {
        self.known.is_some()
    }

    /// Records of its live sources, without descriptions, in segment order.
    pub fn lost(&self) -> impl Iterator<Item = &SourceRecord> {
        let known = self.known.iter();
        known.flat_map(|known| {
            let alive = |(at, _): &(usize, &ListedSource)| !known.dead.sources.contains(*at as u32);
            let listed = known.sources.sources().iter().enumerate().filter(alive);
            listed.map(|(_, listed)| &listed.record)
        })
    }

    fn find(&self, sub_tenant: &SubTenantId, id: &SourceId) -> Option<&SourceRecord> {
        let known = self.known.as_ref()?;
        let at = known.sources.find(sub_tenant.as_str(), id.as_str())?;
        let is_dead = known.dead.sources.contains(at);
        (!is_dead).then(|| &known.sources.sources()[at as usize].record)
    }
}

impl Snapshot {
    /// The record of a source that is invisible because its segment is damaged.
    pub fn find_lost(&self, sub_tenant: &SubTenantId, id: &SourceId) -> Option<&SourceRecord> {
        self.damaged.iter().find_map(|segment| segment.find(sub_tenant, id))
    }

    /// The record of a source, visible or lost.
    ///
    /// # Errors
    /// [`CollectionError::Segment`] if stored bytes are malformed.
    pub fn record(
        &self,
        sub_tenant: &SubTenantId,
        id: &SourceId,
    ) -> Result<Option<SourceRecord>, CollectionError> {
        match self.find(sub_tenant, id) {
            Some(found) => Ok(Some(found.record()?)),
            None => Ok(self.find_lost(sub_tenant, id).cloned()),
        }
    }

    /// Refuses an operation that would read a source in a damaged segment.
    ///
    /// # Errors
    /// [`CollectionError::Quarantined`].
    pub fn require_readable(
        &self,
        sub_tenant: &SubTenantId,
        id: &SourceId,
    ) -> Result<(), CollectionError> {
        let (collection, segments) = (CollectionId(self.manifest.collection), self.damaged.len());
        match self.find_lost(sub_tenant, id) {
            Some(_) => Err(CollectionError::Quarantined { collection, segments }),
            None => Ok(()),
        }
    }

    /// Records of the sources that are lost with their segments, and do not come back by fetching
    /// these again.
    pub fn lost(&self) -> impl Iterator<Item = &SourceRecord> {
        self.damaged.iter().filter(|segment| !segment.is_away).flat_map(|segment| segment.lost())
    }

    /// Number of damaged segments without a readable source list.
    pub fn unknown_segments(&self) -> usize {
        self.damaged.iter().filter(|segment| !segment.is_known()).count()
    }
}

impl Collection {
    /// Builds the quarantine entry of a segment. Its sources are read from the list beside it, or,
    /// if only other parts of the file are damaged, from the open segment.
    pub(super) fn quarantine(
        &self,
        entry: &SegmentEntry,
        open: Option<&LiveSegment>,
    ) -> QuarantinedSegment {
        let list = self.read_list(entry);
        let known = match open {
            Some(live) => list
                .or_else(|error| match live.segment.has_intact_sources() {
                    true => Ok(SourceList::of(&live.segment)?),
                    false => Err(error),
                })
                .map(|sources| (sources, live.dead.clone())),
            None => list.and_then(|list| Ok((list, self.read_dead(entry)?))),
        };
        let known = match known {
            Ok((sources, dead)) => Some(KnownContents { sources: Arc::new(sources), dead }),
            Err(error) => {
                let segment = SegmentId(entry.id);
                tracing::error!(collection = %self.id, %segment, %error,
                    "the sources of a damaged segment are unknown: writes are refused");
                None
            }
        };
        QuarantinedSegment { entry: entry.clone(), known, is_away: false }
    }

    fn read_list(&self, entry: &SegmentEntry) -> Result<SourceList, CollectionError> {
        let segment = SegmentId(entry.id);
        let bad = |problem| CollectionError::BadList { segment, problem };
        if let Some(list) = &entry.list {
            return SourceList::of_small(list, entry).map_err(bad);
        }
        let bytes = self.store.get(&layout::source_list(self.id, segment))?;
        if let Some(needed) = SourceList::later_format(&bytes) {
            return Err(CollectionError::TooNew {
                collection: self.id,
                needed,
                ours: source_list::FORMAT,
            });
        }
        SourceList::decode(&bytes, self.id, entry).map_err(bad)
    }

    /// Creates the manifest entry of a segment that was just built. In a bucket, where each file
    /// costs a request, a short source list is part of the entry; otherwise the list is a file. On
    /// a disk it always is, so that damage of one file leaves the other.
    ///
    /// # Errors
    /// [`SegmentError::Damaged`] if a record is invalid.
    ///
    /// [`SegmentError::Damaged`]: crate::segment::SegmentError::Damaged
    pub fn fresh_entry(&self, segment: &Segment) -> Result<SegmentEntry, CollectionError> {
        let list = match self.store.is_shared() {
            true => SourceList::small_of(segment)?,
            false => None,
        };
        Ok(SegmentEntry::fresh(segment.meta(), list))
    }

    /// Writes the source list of a segment. Costs two fsyncs.
    pub(super) fn write_list(&self, segment: &Segment) -> Result<(), CollectionError> {
        let bytes = SourceList::file_of(segment, self.id)?;
        Ok(self.store.put(&layout::source_list(self.id, segment.id()), &bytes)?)
    }

    /// Compares a segment with its source list. Returns whether there is a list: older releases
    /// wrote none, and the server writes missing lists when it first uses the tenant.
    ///
    /// # Errors
    /// A list that is damaged or differs from the segment.
    pub(super) fn verify_list(
        &self,
        entry: &SegmentEntry,
        segment: &Segment,
    ) -> Result<bool, CollectionError> {
        let list = match self.read_list(entry) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            list => list?,
        };
        let mut listed = list.sources().iter();
        let mut is_listed = list.sources().len() == segment.source_count() as usize;
        for record in source_list::records(segment) {
            let (record, rows) = record?;
            let one = listed.next();
            is_listed &=
                one.is_some_and(|one| one.record == record && one.rows().len() == rows as usize);
        }
        if !is_listed {
            let (segment, problem) =
                (segment.id(), "it lists other sources than the segment".to_owned());
            return Err(CollectionError::BadList { segment, problem });
        }
        Ok(true)
    }

    /// Writes source lists that are missing or damaged, while their segments are still readable.
    /// Returns their number.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn repair_source_lists(&self) -> Result<usize, CollectionError> {
        let seen = self.snapshot();
        let mut missing = Vec::new();
        for live in &seen.segments {
            match self.read_list(&live.entry) {
                Ok(_) => {}
                // The release that wrote it may know more about the sources than this one.
                Err(error) if error.is_too_new() => {}
                Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::NotFound) => {
                    missing.push(live);
                }
                Err(error) => return Err(error),
            }
        }
        let mut written = 0;
        for live in missing {
            // Under the lock no segment leaves the manifest, so no list outlives its segment. A
            // writer waits for at most one list.
            let _no_commit = self.writer.lock();
            let is_live =
                |now: &Snapshot| now.segments.iter().any(|it| it.entry.id == live.entry.id);
            if is_live(&self.snapshot()) {
                self.write_list(&live.segment)?;
                written += 1;
            }
        }
        Ok(written)
    }

    /// Quarantines the segments that reads have found damaged. If there are none, reads every block
    /// of every segment and compares it with its checksum. Returns the number of damaged segments.
    /// Called after a read met damage or ended in a panic.
    ///
    /// Blocks are read without the writer's lock, by one caller at a time, and only once per
    /// version in which all of them are intact, so that requests failing for other reasons do not
    /// cause everything to be read again and again.
    pub fn quarantine_damaged(&self) -> usize {
        let found = self.quarantine_noticed(&self.writer.lock());
        if found > 0 {
            return found;
        }
        let Some(mut sound_version) = self.scrubbing.try_lock() else { return 0 };
        let seen = self.snapshot();
        if *sound_version == Some(seen.manifest.version) {
            return 0;
        }
        // Each segment remembers its damage.
        let scrub = |live: &Arc<LiveSegment>| live.segment.verify_blocks();
        let failed = seen.segments.iter().filter_map(|live| scrub(live).err()).count();
        if failed == 0 {
            *sound_version = Some(seen.manifest.version);
        }
        self.quarantine_noticed(&self.writer.lock())
    }

    /// Quarantines the segments known to be damaged, unless an intact copy can be fetched. Returns
    /// how many were damaged, including those fetched again or later.
    pub(super) fn quarantine_noticed(&self, _no_commit: &MutexGuard<'_, WriterState>) -> usize {
        let now = self.snapshot();
        let (mut segments, mut damaged) = (Vec::new(), now.damaged.clone());
        let mut found = 0;
        for live in &now.segments {
            let Err(error) = live.segment.check() else {
                segments.push(Arc::clone(live));
                continue;
            };
            found += 1;
            match self.load_again(&live.entry) {
                Ok(Some(again)) => {
                    tracing::warn!(collection = %self.id, %error, "a damaged cached copy was \
                        downloaded again");
                    segments.push(Arc::new(again));
                }
                Err(away) if !is_damage(&away) => {
                    tracing::error!(collection = %self.id, %error, %away, "a segment with a \
                        damaged cached copy is missing until it can be downloaded again");
                    let quarantined = self.quarantine(&live.entry, Some(live));
                    damaged.push(Arc::new(QuarantinedSegment { is_away: true, ..quarantined }));
                }
                Ok(None) | Err(_) => {
                    tracing::error!(collection = %self.id, %error, "segment quarantined");
                    damaged.push(Arc::new(self.quarantine(&live.entry, Some(live))));
                }
            }
        }
        if found > 0 {
            let manifest = now.manifest.clone();
            self.snapshot.store(Arc::new(Snapshot { manifest, segments, damaged }));
        }
        found
    }

    /// Fetches a segment again if its file was only a local copy; `None` if it was not.
    fn load_again(&self, entry: &SegmentEntry) -> Result<Option<LiveSegment>, CollectionError> {
        if !self.store.forget_copy(&layout::segment(self.id, SegmentId(entry.id))) {
            return Ok(None);
        }
        let again = self.load_segment(entry)?;
        again.segment.verify_blocks()?;
        Ok(Some(again))
    }

    /// Fetches the segments that could not be fetched when their local copies were found damaged.
    ///
    /// # Errors
    /// Errors of the store: they stay out of service until a later call.
    pub fn fetch_away(&self) -> Result<(), CollectionError> {
        let is_away = |segment: &&Arc<QuarantinedSegment>| segment.is_away;
        let key = |segment: &Arc<QuarantinedSegment>| layout::segment(self.id, segment.id());
        let missing: Vec<Key> = self.snapshot().damaged.iter().filter(is_away).map(key).collect();
        if missing.is_empty() {
            return Ok(());
        }
        // Without the lock, which the others would wait for.
        let _kept_until_loaded = self.store.prefetch(&missing);
        let _no_commit = self.writer.lock();
        let now = self.snapshot();
        if now.damaged.iter().any(|segment| segment.is_away) {
            self.snapshot.store(Arc::new(self.load(now.manifest.clone())?));
            tracing::info!(collection = %self.id, "missing segments were downloaded again");
        }
        Ok(())
    }

    /// Keys of a segment and of the source list beside it.
    pub(super) fn files_of(&self, segment: SegmentId) -> [Key; 2] {
        [layout::segment(self.id, segment), layout::source_list(self.id, segment)]
    }
}
