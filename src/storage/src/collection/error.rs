//! Errors of a collection.

use crate::segment::SegmentError;
use lodestone_io::store::StoreError;
use lodestone_types::{CollectionId, ErrorKind, SegmentId};

/// Errors of opening, reading or changing one collection.
#[derive(Debug, thiserror::Error)]
pub enum CollectionError {
    /// A manifest does not hold what it must.
    #[error("manifest v1/c/{collection}/m/{version:020} is damaged: {problem}")]
    BadManifest {
        /// The collection.
        collection: CollectionId,
        /// The manifest's number.
        version: u64,
        /// Which rule is broken.
        problem: String,
    },
    /// The newest manifest is older than the one that the catalog has seen.
    #[error(
        "collection {collection} has manifest {found}, but {expected} was committed; restore \
         v1/c/{collection} from a backup"
    )]
    HeadMissing {
        /// The collection.
        collection: CollectionId,
        /// The newest manifest on disk; 0 for none.
        found: u64,
        /// The newest manifest that the catalog has seen.
        expected: u64,
    },
    /// There are segments and no manifest, so it is not known which of their rows are alive.
    #[error(
        "collection {collection} has {segments} segments and no manifest, so it is not known what \
         in them is alive; restore v1/c/{collection}/m from a backup, or move v1/c/{collection} \
         and catalog.sqlite away: documents are then processed anew from v1/raw/{collection}, \
         memories, client vectors and changed metadata are lost"
    )]
    Unlisted {
        /// The collection.
        collection: CollectionId,
        /// Number of its segments.
        segments: usize,
    },
    /// Written by a newer version of the program.
    #[error("collection {collection} needs reader version {needed}, this program has {ours}")]
    TooNew {
        /// The collection.
        collection: CollectionId,
        /// The version it needs.
        needed: u32,
        /// Ours.
        ours: u32,
    },
    /// A write failed in a way that leaves unknown whether it is durable.
    #[error("collection {collection} refuses writes after a failed commit; restart the server")]
    Poisoned {
        /// The collection.
        collection: CollectionId,
    },
    /// A commit failed so that it is unknown whether it has happened.
    #[error(
        "it is not known whether a commit to collection {collection} has happened: {cause}; \
         {remedy}"
    )]
    InDoubt {
        /// The collection.
        collection: CollectionId,
        /// The error.
        cause: String,
        /// The way to know it.
        remedy: &'static str,
    },
    /// A writer with a later epoch has taken over, or others kept winning.
    #[error("another writer has committed to collection {collection}")]
    Fenced {
        /// The collection.
        collection: CollectionId,
    },
    /// Another process writes to the collection.
    #[error("this process only reads collection {collection}")]
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
    /// A part of the collection is quarantined and the operation needs all of it.
    #[error("collection {collection} has {segments} damaged segments; see the server's log")]
    Quarantined {
        /// The collection.
        collection: CollectionId,
        /// Number of damaged segments.
        segments: usize,
    },
    /// Vectors of one model would stand beside those of another: the model was changed meanwhile.
    #[error("the embedding model of collection {collection} was changed meanwhile; try again")]
    OtherModel {
        /// The collection.
        collection: CollectionId,
    },
    /// An original is not what was uploaded.
    #[error("upload {key} is damaged: {problem}")]
    BadUpload {
        /// Its key.
        key: String,
        /// Which rule is broken.
        problem: String,
    },
    /// The list of a segment's sources is not what it must be.
    #[error("the source list of segment {segment} is damaged: {problem}")]
    BadList {
        /// The segment.
        segment: SegmentId,
        /// Which rule is broken.
        problem: String,
    },
    /// A source was replaced again and again while it was read.
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
    /// Whether, after a commit ended with this error, it is unknown what is durable. It is known if
    /// no sync failed and nothing was published: the disk was full, or a file was not even made.
    pub(super) fn leaves_doubt(&self) -> bool {
        match self {
            Self::Store(StoreError::Io(error)) => {
                let is_full = error.kind() == ErrorKind::StorageFull;
                error.must_poison() || !(is_full || error.precedes_a_name())
            }
            _ => true,
        }
    }

    /// Whether the next writer can find out what is durable: a bucket that was away tells it.
    pub(super) fn can_be_settled(&self) -> bool {
        let (Self::Store(error) | Self::Segment(SegmentError::Store(error))) = self else {
            return false;
        };
        matches!(error, StoreError::Remote { .. } | StoreError::Missing { .. })
    }

    /// Whether a later release has written what cannot be read: it is not damaged.
    pub fn is_too_new(&self) -> bool {
        matches!(self, Self::TooNew { .. } | Self::Segment(SegmentError::TooNew { .. }))
    }

    /// The caller's remedy.
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
