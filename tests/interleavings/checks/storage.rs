//! The registry of open collections, and cached filter results.

extern crate interleavings as parking_lot;
extern crate interleavings as std;
extern crate self as lodestone_compute;
extern crate self as lodestone_io;
extern crate self as lodestone_types;
extern crate self as roaring;

#[path = "../../../src/storage/src/collection/kept.rs"]
mod kept;
#[path = "../../../src/storage/src/collection/registry.rs"]
mod registry;

mod segment {
    pub mod flat {
        use crate::RoaringBitmap;
        use std::marker::PhantomData;

        /// A filter result of forty bytes, and ten more once it is condensed.
        #[derive(Debug)]
        pub struct RowFilter<'a>(PhantomData<&'a ()>);

        impl RowFilter<'_> {
            pub fn owned(_: RoaringBitmap, _: usize) -> Self {
                Self(PhantomData)
            }

            pub fn bytes(&self) -> usize {
                40
            }

            pub fn condensed_bytes(&self, _: usize) -> Option<usize> {
                Some(10)
            }

            pub fn allow_condensing(&self) {}
        }
    }
}

pub mod store {
    pub trait BlobStore: std::fmt::Debug + Send + Sync {
        fn is_shared(&self) -> bool;
    }
}

pub mod collection {
    pub use crate::{Collection, CollectionError, LiveSegment, Snapshot};
}

use std::cell::Cell;
use std::fmt;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::thread;

use interleavings::{Check, explore, is_chosen};
use kept::KeptFilters;
use registry::Registry;
use store::BlobStore;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CollectionId(pub usize);

impl fmt::Display for CollectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum ErrorKind {
    Corrupt,
    NotFound,
}

#[derive(Debug, thiserror::Error)]
pub enum CollectionError {
    #[error("{collection} is behind")]
    Behind { collection: CollectionId },
    #[error("gone")]
    Gone,
}

impl CollectionError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::NotFound
    }

    fn is_too_new(&self) -> bool {
        false
    }
}

#[derive(Debug)]
pub struct CommitHead;

pub struct RoaringBitmap;

/// A segment of a tenant.
pub struct Segment {
    header: Header,
}

pub struct Header {
    collection: CollectionId,
}

impl Segment {
    fn dimension(&self) -> usize {
        1
    }

    fn row_count(&self) -> u32 {
        1
    }
}

pub struct LiveSegment {
    segment: Segment,
    kept: OnceLock<kept::Owner>,
}

/// A version of a collection.
pub struct Snapshot;

pub trait IdSource: fmt::Debug + Send + Sync {}

pub trait ComputeBackend: fmt::Debug + Send + Sync {}

#[derive(Debug)]
pub struct SimdBackend;

impl IdSource for SimdBackend {}

impl ComputeBackend for SimdBackend {}

#[derive(Debug)]
struct Shared(bool);

impl BlobStore for Shared {
    fn is_shared(&self) -> bool {
        self.0
    }
}

thread_local! {
    /// The number of open collections by id. All tasks of an execution run on the same OS thread.
    static OPEN: Cell<[usize; 3]> = const { Cell::new([0; 3]) };
}

fn opened(id: CollectionId) -> usize {
    OPEN.get()[id.0]
}

fn count(id: CollectionId, change: impl FnOnce(usize) -> usize) {
    let mut open = OPEN.get();
    open[id.0] = change(open[id.0]);
    OPEN.set(open);
}

/// A collection, of which only one per id may be open.
#[derive(Debug)]
pub struct Collection(CollectionId);

impl Collection {
    fn open(
        id: CollectionId,
        _: Arc<dyn BlobStore>,
        _: Arc<dyn IdSource>,
        _: u64,
        _: Option<CommitHead>,
    ) -> Result<Self, CollectionError> {
        thread::yield_now();
        if is_chosen() && is_chosen() {
            return Err(CollectionError::Gone);
        }
        assert_eq!(opened(id), 0, "{id} is opened twice");
        count(id, |open| open + 1);
        thread::yield_now();
        Ok(Self(id))
    }

    fn open_to_read(
        _: CollectionId,
        _: Arc<dyn BlobStore>,
        _: Arc<dyn IdSource>,
        _: Option<CommitHead>,
    ) -> Result<Self, CollectionError> {
        unreachable!("no check follows another process")
    }

