//! Keys of a collection's blobs. They contain no text that comes from a user.

use uuid::Uuid;

use lodestone_io::store::Key;
use lodestone_types::{CollectionId, SegmentId};

fn key(text: String) -> Key {
    Key::parse(&text).expect("opaque ids and numbers make valid keys")
}

/// Prefix of everything in a collection except its uploads.
pub fn collection_prefix(collection: CollectionId) -> Key {
    key(format!("v1/c/{collection}"))
}

/// Directory of the manifests.
pub(super) fn manifests(collection: CollectionId) -> Key {
    key(format!("v1/c/{collection}/m"))
}

/// Key of a manifest. The number has twenty digits, so that names sort as numbers.
pub(super) fn manifest(collection: CollectionId, version: u64) -> Key {
    key(format!("v1/c/{collection}/m/{version:020}"))
}

/// The number in a manifest's name; `None` for other names.
pub(super) fn manifest_version(key: &Key) -> Option<u64> {
    let name = key.last();
    (name.len() == 20).then(|| name.parse().ok()).flatten()
}

/// Directory of the segments.
pub(super) fn segments(collection: CollectionId) -> Key {
    key(format!("v1/c/{collection}/s"))
}

/// Key of a segment.
pub(super) fn segment(collection: CollectionId, segment: SegmentId) -> Key {
    key(format!("v1/c/{collection}/s/{segment}.seg"))
}

/// Directory of the source lists.
pub(super) fn source_lists(collection: CollectionId) -> Key {
    key(format!("v1/c/{collection}/r"))
}

/// Key of a segment's source list.
pub(super) fn source_list(collection: CollectionId, segment: SegmentId) -> Key {
    key(format!("v1/c/{collection}/r/{segment}"))
}

/// Directory of the tombstones.
pub(super) fn tombstones(collection: CollectionId) -> Key {
    key(format!("v1/c/{collection}/d"))
}

/// Key of a tombstone file.
pub(super) fn tombstone(collection: CollectionId, id: Uuid) -> Key {
    key(format!("v1/c/{collection}/d/{}", id.as_simple()))
}
