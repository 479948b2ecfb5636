//! The allocator, and giving back what it holds without need.

use std::thread;
use std::time::Duration;

/// Batches of a model allocate and free the same sizes over and over; mimalloc keeps them at hand.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Time between two looks: a few system calls at most.
const ROUND: Duration = Duration::from_secs(2);

/// Starts a thread that gives freed memory back to the system.
///
/// mimalloc gives back what has been free for a second, but looks for it only when a thread takes
/// or frees much: 170 MiB of a start, or the weights of a model that has left the memory, would
/// stay in a process that does nothing.
pub(crate) fn give_back_freed() -> std::io::Result<()> {
    let rounds = || loop {
        thread::sleep(ROUND);
        collect();
    };
    thread::Builder::new().name("free-memory".into()).spawn(rounds)?;
    Ok(())
}

#[allow(unsafe_code)]
fn collect() {
    unsafe extern "C" {
        /// Purges what has been free for longer than the purge delay, with `force` all that is free
        /// (mimalloc.h, "Extended allocation functions").
        fn mi_collect(force: bool);
    }
    // SAFETY: the signature is that of mimalloc.h, and the function may be called on every thread
    // at every time; it touches nothing but the allocator's own records of free memory.
    unsafe { mi_collect(false) }
}
