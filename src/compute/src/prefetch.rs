//! Prefetching memory before it is needed, into the processor's second cache: requests for the
//! first one are few at a time. Does nothing elsewhere than on x86-64: stable Rust has no
//! instruction for it there.

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// Prefetches `values`, without waiting: rows that are read in no order cost a full memory access
/// each, unless several are under way at once.
#[inline]
pub fn prefetch<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        let begin = values.as_ptr().cast::<i8>();
        for at in (0..size_of_val(values)).step_by(LINE_BYTES) {
            // SAFETY: the address lies inside of `values`; a prefetch reads nothing into the
            // program and cannot fault.
            #[allow(unsafe_code)]
            unsafe {
                _mm_prefetch::<_MM_HINT_T1>(begin.add(at));
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}

/// Prefetches bytes a few lines at a time, beside other work: a core has few requests for memory
/// under way, and waits where it asks for more at once.
#[derive(Debug, Clone, Copy)]
pub struct Prefetcher<'a>(&'a [u8]);

impl<'a> Prefetcher<'a> {
    /// A prefetcher of `bytes`, from the first on.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Lines for each of so many steps, for all of them to be fetched in the end.
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
