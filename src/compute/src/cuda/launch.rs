//! The launch builder: takes every address from a buffer and checks it against the buffer's size.

use bytemuck::{NoUninit, Zeroable};

use crate::cuda::{Buffer, DeviceError, Extent, Launch, Queue};

/// Maximum threads of a block on every device.
const THREADS_MAX: u32 = 1024;
/// Maximum blocks of a grid in its second dimension.
const GRID_Y_MAX: u32 = 65_535;

/// Grid, block and shared memory of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LaunchShape {
    /// Number of blocks.
    pub grid: [u32; 2],
    /// Threads per block.
    pub threads: u32,
    /// Bytes of shared memory per block.
    pub shared_bytes: usize,
}

/// Builds the parameters of a launch, and the list of all memory that it may access.
#[derive(Debug)]
pub(super) struct LaunchBuilder {
    kernel: &'static str,
    extents: Vec<Extent>,
}

impl LaunchBuilder {
    pub(super) fn new(kernel: &'static str) -> Self {
        Self { kernel, extents: Vec::new() }
    }

    /// Returns the error for a violated rule.
    pub(super) fn refused(&self, rule: &'static str) -> DeviceError {
        DeviceError::Shape { kernel: self.kernel, rule }
    }

    /// Checks a rule.
    pub(super) fn check(&self, holds: bool, rule: &'static str) -> Result<(), DeviceError> {
        holds.then_some(()).ok_or_else(|| self.refused(rule))
    }

    /// Returns the address of the first `count` values of type `T` of a buffer that is read.
    pub(super) fn reads<T>(&mut self, buffer: &Buffer, count: usize) -> Result<u64, DeviceError> {
        self.take::<T>(buffer, 0, count, false)
    }

    /// Returns the address of `count` values of a buffer that is read, from byte `offset` on.
    pub(super) fn reads_behind<T>(
        &mut self,
        buffer: &Buffer,
        offset: usize,
        count: usize,
    ) -> Result<u64, DeviceError> {
        self.take::<T>(buffer, offset, count, false)
    }

    /// Returns the address of the first `count` values of type `T` of a buffer that is written.
    pub(super) fn writes<T>(&mut self, buffer: &Buffer, count: usize) -> Result<u64, DeviceError> {
        self.take::<T>(buffer, 0, count, true)
    }

    /// Returns the address of `count` values of a buffer that is written, from byte `offset` on.
    pub(super) fn writes_behind<T>(
        &mut self,
        buffer: &Buffer,
        offset: usize,
        count: usize,
    ) -> Result<u64, DeviceError> {
        self.take::<T>(buffer, offset, count, true)
    }

    fn take<T>(
        &mut self,
        buffer: &Buffer,
        offset: usize,
        count: usize,
        is_written: bool,
    ) -> Result<u64, DeviceError> {
        let bytes = count.checked_mul(size_of::<T>());
        let address = bytes.and_then(|bytes| buffer.part(offset, bytes));
        let (Some(bytes), Some(address)) = (bytes, address) else {
            return Err(self.refused("a buffer is smaller than its part of the launch"));
        };
        self.extents.push(Extent { address, bytes, is_written });
        Ok(address)
    }

    /// Launches the kernel. The caller must keep the buffers until the work is done.
    pub(super) fn launch<P: NoUninit + Zeroable>(
        &self,
        queue: &mut dyn Queue,
        shape: LaunchShape,
        parameters: &P,
    ) -> Result<(), DeviceError> {
        let LaunchShape { grid: [x, y], threads, shared_bytes } = shape;
        self.check((1..=THREADS_MAX).contains(&threads), "a block of 1 to 1024 threads")?;
        self.check(x > 0 && (1..=GRID_Y_MAX).contains(&y), "a grid that a device can run")?;
        let shared_bytes =
            u32::try_from(shared_bytes).map_err(|_| self.refused("shared memory"))?;
        queue.launch(&Launch {
            kernel: self.kernel,
            grid: [x, y, 1],
            block: [threads, 1, 1],
            shared_bytes,
            parameters: bytemuck::bytes_of(parameters),
            extents: &self.extents,
        })
    }
}
