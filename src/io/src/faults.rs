//! Faults in mappings: an unreadable page becomes zeros and a mark instead of killing the process.
//!
//! The kernel raises SIGBUS in a thread that touches a mapped page it cannot provide, because the
//! sector is bad or the file was truncated. The handler looks the address up in a table of
//! mappings, maps zero pages over the location, marks the mapping and returns; the thread then
//! repeats the instruction and reads zeros. Readers of a mapping check the mark before they pass on
//! what they read.
//!
//! The handler uses only atomics and `mmap`, both safe in a signal handler. A fault outside the
//! table goes to the previously installed handler, which by default ends the process.

use std::ffi::{c_int, c_void};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Once, OnceLock};

use parking_lot::Mutex;

/// Bytes zeroed by the first fault of a mapping, aligned; a multiple of every page size. Each
/// further fault covers twice as many: a file that was cut in half faults only a few times, and its
/// mapping does not split into more pieces than a process may have.
const FIRST_BYTES: usize = 64 << 10;

/// A table entry for one mapping. Entries are reused but never freed. All accesses are SeqCst, and
/// `bytes` is 0 while `start` changes: a handler that reads `bytes`, `start` and the same `bytes`
/// again knows that both belong to the same mapping.
#[derive(Debug, Default)]
struct Entry {
    start: AtomicUsize,
    bytes: AtomicUsize,
    faults: AtomicUsize,
    next: OnceLock<&'static Entry>,
}

static TABLE: Entry = Entry {
    start: AtomicUsize::new(0),
    bytes: AtomicUsize::new(0),
    faults: AtomicUsize::new(0),
    next: OnceLock::new(),
};

/// Entries without a mapping. Also serialises appends to the table; never locked by the handler.
static UNUSED: Mutex<Vec<&'static Entry>> = Mutex::new(Vec::new());

/// The handler that was installed before ours.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// Registers a mapping in the table. Must be dropped before the mapping.
#[derive(Debug)]
pub(super) struct Watch(Option<&'static Entry>);

impl Watch {
    /// Registers a mapping, which must begin on a page boundary.
    pub(super) fn new(mapping: &[u8]) -> Self {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(install);
        if mapping.is_empty() {
            return Self(None);
        }
        let mut unused = UNUSED.lock();
        let entry = unused.pop().unwrap_or_else(|| {
            let fresh: &'static Entry = Box::leak(Box::default());
            // The lock keeps other threads from appending.
            let last = entries().last().expect("the table has a head");
            last.next.set(fresh).expect("the last entry has no next one");
            fresh
        });
        entry.faults.store(0, Ordering::SeqCst);
        entry.start.store(mapping.as_ptr().addr(), Ordering::SeqCst);
        entry.bytes.store(mapping.len(), Ordering::SeqCst);
        Self(Some(entry))
    }

    /// Whether any part of the mapping has turned out unreadable.
    pub(super) fn has_faulted(&self) -> bool {
        self.0.is_some_and(|entry| entry.faults.load(Ordering::SeqCst) > 0)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(entry) = self.0 {
            entry.bytes.store(0, Ordering::SeqCst);
            UNUSED.lock().push(entry);
        }
    }
}

fn entries() -> impl Iterator<Item = &'static Entry> {
    std::iter::successors(Some(&TABLE), |entry| entry.next.get().copied())
}

impl Entry {
    /// Start and length of the mapping, if it contains the address.
    fn holding(&self, address: usize) -> Option<(usize, usize)> {
        let bytes = self.bytes.load(Ordering::SeqCst);
        let start = self.start.load(Ordering::SeqCst);
        let is_stable = self.bytes.load(Ordering::SeqCst) == bytes;
        (is_stable && address.wrapping_sub(start) < bytes).then_some((start, bytes))
    }

    /// Marks the mapping and maps zeros over the address. Returns whether the address is readable
    /// now.
    fn put_zeros(&self, address: usize, (start, bytes): (usize, usize)) -> bool {
        let faults = self.faults.fetch_add(1, Ordering::SeqCst);
        let span = FIRST_BYTES << faults.min(40);
        let from = (address - start) / span * span;
        let length = span.min(bytes - from);
        // The thread that reads the mapping also keeps it alive, so it cannot be unmapped
        // meanwhile.
        #[allow(unsafe_code)]
        // SAFETY: the range begins on a page and lies in a read-only mapping that exists for as
        // long as this thread reads it. All data read in place may validly be zeros.
        let mapped = unsafe {
            libc::mmap(
                std::ptr::without_provenance_mut::<c_void>(start + from),
                length,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        mapped != libc::MAP_FAILED
    }
}

fn install() {
    // SAFETY: a zeroed `sigaction` is valid; the handler below only does what is safe in a signal
    // handler, and runs on the thread's signal stack if it has one.
    #[allow(unsafe_code)]
    let previous = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_fault;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        let mut previous: libc::sigaction = std::mem::zeroed();
        (libc::sigaction(libc::SIGBUS, &raw const action, &raw mut previous) == 0)
            .then_some(previous)
    };
    match previous {
        Some(previous) => drop(PREVIOUS.set(previous)),
        None => {
            let error = io::Error::last_os_error();
            tracing::error!(%error, "no handler for unreadable pages: they will end the process");
        }
    }
}

extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid `info`; this thread's `errno`, which the interrupted code
    // may be about to read, is restored.
    #[allow(unsafe_code)]
    let (address, errno) = unsafe { ((*info).si_addr().addr(), *libc::__errno_location()) };
    let found = entries().find_map(|entry| Some((entry, entry.holding(address)?)));
    if !found.is_some_and(|(entry, mapping)| entry.put_zeros(address, mapping)) {
        pass_on(signal, info, context);
    }
    // SAFETY: as above.
    #[allow(unsafe_code)]
    unsafe {
        *libc::__errno_location() = errno;
    }
}

