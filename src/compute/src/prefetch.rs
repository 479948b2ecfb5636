//! Prefetches memory into the processor's second-level cache, because fewer requests can be
//! outstanding for the first level. Does nothing except on x86-64: stable Rust has no prefetch
//! instruction for other architectures.

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// Prefetches `values` without waiting. Reading rows in random order costs a full memory access
/// each, unless several are outstanding at a time.
#[inline]
pub fn prefetch<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        let begin = values.as_ptr().cast::<i8>();
        for at in (0..size_of_val(values)).step_by(LINE_BYTES) {
            // SAFETY: the address lies within `values`; a prefetch has no architectural effect and
            // cannot fault.
            #[allow(unsafe_code)]
            unsafe {
                _mm_prefetch::<_MM_HINT_T1>(begin.add(at));
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}

/// Prefetches bytes a few lines at a time, alongside other work: a core can have only a few memory
/// requests outstanding, and stalls if it issues more.
#[derive(Debug, Clone, Copy)]
pub struct Prefetcher<'a>(&'a [u8]);

impl<'a> Prefetcher<'a> {
    /// Creates a prefetcher of `bytes`, from the first on.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the number of lines to fetch per step so that `steps` steps fetch all of them.
    pub fn lines_a_step(&self, steps: usize) -> usize {
        self.0.len().div_ceil(LINE_BYTES).div_ceil(steps.max(1))
    }

    /// Prefetches the next lines.
    #[inline]
    pub fn fetch(&mut self, lines: usize) {
        let (now, later) = self.0.split_at(self.0.len().min(lines * LINE_BYTES));
        prefetch(now);
        self.0 = later;
    }
}
