//! NVRTC, CUDA's compiler as a library, loaded at run time if installed.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::catch_unwind;

use cudarc::nvrtc::{result, sys};

use crate::cuda::Capability;
use crate::cuda::modules::Compiler;

/// The library, which was found.
#[derive(Debug, Clone)]
pub struct Nvrtc {
    major: i32,
    minor: i32,
}

impl Nvrtc {
    /// Finds the library by its usual names; `None` if it is not installed.
    pub fn find() -> Option<Self> {
        if !is_library_there() {
            return None;
        }
        let version = catch_unwind(|| {
            let (mut major, mut minor) = (0, 0);
            // SAFETY: both pointers are to integers that live until the call returns.
            unsafe { sys::nvrtcVersion(&raw mut major, &raw mut minor) }.result().ok()?;
            Some(Self { major, minor })
        });
        version.ok().flatten()
    }

    /// Returns the newest target of the library that a device of capability `wanted` can run.
    fn target(&self, wanted: Capability) -> Option<Target> {
        let mut count: c_int = 0;
        // SAFETY: the pointer is to an integer that lives until the call returns.
        unsafe { sys::nvrtcGetNumSupportedArchs(&raw mut count) }.result().ok()?;
        let mut known = vec![0; usize::try_from(count).ok()?];
        // SAFETY: the buffer holds as many integers as the library said it would write.
        unsafe { sys::nvrtcGetSupportedArchs(known.as_mut_ptr()) }.result().ok()?;
        // Only a Hopper-specific target includes Hopper's own instructions.
        if wanted == Capability::HOPPER && known.contains(&90) {
            let option = "--gpu-architecture=sm_90a".to_owned();
            return Some(Target { option, is_ptx: false });
        }
        let wanted = c_int::try_from(wanted.major * 10 + wanted.minor).ok()?;
        let best = known.into_iter().filter(|known| *known <= wanted).max()?;
        // Code for one revision runs on later ones of the same generation; a newer generation needs
        // PTX, which the driver translates.
        Some(match best / 10 == wanted / 10 {
            true => Target { option: format!("--gpu-architecture=sm_{best}"), is_ptx: false },
            false => Target { option: format!("--gpu-architecture=compute_{best}"), is_ptx: true },
        })
    }
}

/// Whether the library can be called.
#[cfg(not(feature = "candle-cuda"))]
fn is_library_there() -> bool {
    // SAFETY: opens and closes a library by name; NVRTC's initialisers may run on any thread.
    unsafe { sys::is_culib_present() }
}

/// Always true in a build linked to the library, which does not start without it.
#[cfg(feature = "candle-cuda")]
fn is_library_there() -> bool {
    true
}

struct Target {
    option: String,
    is_ptx: bool,
}

impl Compiler for Nvrtc {
    fn version(&self) -> String {
        format!("NVRTC {}.{}", self.major, self.minor)
    }

    fn compile(&self, name: &str, text: &str, capability: Capability) -> Result<Vec<u8>, String> {
        self.compile_with(name, text, capability, &[]).map(|(code, _)| code)
    }
}

/// A program, destroyed when dropped.
struct Program(sys::nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: it came from `create_program` and is destroyed only here. A failure would mean
        // that it no longer exists, in which case there is nothing to do.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}

impl Nvrtc {
    /// Compiles like [`Compiler::compile`], and also returns the report of ptxas on each kernel:
    /// registers, spills, shared memory.
    ///
    /// # Errors
    /// The compiler's message about the source.
    pub fn compile_reported(
        &self,
        name: &str,
        text: &str,
        capability: Capability,
    ) -> Result<(Vec<u8>, String), String> {
        self.compile_with(name, text, capability, &["--ptxas-options=-v"])
    }

    /// Returns machine code and the compiler's messages.
    fn compile_with(
        &self,
        name: &str,
        text: &str,
        capability: Capability,
        more: &[&str],
    ) -> Result<(Vec<u8>, String), String> {
        catch_unwind(|| self.compile_unguarded(name, text, capability, more))
            .unwrap_or_else(|_| Err("the NVRTC library lacks a function".to_owned()))
    }

    fn compile_unguarded(
        &self,
        name: &str,
        text: &str,
        capability: Capability,
        more: &[&str],
    ) -> Result<(Vec<u8>, String), String> {
        let failed = |error: result::NvrtcError| format!("{error:?}");
        let target = self.target(capability).ok_or_else(|| {
            format!("{} makes no code for compute capability {capability}", self.version())
        })?;
        let text = CString::new(text).map_err(|_| "the text holds a zero byte".to_owned())?;
        let file = CString::new(format!("{name}.cu")).map_err(|error| error.to_string())?;
        let created = result::create_program(&text, Some(&file)).map_err(failed)?;
        let program = Program(created);
        let options = [&[target.option.as_str(), "--std=c++17"], more].concat();
        // SAFETY: the program was created above and is destroyed after its last use.
        let compiled = unsafe { result::compile_program(program.0, &options) };
        // SAFETY: as above.
        let log = unsafe { result::get_program_log(program.0) }.unwrap_or_default();
        let log: Vec<u8> = log.into_iter().map(|byte| byte.cast_unsigned()).collect();
        let log = CStr::from_bytes_until_nul(&log).map(|log| log.to_string_lossy());
        let log = log.unwrap_or_default().into_owned();
        compiled.map_err(|error| format!("{error:?}: {log}"))?;
        if target.is_ptx {
            // SAFETY: as above; it compiled.
            let text = unsafe { result::get_ptx(program.0) }.map_err(failed)?;
            return Ok((text.into_iter().map(|byte| byte.cast_unsigned()).collect(), log));
        }
        let mut bytes = 0;
        // SAFETY: as above; the pointer is to an integer that lives until the call returns.
        unsafe { sys::nvrtcGetCUBINSize(program.0, &raw mut bytes) }.result().map_err(failed)?;
        let mut code = vec![0_u8; bytes];
        // SAFETY: as above; the buffer holds as many bytes as the library just said.
        unsafe { sys::nvrtcGetCUBIN(program.0, code.as_mut_ptr().cast::<c_char>()) }
            .result()
            .map_err(failed)?;
        Ok((code, log))
    }
}