/// Forwards a signal to the previous handler; without one, the fault repeats and ends the process
/// as it would have without ours.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let previous = PREVIOUS.get();
    let handler = previous.map_or(libc::SIG_DFL, |previous| previous.sa_sigaction);
    let takes_info = previous.is_some_and(|action| action.sa_flags & libc::SA_SIGINFO != 0);
    // SAFETY: the kernel returned this handler together with flags that tell its signature;
    // resetting `signal` to the default action is always allowed.
    #[allow(unsafe_code)]
    unsafe {
        if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
            libc::signal(signal, libc::SIG_DFL);
        } else if takes_info {
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                std::mem::transmute(handler);
            handler(signal, info, context);
        } else {
            let handler: extern "C" fn(c_int) = std::mem::transmute(handler);
            handler(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;
    use rustix::process::{Resource, Rlimit, setrlimit};

    const ROLE: &str = "LODESTONE_TEST_OF_FAULTS";
    const BYTES: usize = 4096;

    /// Address of a mapping that is not in the table.
    static PLACE: AtomicUsize = AtomicUsize::new(0);
    static CALLS: AtomicUsize = AtomicUsize::new(0);

    /// Maps a page of a file or of zeros over [`PLACE`]; returns the address.
    fn map(file: Option<&File>, flags: c_int) -> usize {
        let (place, fd) = (PLACE.load(Ordering::SeqCst), file.map_or(-1, AsRawFd::as_raw_fd));
        let place = std::ptr::without_provenance_mut(place);
        let flags = libc::MAP_PRIVATE | flags;
        // SAFETY: a fresh address, or the page previously mapped there, which is only read.
        #[allow(unsafe_code)]
        let mapped = unsafe { libc::mmap(place, BYTES, libc::PROT_READ, flags, fd, 0) };
        mapped.addr()
    }

    extern "C" fn mend(_: c_int) {
        CALLS.fetch_add(1, Ordering::SeqCst);
        map(None, libc::MAP_ANONYMOUS | libc::MAP_FIXED);
    }

    extern "C" fn mend_at(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
        // SAFETY: the kernel passes a valid `info`.
        #[allow(unsafe_code)]
        let address = unsafe { (*info).si_addr().addr() };
        if address == PLACE.load(Ordering::SeqCst) {
            mend(signal);
        }
    }

    /// Installs a handler, then ours, and reads an unreadable page.
    fn read_elsewhere(handler: usize, flags: c_int) {
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        setrlimit(Resource::Core, none).unwrap();
        // SAFETY: a zeroed `sigaction` is valid, and each handler has the signature that its flags
        // announce.
        #[allow(unsafe_code)]
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            (action.sa_sigaction, action.sa_flags) = (handler, flags | libc::SA_ONSTACK);
            assert_eq!(libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()), 0);
        }
        let _watch = Watch::new(b"elsewhere");
        let file = tempfile::tempfile().unwrap();
        file.set_len(BYTES as u64).unwrap();
        PLACE.store(map(Some(&file), 0), Ordering::SeqCst);
        file.set_len(0).unwrap();
        let byte = std::ptr::with_exposed_provenance::<u8>(PLACE.load(Ordering::SeqCst));
        // SAFETY: the page is mapped, and the handler under test deals with an unreadable one.
        #[allow(unsafe_code)]
        let byte = unsafe { byte.read_volatile() };
        assert_eq!((byte, CALLS.load(Ordering::SeqCst)), (0, 1));
    }

    /// Goal: faults outside our mappings go to the previous handler with everything it needs, and
    /// end the process if there is none. Method: separate processes, in which no other test has
    /// installed our handler yet.
    #[test]
    fn faults_elsewhere_go_to_the_handler_before_ours() {
        match std::env::var(ROLE).as_deref() {
            Ok("plain") => return read_elsewhere(mend as *const () as usize, 0),
            Ok("informed") => {
                return read_elsewhere(mend_at as *const () as usize, libc::SA_SIGINFO);
            }
            Ok(_) => return read_elsewhere(libc::SIG_DFL, 0),
            Err(_) => {}
        }
        for role in ["plain", "informed", "none"] {
            let name = "faults::tests::faults_elsewhere_go_to_the_handler_before_ours";
            let mut child = Command::new(std::env::current_exe().unwrap());
            let ended = child.args(["--exact", name]).env(ROLE, role).output().unwrap();
            let text = String::from_utf8_lossy(&ended.stdout);
            match role {
                "none" => assert_eq!(ended.status.signal(), Some(libc::SIGBUS), "{text}"),
                _ => assert!(ended.status.success() && text.contains("1 passed"), "{role}: {text}"),
            }
        }
    }
}
