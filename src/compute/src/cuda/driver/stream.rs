//! A queue of work on a card.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::{result, sys};

use crate::cuda::driver::Functions;
use crate::cuda::driver::card::Card;
use crate::cuda::driver::staging::Staging;
use crate::cuda::{Buffer, DeviceError, Launch, Queue};

/// A stream of the card.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) card: Arc<Card>,
    pub(super) functions: Arc<Functions>,
    pub(super) stream: sys::CUstream,
    /// Page-locked memory for its copies, if some was left.
    pub(super) staging: Option<Staging>,
}

// SAFETY: a handle of the driver, valid on any thread; `&mut self` excludes concurrent use.
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
        let (stream, staging) = (self.stream, self.staging.as_mut());
        // SAFETY: the stream lives until this is dropped.
        let wait = || unsafe { result::stream::synchronize(stream) };
        self.card.call("take bytes", || {
            let staged = staging.map(|own| own.reserve(bytes.len(), wait));
            let source = match staged.transpose()?.flatten() {
                Some(staged) => {
                    staged.copy_from_slice(bytes);
                    &*staged
                }
                None => bytes,
            };
            // SAFETY: the target is within a live buffer. The source is the queue's page-locked
            // memory, whose range is neither reused nor freed before the stream is synchronised; or
            // it is pageable memory, which the driver has copied when the call returns.
            unsafe { result::memcpy_htod_async(to, source, stream) }
        })
    }

    fn download(
        &mut self,
        buffer: &Buffer,
        offset: usize,
        bytes: &mut [u8],
    ) -> Result<(), DeviceError> {
        let from = buffer.part(offset, bytes.len()).ok_or_else(|| outside("give bytes"))?;
        let (stream, mut staging) = (self.stream, self.staging.as_mut());
        // SAFETY: the stream lives until this is dropped.
        let wait = || unsafe { result::stream::synchronize(stream) };
        self.card.call("give bytes", || {
            let staged = staging.as_mut().map(|own| own.reserve(bytes.len(), wait));
            let mut staged = staged.transpose()?.flatten();
            let target = staged.as_deref_mut().unwrap_or(&mut *bytes);
            if !target.is_empty() {
                // SAFETY: the source is within a live buffer. The target, page-locked memory or the
                // caller's, outlives the synchronisation that follows, and nobody accesses it
                // before.
                unsafe { result::memcpy_dtoh_async(target, from, stream) }?;
            }
            wait()?;
            if let Some(staged) = staged {
                bytes.copy_from_slice(staged);
            }
            if let Some(own) = staging {
                own.waited();
            }
            Ok(())
        })
    }

    fn fill(&mut self, buffer: &Buffer, range: Range<usize>, byte: u8) -> Result<(), DeviceError> {
        let bytes = range.len();
        let at = buffer.part(range.start, bytes).ok_or_else(|| outside("fill memory"))?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the range is within a live buffer.
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
        // SAFETY: the kernel takes one structure by value, which the launcher mirrors; the driver
        // copies it during the call. A `Launch` is created only after every extent in it was
        // checked against a live buffer, which its creator keeps until the stream is synchronised.
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
        self.card.call("finish its work", wait)?;
        if let Some(own) = &mut self.staging {
            own.waited();
        }
        Ok(())
    }

    fn is_page_locked(&self) -> bool {
        self.staging.is_some()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // Memory that a copy may still use is not given back; the context frees it.
        if let (Ok(()), Some(own)) = (self.synchronise(), self.staging.take()) {
            self.card.staging.give_back(own);
        }
        // SAFETY: created once, destroyed once. A lost context has already destroyed it: `call`
        // refuses then.
        let destroy = || unsafe { result::stream::destroy(self.stream) };
        if let Err(error) = self.card.call("end a stream", destroy) {
            tracing::debug!(%error, "a stream was not destroyed");
        }
    }
}
