//! A device that executes nothing, but records launches and checks that they stay within their
//! buffers; and a device that wraps another and fails as planned.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use lodestone_compute::SimdBackend;
use lodestone_compute::cuda::batcher::{MachineTimer, Timer};
use lodestone_compute::cuda::manager::ManagerLimits;
use lodestone_compute::cuda::workspace::Scratch;
use lodestone_compute::cuda::{
    Buffer, Capability, CudaBackend, CudaLimits, CudaParts, Device, DeviceError, DeviceMemory,
    DeviceSource, DeviceTraits, Extent, Launch, Queue, Release,
};

use lodestone_types::ManualClock;

/// A recorded launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    pub kernel: &'static str,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub parameters: Vec<u8>,
    pub extents: Vec<Extent>,
}

impl Noted {
    /// The u32 at a byte offset of the parameters.
    pub fn number(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.parameters[at..at + 4].try_into().unwrap())
    }
}

/// Operations other than launches, and the bytes of the copies.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    pub uploads: u64,
    pub uploaded: u64,
    pub downloads: u64,
    pub downloaded: u64,
    pub fills: u64,
    pub synchronisations: u64,
}

/// The memory, launches and traffic of a recording device.
#[derive(Debug, Default)]
pub struct Memory {
    /// Live buffers: size in bytes by address.
    live: Mutex<BTreeMap<u64, usize>>,
    next: AtomicU64,
    pub traffic: Mutex<Traffic>,
    pub launches: Mutex<Vec<Noted>>,
    /// Bytes returned by every download, repeated as needed; zeros if empty.
    pub answer: Mutex<Vec<u8>>,
}

impl Release for Memory {
    fn release(&self, address: u64, bytes: usize) {
        let freed = self.live.lock().unwrap().remove(&address);
        assert_eq!(freed, Some(bytes), "a buffer is freed once");
    }
}

impl Memory {
    /// Takes the launches and traffic recorded so far.
    pub fn take(&self) -> (Vec<Noted>, Traffic) {
        let launches = std::mem::take(&mut *self.launches.lock().unwrap());
        (launches, std::mem::take(&mut *self.traffic.lock().unwrap()))
    }

    /// The number of buffers that have not been freed.
    pub fn live_buffers(&self) -> usize {
        self.live.lock().unwrap().len()
    }

    fn check_inside(&self, address: u64, bytes: usize) {
        let live = self.live.lock().unwrap();
        let found = live.range(..=address).next_back();
        let is_inside =
            found.is_some_and(|(start, size)| address + bytes as u64 <= start + *size as u64);
        assert!(is_inside, "{bytes} bytes at {address:#x} are in no live buffer");
    }
}

/// A device that executes nothing; downloads return [`Memory::answer`].
#[derive(Debug)]
pub struct Recording {
    pub memory: Arc<Memory>,
    traits: DeviceTraits,
}

impl Recording {
    /// Creates a card of this size.
    pub fn new(multiprocessors: u32, shared_bytes_max: u32) -> Self {
        let traits = DeviceTraits {
            ordinal: 0,
            name: "recording".to_owned(),
            capability: Capability { major: 9, minor: 0 },
            multiprocessors,
            shared_bytes_max,
            driver: "none".to_owned(),
        };
        Self { memory: Arc::default(), traits }
    }
}

impl Device for Recording {
    fn traits(&self) -> &DeviceTraits {
        &self.traits
    }

    fn memory(&self) -> Result<DeviceMemory, DeviceError> {
        Ok(DeviceMemory { free_bytes: 80 << 30, total_bytes: 80 << 30 })
    }

    fn allocate(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        let owner = Arc::clone(&self.memory) as Arc<dyn Release>;
        if bytes == 0 {
            return Ok(Buffer::new(0, 0, owner));
        }
        let place = (bytes as u64).next_multiple_of(256) + 4096;
        let address = 4096 + self.memory.next.fetch_add(place, Ordering::SeqCst);
        self.memory.live.lock().unwrap().insert(address, bytes);
        Ok(Buffer::new(address, bytes, owner))
    }

