//! Counts the edges of the program that an input passes, in builds with LLVM's counters.
//!
//! `scripts/fuzz` builds with the pass `sancov-module` of LLVM, which stable compilers have too:
//! each edge counts into a byte, and each module registers its bytes before `main`. Without that
//! pass nothing is registered, and mutations are not guided.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The counters of all modules.
static COUNTERS: Mutex<Vec<&'static [AtomicU8]>> = Mutex::new(Vec::new());

/// Takes note of the counters of a module (the interface of SanitizerCoverage).
// SAFETY: the name is LLVM's, which nobody else in the program defines.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
pub extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, stop: *mut u8) {
    let length = (stop as usize).saturating_sub(start as usize);
    let mut counters = COUNTERS.lock().unwrap();
    if length == 0 || counters.iter().any(|known| known.as_ptr().addr() == start.addr()) {
        return;
    }
    // SAFETY: the compiler's pass gives the bounds of a static array of bytes, which nobody else
    // than its increments writes to; a lost increment does no harm.
    #[allow(unsafe_code)]
    counters.push(unsafe { std::slice::from_raw_parts(start.cast::<AtomicU8>(), length) });
}

/// Tables of the comparisons in a program, which are not used (the interface of
/// SanitizerCoverage).
// SAFETY: the name is LLVM's, which nobody else in the program defines.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
pub extern "C" fn __sanitizer_cov_pcs_init(_start: *const usize, _stop: *const usize) {}

/// The edges seen so far.
#[derive(Debug, Default)]
pub struct Coverage {
    /// One bit for each magnitude of each counter.
    seen: Vec<Vec<u8>>,
}

impl Coverage {
    /// Forgets what was passed since the last call.
    pub fn reset() {
        for counters in &*COUNTERS.lock().unwrap() {
            let (head, words, tail) = words(counters);
            head.iter().chain(tail).for_each(|counter| counter.store(0, Ordering::Relaxed));
            words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
    }

    /// Whether since [`Self::reset`] an edge was passed for the first time, or at another
    /// magnitude.
    pub fn is_new(&mut self) -> bool {
        let counters = COUNTERS.lock().unwrap();
        self.seen.resize_with(counters.len(), Vec::new);
        let mut is_new = false;
        for (counters, seen) in counters.iter().zip(&mut self.seen) {
            seen.resize(counters.len(), 0);
            let (head, words, tail) = words(counters);
            let mut note = |at: usize, counter: &AtomicU8| {
                let magnitude = magnitude(counter.load(Ordering::Relaxed));
                is_new |= magnitude & !seen[at] != 0;
                seen[at] |= magnitude;
            };
            head.iter().enumerate().for_each(|(at, counter)| note(at, counter));
            for (word, place) in words.iter().zip((head.len()..).step_by(8)) {
                if word.load(Ordering::Relaxed) != 0 {
                    for at in place..place + 8 {
                        note(at, &counters[at]);
                    }
                }
            }
            let rest = counters.len() - tail.len();
            tail.iter().enumerate().for_each(|(at, counter)| note(rest + at, counter));
        }
        is_new
    }

    /// Edges that were passed at all; 0 in a build that does not count.
    pub fn edges(&self) -> usize {
        self.seen.iter().flatten().filter(|seen| **seen != 0).count()
    }
}

/// Counters, eight at a time where they lie so: most of them are 0.
fn words(counters: &[AtomicU8]) -> (&[AtomicU8], &[AtomicU64], &[AtomicU8]) {
    // SAFETY: any eight bytes are a number, and both types are their integers with other methods.
    #[allow(unsafe_code)]
    unsafe {
        counters.align_to::<AtomicU64>()
    }
}

/// A bit for how often an edge was passed.
fn magnitude(count: u8) -> u8 {
    match count {
        0 => 0,
        1 => 1,
        2 => 2,
        3 => 4,
        4..=7 => 8,
        8..=15 => 16,
        16..=31 => 32,
        32..=127 => 64,
        128.. => 128,
    }
}
