//! Mapped data that may have to be read from disk.

/// Number of major page faults of the calling thread so far. Costs some 200 ns.
pub fn major_faults() -> i64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to room for what the call writes, and zeros are a value of it too.
    #[allow(unsafe_code)]
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    usage.ru_majflt
}

/// Asks the kernel to read the non-resident pages of the mapped `bytes` ahead, without waiting, so
/// that the reads overlap. Costs one system call.
pub fn read_soon(bytes: &[u8]) {
    let page = rustix::param::page_size();
    let begin = bytes.as_ptr().addr() & !(page - 1);
    let length = bytes.as_ptr().addr() + bytes.len() - begin;
    let first = bytes.as_ptr().map_addr(|_| begin).cast_mut().cast();
    // SAFETY: this advice changes no memory and is refused for unmapped addresses. It is only an
    // optimisation: if a read fails, that shows when the bytes are used.
    #[allow(unsafe_code)]
    unsafe {
        libc::madvise(first, length, libc::MADV_WILLNEED);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::MappedFile;

    /// Whether all pages of the bytes are resident.
    fn is_in_memory(bytes: &[u8]) -> bool {
        let page = rustix::param::page_size();
        let mut pages = vec![0_u8; bytes.len().div_ceil(page)];
        // SAFETY: the bytes begin on a page boundary, and there is room for one byte per page.
        #[allow(unsafe_code)]
        let found = unsafe {
            libc::mincore(bytes.as_ptr().cast_mut().cast(), bytes.len(), pages.as_mut_ptr())
        };
        assert_eq!(found, 0);
        pages.iter().all(|page| page & 1 == 1)
    }

    /// Goal: requested pages become resident although nobody reads them; a read that waits for the
    /// disk is counted.
    #[test]
    fn pages_come_without_being_read() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(&vec![7; 8 << 20]).unwrap();
        file.sync_all().unwrap();
        // SAFETY: the descriptor is open; the call changes no memory.
        #[allow(unsafe_code)]
        unsafe {
            libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED);
        }
        let mapped = MappedFile::open(&path).unwrap();
        let wanted = 1 << 20..5 << 20;
        // The range starts and ends inside pages; whole pages are read all the same.
        read_soon(&mapped[wanted.start + 100..wanted.end - 100]);
        read_soon(&[]);
        let begun = Instant::now();
        while !is_in_memory(&mapped[wanted.clone()]) {
            assert!(begun.elapsed() < Duration::from_secs(60), "they do not come");
            std::thread::yield_now();
        }
        assert_eq!(mapped[wanted].iter().map(|byte| u64::from(*byte)).sum::<u64>(), 7 * (4 << 20));
        let other = &mapped[6 << 20..7 << 20];
        let (is_there, before) = (is_in_memory(other), major_faults());
        std::hint::black_box(other.iter().map(|byte| u64::from(*byte)).sum::<u64>());
        // On a file system that lives in memory, reads never wait for a disk.
        assert!(is_there || major_faults() > before);
    }
}