    fn queue(&self) -> Result<Box<dyn Queue>, DeviceError> {
        let memory = Arc::clone(&self.memory);
        Ok(Box::new(RecordingQueue { memory, shared_bytes_max: self.traits.shared_bytes_max }))
    }
}

#[derive(Debug)]
struct RecordingQueue {
    memory: Arc<Memory>,
    shared_bytes_max: u32,
}

impl Queue for RecordingQueue {
    fn upload(&mut self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        assert!(buffer.part(offset, bytes.len()).is_some(), "an upload inside its buffer");
        let mut traffic = self.memory.traffic.lock().unwrap();
        traffic.uploads += 1;
        traffic.uploaded += bytes.len() as u64;
        Ok(())
    }

    fn download(
        &mut self,
        buffer: &Buffer,
        offset: usize,
        bytes: &mut [u8],
    ) -> Result<(), DeviceError> {
        assert!(buffer.part(offset, bytes.len()).is_some(), "a download inside its buffer");
        let mut traffic = self.memory.traffic.lock().unwrap();
        traffic.downloads += 1;
        traffic.downloaded += bytes.len() as u64;
        bytes.fill(0);
        let answer = self.memory.answer.lock().unwrap();
        bytes.iter_mut().zip(answer.iter().cycle()).for_each(|(byte, answer)| *byte = *answer);
        Ok(())
    }

    fn fill(&mut self, buffer: &Buffer, range: Range<usize>, _: u8) -> Result<(), DeviceError> {
        assert!(buffer.part(range.start, range.len()).is_some(), "a fill inside its buffer");
        self.memory.traffic.lock().unwrap().fills += 1;
        Ok(())
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), DeviceError> {
        let [x, y, z] = launch.grid();
        assert!(x > 0 && (1..=65_535).contains(&y) && z == 1, "{launch:?}");
        let [threads, 1, 1] = launch.block() else { panic!("{launch:?}") };
        assert!(threads % 32 == 0 && (32..=1024).contains(&threads), "{launch:?}");
        assert!(launch.shared_bytes() <= self.shared_bytes_max, "{launch:?}");
        for extent in launch.extents() {
            if extent.bytes > 0 {
                self.memory.check_inside(extent.address, extent.bytes);
            }
        }
        // Every parameter word that equals the address of a live buffer must belong to an extent.
        for word in launch.parameters().chunks_exact(8) {
            let word = u64::from_le_bytes(word.try_into().unwrap());
            let live = self.memory.live.lock().unwrap();
            if live.contains_key(&word) {
                let is_named = launch.extents().iter().any(|extent| extent.address == word);
                assert!(is_named, "{word:#x} is passed but not checked: {launch:?}");
            }
        }
        self.memory.launches.lock().unwrap().push(Noted {
            kernel: launch.kernel(),
            grid: launch.grid(),
            block: launch.block(),
            shared_bytes: launch.shared_bytes(),
            parameters: launch.parameters().to_vec(),
            extents: launch.extents().to_vec(),
        });
        Ok(())
    }

    fn synchronise(&mut self) -> Result<(), DeviceError> {
        self.memory.traffic.lock().unwrap().synchronisations += 1;
        Ok(())
    }

    fn is_page_locked(&self) -> bool {
        false
    }
}

/// The planned failures of a device.
#[derive(Debug, Default)]
pub struct Faults {
    /// The number of calls that succeed before one fails; `usize::MAX` for no failure.
    pub calls_left: AtomicUsize,
    /// Whether a failure is the permanent loss of the whole device.
    pub is_loss: AtomicBool,
    /// Whether allocations fail, and nothing else.
    pub is_full: AtomicBool,
    /// Whether there is no device to open.
    pub is_gone: AtomicBool,
    /// Whether opening the device panics.
    pub is_panicking: AtomicBool,
    /// The number of times that the device was opened.
    pub opened: AtomicUsize,
}

impl Faults {
    fn call(&self) -> Result<(), DeviceError> {
        let left = self.calls_left.load(Ordering::SeqCst);
        if left == usize::MAX {
            return Ok(());
        }
        if left > 0 {
            self.calls_left.store(left - 1, Ordering::SeqCst);
            return Ok(());
        }
        let reason = "on purpose".to_owned();
        if self.is_loss.load(Ordering::SeqCst) {
            return Err(DeviceError::Lost { reason });
        }
        self.calls_left.store(usize::MAX, Ordering::SeqCst);
        Err(DeviceError::Refused { action: "do this", reason })
    }
}

