//! Prefetching memory before it is needed.

/// Bytes of a cache line.
#[cfg(target_arch = "x86_64")]
const LINE_BYTES: usize = 64;

/// Prefetches `values` into the processor's cache, without waiting: rows that are read in no order
/// cost a full memory access each, unless several are under way at once. Does nothing elsewhere
/// than on x86-64: stable Rust has no instruction for it there.
#[inline]
pub fn prefetch<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let begin = values.as_ptr().cast::<i8>();
        for at in (0..size_of_val(values)).step_by(LINE_BYTES) {
            // SAFETY: the address lies inside of `values`; a prefetch reads nothing into the
            // program and cannot fault.
            #[allow(unsafe_code)]
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(begin.add(at));
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}
