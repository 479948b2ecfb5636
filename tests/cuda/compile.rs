//! Every kernel compiles for every generation of cards, and is listed wherever it must be.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use lodestone_compute::cuda::Capability;
use lodestone_compute::cuda::modules::FAMILIES;

use crate::emulated;

/// The names of the kernels that a source defines, as listed at its end.
fn defined(text: &str) -> Vec<&str> {
    let listed = text.lines().filter_map(|line| line.trim().strip_prefix("LAUNCHABLE("));
    listed.filter_map(|rest| rest.strip_suffix(')')).collect()
}

/// Threads per block and blocks per multiprocessor for which a kernel is compiled (`KERNEL`).
pub fn launch_bounds(kernel: &str) -> (u32, u32) {
    let head = format!(") __global__ void {kernel}(");
    let bounds = FAMILIES.iter().find_map(|family| {
        let (before, _) = family.source.split_once(&head)?;
        let (_, bounds) = before.rsplit_once("KERNEL(")?;
        let (threads, blocks) = bounds.split_once(", ")?;
        Some((threads.parse().ok()?, blocks.parse().ok()?))
    });
    bounds.unwrap_or_else(|| panic!("the bounds of {kernel}"))
}

/// Goal: the server loads every kernel of every source.
#[test]
fn every_source_and_kernel_is_loaded() {
    for family in FAMILIES {
        let (entries, defined): (BTreeSet<_>, BTreeSet<_>) = (
            family.entries_on(Capability::HOPPER).collect(),
            defined(family.source).into_iter().collect(),
        );
        assert_eq!(entries, defined, "{}.cu", family.name);
    }
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let Ok(files) = fs::read_dir(kernels) else { return };
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let sources: BTreeSet<_> =
        names.filter_map(|name| name.strip_suffix(".cu").map(str::to_owned)).collect();
    let loaded: BTreeSet<_> = FAMILIES.iter().map(|family| family.name.to_owned()).collect();
    assert_eq!(sources, loaded);
}

/// Goal: the emulator has every kernel, with the parameters that its source declares.
#[test]
fn the_emulator_knows_every_kernel() {
    if emulated::device().is_none() {
        let test = "the_emulator_knows_every_kernel";
        return crate::skip(test, "g++ or the emulator's sources are missing", "REQUIRE_EMULATOR");
    }
    for entry in FAMILIES.iter().flat_map(|family| family.entries_on(Capability::HOPPER)) {
        assert!(emulated::parameter_bytes(entry) > 0, "{entry}");
    }
}

#[cfg(feature = "cuda")]
#[allow(unsafe_code)]
mod nvrtc {
    use std::path::{Path, PathBuf};

    use libloading::Library;
    use lodestone_compute::cuda::Capability;
    use lodestone_compute::cuda::compile::Nvrtc;
    use lodestone_compute::cuda::modules::{Compiler, FAMILIES};

    use super::launch_bounds;
    use crate::skip;

    /// Registers of a multiprocessor, and the granularity in which a warp allocates them.
    const REGISTERS: u32 = 65_536;
    const REGISTERS_TOGETHER: u32 = 256;

    /// The libraries of the Python packages in the project's virtual environment, dependencies
    /// first.
    fn packaged() -> Vec<PathBuf> {
        let lib = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv/lib");
        let entries = |folder: PathBuf| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.path())
        };
        let folders = entries(lib).flat_map(|python| {
            let nvidia = python.join("site-packages/nvidia");
            ["cu13/lib", "cuda_nvrtc/lib"].map(|folder| nvidia.join(folder))
        });
        let mut found: Vec<PathBuf> = folders.flat_map(entries).collect();
        let named = |path: &PathBuf, name: &str| {
            path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name))
        };
        found.retain(|path| named(path, "libnvrtc.so.") || named(path, "libnvrtc-builtins.so."));
        found.sort();
        found
    }

    fn compiler() -> Option<Nvrtc> {
        for path in packaged() {
            // SAFETY: NVRTC's initializers may run in any thread. A library that is already loaded
            // is later found by its name alone.
            let library = unsafe { Library::new(path) };
            std::mem::forget(library);
        }
        Nvrtc::find()
    }

    fn compile_all(test: &str, capability: Capability) {
        let Some(compiler) = compiler() else {
            let reason = "NVRTC was not found (scripts/setup --test installs it)";
            return skip(test, reason, "REQUIRE_NVRTC");
        };
        for family in FAMILIES {
            let compiled = compiler.compile_reported(family.name, &family.text(), capability);
            let (code, report) = compiled.unwrap_or_else(|log| panic!("{}.cu: {log}", family.name));
            // The names are in the symbol table of the machine code.
            for entry in family.entries_on(capability) {
                let found = code.windows(entry.len()).any(|bytes| bytes == entry.as_bytes());
                assert!(found, "{entry} is in the code of {}", family.name);
                // The driver compiles PTX, and no register counts are reported here.
                if capability <= Capability::HOPPER {
                    check_registers(entry, &report);
                }
            }
        }
    }

    fn number_before(text: &str, words: &str) -> u32 {
        let number = text.split(words).next().and_then(|text| text.split([' ', '\n']).next_back());
        number.unwrap().parse().unwrap_or_else(|_| panic!("{words} in {text}"))
    }

    /// Checks that a kernel does not spill registers, and that as many of its blocks fit on a
    /// multiprocessor as it is launched for.
    fn check_registers(kernel: &str, report: &str) {
        let head = format!("Compiling entry function '{kernel}'");
        let (_, own) = report.split_once(&head).unwrap_or_else(|| panic!("{kernel}: {report}"));
        let registers = number_before(own, " registers");
        let (threads, blocks) = launch_bounds(kernel);
        let a_warp = (32 * registers).next_multiple_of(REGISTERS_TOGETHER);
        let taken = blocks * threads / 32 * a_warp;
        println!("{kernel}: {registers} registers, {blocks} x {threads} threads take {taken}");
        assert!(taken <= REGISTERS, "{kernel}");
        for spilled in [" bytes stack frame", " bytes spill stores", " bytes spill loads"] {
            assert_eq!(number_before(own, spilled), 0, "{kernel}:{spilled}");
        }
    }

    #[test]
    fn every_kernel_compiles_for_sm_80() {
        compile_all("every_kernel_compiles_for_sm_80", Capability { major: 8, minor: 0 });
    }

    #[test]
    fn every_kernel_compiles_for_sm_90() {
        compile_all("every_kernel_compiles_for_sm_90", Capability { major: 9, minor: 0 });
    }

    /// Goal: a card newer than the compiler gets PTX, which its driver translates.
    #[test]
    fn every_kernel_compiles_for_cards_to_come() {
        compile_all("every_kernel_compiles_for_cards_to_come", Capability { major: 19, minor: 0 });
    }

    #[test]
    fn what_does_not_compile_is_told() {
        let Some(compiler) = compiler() else {
            let reason = "NVRTC was not found (scripts/setup --test installs it)";
            return skip("what_does_not_compile_is_told", reason, "REQUIRE_NVRTC");
        };
        let log = compiler.compile("wrong", "int f( {", Capability { major: 9, minor: 0 });
        assert!(log.unwrap_err().contains("wrong.cu"));
    }
}
