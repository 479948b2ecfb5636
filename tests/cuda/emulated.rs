//! The kernels on the CPU: a device whose launches run in the emulator.
//!
//! Buffers have exact extents, and every memory access of a kernel is checked. A kernel that
//! violates a rule fails its launch with a message.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};

use libloading::{Library, Symbol};
use lodestone_compute::cuda::{
    Buffer, Capability, Device, DeviceError, DeviceMemory, DeviceSource, DeviceTraits, Launch,
    Queue, Release,
};

/// `emulated_launch`. SAFETY: as declared in launch.cpp.
type Run = unsafe extern "C" fn(*const c_char, *const u32, *const u32, u32, *const c_void) -> c_int;
/// `emulated_error`. SAFETY: as declared in launch.cpp.
type LastError = unsafe extern "C" fn() -> *const c_char;
/// `emulated_parameter_bytes`. SAFETY: as declared in launch.cpp.
type ParameterBytes = unsafe extern "C" fn(*const c_char) -> u64;
/// `emulated_order`. SAFETY: as declared in launch.cpp.
type SetOrder = unsafe extern "C" fn(u32);
/// `emulated_allocate`. SAFETY: as declared in memory.cpp.
type Allocate = unsafe extern "C" fn(u64) -> u64;
/// `emulated_free`. SAFETY: as declared in memory.cpp.
type Free = unsafe extern "C" fn(u64);
/// `emulated_upload`. SAFETY: as declared in memory.cpp.
type Upload = unsafe extern "C" fn(u64, *const c_void, u64) -> c_int;
/// `emulated_download`. SAFETY: as declared in memory.cpp.
type Download = unsafe extern "C" fn(*mut c_void, u64, u64) -> c_int;
/// `emulated_fill`. SAFETY: as declared in memory.cpp.
type Fill = unsafe extern "C" fn(u64, u8, u64) -> c_int;

/// Locked for each call, as the emulator has a single set of threads and buffers.
static EMULATOR: OnceLock<Option<Mutex<Library>>> = OnceLock::new();

/// Returns the emulated device, or `None` if the emulator cannot be built.
pub fn device() -> Option<Arc<dyn Device>> {
    EMULATOR.get_or_init(build).as_ref()?;
    Some(Arc::new(Emulated {
        traits: DeviceTraits {
            ordinal: 0,
            name: "emulator".to_owned(),
            capability: Capability { major: 9, minor: 0 },
            // Few, so that blocks process several tiles each.
            multiprocessors: 2,
            shared_bytes_max: 227 << 10,
            driver: "tests/cuda/emulator".to_owned(),
        },
    }))
}

/// Size in bytes of a kernel's parameters as declared in its source.
pub fn parameter_bytes(kernel: &str) -> usize {
    let name = CString::new(kernel).unwrap();
    let library = library();
    // SAFETY: the signature is that in launch.cpp; the name is zero-terminated.
    let bytes = unsafe {
        let call: Symbol<'_, ParameterBytes> = library.get(b"emulated_parameter_bytes\0").unwrap();
        call(name.as_ptr())
    };
    bytes as usize
}

/// Runs blocks and threads in another order from now on.
pub fn set_order(seed: u32) {
    let library = library();
    // SAFETY: the signature is that in launch.cpp.
    unsafe {
        let call: Symbol<'_, SetOrder> = library.get(b"emulated_order\0").unwrap();
        call(seed);
    }
}

/// The folder of the emulator's sources, if the test runs where it was built.
fn sources() -> Option<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda/emulator");
    sources.join("run").exists().then_some(sources)
}

fn build() -> Option<Mutex<Library>> {
    let sources = sources()?;
    Command::new("g++").arg("--version").output().ok().filter(|run| run.status.success())?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("emulator");
    fs::create_dir_all(&folder).unwrap();
    // Other test processes may build it at the same time.
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let mut run = Command::new("sh");
    let run = run.arg(sources.join("run")).arg("--build").env("BUILD", &folder).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    // SAFETY: the library has just been built from the sources next to this file.
    let library = unsafe { Library::new(folder.join("libemulator.so")) }.unwrap();
    Some(Mutex::new(library))
}

fn library() -> std::sync::MutexGuard<'static, Library> {
    let library = EMULATOR.get().and_then(Option::as_ref).expect("built before anything is called");
    library.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[derive(Debug)]
struct Emulated {
    traits: DeviceTraits,
}

#[derive(Debug)]
struct Memory;

