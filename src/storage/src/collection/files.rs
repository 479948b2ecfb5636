//! The files that make up one version of a collection.

use crate::collection::{Manifest, layout};
use lodestone_io::store::Key;
use lodestone_types::{CollectionId, SegmentId};

impl Manifest {
    /// Key of the manifest itself. The name says nothing about the content: after a rollback, other
    /// versions get the same numbers.
    pub fn key(&self) -> Key {
        layout::manifest(CollectionId(self.collection), self.version)
    }

    /// Keys of all files of this version except the originals, ascending; none before the first
    /// commit. A source list may be absent if an older release wrote the segment.
    pub fn files(&self) -> Vec<Key> {
        let id = CollectionId(self.collection);
        if self.version == 0 {
            return Vec::new();
        }
        let mut files = vec![self.key()];
        for entry in self.all_segments() {
            files.push(layout::segment(id, SegmentId(entry.id)));
            if entry.list.is_none() {
                files.push(layout::source_list(id, SegmentId(entry.id)));
            }
            files.extend(entry.tombstones.iter().map(|dead| layout::tombstone(id, dead.id)));
        }
        files.sort_unstable();
        files
    }
}
