//! The CUDA driver behind [`Device`], through cudarc: the only code that talks to a real card.
//!
//! The library is located at run time. cudarc panics if the library, or a function in it, is
//! missing; so its presence is tested first, and every call is wrapped in `catch_unwind`. Only
//! functions available in every driver of the last ten years are used, and no context but the
//! primary one.
//!
//! An error in a kernel invalidates its context permanently (CUDA calls such errors sticky). The
//! device is then marked as lost, refuses all calls, and frees nothing; resetting the card's
//! context frees its memory. [`CudaSource::open`] requests a new context: driver 580 refuses it to
//! a process in which a kernel has faulted (`benches/runs/2026-11-26-h200/profile.md`), so the CPU
//! answers until a restart.
//!
//! - `card`: a card and its context; `stream`: ordered work on it; `staging`: page-locked memory
//!   for its copies

#![allow(unsafe_code)]

mod card;
mod staging;
mod stream;

use std::collections::BTreeMap;
use std::ffi::{CString, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use cudarc::driver::{result, sys};
use parking_lot::Mutex;

use crate::cuda::compile::Nvrtc;
use crate::cuda::device::{DeviceSource, Release};
use crate::cuda::modules::{CodeCache, Compiler, FAMILIES, Family, compiled};
use crate::cuda::{Buffer, Device, DeviceError, DeviceMemory, DeviceTraits, Queue};

use card::{Card, first_card, none};
use stream::Stream;

/// Opens the first card that can run the kernels.
#[derive(Debug)]
pub struct CudaSource {
    cache: Arc<dyn CodeCache>,
    last: Mutex<Weak<Card>>,
}

impl CudaSource {
    /// Creates a source that caches compiled kernels in `cache`.
    pub fn new(cache: Arc<dyn CodeCache>) -> Self {
        Self { cache, last: Mutex::new(Weak::new()) }
    }
}

impl DeviceSource for CudaSource {
    fn open(&self) -> Result<Arc<dyn Device>, DeviceError> {
        let mut last = self.last.lock();
        let last_card = last.upgrade();
        if !is_driver_there() {
            return Err(none("no NVIDIA driver (libcuda) is installed"));
        }
        let opened = catch_unwind(AssertUnwindSafe(|| first_card(last_card.as_deref())));
        let card = opened.unwrap_or_else(|_| Err(none("the NVIDIA driver lacks a function")))?;
        let (functions, origin) = load_kernels(&card, &*self.cache)?;
        let mut traits = card.traits.clone();
        traits.driver = format!("{}, kernels {origin}", traits.driver);
        *last = Arc::downgrade(&card);
        Ok(Arc::new(CudaDevice { card, traits, functions: Arc::new(functions) }))
    }
}

/// Whether the driver's library can be called.
#[cfg(not(feature = "candle-cuda"))]
fn is_driver_there() -> bool {
    // SAFETY: opens and closes a library by name; the driver's initialisers may run on any thread.
    unsafe { sys::is_culib_present() }
}

/// Always true in a build linked to the library, which does not start without it.
#[cfg(feature = "candle-cuda")]
fn is_driver_there() -> bool {
    true
}

/// A loaded kernel.
#[derive(Debug, Clone, Copy)]
struct Function(sys::CUfunction);

// SAFETY: a handle of the driver, valid on any thread while its module is loaded.
unsafe impl Send for Function {}
// SAFETY: as above; it is never modified.
unsafe impl Sync for Function {}

type Functions = BTreeMap<&'static str, Function>;

/// Loads all kernels, and returns their origin.
fn load_kernels(card: &Card, cache: &dyn CodeCache) -> Result<(Functions, String), DeviceError> {
    let mut functions = Functions::new();
    let embedded = FAMILIES.iter().try_for_each(|family| {
        let reason = "not embedded".to_owned();
        let missing = DeviceError::Kernel { family: family.name, reason };
        let code = family.embedded().ok_or(missing)?;
        load_family(card, family, code, &mut functions)
    });
    if embedded.is_ok() {
        return Ok((functions, "embedded".to_owned()));
    }
    functions.clear();
    let nvrtc = Nvrtc::find();
    let compiler = nvrtc.as_ref().map(|nvrtc| nvrtc as &dyn Compiler);
    // In parallel, because a single family takes up to several seconds.
    let codes: Vec<_> = std::thread::scope(|scope| {
        let compile = |family| move || compiled(family, card.traits.capability, compiler, cache);
        let begun: Vec<_> = FAMILIES.iter().map(|family| scope.spawn(compile(family))).collect();
        begun.into_iter().map(|thread| thread.join()).collect()
    });
    for (family, code) in FAMILIES.iter().zip(codes) {
        let stopped = |_| {
            Err(DeviceError::Kernel {
                family: family.name,
                reason: "its compiler stopped".to_owned(),
            })
        };
        load_family(card, family, &code.unwrap_or_else(stopped)?, &mut functions)?;
    }
    let origin = compiler.map(Compiler::version).unwrap_or_default();
    Ok((functions, format!("by {origin}")))
}

fn load_family(
    card: &Card,
    family: &Family,
    code: &[u8],
    functions: &mut Functions,
) -> Result<(), DeviceError> {
    use sys::CUfunction_attribute_enum as Attribute;
    // PTX is text and must end with a zero byte.
    let image = [code, &[0]].concat();
    let shared_max = card.traits.shared_bytes_max as i32;
    let loaded = card.call("load kernels", || {
        // SAFETY: the image is complete, ends with a zero byte, and outlives the call. The module
        // is never unloaded while the context lives.
        let module = unsafe { result::module::load_data(image.as_ptr().cast::<c_void>()) }?;
        let mut found = Vec::with_capacity(family.entries.len());
        for entry in family.entries_on(card.traits.capability) {
            let name = CString::new(entry).expect("names hold no zero byte");
            // SAFETY: the module was loaded above.
            let function = unsafe { result::module::get_function(module, name) }?;
            let shared = Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES;
            // SAFETY: the function was found above.
            let own = unsafe { result::function::get_function_attribute(function, shared) }?;
            let dynamic = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            let rest = (shared_max - own).max(0);
            // SAFETY: as above. Launchers request at most `shared_bytes_max`.
            unsafe { result::function::set_function_attribute(function, dynamic, rest) }?;
            found.push((entry, Function(function)));
        }
        Ok(found)
    });
    let failed = |error: DeviceError| match error {
        DeviceError::Refused { reason, .. } => DeviceError::Kernel { family: family.name, reason },
        other => other,
    };
    functions.extend(loaded.map_err(failed)?);
    Ok(())
}

/// A card with the kernels loaded.
#[derive(Debug)]
struct CudaDevice {
    card: Arc<Card>,
    traits: DeviceTraits,
    functions: Arc<Functions>,
}

impl Device for CudaDevice {
    fn traits(&self) -> &DeviceTraits {
        &self.traits
    }

    fn memory(&self) -> Result<DeviceMemory, DeviceError> {
        let (free, total) = self.card.call("count its memory", result::mem_get_info)?;
        Ok(DeviceMemory { free_bytes: free as u64, total_bytes: total as u64 })
    }

    fn allocate(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        let owner = Arc::clone(&self.card) as Arc<dyn Release>;
        if bytes == 0 {
            return Ok(Buffer::new(0, 0, owner));
        }
        let mut is_full = false;
        let allocated = self.card.call("allocate memory", || {
            // SAFETY: kernels and downloads read only initialised memory, which the tests on the
            // emulated device check.
            let allocated = unsafe { result::malloc_sync(bytes) };
            allocated.inspect_err(|error| {
                is_full = error.0 == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY;
            })
        });
        match allocated {
            Ok(address) => Ok(Buffer::new(address, bytes, owner)),
            Err(_) if is_full => Err(DeviceError::OutOfMemory { bytes }),
            Err(error) => Err(error),
        }
    }

    fn queue(&self) -> Result<Box<dyn Queue>, DeviceError> {
        let kind = result::stream::StreamKind::NonBlocking;
        let stream = self.card.call("make a stream", || result::stream::create(kind))?;
        let (card, functions) = (Arc::clone(&self.card), Arc::clone(&self.functions));
        let staging = card.staging();
        Ok(Box::new(Stream { card, functions, stream, staging }))
    }
}
