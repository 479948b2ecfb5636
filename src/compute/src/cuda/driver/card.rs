//! A card with its primary context, and the errors that invalidate the context.

#![allow(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cudarc::driver::{result, sys};
use parking_lot::{Mutex, RwLock};

use crate::cuda::device::Release;
use crate::cuda::driver::staging::{Staging, StagingPool};
use crate::cuda::{Capability, DeviceError, DeviceTraits};

pub(super) fn none(reason: impl Into<String>) -> DeviceError {
    DeviceError::NoDevice { reason: reason.into() }
}

fn said(error: &result::DriverError) -> String {
    let name = error.error_name().map(|name| name.to_string_lossy().into_owned());
    let text = error.error_string().map(|text| text.to_string_lossy().into_owned());
    format!("{} ({})", text.unwrap_or_default(), name.unwrap_or_default())
}

/// Opens the first card with sufficient capability; resets the context of the lost card, if any.
pub(super) fn first_card(lost: Option<&Card>) -> Result<Arc<Card>, DeviceError> {
    let failed = |error: result::DriverError| none(format!("the NVIDIA driver: {}", said(&error)));
    result::init().map_err(failed)?;
    let mut version = 0;
    // SAFETY: the pointer is to an integer that lives until the call returns.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result().map_err(failed)?;
    let count = result::device::get_count().map_err(failed)?;
    let mut reason = "the NVIDIA driver sees no device".to_owned();
    for ordinal in 0..count {
        let device = result::device::get(ordinal).map_err(failed)?;
        let traits = traits_of(device, ordinal as usize, version).map_err(failed)?;
        if traits.capability < Capability::MIN {
            let DeviceTraits { name, capability, .. } = &traits;
            reason = format!("{name} has compute capability {capability}, below 80");
            continue;
        }
        if let Some(lost) = lost.filter(|lost| lost.device == device) {
            lost.end_context().map_err(failed)?;
        }
        // SAFETY: the handle comes from the driver.
        let context = unsafe { result::primary_ctx::retain(device) }.map_err(failed)?;
        return Ok(Arc::new(Card {
            device,
            context,
            traits,
            calls: RwLock::new(()),
            is_lost: AtomicBool::new(false),
            is_ended: Mutex::new(false),
            staging: StagingPool::default(),
            is_staging_refused: AtomicBool::new(false),
        }));
    }
    Err(none(reason))
}

