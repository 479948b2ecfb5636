//! Counts the control-flow edges that an input reaches, in builds with LLVM's counters.
//!
//! `scripts/fuzz` builds with LLVM's `sancov-module` pass, which stable compilers also have: each
//! edge increments a byte, and each module registers its bytes before `main`. Without that pass
//! nothing is registered, and mutations are not guided.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The counters of all modules.
static COUNTERS: Mutex<Vec<&'static [AtomicU8]>> = Mutex::new(Vec::new());

/// Registers the counters of a module (part of the SanitizerCoverage interface).
// SAFETY: the symbol name is LLVM's, and nothing else in the program defines it.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
pub extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, stop: *mut u8) {
    let length = (stop as usize).saturating_sub(start as usize);
    let mut counters = COUNTERS.lock().unwrap();
    if length == 0 || counters.iter().any(|known| known.as_ptr().addr() == start.addr()) {
        return;
    }
    // SAFETY: the compiler pass passes the bounds of a static byte array, to which only its own
    // increments write; a lost increment does no harm.
    #[allow(unsafe_code)]
    counters.push(unsafe { std::slice::from_raw_parts(start.cast::<AtomicU8>(), length) });
}

/// Receives the tables of instrumented locations, which are not used (part of the SanitizerCoverage
/// interface).
// SAFETY: the symbol name is LLVM's, and nothing else in the program defines it.
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
    /// Resets the counters.
    pub fn reset() {
        for counters in &*COUNTERS.lock().unwrap() {
            let (head, words, tail) = words(counters);
            head.iter().chain(tail).for_each(|counter| counter.store(0, Ordering::Relaxed));
            words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
    }

    /// Whether, since [`Self::reset`], an edge was reached for the first time or with a new
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

    /// The number of edges that were reached; 0 in a build without counters.
    pub fn edges(&self) -> usize {
        self.seen.iter().flatten().filter(|seen| **seen != 0).count()
    }
}

/// Splits the counters into aligned groups of eight, most of which are 0.
fn words(counters: &[AtomicU8]) -> (&[AtomicU8], &[AtomicU64], &[AtomicU8]) {
    // SAFETY: any eight bytes are a valid u64, and both types have the layout of their integers.
    #[allow(unsafe_code)]
    unsafe {
        counters.align_to::<AtomicU64>()
    }
}

/// One bit that represents the order of magnitude of a count.
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