impl Release for Memory {
    fn release(&self, address: u64, _: usize) {
        let library = library();
        // SAFETY: the signature is that in memory.cpp; each buffer is freed only once.
        unsafe {
            let call: Symbol<'_, Free> = library.get(b"emulated_free\0").unwrap();
            call(address);
        }
    }
}

impl Device for Emulated {
    fn traits(&self) -> &DeviceTraits {
        &self.traits
    }

    fn memory(&self) -> Result<DeviceMemory, DeviceError> {
        Ok(DeviceMemory { free_bytes: 1 << 30, total_bytes: 1 << 30 })
    }

    fn allocate(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        let library = library();
        // SAFETY: the signature is that in memory.cpp.
        let address = unsafe {
            let call: Symbol<'_, Allocate> = library.get(b"emulated_allocate\0").unwrap();
            call(bytes as u64)
        };
        Ok(Buffer::new(address, bytes, Arc::new(Memory)))
    }

    fn queue(&self) -> Result<Box<dyn Queue>, DeviceError> {
        Ok(Box::new(EmulatedQueue))
    }
}

/// A queue whose operations complete immediately.
#[derive(Debug)]
struct EmulatedQueue;

fn inside(buffer: &Buffer, offset: usize, bytes: usize) -> u64 {
    buffer.part(offset, bytes).expect("copies stay inside their buffers")
}

impl Queue for EmulatedQueue {
    fn upload(&mut self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        let (to, library) = (inside(buffer, offset, bytes.len()), library());
        // SAFETY: the signature is that in memory.cpp, which checks the target; the source has the
        // given length.
        let refused = unsafe {
            let call: Symbol<'_, Upload> = library.get(b"emulated_upload\0").unwrap();
            call(to, bytes.as_ptr().cast(), bytes.len() as u64)
        };
        assert_eq!(refused, 0, "the emulator takes what lies inside a buffer");
        Ok(())
    }

    fn download(
        &mut self,
        buffer: &Buffer,
        offset: usize,
        bytes: &mut [u8],
    ) -> Result<(), DeviceError> {
        let (from, library) = (inside(buffer, offset, bytes.len()), library());
        // SAFETY: the signature is that in memory.cpp, which checks the source; the target has the
        // given length.
        let refused = unsafe {
            let call: Symbol<'_, Download> = library.get(b"emulated_download\0").unwrap();
            call(bytes.as_mut_ptr().cast(), from, bytes.len() as u64)
        };
        assert_eq!(refused, 0, "the emulator gives what lies inside a buffer");
        Ok(())
    }

    fn fill(&mut self, buffer: &Buffer, range: Range<usize>, byte: u8) -> Result<(), DeviceError> {
        let (to, library) = (inside(buffer, range.start, range.len()), library());
        // SAFETY: the signature is that in memory.cpp, which checks the target.
        let refused = unsafe {
            let call: Symbol<'_, Fill> = library.get(b"emulated_fill\0").unwrap();
            call(to, byte, range.len() as u64)
        };
        assert_eq!(refused, 0, "the emulator fills what lies inside a buffer");
        Ok(())
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), DeviceError> {
        let name = CString::new(launch.kernel()).unwrap();
        let expected = parameter_bytes(launch.kernel());
        assert_eq!(launch.parameters().len(), expected, "{}: its parameters", launch.kernel());
        let (grid, block) = (launch.grid(), launch.block());
        let library = library();
        // SAFETY: the signatures are those in launch.cpp; the parameters have the size that the
        // kernel declares; the emulator checks every access of the kernel.
        let error = unsafe {
            let run: Symbol<'_, Run> = library.get(b"emulated_launch\0").unwrap();
            let parameters = launch.parameters().as_ptr().cast();
            let shared = launch.shared_bytes();
            let outcome = run(name.as_ptr(), grid.as_ptr(), block.as_ptr(), shared, parameters);
            let error: Symbol<'_, LastError> = library.get(b"emulated_error\0").unwrap();
            (outcome != 0).then(|| CStr::from_ptr(error()).to_string_lossy().into_owned())
        };
        match error {
            None => Ok(()),
            Some(reason) => Err(DeviceError::Lost { reason }),
        }
    }

    fn synchronise(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn is_page_locked(&self) -> bool {
        true
    }
}

/// A source that always returns the same device.
#[derive(Debug)]
pub struct Only(pub Arc<dyn Device>);

impl DeviceSource for Only {
    fn open(&self) -> Result<Arc<dyn Device>, DeviceError> {
        Ok(Arc::clone(&self.0))
    }
}
