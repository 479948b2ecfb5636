//! Errors of a collection.

use crate::segment::SegmentError;
use lodestone_io::store::StoreError;
use lodestone_types::{CollectionId, ErrorKind, SegmentId};

/// Errors of opening, reading or changing one collection.
#[derive(Debug, thiserror::Error)]
pub enum CollectionError {
    /// A manifest violates its format.
    #[error("manifest v1/c/{collection}/m/{version:020} is damaged: {problem}")]
    BadManifest {
        /// The collection.
        collection: CollectionId,
        /// The manifest's number.
        version: u64,
        /// The rule that is broken.
        problem: String,
    },
    /// The newest manifest is older than the one recorded in the catalog.
    #[error(
        "collection {collection} has manifest {found}, but {expected} was committed; restore \
         v1/c/{collection} from a backup"
    )]
    HeadMissing {
        /// The collection.
        collection: CollectionId,
        /// Number of the newest manifest on disk; 0 for none.
        found: u64,
        /// Number of the newest manifest recorded in the catalog.
        expected: u64,
    },
    /// There are segments but no manifest, so it is unknown which of their rows are live.
    #[error(
        "collection {collection} has {segments} segments but no manifest, so it is unknown which \
         of their rows are live; restore v1/c/{collection}/m from a backup, or move \
         v1/c/{collection} and catalog.sqlite away: documents are then reprocessed from \
         v1/raw/{collection}, but memories, client vectors and changed metadata are lost"
    )]
    Unlisted {
        /// The collection.
        collection: CollectionId,
        /// Number of its segments.
        segments: usize,
    },
    /// The collection was written by a newer version of the program.
    #[error("collection {collection} needs reader version {needed}, this program has {ours}")]
    TooNew {
        /// The collection.
        collection: CollectionId,
        /// The reader version that it needs.
        needed: u32,
        /// The reader version of this program.
        ours: u32,
    },
    /// An earlier write failed, and it is unknown whether that write is durable.
    #[error("collection {collection} refuses writes after a failed commit; restart the server")]
    Poisoned {
        /// The collection.
        collection: CollectionId,
    },
    /// A commit failed, and it is unknown whether it happened.
    #[error("a commit to collection {collection} may have been applied: {cause}; {remedy}")]
    InDoubt {
        /// The collection.
        collection: CollectionId,
        /// The error that the commit met.
        cause: String,
        /// The way to find out.
        remedy: &'static str,
    },
    /// A writer with a later epoch has taken over, or other writers kept winning.
    #[error("another writer has committed to collection {collection}")]
    Fenced {
        /// The collection.
        collection: CollectionId,
    },
    /// Another process is the writer of the collection.
    #[error("this process has collection {collection} open read-only")]
    ReadOnly {
        /// The collection.
        collection: CollectionId,
    },
    /// The newest version of the collection is not loaded yet.
    #[error("the newest version of collection {collection} is still being loaded")]
    Behind {
        /// The collection.
        collection: CollectionId,
    },
    /// Part of the collection is quarantined, and the operation needs all of it.
    #[error("collection {collection} has {segments} damaged segments; see the server log")]
    Quarantined {
        /// The collection.
        collection: CollectionId,
        /// Number of damaged segments.
        segments: usize,
    },
    /// The edit would mix vectors of two models: the collection's model was changed in the
    /// meantime.
    #[error("the embedding model of collection {collection} has changed meanwhile; try again")]
    OtherModel {
        /// The collection.
        collection: CollectionId,
    },
    /// An original differs from the bytes that were uploaded.
    #[error("upload {key} is damaged: {problem}")]
    BadUpload {
        /// Key of the upload.
        key: String,
        /// The rule that is broken.
        problem: String,
    },
    /// The source list of a segment violates its format or differs from the segment.
    #[error("the source list of segment {segment} is damaged: {problem}")]
    BadList {
        /// The segment.
        segment: SegmentId,
        /// The rule that is broken.
        problem: String,
    },
    /// A source was replaced again and again while it was being read.
    #[error("a source of collection {collection} was replaced during {look_ups} look-ups")]
    Unsettled {
        /// The collection.
        collection: CollectionId,
        /// Number of look-ups.
        look_ups: usize,
    },
    /// Error of a segment.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// Error of the blob store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl CollectionError {
    /// Whether it is unknown what is durable after a commit ended with this error. It is known if
    /// no sync failed and nothing was published: the disk was full, or no file was created.
    pub(super) fn leaves_doubt(&self) -> bool {
        match self {
            Self::Store(StoreError::Io(error)) => {
                let is_full = error.kind() == ErrorKind::StorageFull;
                error.must_poison() || !(is_full || error.precedes_a_name())
            }
            _ => true,
        }
    }

    /// Whether the next writer can find out what is durable: a bucket will tell, once it is back.
    pub(super) fn can_be_settled(&self) -> bool {
        let (Self::Store(error) | Self::Segment(SegmentError::Store(error))) = self else {
            return false;
        };
        matches!(error, StoreError::Remote { .. } | StoreError::Missing { .. })
    }

    /// Whether the data was written by a later release, and is therefore unreadable but not
    /// damaged.
    pub fn is_too_new(&self) -> bool {
        matches!(self, Self::TooNew { .. } | Self::Segment(SegmentError::TooNew { .. }))
    }

    /// Classifies the error by what the caller should do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::BadManifest { .. }
            | Self::HeadMissing { .. }
            | Self::Unlisted { .. }
            | Self::BadUpload { .. }
            | Self::BadList { .. } => ErrorKind::Corrupt,
            Self::TooNew { .. }
            | Self::Poisoned { .. }
            | Self::InDoubt { .. }
            | Self::Fenced { .. }
            | Self::ReadOnly { .. }
            | Self::Behind { .. }
            | Self::Quarantined { .. }
            | Self::OtherModel { .. }
            | Self::Unsettled { .. } => ErrorKind::Unavailable,
            Self::Segment(error) => error.kind(),
            Self::Store(error) => error.kind(),
        }
    }
}
