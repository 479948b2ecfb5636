//! Re-embedding: builds segments of the same rows with the vectors of another model beside those
//! that are searched, and keeps the old ones for a while after the switch.
//!
//! ```text
//! manifest  segments: searched          other: none
//!           segments                    other: wanted, still empty
//!           segments                    other: wanted, the finished pieces              (repeated)
//!           pieces, all of them         other: kept, the previous segments              the switch
//!           pieces                      other: none                                     the end
//! ```
//! Every line is one commit. Until the switch nothing reads the pieces, and commits of the
//! collection ignore them. Visible sources that they lack, and rows of theirs that are no longer
//! live, are found by comparing the two, see [`Snapshot::compare`]: source by source by the whole
//! record, and row by row. Switching back works alike, with the roles exchanged.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::collection::commit::next_snapshot;
use crate::collection::draft::DraftSegment;
use crate::collection::log::Commit;
use crate::collection::manifest::{Manifest, SegmentEntry};
use crate::collection::snapshot::{FoundSource, LiveSegment, Snapshot};
use crate::collection::{Collection, CollectionError, Writer, layout};
use crate::segment::{
    self, Segment, SegmentError, SegmentShape, SparseRow, TombstoneSet, VectorKind,
};
use lodestone_types::{RowId, SegmentId, Timestamp};

/// Segments with vectors of a model other than that of the searched segments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherVectors {
    /// Fingerprint of the other model.
    pub embedding: String,
    /// The segments. Those put away by a switch keep their tombstones of that time.
    pub segments: Vec<SegmentEntry>,
    /// Whether they are to be completed and switched to. If not, they were put away by a switch.
    pub is_wanted: bool,
    /// Time at which they were requested or put away, in milliseconds since the epoch.
    pub since: u64,
    /// Id of the job that requested them.
    pub job: Uuid,
}

/// The other vectors of a version, compared with its visible rows.
#[derive(Debug, Default)]
pub struct Comparison<'a> {
    /// Dead rows and sources of each of the other segments.
    dead: Vec<TombstoneSet>,
    /// Visible sources that none of them holds in their current state.
    pub missing: Vec<FoundSource<'a>>,
    /// Number of rows of the missing sources.
    pub missing_rows: u64,
}

impl Manifest {
    /// The model behind the searched vectors; `None` if there are no rows or only client vectors.
    pub fn model(&self) -> Option<&str> {
        self.embedding.as_deref().filter(|_| !self.segments.is_empty())
    }

    /// The searched segments, followed by those with other vectors.
    pub(super) fn all_segments(&self) -> impl Iterator<Item = &SegmentEntry> {
        let other = self.other.iter().flat_map(|other| &other.segments);
        self.segments.iter().chain(other)
    }
}

impl Snapshot {
    /// Compares `other`, the open segments with other vectors, with the visible sources. Reads the
    /// record of every source, but of the rows only their numbers and indices.
    ///
    /// # Errors
    /// Malformed records.
    pub fn compare(&self, other: &[Arc<LiveSegment>]) -> Result<Comparison<'_>, SegmentError> {
        let mut current: BTreeSet<(SegmentId, u32)> = BTreeSet::new();
        let mut dead = vec![TombstoneSet::default(); other.len()];
        // Newest first: if a source was built twice, its later version counts.
        for (live, dead) in other.iter().zip(&mut dead).rev() {
            let segment = &live.segment;
            for source in 0..segment.source_count() {
                let rows = segment.rows_of(source);
                let (sub_tenant, id) = segment.source_key(source);
                let found = self.find_named(sub_tenant, id);
                let same = match found {
                    Some(found) if !live.dead.sources.contains(source) => {
                        self.same_rows(found, live, source)?
                    }
                    _ => None,
                };
                let is_first = same.is_some()
                    && found.is_some_and(|at| current.insert((at.live.segment.id(), at.source)));
                match same.filter(|_| is_first) {
                    Some(alive) => {
                        let gone = rows.iter().filter(|row| !alive.contains(row));
                        dead.rows.extend(gone.copied());
                    }
                    None => {
                        dead.sources.insert(source);
                        dead.rows.extend(rows.iter().copied());
                    }
                }
            }
        }
        let mut result = Comparison { dead, ..Comparison::default() };
        for found in self.all_sources() {
            if !current.contains(&(found.live.segment.id(), found.source)) {
                result.missing_rows += found.rows().len() as u64;
                result.missing.push(found);
            }
        }
        Ok(result)
    }

    /// The rows of a source with other vectors that are visible in this snapshot; `None` unless it
    /// has all visible rows, under an equal record.
    fn same_rows(
        &self,
        found: FoundSource<'_>,
        live: &LiveSegment,
        source: u32,
    ) -> Result<Option<BTreeSet<u32>>, SegmentError> {
        let (here, there) = (&found.live.segment, &live.segment);
        if here.sequence(found.source) != there.sequence(source)
            || found.record()? != there.record(source)?
        {
            return Ok(None);
        }
        let visible: BTreeSet<u32> =
            found.rows().into_iter().map(|row| here.index(RowId(row))).collect();
        let rows = there.rows_of(source).iter().copied();
        let alive: BTreeSet<u32> = rows
            .filter(|row| !live.dead.rows.contains(*row))
            .filter(|row| visible.contains(&there.index(RowId(*row))))
            .collect();
        Ok((alive.len() == visible.len()).then_some(alive))
    }
}

