//! The device traits that launchers use: memory, queues of work, and kernels by name.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::cuda::DeviceError;

/// Compute capability: `sm_90` has major 9 and minor 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Capability {
    /// Generation.
    pub major: u32,
    /// Revision within the generation.
    pub minor: u32,
}

impl Capability {
    /// Minimum for the kernels: int8 and f16 tensor cores with `cp.async`.
    pub const MIN: Self = Self { major: 8, minor: 0 };
    /// H100, H200 and similar cards, the only ones with warpgroup multiplication.
    pub const HOPPER: Self = Self { major: 9, minor: 0 };
}

impl fmt::Display for Capability {
    /// Formats it as compilers do, without the prefix: `90`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.major, self.minor)
    }
}

/// Memory of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceMemory {
    /// Free bytes.
    pub free_bytes: u64,
    /// All bytes.
    pub total_bytes: u64,
}

/// Properties of a device by which launchers choose a grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceTraits {
    /// Ordinal among the devices that the driver sees.
    pub ordinal: usize,
    /// The manufacturer's name for it.
    pub name: String,
    /// Compute capability.
    pub capability: Capability,
    /// Streaming multiprocessors: the minimum number of blocks that run concurrently.
    pub multiprocessors: u32,
    /// Maximum bytes of shared memory of a block.
    pub shared_bytes_max: u32,
    /// Driver version and origin of the kernels, for operators.
    pub driver: String,
}

/// An accelerator with the project's kernels loaded.
///
/// All methods may be called from any thread, and none panics because a driver is missing.
pub trait Device: fmt::Debug + Send + Sync {
    /// Returns its properties.
    fn traits(&self) -> &DeviceTraits;

    /// Returns its current memory.
    ///
    /// # Errors
    /// [`DeviceError::Lost`] or [`DeviceError::Refused`].
    fn memory(&self) -> Result<DeviceMemory, DeviceError>;

    /// Allocates memory with unspecified contents, aligned to 256 bytes, as the CUDA driver
    /// guarantees. An allocation of 0 bytes has address 0.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`], or as [`Self::memory`].
    fn allocate(&self, bytes: usize) -> Result<Buffer, DeviceError>;

    /// Creates a queue. Queues run concurrently.
    ///
    /// # Errors
    /// As [`Self::memory`].
    fn queue(&self) -> Result<Box<dyn Queue>, DeviceError>;
}

/// Opens a device, at the start and again after it was lost.
pub trait DeviceSource: fmt::Debug + Send + Sync {
    /// Opens the device with empty memory. A previously lost device is given up for good.
    ///
    /// # Errors
    /// [`DeviceError::NoDevice`], with a line for the operator.
    fn open(&self) -> Result<Arc<dyn Device>, DeviceError>;
}

/// A queue of work that is executed in order.
pub trait Queue: fmt::Debug + Send {
    /// Copies `bytes` into `buffer` from `offset` on. `bytes` may be reused once this returns.
    ///
    /// # Errors
    /// [`DeviceError::Lost`], or [`DeviceError::Refused`] for a range outside the buffer.
    fn upload(&mut self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Copies from `buffer` into `bytes` after all earlier work; returns when the copy is complete.
    ///
    /// # Errors
    /// As [`Self::upload`], and errors of earlier work.
    fn download(
        &mut self,
        buffer: &Buffer,
        offset: usize,
        bytes: &mut [u8],
    ) -> Result<(), DeviceError>;

    /// Sets a range of `buffer` to `byte`.
    ///
    /// # Errors
    /// As [`Self::upload`].
    fn fill(&mut self, buffer: &Buffer, range: Range<usize>, byte: u8) -> Result<(), DeviceError>;

    /// Launches a kernel.
    ///
    /// # Errors
    /// [`DeviceError::Lost`] or [`DeviceError::Refused`].
    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), DeviceError>;

    /// Waits for all enqueued work.
    ///
    /// # Errors
    /// Errors of the work.
    fn synchronise(&mut self) -> Result<(), DeviceError>;

    /// Whether small copies use page-locked memory, which the device accesses directly; otherwise
    /// they are slower.
    fn is_page_locked(&self) -> bool;
}

/// Frees memory of a device.
pub trait Release: fmt::Debug + Send + Sync {
    /// Frees an allocation of `bytes` bytes. Never fails: a lost device has no memory.
    fn release(&self, address: u64, bytes: usize);
}

/// Device memory, freed when dropped. A launcher must keep it until the work that uses it is done.
pub struct Buffer {
    address: u64,
    bytes: usize,
    owner: Arc<dyn Release>,
}

impl Buffer {
    /// Takes ownership of `bytes` bytes at `address` that `owner` allocated.
    pub fn new(address: u64, bytes: usize, owner: Arc<dyn Release>) -> Self {
        Self { address, bytes, owner }
    }

    /// Returns the device address of the first byte.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the address of a range; `None` if it is not entirely within the buffer.
    pub fn part(&self, offset: usize, bytes: usize) -> Option<u64> {
        let end = offset.checked_add(bytes)?;
        (end <= self.bytes).then_some(self.address + offset as u64)
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({:#x}, {} bytes)", self.address, self.bytes)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.owner.release(self.address, self.bytes);
        }
    }
}

/// Memory that a launch may access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Address of the first byte.
    pub address: u64,
    /// Number of bytes.
    pub bytes: usize,
    /// Whether the kernel writes to it.
    pub is_written: bool,
}

/// One launch of a kernel. Only this crate's launch builder can make one, and only after checking
/// every extent against its buffer, which makes launching it safe.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    pub(super) kernel: &'static str,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) shared_bytes: u32,
    pub(super) parameters: &'a [u8],
    pub(super) extents: &'a [Extent],
}

impl Launch<'_> {
    /// Returns the name of the kernel's entry point.
    pub fn kernel(&self) -> &'static str {
        self.kernel
    }

    /// Returns the number of blocks in each dimension.
    pub fn grid(&self) -> [u32; 3] {
        self.grid
    }

    /// Returns the number of threads of a block in each dimension.
    pub fn block(&self) -> [u32; 3] {
        self.block
    }

    /// Returns the bytes of dynamic shared memory of a block.
    pub fn shared_bytes(&self) -> u32 {
        self.shared_bytes
    }

    /// Returns the bytes of the kernel's only parameter, a structure passed by value.
    pub fn parameters(&self) -> &[u8] {
        self.parameters
    }

    /// Returns all memory that the kernel may access.
    pub fn extents(&self) -> &[Extent] {
        self.extents
    }
}
