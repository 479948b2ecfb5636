//! Work on a card, in order.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::{result, sys};

use crate::compute::cuda::driver::Functions;
use crate::compute::cuda::driver::card::Card;
use crate::compute::cuda::{Buffer, DeviceError, Launch, Queue};

/// A stream of the card.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) card: Arc<Card>,
    pub(super) functions: Arc<Functions>,
    pub(super) stream: sys::CUstream,
}

// SAFETY: a handle of the driver, valid in any thread; `&mut self` keeps its users apart.
unsafe impl Send for Stream {}

fn outside(action: &'static str) -> DeviceError {
    DeviceError::Refused { action, reason: "it lies outside the buffer".to_owned() }
}

impl Queue for Stream {
    fn upload(&mut self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        let to = buffer.part(offset, bytes.len()).ok_or_else(|| outside("take bytes"))?;
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the target lies inside a live buffer. The source is pageable memory, which the
        // driver has copied aside when the call returns.
        let copy = || unsafe { result::memcpy_htod_async(to, bytes, self.stream) };
        self.card.call("take bytes", copy)
    }

    fn download(
        &mut self,
        buffer: &Buffer,
        offset: usize,
        bytes: &mut [u8],
    ) -> Result<(), DeviceError> {
        let from = buffer.part(offset, bytes.len()).ok_or_else(|| outside("give bytes"))?;
        let stream = self.stream;
        self.card.call("give bytes", || {
            if !bytes.is_empty() {
                // SAFETY: the source lies inside a live buffer; the target outlives the wait that
                // follows.
                unsafe { result::memcpy_dtoh_async(bytes, from, stream) }?;
            }
            // SAFETY: the stream lives until this is dropped.
            unsafe { result::stream::synchronize(stream) }
        })
    }

    fn fill(&mut self, buffer: &Buffer, range: Range<usize>, byte: u8) -> Result<(), DeviceError> {
        let bytes = range.len();
        let at = buffer.part(range.start, bytes).ok_or_else(|| outside("fill memory"))?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the range lies inside a live buffer.
        let fill = || unsafe { result::memset_d8_async(at, byte, bytes, self.stream) };
        self.card.call("fill memory", fill)
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), DeviceError> {
        let Some(function) = self.functions.get(launch.kernel()) else {
            let reason = format!("there is no kernel {}", launch.kernel());
            return Err(DeviceError::Refused { action: "run a kernel", reason });
        };
        let mut parameters = launch.parameters().to_vec();
        let mut pointers = [parameters.as_mut_ptr().cast::<c_void>()];
        let ([gx, gy, gz], [bx, by, bz]) = (launch.grid(), launch.block());
        // SAFETY: the kernel takes one structure by value, and the launcher mirrors it; the driver
        // copies it during the call. A `Launch` is only made after every extent in it was checked
        // against a live buffer, which its maker keeps until the stream was waited for.
        let run = || unsafe {
            let (grid, block) = ((gx, gy, gz), (bx, by, bz));
            let shared = launch.shared_bytes();
            result::launch_kernel(function.0, grid, block, shared, self.stream, &mut pointers)
        };
        self.card.call("run a kernel", run)
    }

    fn synchronise(&mut self) -> Result<(), DeviceError> {
        // SAFETY: the stream lives until this is dropped.
        let wait = || unsafe { result::stream::synchronize(self.stream) };
        self.card.call("finish its work", wait)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once. A lost context has destroyed it already.
        let destroy = || unsafe { result::stream::destroy(self.stream) };
        if let Err(error) = self.card.call("end a stream", destroy) {
            tracing::debug!(%error, "a stream was not destroyed");
        }
    }
}
