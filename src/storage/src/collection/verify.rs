//! Verification of everything that the newest version of a collection lists, one segment at a time.
//!
//! Another process may be writing meanwhile. If something is missing or damaged, the newest version
//! is read again: if that one no longer lists it, nothing is lost.

use std::collections::BTreeSet;
use std::sync::Arc;

use uuid::Uuid;

use crate::collection::manifest::{Manifest, SegmentEntry};
use crate::collection::open::is_damage;
use crate::collection::snapshot::LiveSegment;
use crate::collection::{Collection, CollectionError, layout, uploads};
use crate::segment;
use lodestone_io::store::{BlobStore, Key};
use lodestone_types::{CollectionId, CommitHead, IdSource, SegmentId, Sequence};

/// Sources whose originals are verified before failures are evaluated.
const BATCH: u32 = 256;

/// Counts of a verification. If another process merges meanwhile, some rows are counted twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CollectionCensus {
    /// Intact segments, including those with vectors of another model.
    pub segments: u64,
    /// Segments without a source list, as older releases wrote them.
    pub without_list: u64,
    /// Visible rows.
    pub rows: u64,
    /// Visible sources.
    pub sources: u64,
    /// Intact originals.
    pub originals: u64,
    /// Bytes of the segments examined so far.
    pub bytes: u64,
    /// Bytes of these and of the segments still to be examined.
    pub bytes_total: u64,
}

/// Result of a verification.
#[derive(Debug)]
pub struct VerifiedCollection {
    /// Counts of the intact parts.
    pub census: CollectionCensus,
    /// The newest version that the verification has read.
    pub manifest: Manifest,
    /// The highest sequence of any source.
    pub newest_sequence: Sequence,
}

/// An event of a verification.
#[derive(Debug)]
pub enum VerifyEvent<'a> {
    /// A file is damaged or missing.
    Damage {
        /// Key of the file.
        key: &'a str,
        /// The rule that is broken.
        problem: &'a CollectionError,
    },
    /// The counts so far.
    Progress(&'a CollectionCensus),
}

struct Verifier<'a> {
    collection: Collection,
    /// The newest version read so far.
    manifest: Manifest,
    /// Segments already examined.
    known: BTreeSet<Uuid>,
    census: CollectionCensus,
    /// The highest sequence of any source.
    newest: Sequence,
    report: &'a mut dyn FnMut(VerifyEvent<'_>),
}

impl Collection {
    /// Reads the newest version and checks everything: the manifest, the segments with every
    /// invariant between their parts, the tombstones, the source lists, and the originals of the
    /// visible sources. Changes nothing, and keeps only one segment open at a time. Damage is
    /// passed to `report`.
    ///
    /// # Errors
    /// [`CollectionError::HeadMissing`] and [`CollectionError::BadManifest`] if the newest manifest
    /// is missing or damaged; errors of the store.
    pub fn verify(
        id: CollectionId,
        store: Arc<dyn BlobStore>,
        ids: Arc<dyn IdSource>,
        expected: Option<CommitHead>,
        report: &mut dyn FnMut(VerifyEvent<'_>),
    ) -> Result<VerifiedCollection, CollectionError> {
        let mut collection = Self::unopened(id, store, ids, 0);
        collection.only_reads = true;
        let manifest = collection.log.checked_head(id, expected)?;
        let (known, census, newest) = (BTreeSet::new(), CollectionCensus::default(), Sequence(0));
        let mut verifier = Verifier { collection, manifest, known, census, newest, report };
        while let Some(entry) = verifier.next() {
            verifier.known.insert(entry.id);
            verifier.census.bytes += entry.bytes;
            verifier.verify_segment(entry)?;
            verifier.tell_progress();
        }
        let Verifier { manifest, census, newest, .. } = verifier;
        let told = manifest.applied.iter().chain(&manifest.newest_sequence).copied().map(Sequence);
        let newest_sequence = told.fold(newest, Sequence::max);
        Ok(VerifiedCollection { census, manifest, newest_sequence })
    }
}

impl Verifier<'_> {
    fn unknown(&self) -> impl Iterator<Item = &SegmentEntry> {
        self.manifest.all_segments().filter(|entry| !self.known.contains(&entry.id))
    }

    fn next(&self) -> Option<SegmentEntry> {
        self.unknown().next().cloned()
    }

    fn tell_progress(&mut self) {
        let rest: u64 = self.unknown().map(|entry| entry.bytes).sum();
        self.census.bytes_total = self.census.bytes + rest;
        (self.report)(VerifyEvent::Progress(&self.census));
    }

