//! Keys of a collection's blobs. Nothing in them comes from a user.

use uuid::Uuid;

use lodestone_io::store::Key;
use lodestone_types::{CollectionId, SegmentId};

fn key(text: String) -> Key {
    Key::parse(&text).expect("opaque ids and numbers make valid keys")
}

/// Everything of a collection but its uploads.
pub fn collection_prefix(collection: CollectionId) -> Key {
    key(format!("v1/c/{collection}"))
}

/// The directory of manifests.
pub(super) fn manifests(collection: CollectionId) -> Key {
    key(format!("v1/c/{collection}/m"))
}

/// One manifest; twenty digits, so that names sort as numbers.
pub(super) fn manifest(collection: CollectionId, version: u64) -> Key {
    key(format!("v1/c/{collection}/m/{version:020}"))
}

/// The number in a manifest's name.
pub(super) fn manifest_version(key: &Key) -> Option<u64> {
    let name = key.last();
    (name.len() == 20).then(|| name.parse().ok()).flatten()
}

/// The directory of segments.
pub(super) fn segments(collection: CollectionId) -> Key {
    key(format!("v1/c/{collection}/s"))
}

/// One segment.
pub(super) fn segment(collection: CollectionId, segment: SegmentId) -> Key {
    key(format!("v1/c/{collection}/s/{segment}.seg"))
}

/// The directory of source lists.
pub(super) fn source_lists(collection: CollectionId) -> Key {
    key(format!("v1/c/{collection}/r"))
}

/// The sources of one segment, beside it.
pub(super) fn source_list(collection: CollectionId, segment: SegmentId) -> Key {
    key(format!("v1/c/{collection}/r/{segment}"))
}

/// The directory of tombstones.
pub(super) fn tombstones(collection: CollectionId) -> Key {
    key(format!("v1/c/{collection}/d"))
}

/// One tombstone file.
pub(super) fn tombstone(collection: CollectionId, id: Uuid) -> Key {
    key(format!("v1/c/{collection}/d/{}", id.as_simple()))
}
