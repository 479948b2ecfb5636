//! Re-embedding: segments of the same rows with the vectors of another model are made beside those
//! that are searched, and the old ones are kept for a while after the switch.
//!
//! ```text
//! manifest  segments: searched          other: none
//!           segments                    other: wanted, so far empty
//!           segments                    other: wanted, pieces that are finished     (repeated)
//!           pieces, all of them         other: kept, the segments of before         the switch
//!           pieces                      other: none                                 the end
//! ```
//! Every line is one commit. Until the switch nothing reads the pieces; commits of the collection
//! do not know them. What they lack of the visible sources, and which of their rows are not alive
//! any more, is found by comparing both, see [`Snapshot::compare`]: source by source, by the whole
//! record, and row by row. The way back is the same with the roles exchanged.

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

/// Segments with vectors of another model than those that are searched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherVectors {
    /// Fingerprint of the model.
    pub embedding: String,
    /// The segments; those that a switch has put away have their tombstones of that time.
    pub segments: Vec<SegmentEntry>,
    /// Whether they are to be completed and switched to. Otherwise they are kept.
    pub is_wanted: bool,
    /// Epoch milliseconds: when they were asked for, or put away.
    pub since: u64,
    /// Id of the work that was asked for.
    pub job: Uuid,
}

/// The other vectors of a version against its visible rows.
#[derive(Debug, Default)]
pub struct Comparison<'a> {
    /// Dead rows and sources of each of the other segments.
    dead: Vec<TombstoneSet>,
    /// Visible sources that none of them holds as they are now.
    pub missing: Vec<FoundSource<'a>>,
    /// Rows of the missing sources.
    pub missing_rows: u64,
}

impl Manifest {
    /// The model behind its vectors; none where there are no rows, or only client vectors.
    pub fn model(&self) -> Option<&str> {
        self.embedding.as_deref().filter(|_| !self.segments.is_empty())
    }

    /// The segments that are searched, then those of other vectors.
    pub(super) fn all_segments(&self) -> impl Iterator<Item = &SegmentEntry> {
        let other = self.other.iter().flat_map(|other| &other.segments);
        self.segments.iter().chain(other)
    }
}

impl Snapshot {
    /// Compares `other`, the open segments of its other vectors, with its visible sources. Reads
    /// the record of every source, and nothing of the rows but their numbers.
    ///
    /// # Errors
    /// Malformed records.
    pub fn compare(&self, other: &[Arc<LiveSegment>]) -> Result<Comparison<'_>, SegmentError> {
        let mut current: BTreeSet<(SegmentId, u32)> = BTreeSet::new();
        let mut dead = vec![TombstoneSet::default(); other.len()];
        // The newest first: where a source was made twice, its later version counts.
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

    /// The rows of a source of other vectors that are visible here; `None` unless it holds them
    /// all, under the same record.
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
    /// Opens the segments of the other vectors of a version. Those that cannot be read are left
    /// out: what they hold is made again.
    ///
    /// # Errors
    /// Errors of the disk other than damage and absence.
    pub fn open_other(
        &self,
        manifest: &Manifest,
    ) -> Result<Vec<Arc<LiveSegment>>, CollectionError> {
        let mut open = Vec::new();
        for entry in manifest.other.iter().flat_map(|other| &other.segments) {
            match self.load_segment(entry) {
                Ok(live) => open.push(Arc::new(live)),
                Err(error) if super::open::is_damage(&error) => {
                    tracing::warn!(collection = %self.id, %error, "vectors are made again");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(open)
    }

    /// Writes the live rows of visible sources of one segment with other vectors, in the order of
    /// the sources and of their rows, to a segment file that nothing refers to yet. Vectors of a
    /// sparse model, the second ones, are kept where none are given.
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

/// Tombstones of a segment under which only the live rows of `sources` are alive.
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
    /// Notes other vectors in place of those that were noted, whose files become garbage where
    /// they are in neither.
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

    /// Makes the other vectors, which lack nothing, those that are searched; keeps those of
    /// before. One commit: a snapshot has the one or the other.
    ///
    /// # Errors
    /// As [`Writer::commit`]. [`CollectionError::Quarantined`] while a segment is damaged, and
    /// [`CollectionError::OtherModel`] where there are no other vectors, or sources are missing.
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

    /// Creates the next manifest. No other writer of this collection is at work: it would hold
    /// this one's lock, or have another epoch.
    fn put(&mut self, base: &Snapshot, next: &Manifest) -> Result<(), CollectionError> {
        let collection = self.collection.id;
        match self.collection.log.commit(&base.manifest, next) {
            Ok(Commit::Done) => Ok(()),
            // The next commit builds upon the other one.
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
