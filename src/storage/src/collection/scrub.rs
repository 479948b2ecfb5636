//! Scrubs: every file of an open collection is read once more and compared with its checksums.
//!
//! Blocks are verified when they are first read, and then taken for good; a scrub finds what went
//! bad since, and what nobody has read. A damaged segment is quarantined. The manifest, tombstones
//! and lists of sources are in memory while a collection is open: damaged files of them are
//! written again.

use crate::collection::manifest::SegmentEntry;
use crate::collection::open::is_damage;
use crate::collection::snapshot::LiveSegment;
use crate::collection::{Collection, CollectionError, layout};
use crate::segment::SegmentError;

/// Damage that a scrub found, in files.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Scrubbed {
    /// Segments that were quarantined.
    pub segments: usize,
    /// Lists of sources that were written again.
    pub lists: usize,
    /// Sets of tombstones that were written again.
    pub tombstones: usize,
    /// Manifests that were written again.
    pub manifests: usize,
}

impl Collection {
    /// Reads all files of the newest version but the originals. `go_on` is told the bytes of each
    /// piece of a segment; it may take its time, and ends the scrub by false.
    ///
    /// # Errors
    /// Errors of the disk; damage that can neither be quarantined nor repaired.
    pub fn scrub(&self, go_on: &mut dyn FnMut(u64) -> bool) -> Result<Scrubbed, CollectionError> {
        let mut scrubbed = Scrubbed {
            manifests: self.repair_manifest()?,
            tombstones: self.repair_tombstones()?,
            lists: self.repair_source_lists()?,
            segments: 0,
        };
        let seen = self.snapshot();
        for live in &seen.segments {
            match self.read_again(&live.entry, go_on) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) if !is_damage(&error) => return Err(error),
                Err(error) if self.is_listed(live) => live.segment.condemn(&error.to_string()),
                // It was merged away meanwhile.
                Err(_) => {}
            }
        }
        scrubbed.segments = self.quarantine_noticed(&self.writer.lock());
        Ok(scrubbed)
    }

    /// Opens the file of a segment as a start would, and reads every block.
    fn read_again(
        &self,
        entry: &SegmentEntry,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<bool, CollectionError> {
        Ok(self.open_segment(&entry.meta())?.verify_slowly(go_on)?)
    }

    /// Whether the newest version has this segment with these tombstones.
    fn is_listed(&self, live: &LiveSegment) -> bool {
        self.snapshot().segments.iter().any(|now| now.entry.id == live.entry.id)
    }

    /// Writes sets of tombstones again that are damaged or missing. Returns their number.
    fn repair_tombstones(&self) -> Result<usize, CollectionError> {
        let mut written = 0;
        for live in &self.snapshot().segments {
            let Some(file) = &live.entry.tombstones else { continue };
            match self.read_dead(&live.entry) {
                Err(error) if is_damage(&error) => {}
                read => {
                    read?;
                    continue;
                }
            }
            // Under the lock the file stays listed: none is written that garbage collection has
            // deleted already.
            let _no_commit = self.writer.lock();
            let is_listed = self
                .snapshot()
                .segments
                .iter()
                .any(|now| now.entry.tombstones == Some(file.clone()));
            if !is_listed {
                continue;
            }
            let (bytes, checksum) = live.dead.encode(self.id, live.segment.id());
            if checksum != file.checksum {
                let problem = "its tombstones cannot be written again".to_owned();
                let segment = live.segment.id().to_string();
                return Err(SegmentError::Damaged { segment, problem }.into());
            }
            self.store.put(&layout::tombstone(self.id, file.id), &bytes)?;
            tracing::warn!(collection = %self.id, segment = %live.segment.id(),
                "damaged tombstones were written again");
            written += 1;
        }
        Ok(written)
    }

    /// Writes the newest manifest again if it is damaged or missing. Returns their number.
    fn repair_manifest(&self) -> Result<usize, CollectionError> {
        let _no_commit = self.writer.lock();
        let snapshot = self.snapshot();
        let ours = &snapshot.manifest;
        // After a failed commit it is not known which is the newest.
        if ours.version == 0 || !self.knows_head() {
            return Ok(0);
        }
        match self.log.head(self.id) {
            Ok(found) if found.version >= ours.version => return Ok(0),
            Ok(_) => {}
            Err(error) if is_damage(&error) => {}
            Err(error) => return Err(error),
        }
        self.store.put(&layout::manifest(self.id, ours.version), &ours.encode())?;
        tracing::warn!(collection = %self.id, version = ours.version,
            "a damaged manifest was written again");
        Ok(1)
    }
}