/// Creates a backend over a device that fails as planned, initially not at all. Its budget holds
/// all rows of the tests, and the device is not checked before use.
pub fn backend_over(inner: Arc<dyn Device>, limits: CudaLimits) -> (CudaBackend, Arc<Faults>) {
    backend_timed(inner, limits, Arc::new(MachineTimer::default()))
}

/// Creates such a backend whose query batchers wait with `timer`.
pub fn backend_timed(
    inner: Arc<dyn Device>,
    limits: CudaLimits,
    timer: Arc<dyn Timer>,
) -> (CudaBackend, Arc<Faults>) {
    let faults = Arc::new(Faults::default());
    faults.calls_left.store(usize::MAX, Ordering::SeqCst);
    let source = Arc::new(Faulty { inner, faults: Arc::clone(&faults) }) as Arc<dyn DeviceSource>;
    let (cpu, clock) = (Arc::new(SimdBackend), Arc::new(ManualClock::default()));
    let parts = CudaParts { check: |_| Ok(()), timer, ..CudaParts::new(source, cpu, clock) };
    let manager = ManagerLimits { budget_bytes: Some(1 << 24), scratch: Scratch::Exact };
    let limits = CudaLimits { manager, ..limits };
    (CudaBackend::open(parts, limits).unwrap(), faults)
}

/// A device that fails as planned.
#[derive(Debug)]
pub struct Faulty {
    pub inner: Arc<dyn Device>,
    pub faults: Arc<Faults>,
}

impl DeviceSource for Faulty {
    fn open(&self) -> Result<Arc<dyn Device>, DeviceError> {
        assert!(!self.faults.is_panicking.load(Ordering::SeqCst), "on purpose");
        if self.faults.is_gone.load(Ordering::SeqCst) {
            return Err(DeviceError::NoDevice { reason: "it is gone".to_owned() });
        }
        self.faults.opened.fetch_add(1, Ordering::SeqCst);
        let (inner, faults) = (Arc::clone(&self.inner), Arc::clone(&self.faults));
        Ok(Arc::new(Self { inner, faults }))
    }
}

impl Device for Faulty {
    fn traits(&self) -> &DeviceTraits {
        self.inner.traits()
    }

    fn memory(&self) -> Result<DeviceMemory, DeviceError> {
        self.inner.memory()
    }

    fn allocate(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        if self.faults.is_full.load(Ordering::SeqCst) {
            return Err(DeviceError::OutOfMemory { bytes });
        }
        self.faults.call()?;
        self.inner.allocate(bytes)
    }

    fn queue(&self) -> Result<Box<dyn Queue>, DeviceError> {
        self.faults.call()?;
        let (inner, faults) = (self.inner.queue()?, Arc::clone(&self.faults));
        Ok(Box::new(FaultyQueue { inner, faults }))
    }
}

#[derive(Debug)]
struct FaultyQueue {
    inner: Box<dyn Queue>,
    faults: Arc<Faults>,
}

impl Queue for FaultyQueue {
    fn upload(&mut self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        self.faults.call()?;
        self.inner.upload(buffer, offset, bytes)
    }

    fn download(
        &mut self,
        buffer: &Buffer,
        offset: usize,
        bytes: &mut [u8],
    ) -> Result<(), DeviceError> {
        self.faults.call()?;
        self.inner.download(buffer, offset, bytes)
    }

    fn fill(&mut self, buffer: &Buffer, range: Range<usize>, byte: u8) -> Result<(), DeviceError> {
        self.faults.call()?;
        self.inner.fill(buffer, range, byte)
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), DeviceError> {
        self.faults.call()?;
        self.inner.launch(launch)
    }

    fn synchronise(&mut self) -> Result<(), DeviceError> {
        self.faults.call()?;
        self.inner.synchronise()
    }

    fn is_page_locked(&self) -> bool {
        self.inner.is_page_locked()
    }
}
