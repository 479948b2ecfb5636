//! The device traits that launchers use: memory, queues of work, kernels by name.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::cuda::DeviceError;

/// Compute capability: `sm_90` is 9 and 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Capability {
    /// Generation.
    pub major: u32,
    /// Revision within it.
    pub minor: u32,
}

impl Capability {
    /// The oldest that the kernels are written for: int8 and f16 tensor cores with `cp.async`.
    pub const MIN: Self = Self { major: 8, minor: 0 };
    /// H100, H200 and their like, which alone multiply by warpgroups.
    pub const HOPPER: Self = Self { major: 9, minor: 0 };
}

impl fmt::Display for Capability {
    /// As compilers spell it, without the prefix: `90`.
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

/// Properties of a device from which launchers choose a grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceTraits {
    /// Its number among those that the driver sees.
    pub ordinal: usize,
    /// The maker's name for it.
    pub name: String,
    /// Compute capability.
    pub capability: Capability,
    /// Streaming multiprocessors: blocks that run at the same time, at least.
    pub multiprocessors: u32,
    /// Bytes of shared memory that one block can have.
    pub shared_bytes_max: u32,
    /// Driver version and origin of the kernels, for operators.
    pub driver: String,
}

/// One accelerator with the project's kernels on it.
///
/// All methods may be called from any thread. None panics because a driver is missing.
pub trait Device: fmt::Debug + Send + Sync {
    /// Its properties.
    fn traits(&self) -> &DeviceTraits;

    /// Its memory at the moment.
    ///
    /// # Errors
    /// [`DeviceError::Lost`] or [`DeviceError::Refused`].
    fn memory(&self) -> Result<DeviceMemory, DeviceError>;

    /// Memory with unspecified contents, aligned to 256 bytes, as the CUDA driver
    /// promises. No bytes are no memory: address 0.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`], or as [`Self::memory`].
    fn allocate(&self, bytes: usize) -> Result<Buffer, DeviceError>;

    /// A new queue. Queues run beside each other.
    ///
    /// # Errors
    /// As [`Self::memory`].
    fn queue(&self) -> Result<Box<dyn Queue>, DeviceError>;
}

/// Opens a device: at the start, and again after one was lost.
pub trait DeviceSource: fmt::Debug + Send + Sync {
    /// Opens the device. Its memory is empty then, and a lost one is given up for good.
    ///
    /// # Errors
    /// [`DeviceError::NoDevice`], with a line for the operator.
    fn open(&self) -> Result<Arc<dyn Device>, DeviceError>;
}

/// A queue of work, done in the order in which it is given.
pub trait Queue: fmt::Debug + Send {
    /// Copies `bytes` to `buffer` from `offset` on. They may be reused when this returns.
    ///
    /// # Errors
    /// [`DeviceError::Lost`], or [`DeviceError::Refused`] for what lies outside the buffer.
    fn upload(&mut self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Copies from `buffer` to `bytes`, after all work given before; returns when it is done.
    ///
    /// # Errors
    /// As [`Self::upload`], and errors of earlier work.
    fn download(
        &mut self,
        buffer: &Buffer,
        offset: usize,
        bytes: &mut [u8],
    ) -> Result<(), DeviceError>;

    /// Sets a part of `buffer` to `byte`.
    ///
    /// # Errors
    /// As [`Self::upload`].
    fn fill(&mut self, buffer: &Buffer, range: Range<usize>, byte: u8) -> Result<(), DeviceError>;

    /// Runs a kernel.
    ///
    /// # Errors
    /// [`DeviceError::Lost`] or [`DeviceError::Refused`].
    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), DeviceError>;

    /// Waits for all work given.
    ///
    /// # Errors
    /// Errors of the work.
    fn synchronise(&mut self) -> Result<(), DeviceError>;

    /// Whether small copies pass through memory that the device reaches by itself. Slower without.
    fn is_page_locked(&self) -> bool;
}

/// Gives memory back to a device.
pub trait Release: fmt::Debug + Send + Sync {
    /// Frees an allocation of `bytes` bytes. Never fails: a lost device has no memory.
    fn release(&self, address: u64, bytes: usize);
}

/// Device memory; freed when dropped. A launcher keeps it until the work is done.
pub struct Buffer {
    address: u64,
    bytes: usize,
    owner: Arc<dyn Release>,
}

impl Buffer {
    /// Takes charge of `bytes` bytes at `address` that `owner` allocated.
    pub fn new(address: u64, bytes: usize, owner: Arc<dyn Release>) -> Self {
        Self { address, bytes, owner }
    }

    /// Address of its first byte on the device.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address of a part, or `None` if that is not wholly inside.
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

/// Memory that a launch may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The first byte.
    pub address: u64,
    /// Their number.
    pub bytes: usize,
    /// Whether the kernel writes to them.
    pub is_written: bool,
}

/// One run of a kernel. Only this crate's launch builder makes them, and only after every extent
/// was checked against its buffer: therefore sending one is safe.
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
    /// The kernel's entry point.
    pub fn kernel(&self) -> &'static str {
        self.kernel
    }

    /// Blocks in each direction.
    pub fn grid(&self) -> [u32; 3] {
        self.grid
    }

    /// Threads of a block in each direction.
    pub fn block(&self) -> [u32; 3] {
        self.block
    }

    /// Bytes of shared memory that a block gets beyond what it declares.
    pub fn shared_bytes(&self) -> u32 {
        self.shared_bytes
    }

    /// Bytes of the kernel's one parameter, a structure by value.
    pub fn parameters(&self) -> &[u8] {
        self.parameters
    }

    /// All memory that the kernel may touch.
    pub fn extents(&self) -> &[Extent] {
        self.extents
    }
}
