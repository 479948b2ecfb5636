//! A queue with scratch memory, used by one run after another.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cuda::{Buffer, Device, DeviceError, Queue};

/// Size of scratch memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scratch {
    /// Rounded up and kept, so that most runs allocate nothing.
    #[default]
    Kept,
    /// The requested size to the byte, so that a checking device sees any access beyond.
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
    /// A workspace without memory yet.
    ///
    /// # Errors
    /// As [`Device::queue`].
    pub fn new(device: Arc<dyn Device>, scratch: Scratch) -> Result<Self, DeviceError> {
        let queue = device.queue()?;
        Ok(Self { device, queue, slots: BTreeMap::new(), scratch })
    }

    /// Scratch memory of at least `bytes` under a name, its contents unspecified. Only while no
    /// work is under way: the memory that had this name may be freed.
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

    /// The buffer called `name`, filled with `bytes`.
    ///
    /// # Errors
    /// As [`Device::allocate`] and [`Queue::upload`].
    pub fn filled(&mut self, name: &'static str, bytes: &[u8]) -> Result<Arc<Buffer>, DeviceError> {
        let buffer = self.slot(name, bytes.len())?;
        self.queue.upload(&buffer, 0, bytes)?;
        Ok(buffer)
    }

    /// The buffer called `name`, with `bytes` zeroes.
    ///
    /// # Errors
    /// As [`Device::allocate`] and [`Queue::fill`].
    pub fn zeroed(&mut self, name: &'static str, bytes: usize) -> Result<Arc<Buffer>, DeviceError> {
        let buffer = self.slot(name, bytes)?;
        self.queue.fill(&buffer, 0..bytes, 0)?;
        Ok(buffer)
    }

    /// The device.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }
}
