//! A queue with scratch memory, reused by consecutive runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cuda::{Buffer, Device, DeviceError, Queue};

/// Allocation policy of scratch memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scratch {
    /// Rounds sizes up and keeps the memory, so that most runs allocate nothing.
    #[default]
    Kept,
    /// Allocates the exact size, so that a checking device detects any access beyond it.
    Exact,
}

/// A queue and its scratch memory.
#[derive(Debug)]
pub struct Workspace {
    device: Arc<dyn Device>,
    /// The queue.
    pub queue: Box<dyn Queue>,
    slots: BTreeMap<&'static str, Arc<Buffer>>,
    scratch: Scratch,
}

impl Workspace {
    /// Creates a workspace that has no memory yet.
    ///
    /// # Errors
    /// As [`Device::queue`].
    pub fn new(device: Arc<dyn Device>, scratch: Scratch) -> Result<Self, DeviceError> {
        let queue = device.queue()?;
        Ok(Self { device, queue, slots: BTreeMap::new(), scratch })
    }

    /// Returns scratch memory of at least `bytes` under a name, with unspecified contents. Must not
    /// be called while work is in progress, because it may free the previous memory of that name.
    ///
    /// # Errors
    /// As [`Device::allocate`].
    pub fn slot(&mut self, name: &'static str, bytes: usize) -> Result<Arc<Buffer>, DeviceError> {
        let fits = |buffer: &&Arc<Buffer>| match self.scratch {
            Scratch::Kept => buffer.bytes() >= bytes,
            Scratch::Exact => buffer.bytes() == bytes,
        };
        if let Some(buffer) = self.slots.get(name).filter(fits) {
            return Ok(Arc::clone(buffer));
        }
        self.slots.remove(name);
        let size = match self.scratch {
            Scratch::Kept => bytes.next_power_of_two(),
            Scratch::Exact => bytes,
        };
        let buffer = Arc::new(self.device.allocate(size)?);
        self.slots.insert(name, Arc::clone(&buffer));
        Ok(buffer)
    }

    /// Returns the buffer called `name`, filled with `bytes`.
    ///
    /// # Errors
    /// As [`Device::allocate`] and [`Queue::upload`].
    pub fn filled(&mut self, name: &'static str, bytes: &[u8]) -> Result<Arc<Buffer>, DeviceError> {
        let buffer = self.slot(name, bytes.len())?;
        self.queue.upload(&buffer, 0, bytes)?;
        Ok(buffer)
    }

    /// Returns the buffer called `name`, filled with `bytes` zero bytes.
    ///
    /// # Errors
    /// As [`Device::allocate`] and [`Queue::fill`].
    pub fn zeroed(&mut self, name: &'static str, bytes: usize) -> Result<Arc<Buffer>, DeviceError> {
        let buffer = self.slot(name, bytes)?;
        self.queue.fill(&buffer, 0..bytes, 0)?;
        Ok(buffer)
    }

    /// Returns the device.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }
}
