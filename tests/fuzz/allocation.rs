//! Counts the bytes that a thread has allocated, currently and at most.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Number of bytes beyond which a watched thread gets no more memory. Its process ends then, like
/// that of a sandboxed parser.
const BYTES_MAX: isize = 2 << 30;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// The system allocator with a counter per thread.
pub struct Counting;

fn count(bytes: isize) -> isize {
    let held = HELD.get() + bytes;
    HELD.set(held);
    PEAK.set(PEAK.get().max(held));
    held
}

// SAFETY: every call is passed unchanged to the system allocator; returning a null pointer is
// allowed by the trait.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    // SAFETY: the caller upholds the contract of the system allocator.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if HELD.get() + layout.size() as isize > BYTES_MAX {
            return std::ptr::null_mut();
        }
        count(layout.size() as isize);
        // SAFETY: passed on unchanged.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: the caller upholds the contract of the system allocator.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if HELD.get() + layout.size() as isize > BYTES_MAX {
            return std::ptr::null_mut();
        }
        count(layout.size() as isize);
        // SAFETY: passed on unchanged. Zeroed pages cost nothing until they are written to.
        unsafe { System.alloc_zeroed(layout) }
    }

    // SAFETY: the caller upholds the contract of the system allocator.
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: passed on unchanged.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Starts measuring the calling thread.
pub fn begin() {
    HELD.set(0);
    PEAK.set(0);
}

/// The peak number of bytes that this thread has held since [`begin`].
pub fn peak_bytes() -> usize {
    PEAK.get().max(0) as usize
}
