//! Page-locked memory through which the copies of a queue pass.
//!
//! A card accesses page-locked memory directly, while the CPU continues. For other memory the
//! driver first makes its own copy, and the call waits for that. Queries, masks and results use
//! this memory. The rows of a segment do not: they are a thousand times as large, so they would be
//! copied piece by piece here instead of by the driver.
//!
//! ```text
//! | copies in progress         | free              |
//! 0                            next                STAGING_BYTES
//! ```
//! A range stays reserved until the queue was synchronised, which frees all ranges. If not enough
//! is free, the queue is synchronised first; that happens only to a batch of queries above 4 MiB.
//!
//! The operating system cannot move page-locked memory, so its amount is limited: at most
//! `STAGED_QUEUES_MAX` queues have some. Further queues, or all of them if the system refuses, use
//! pageable memory: slower, but otherwise equivalent.

use std::ptr::NonNull;
use std::slice;

use cudarc::driver::result::{self, DriverError};
use parking_lot::Mutex;

/// Page-locked memory per queue: enough for a mask of 32 million rows, or for 1,024 queries of
/// 3,024 codes and the results of their search.
pub(super) const STAGING_BYTES: usize = 4 << 20;
/// Maximum number of queues with page-locked memory: as many as are kept for searches and for the
/// model, plus a few. 64 MiB in total.
const STAGED_QUEUES_MAX: usize = 16;
/// Ranges start at multiples of this, the size of a cache line.
const RANGE_ALIGNMENT: usize = 64;

/// Position after the ranges of copies in progress.
#[derive(Debug, Default)]
struct StagingCursor {
    next: usize,
}

/// Result of reserving a range for a copy.
#[derive(Debug, PartialEq, Eq)]
enum Reservation {
    /// The range starts at this byte.
    At(usize),
    /// There is no space until the queue is synchronised.
    AfterWaiting,
    /// There is never enough space: the copy is larger than the memory.
    TooLarge,
}

impl StagingCursor {
    fn take(&mut self, bytes: usize) -> Reservation {
        if bytes > STAGING_BYTES {
            return Reservation::TooLarge;
        }
        if self.next + bytes > STAGING_BYTES {
            return Reservation::AfterWaiting;
        }
        let at = self.next;
        self.next = (at + bytes).next_multiple_of(RANGE_ALIGNMENT);
        Reservation::At(at)
    }
}

/// Page-locked memory of a context, [`STAGING_BYTES`] bytes for one queue.
#[derive(Debug)]
struct Block(NonNull<u8>);

// SAFETY: plain memory of this process, owned by the holder of the block.
unsafe impl Send for Block {}

/// The page-locked memory of one queue.
#[derive(Debug)]
pub(super) struct Staging {
    block: Block,
    cursor: StagingCursor,
}

impl Staging {
    /// Reserves memory for a copy of `bytes` bytes, after synchronising the queue with `wait` if
    /// necessary; `None` if the copy is too large. The copy may use it until the queue is
    /// synchronised.
    ///
    /// Must be called within `Card::call`: this memory is lost with its context, and no context
    /// ends during a call.
    ///
    /// # Errors
    /// The error of `wait`.
    pub(super) fn reserve(
        &mut self,
        bytes: usize,
        wait: impl FnOnce() -> Result<(), DriverError>,
    ) -> Result<Option<&mut [u8]>, DriverError> {
        let reservation = match self.cursor.take(bytes) {
            Reservation::AfterWaiting => {
                wait()?;
                self.waited();
                self.cursor.take(bytes)
            }
            reservation => reservation,
        };
        let Reservation::At(at) = reservation else { return Ok(None) };
        // SAFETY: `take` stays within the block, whose bytes were initialised when it was created.
        // No other slice of this range is alive, because slices borrow `self`. No copy in progress
        // uses it, because ranges are reserved again only after `waited`.
        Ok(Some(unsafe { slice::from_raw_parts_mut(self.block.0.as_ptr().add(at), bytes) }))
    }

    /// Records that the queue was synchronised, so no copy is in progress.
    pub(super) fn waited(&mut self) {
        self.cursor.next = 0;
    }
}

/// Page-locked memory of a card that no queue currently uses.
#[derive(Debug, Default)]
pub(super) struct StagingPool(Mutex<Pool>);

#[derive(Debug, Default)]
struct Pool {
    free: Vec<Block>,
    /// Number of blocks ever created; they are freed only along with the card.
    made: usize,
}

impl StagingPool {
    /// Takes memory for a queue; `None` if the maximum number of queues have some. Requires the
    /// card's context to be current.
    ///
    /// # Errors
    /// Errors of the driver, including a refusal by the operating system.
    pub(super) fn take(&self) -> Result<Option<Staging>, DriverError> {
        let mut pool = self.0.lock();
        let block = match pool.free.pop() {
            Some(block) => block,
            None if pool.made == STAGED_QUEUES_MAX => return Ok(None),
            None => {
                let block = lock_pages()?;
                pool.made += 1;
                block
            }
        };
        Ok(Some(Staging { block, cursor: StagingCursor::default() }))
    }