    fn with_backend(self, _: Arc<dyn ComputeBackend>) -> Self {
        self
    }

    fn may_close(&self) -> bool {
        true
    }

    fn close(self) -> Option<Arc<Snapshot>> {
        None
    }
}

impl Drop for Collection {
    fn drop(&mut self) {
        thread::yield_now();
        count(self.0, |open| open - 1);
    }
}

fn registry(is_shared: bool) -> Arc<Registry> {
    OPEN.set([0; 3]);
    Arc::new(Registry::new(Arc::new(Shared(is_shared)), Arc::new(SimdBackend), 1, 1))
}

/// Goal: a collection is never open twice, because two writers would overwrite each other. Method:
/// a registry that keeps only one open, and so closes others all the time.
fn open_once(is_shared: bool) {
    let registry = registry(is_shared);
    let users = [[0, 1], [0, 2], [1, 0]].map(|ids| {
        let registry = Arc::clone(&registry);
        thread::spawn(move || {
            let mut in_use = Vec::new();
            for id in ids.map(CollectionId) {
                let used = registry.get::<CollectionError>(id, || Ok(None), |_| Ok(()));
                if let Ok(collection) = used {
                    assert_eq!((collection.0, opened(id)), (id, 1));
                    in_use.extend(Some(collection).filter(|_| is_chosen()));
                }
                registry.open_collections();
            }
        })
    });
    users.into_iter().for_each(|user| user.join().unwrap());
}

fn a_collection_is_open_once() {
    open_once(false);
}

fn so_it_is_where_others_do_not_wait() {
    open_once(true);
}

/// Goal: the files of a deleted tenant are deleted once nobody uses its collection, and nobody gets
/// it later.
fn a_deleted_collection_is_not_opened_again() {
    let (registry, is_deleted) = (registry(false), Arc::new(AtomicBool::new(false)));
    let are_gone = Arc::new(AtomicBool::new(false));
    let users = [(); 2].map(|()| {
        let (registry, is_deleted) = (Arc::clone(&registry), Arc::clone(&is_deleted));
        let are_gone = Arc::clone(&are_gone);
        thread::spawn(move || {
            let expected = || match is_deleted.load(SeqCst) {
                true => Err(CollectionError::Gone),
                false => Ok(None),
            };
            let used = registry.get(CollectionId(1), expected, |_| Ok(()));
            assert!(used.is_err() || !are_gone.load(SeqCst), "its files are gone");
        })
    });
    is_deleted.store(true, SeqCst);
    let closed = registry.close(CollectionId(1));
    while closed.strong_count() > 0 {
        thread::yield_now();
    }
    are_gone.store(true, SeqCst);
    users.into_iter().for_each(|user| user.join().unwrap());
}

/// Goal: cached filters stay within their byte limit, and are dropped with their segment. Method:
/// filters of forty bytes over three segments, with room for two.
fn kept_filters_go_with_their_segments() {
    let kept = KeptFilters::new(100);
    let segments = [0, 1, 1].map(|tenant| {
        let header = Header { collection: CollectionId(tenant) };
        Arc::new(LiveSegment { segment: Segment { header }, kept: OnceLock::new() })
    });
    let searches = [0, 0, 1, 2].map(|number: usize| {
        let (kept, live) = (Arc::clone(&kept), Arc::clone(&segments[number]));
        thread::spawn(move || {
            for filter in [[1], [2]] {
                let find = || Ok::<_, CollectionError>(RoaringBitmap);
                kept.rows(&live, &Arc::from(filter), find).unwrap();
                assert!(kept.bytes() <= 100, "{} bytes", kept.bytes());
            }
        })
    });
    drop(segments);
    searches.into_iter().for_each(|search| search.join().unwrap());
    assert_eq!(kept.bytes(), 0, "something is kept of a segment that is gone");
    assert!(format!("{kept:?}").contains("entries: {}, tenants: {}, bytes: 0"), "{kept:?}");
}

fn main() -> ExitCode {
    explore(&[
        Check::patient("filters: they go with their segments", kept_filters_go_with_their_segments),
        Check::patient("registry: a collection is open once", a_collection_is_open_once),
        Check::hasty("registry: so it is where nobody waits", so_it_is_where_others_do_not_wait),
        Check::patient(
            "registry: a deleted one stays closed", a_deleted_collection_is_not_opened_again,
        ),
    ])
}