fn traits_of(
    device: sys::CUdevice,
    ordinal: usize,
    version: i32,
) -> Result<DeviceTraits, result::DriverError> {
    use sys::CUdevice_attribute_enum as Attribute;
    // SAFETY: the handle comes from the driver.
    let attribute = |attribute| unsafe { result::device::get_attribute(device, attribute) };
    let positive = |attribute_kind| attribute(attribute_kind).map(|value| value.max(0) as u32);
    Ok(DeviceTraits {
        ordinal,
        name: result::device::get_name(device)?,
        capability: Capability {
            major: positive(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            minor: positive(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        },
        multiprocessors: positive(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        shared_bytes_max: positive(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        )?,
        driver: format!("driver for CUDA {}.{}", version / 1000, version % 1000 / 10),
    })
}

/// A card and its primary context.
#[derive(Debug)]
pub(super) struct Card {
    device: sys::CUdevice,
    context: sys::CUcontext,
    pub(super) traits: DeviceTraits,
    /// Read-locked during a call, write-locked to end the context.
    calls: RwLock<()>,
    is_lost: AtomicBool,
    /// Whether the context was reset, which also released this card's reference to it.
    is_ended: Mutex<bool>,
    pub(super) staging: StagingPool,
    /// Whether a refusal of page-locked memory was logged.
    is_staging_refused: AtomicBool,
}

// SAFETY: the driver's handles may be used from any thread; `call` makes the context current on the
// calling thread.
unsafe impl Send for Card {}
// SAFETY: as above; the driver synchronises access to shared state.
unsafe impl Sync for Card {}

impl Card {
    /// Runs driver calls in this card's context.
    pub(super) fn call<T>(
        &self,
        action: &'static str,
        calls: impl FnOnce() -> Result<T, result::DriverError>,
    ) -> Result<T, DeviceError> {
        let _running = self.calls.read();
        if self.is_lost.load(Ordering::SeqCst) {
            return Err(DeviceError::Lost { reason: "an earlier error ended it".to_owned() });
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the context is retained until this card is dropped.
            unsafe { result::ctx::set_current(self.context) }?;
            calls()
        }));
        let Ok(outcome) = outcome else {
            let reason = "the NVIDIA driver lacks a function".to_owned();
            return Err(DeviceError::Refused { action, reason });
        };
        outcome.map_err(|error| {
            if is_fatal(error.0) {
                self.is_lost.store(true, Ordering::SeqCst);
                return DeviceError::Lost { reason: said(&error) };
            }
            DeviceError::Refused { action, reason: said(&error) }
        })
    }
}

impl Card {
    /// Resets the context of a lost card, which frees its memory for other processes.
    fn end_context(&self) -> Result<(), result::DriverError> {
        // The lock excludes concurrent calls; later ones see `is_lost`.
        let _alone = self.calls.write();
        self.is_lost.store(true, Ordering::SeqCst);
        let mut is_ended = self.is_ended.lock();
        if !*is_ended {
            // SAFETY: the handle comes from the driver; nothing uses the context any more.
            unsafe { sys::cuDevicePrimaryCtxReset_v2(self.device) }.result()?;
            *is_ended = true;
        }
        Ok(())
    }

    /// Returns page-locked memory for a queue, if any is left. A refusal is logged once; callers
    /// count queues without such memory.
    pub(super) fn staging(&self) -> Option<Staging> {
        let taken = self.call("lock pages", || self.staging.take());
        taken.unwrap_or_else(|error| {
            if !self.is_staging_refused.swap(true, Ordering::Relaxed) {
                tracing::warn!(%error, "no page-locked memory for the GPU: copies are slower");
            }
            None
        })
    }
}

/// Whether a context is unusable after this error.
fn is_fatal(error: sys::CUresult) -> bool {
    use sys::CUresult as E;
    matches!(
        error,
        E::CUDA_ERROR_DEINITIALIZED
            | E::CUDA_ERROR_NO_DEVICE
            | E::CUDA_ERROR_DEVICE_UNAVAILABLE
            | E::CUDA_ERROR_INVALID_CONTEXT
            | E::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | E::CUDA_ERROR_ECC_UNCORRECTABLE
            | E::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | E::CUDA_ERROR_CONTAINED
            | E::CUDA_ERROR_ILLEGAL_ADDRESS
            | E::CUDA_ERROR_LAUNCH_TIMEOUT
            | E::CUDA_ERROR_LAUNCH_FAILED
            | E::CUDA_ERROR_ASSERT
            | E::CUDA_ERROR_HARDWARE_STACK_ERROR
            | E::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | E::CUDA_ERROR_MISALIGNED_ADDRESS
            | E::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | E::CUDA_ERROR_INVALID_PC
            | E::CUDA_ERROR_MPS_CLIENT_TERMINATED
            | E::CUDA_ERROR_EXTERNAL_DEVICE
            | E::CUDA_ERROR_UNKNOWN
    )
}

impl Release for Card {
    fn release(&self, address: u64, _: usize) {
        // SAFETY: the address comes from `malloc_sync` in this context and is freed once, by the
        // buffer that owns it. A lost context has already freed it: `call` refuses then.
        let freed = self.call("free memory", || unsafe { result::free_sync(address) });
        if let Err(error) = freed {
            tracing::debug!(%error, "device memory was not freed");
        }
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        // A lost context has already freed it: `call` refuses then.
        if let Err(error) = self.call("unlock pages", || self.staging.free()) {
            tracing::debug!(%error, "page-locked memory was not freed");
        }
        let released =
            catch_unwind(AssertUnwindSafe(|| match self.is_lost.load(Ordering::SeqCst) {
                true => self.end_context(),
                // SAFETY: retained once in `first_card`, released once here.
                false => unsafe { result::primary_ctx::release(self.device) },
            }));
        if let Ok(Err(error)) = released {
            tracing::warn!(error = %said(&error), "releasing the device's context failed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_after_which_every_call_fails_end_the_card() {
        use sys::CUresult as E;
        for error in [
            E::CUDA_ERROR_ILLEGAL_ADDRESS,
            E::CUDA_ERROR_CONTAINED,
            E::CUDA_ERROR_MPS_CLIENT_TERMINATED,
        ] {
            assert!(is_fatal(error), "{error:?}");
        }
        for error in [E::CUDA_ERROR_OUT_OF_MEMORY, E::CUDA_ERROR_INVALID_VALUE] {
            assert!(!is_fatal(error), "{error:?}");
        }
    }
}