impl Collection {
    /// Opens the segments with other vectors of a version. Unreadable ones are skipped, so that
    /// their contents are built again.
    ///
    /// # Errors
    /// Errors of the disk, except damaged and missing files.
    pub fn open_other(
        &self,
        manifest: &Manifest,
    ) -> Result<Vec<Arc<LiveSegment>>, CollectionError> {
        let mut open = Vec::new();
        for entry in manifest.other.iter().flat_map(|other| &other.segments) {
            match self.load_segment(entry) {
                Ok(live) => open.push(Arc::new(live)),
                Err(error) if super::open::is_damage(&error) => {
                    tracing::warn!(collection = %self.id, %error, "recomputing vectors");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(open)
    }

    /// Writes the live rows of some sources of one segment with new vectors to a segment file that
    /// nothing refers to yet. `vectors` are in the order of the sources and of their rows: first
    /// the dense ones, then those of a sparse model; if the latter are empty, existing ones are
    /// kept.
    ///
    /// # Errors
    /// Errors of reading, building or of the disk; no file is left behind.
    pub fn build_with_vectors(
        &self,
        live: &LiveSegment,
        sources: &[u32],
        dimension: usize,
        vectors: (&[Vec<f32>], &[SparseRow]),
    ) -> Result<Arc<Segment>, CollectionError> {
        let id = SegmentId(self.ids.uuid());
        let vector_kind = VectorKind::F16;
        let shape = SegmentShape { collection: self.id, segment: id, dimension, vector_kind };
        let dead = all_but(live, sources);
        let key = layout::segment(self.id, id);
        let input = (&*live.segment, &dead);
        let backend = &*self.backend;
        let meta = segment::write_with_vectors(&*self.store, &key, shape, input, vectors, backend)?;
        self.adopt(&meta)
    }
}

/// Tombstones that leave only the live rows of `sources` alive.
fn all_but(live: &LiveSegment, sources: &[u32]) -> TombstoneSet {
    let mut dead = TombstoneSet::default();
    dead.sources.insert_range(0..live.segment.source_count());
    dead.rows.insert_range(0..live.segment.row_count());
    for source in sources {
        dead.sources.remove(*source);
        for row in live.segment.rows_of(*source) {
            if !live.dead.rows.contains(*row) {
                dead.rows.remove(*row);
            }
        }
    }
    dead
}

impl Writer<'_> {
    /// Records other vectors in place of the recorded ones. Files that the new manifest no longer
    /// lists become garbage.
    ///
    /// # Errors
    /// As [`Writer::commit`].
    pub fn set_other(&mut self, other: Option<OtherVectors>) -> Result<(), CollectionError> {
        let base = self.base();
        let mut next = self.next_of(&base);
        next.other = other;
        next.min_reader = next.reader_needed();
        self.put(&base, &next)?;
        let Snapshot { segments, damaged, .. } = &*base;
        let (segments, damaged) = (segments.clone(), damaged.clone());
        self.publish(&base, Snapshot { manifest: next, segments, damaged });
        Ok(())
    }

    /// Switches the search to the other vectors, which must be complete, and puts the current ones
    /// away. One commit: a snapshot has either the ones or the others.
    ///
    /// # Errors
    /// As [`Writer::commit`]. [`CollectionError::Quarantined`] while a segment is damaged, and
    /// [`CollectionError::OtherModel`] if there are no other vectors or sources are missing.
    pub fn switch(
        &mut self,
        other: &[Arc<LiveSegment>],
        now: Timestamp,
    ) -> Result<(), CollectionError> {
        let (base, id) = (self.base(), self.collection.id);
        let segments = base.damaged.len();
        if segments > 0 {
            return Err(CollectionError::Quarantined { collection: id, segments });
        }
        let compared = base.compare(other)?;
        let noted = base.manifest.other.as_ref().filter(|_| compared.missing.is_empty());
        let (Some(noted), Some(embedding)) = (noted, base.manifest.embedding.clone()) else {
            return Err(CollectionError::OtherModel { collection: id });
        };
        let mut drafts: Vec<DraftSegment> = other
            .iter()
            .zip(compared.dead)
            .map(|(live, dead)| DraftSegment::with_dead(live, dead))
            .collect();
        drafts.retain(DraftSegment::has_live_sources);
        let mut next = self.next_of(&base);
        next.segments = self.write_tombstones(&drafts)?;
        next.embedding = Some(noted.embedding.clone());
        next.other = Some(OtherVectors {
            embedding,
            segments: base.manifest.segments.clone(),
            is_wanted: false,
            since: now.0,
            job: noted.job,
        });
        next.min_reader = next.reader_needed();
        self.put(&base, &next)?;
        self.publish(&base, next_snapshot(next, drafts));
        Ok(())
    }

    /// Creates the next manifest. No other writer of this collection is active: it would hold the
    /// lock, or have another epoch.
    fn put(&mut self, base: &Snapshot, next: &Manifest) -> Result<(), CollectionError> {
        let collection = self.collection.id;
        match self.collection.log.commit(&base.manifest, next) {
            Ok(Commit::Done) => Ok(()),
            // The next commit builds on the other manifest.
            Ok(Commit::Conflict(_)) => Err(CollectionError::Fenced { collection }),
            Ok(Commit::Fenced) => {
                self.poison();
                Err(CollectionError::Fenced { collection })
            }
            Err(error) => {
                if error.leaves_doubt() && !error.can_be_settled() {
                    tracing::error!(%collection, %error, "commit failed: poisoned");
                    self.poison();
                }
                Err(self.doubted(error))
            }
        }
    }
}