    fn verify_segment(&mut self, mut entry: SegmentEntry) -> Result<(), CollectionError> {
        let id = self.collection.id;
        let of_segment = |entry: &SegmentEntry| layout::segment(id, SegmentId(entry.id));
        let segment = self.read(&mut entry, of_segment, |collection, entry| {
            let segment = collection.open_segment(&entry.meta())?;
            segment::verify(&segment)?;
            Ok(segment)
        })?;
        let Some(segment) = segment else { return Ok(()) };
        self.census.segments += 1;
        let of_list = |entry: &SegmentEntry| layout::source_list(id, SegmentId(entry.id));
        let has_list = self.read(&mut entry, of_list, |collection, entry| {
            collection.verify_list(entry, &segment)
        })?;
        self.census.without_list += u64::from(has_list == Some(false));
        let dead = self.read(&mut entry, |entry| dead_key(id, entry), Collection::read_dead)?;
        let Some(dead) = dead.filter(|_| self.is_searched(entry.id)) else { return Ok(()) };
        let live = LiveSegment::new(entry, segment, dead);
        self.census.rows += live.live_rows();
        self.census.sources += live.live_sources();
        self.verify_originals(live)
    }

    fn verify_originals(&mut self, mut live: LiveSegment) -> Result<(), CollectionError> {
        let count = live.segment.source_count();
        for first in (0..count).step_by(BATCH as usize) {
            let mut originals = Vec::new();
            for source in first..count.min(first + BATCH) {
                if !live.dead.sources.contains(source) {
                    self.newest = self.newest.max(live.segment.sequence(source));
                    originals.push((source, live.segment.record(source)?.raw_key));
                }
            }
            // Vectors sent by clients have no original.
            originals.retain(|(_, key)| !key.is_empty());
            let keys: Vec<&str> = originals.iter().map(|(_, key)| key.as_str()).collect();
            let failed = uploads::verify_all(&*self.collection.store, &keys)?;
            self.census.originals += (originals.len() - failed.len()) as u64;
            if !failed.is_empty() {
                let Some(now) = self.again(live)? else { return Ok(()) };
                live = now;
            }
            for (at, problem) in &failed {
                let (source, key) = &originals[*at];
                if !live.dead.sources.contains(*source) {
                    (self.report)(VerifyEvent::Damage { key, problem });
                }
            }
            self.tell_progress();
        }
        Ok(())
    }

    /// The segment with its current tombstones; `None` if it is no longer searched.
    fn again(&mut self, live: LiveSegment) -> Result<Option<LiveSegment>, CollectionError> {
        let id = self.collection.id;
        let Some(mut entry) = self.newest_entry(live.entry.id)? else { return Ok(None) };
        let dead = match entry == live.entry {
            true => Some(live.dead),
            false => self.read(&mut entry, |entry| dead_key(id, entry), Collection::read_dead)?,
        };
        let dead = dead.filter(|_| self.is_searched(entry.id));
        Ok(dead.map(|dead| LiveSegment::new(entry, live.segment, dead)))
    }

    /// Reads a file that belongs to a segment; `None` if it is damaged, which is reported, or if
    /// the newest version no longer lists the segment.
    fn read<T>(
        &mut self,
        entry: &mut SegmentEntry,
        key: impl Fn(&SegmentEntry) -> Key,
        read: impl Fn(&Collection, &SegmentEntry) -> Result<T, CollectionError>,
    ) -> Result<Option<T>, CollectionError> {
        loop {
            let problem = match read(&self.collection, entry) {
                Err(error) if is_damage(&error) => error,
                read => return read.map(Some),
            };
            let Some(now) = self.newest_entry(entry.id)? else { return Ok(None) };
            let before = key(entry);
            *entry = now;
            if key(entry) == before {
                (self.report)(VerifyEvent::Damage { key: before.as_str(), problem: &problem });
                return Ok(None);
            }
        }
    }

    /// The segment's entry in the newest version.
    fn newest_entry(&mut self, segment: Uuid) -> Result<Option<SegmentEntry>, CollectionError> {
        let collection = self.collection.id;
        let (head, expected) = (self.collection.log.head(collection)?, self.manifest.version);
        if head.version < expected {
            let found = head.version;
            return Err(CollectionError::HeadMissing { collection, found, expected });
        }
        self.manifest = head;
        Ok(self.manifest.all_segments().find(|entry| entry.id == segment).cloned())
    }

    fn is_searched(&self, segment: Uuid) -> bool {
        self.manifest.segments.iter().any(|entry| entry.id == segment)
    }
}

/// Key of a segment's tombstone file, or of the segment itself if it has none.
fn dead_key(collection: CollectionId, entry: &SegmentEntry) -> Key {
    match &entry.tombstones {
        Some(file) => layout::tombstone(collection, file.id),
        None => layout::segment(collection, SegmentId(entry.id)),
    }
}