    /// Takes back memory that no copy uses any more.
    pub(super) fn give_back(&self, staging: Staging) {
        self.0.lock().free.push(staging.block);
    }

    /// Frees all memory. Requires the card's context to be current, and that no queue is left.
    ///
    /// # Errors
    /// The driver's first error.
    pub(super) fn free(&self) -> Result<(), DriverError> {
        let free = std::mem::take(&mut self.0.lock().free);
        // SAFETY: each block came from `malloc_host` in this context and is freed once, because its
        // owner is consumed here. No copy uses it, as `give_back` requires.
        free.into_iter().try_for_each(|Block(at)| unsafe { result::free_host(at.as_ptr().cast()) })
    }
}

fn lock_pages() -> Result<Block, DriverError> {
    // SAFETY: no flags, and a context is current, as `take` requires.
    let at = unsafe { result::malloc_host(STAGING_BYTES, 0) }?.cast::<u8>();
    let refused = DriverError(cudarc::driver::sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    let at = NonNull::new(at).ok_or(refused)?;
    // SAFETY: the driver just gave this many bytes exclusively to this caller, with unspecified
    // contents.
    unsafe { at.as_ptr().write_bytes(0, STAGING_BYTES) };
    Ok(Block(at))
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    fn block(memory: &mut [u8]) -> Block {
        Block(NonNull::new(memory.as_mut_ptr()).unwrap())
    }

    /// Copies of all sizes, synchronising if nothing is free: a range in use is never reserved
    /// again, and none is out of bounds.
    #[test]
    fn ranges_under_way_are_reserved_once() {
        let mut memory = vec![0; STAGING_BYTES];
        let start = memory.as_ptr() as usize;
        let mut staging = Staging { block: block(&mut memory), cursor: StagingCursor::default() };
        let (mut under_way, mut waits): (Vec<Range<usize>>, usize) = (Vec::new(), 0);
        let mut state = 7_usize;
        for round in 0..2000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            let bytes = (state >> 33) % [1, 100, 70_000, STAGING_BYTES + 1][round % 4].max(1);
            let before = waits;
            let range = staging.reserve(bytes, || {
                waits += 1;
                Ok(())
            });
            let range = range.unwrap().expect("no larger than the memory");
            let at = range.as_ptr() as usize - start;
            let own = at..at + range.len();
            if waits > before {
                under_way.clear();
            }
            assert_eq!((own.len(), at % RANGE_ALIGNMENT), (bytes, 0));
            assert!(own.end <= STAGING_BYTES);
            let is_apart = |other: &Range<usize>| own.end <= other.start || other.end <= at;
            assert!(under_way.iter().all(is_apart), "{own:?}");
            under_way.push(own);
        }
        assert!((100..2000).contains(&waits), "{waits}");
    }

    #[test]
    fn a_copy_that_is_too_large_goes_without() {
        let mut memory = vec![0; STAGING_BYTES];
        let mut staging = Staging { block: block(&mut memory), cursor: StagingCursor::default() };
        let never = || panic!("nothing is under way");
        assert!(staging.reserve(STAGING_BYTES + 1, never).unwrap().is_none());
        assert_eq!(staging.reserve(STAGING_BYTES, never).unwrap().unwrap().len(), STAGING_BYTES);
        // Full: the queue is synchronised, and if that fails nothing is reserved.
        let lost = DriverError(cudarc::driver::sys::CUresult::CUDA_ERROR_LAUNCH_FAILED);
        assert_eq!(staging.reserve(1, || Err(lost)).err(), Some(lost));
        assert_eq!(staging.reserve(1, || Ok(())).unwrap().unwrap().len(), 1);
        staging.waited();
        assert_eq!(staging.reserve(STAGING_BYTES, never).unwrap().unwrap().len(), STAGING_BYTES);
    }

    #[test]
    fn queues_hand_their_memory_on() {
        let (mut first, mut second) = (vec![0; STAGING_BYTES], vec![0; STAGING_BYTES]);
        let pool = StagingPool::default();
        *pool.0.lock() =
            Pool { free: vec![block(&mut first), block(&mut second)], made: STAGED_QUEUES_MAX };
        let [one, two] = [pool.take().unwrap().unwrap(), pool.take().unwrap().unwrap()];
        assert_ne!(one.block.0, two.block.0);
        assert!(pool.take().unwrap().is_none(), "no more than may be");
        let at = one.block.0;
        pool.give_back(one);
        assert_eq!(pool.take().unwrap().unwrap().block.0, at);
    }
}
