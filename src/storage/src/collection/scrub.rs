//! Scrubs: read every file of an open collection again and compare it with its checksums.
//!
//! Blocks are verified when they are first read and trusted from then on; a scrub finds data that
//! has gone bad since, and data that was never read. Damaged segments are quarantined. The
//! manifest, the tombstones and the source lists can be derived from an open collection, so damaged
//! files of these kinds are rewritten.

use crate::collection::manifest::SegmentEntry;
use crate::collection::open::is_damage;
use crate::collection::snapshot::LiveSegment;
use crate::collection::{Collection, CollectionError, layout};
use crate::segment::SegmentError;

/// Damaged files that a scrub found.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Scrubbed {
    /// Damaged segments: quarantined, or replaced by an intact copy.
    pub segments: usize,
    /// Source lists that were rewritten.
    pub lists: usize,
    /// Tombstone files that were rewritten.
    pub tombstones: usize,
    /// Manifests that were rewritten.
    pub manifests: usize,
}

impl Collection {
    /// Reads all files of the newest version except the originals. `go_on` is called with the
    /// number of bytes of each piece of a segment; it may block to throttle the scrub, and ends it
    /// by returning false.
    ///
    /// # Errors
    /// Errors of the disk; damage that can be neither quarantined nor repaired.
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
                // The segment was merged away in the meantime.
                Err(_) => {}
            }
        }
        scrubbed.segments = self.quarantine_noticed(&self.writer.lock());
        Ok(scrubbed)
    }

    /// Opens the file of a segment as on startup and reads every block.
    fn read_again(
        &self,
        entry: &SegmentEntry,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<bool, CollectionError> {
        Ok(self.open_segment(&entry.meta())?.verify_slowly(go_on)?)
    }

    /// Whether the newest version still lists this segment.
    fn is_listed(&self, live: &LiveSegment) -> bool {
        self.snapshot().segments.iter().any(|now| now.entry.id == live.entry.id)
    }

    /// Rewrites tombstone files that are damaged or missing. Returns their number.
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
            // Under the lock the file stays listed, so a file that garbage collection has already
            // deleted is not written again.
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
                "rewrote damaged tombstones");
            written += 1;
        }
        Ok(written)
    }

    /// Rewrites the newest manifest if it is damaged or missing. Returns the number of files
    /// written.
    fn repair_manifest(&self) -> Result<usize, CollectionError> {
        let _no_commit = self.writer.lock();
        let snapshot = self.snapshot();
        let ours = &snapshot.manifest;
        // After a failed commit it is unknown which manifest is the newest.
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
            "rewrote a damaged manifest");
        Ok(1)
    }
}
