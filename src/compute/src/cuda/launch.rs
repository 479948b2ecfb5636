//! The launch builder: every address is taken from a buffer and checked against its size.

use bytemuck::{NoUninit, Zeroable};

use crate::cuda::{Buffer, DeviceError, Extent, Launch, Queue};

/// Threads of a block that every device can run.
const THREADS_MAX: u32 = 1024;
/// Blocks of a grid in its second direction.
const GRID_Y_MAX: u32 = 65_535;

/// Grid, block and shared memory of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LaunchShape {
    /// Blocks.
    pub grid: [u32; 2],
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of shared memory of a block.
    pub shared_bytes: usize,
}

/// Builds the parameters of a launch, and the list of all memory that it may touch.
#[derive(Debug)]
pub(super) struct LaunchBuilder {
    kernel: &'static str,
    extents: Vec<Extent>,
}

impl LaunchBuilder {
    pub(super) fn new(kernel: &'static str) -> Self {
        Self { kernel, extents: Vec::new() }
    }

    /// The error for a broken rule.
    pub(super) fn refused(&self, rule: &'static str) -> DeviceError {
        DeviceError::Shape { kernel: self.kernel, rule }
    }

    /// Insists on a rule.
    pub(super) fn check(&self, holds: bool, rule: &'static str) -> Result<(), DeviceError> {
        holds.then_some(()).ok_or_else(|| self.refused(rule))
    }

    /// The address of the first `count` values of type `T` of a buffer that is read.
    pub(super) fn reads<T>(&mut self, buffer: &Buffer, count: usize) -> Result<u64, DeviceError> {
        self.take::<T>(buffer, 0, count, false)
    }

    /// The address of `count` values of a buffer that is read, from byte `offset` on.
    pub(super) fn reads_behind<T>(
        &mut self,
        buffer: &Buffer,
        offset: usize,
        count: usize,
    ) -> Result<u64, DeviceError> {
        self.take::<T>(buffer, offset, count, false)
    }

    /// The address of the first `count` values of type `T` of a buffer that is written.
    pub(super) fn writes<T>(&mut self, buffer: &Buffer, count: usize) -> Result<u64, DeviceError> {
        self.take::<T>(buffer, 0, count, true)
    }

    /// The address of `count` values of a buffer that is written, from byte `offset` on.
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

    /// Sends the launch. The caller keeps the buffers until the work is done.
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
