//! Every kernel compiles for every generation of cards, and is named where it must be.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use lodestone_compute::cuda::Capability;
use lodestone_compute::cuda::modules::FAMILIES;

use crate::emulated;

/// Names of the kernels that a source defines, as it lists them at its foot.
fn defined(text: &str) -> Vec<&str> {
    let listed = text.lines().filter_map(|line| line.trim().strip_prefix("LAUNCHABLE("));
    listed.filter_map(|rest| rest.strip_suffix(')')).collect()
}

/// The server loads every source and every kernel of it.
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

/// The emulator has every kernel, with the parameters that its source declares.
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

    use crate::skip;

    /// The libraries of the Python package in the project's virtual environment, those that others
    /// need first.
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
            // SAFETY: NVRTC's initialisers may run in any thread. A library that is loaded is
            // found again by its name alone.
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
            let compiled = compiler.compile(family.name, &family.text(), capability);
            let code = compiled.unwrap_or_else(|log| panic!("{}.cu: {log}", family.name));
            // Names are in the symbol table of the machine code.
            for entry in family.entries_on(capability) {
                let found = code.windows(entry.len()).any(|bytes| bytes == entry.as_bytes());
                assert!(found, "{entry} is in the code of {}", family.name);
            }
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

    /// A card newer than the compiler gets code that its driver translates.
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
