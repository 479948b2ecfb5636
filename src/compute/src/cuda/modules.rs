//! Kernel sources, and the origin of their machine code.
//!
//! ```text
//! kernels/*.cuh + kernels/<family>.cu -+- build.rs with nvcc: embedded, for sm_80 and newer
//!                                      '- NVRTC at start-up, for the device present
//!                                         '- cached under (family, capability, compiler, text)
//! ```
//! The sources need no header, so NVRTC needs no toolkit. Machine code is preferred to PTX: a
//! driver translates PTX only if it is as recent as the compiler, and takes its time over it.

use std::fmt;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::cuda::{Capability, DeviceError};

include!(concat!(env!("OUT_DIR"), "/embedded_kernels.rs"));

/// Bytes of the checksum that precedes cached machine code.
const CHECKSUM_BYTES: usize = 8;

/// A source file and its kernels.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// Name of the file without its extension.
    pub name: &'static str,
    /// Contents of the file.
    pub source: &'static str,
    /// Kernels available on every card.
    pub entries: &'static [&'static str],
}

/// Kernels available on Hopper only (compute capability 9.0), by family.
pub const HOPPER_ENTRIES: [(&str, &[&str]); 2] = [
    (
        "batch",
        &[
            "batch_sample_by_warpgroup_256", "batch_collect_by_warpgroup_256",
            "batch_sample_by_warpgroup_128", "batch_collect_by_warpgroup_128",
        ],
    ),
    ("embed_product", &["embed_product_128x128_by_warpgroups"]),
];

/// Sources prepended to those of every family: wrappers for all intrinsics, and the tile product.
const COMMON_SOURCES: [(&str, &str); 2] = [
    ("device.cuh", include_str!("../../../../kernels/device.cuh")),
    ("product.cuh", include_str!("../../../../kernels/product.cuh")),
];

macro_rules! families {
    ($($name:literal: [$($entry:literal),* $(,)?]),* $(,)?) => {
        /// All families of kernels.
        pub const FAMILIES: &[Family] = &[$(Family {
            name: $name,
            source: include_str!(concat!("../../../../kernels/", $name, ".cu")),
            entries: &[$($entry),*],
        }),*];
    };
}

families! {
    "assign": [
        "assign_256", "assign_128", "assign_64", "assign_32", "assign_next_128", "assign_next_32",
    ],
    "scan": [
        "scan_sample_8", "scan_sample_16", "scan_collect_8", "scan_collect_16",
        "scan_sample_f16_8", "scan_sample_f16_16", "scan_collect_f16_8", "scan_collect_f16_16",
    ],
    "batch": [
        "batch_sample_256", "batch_sample_128", "batch_sample_64", "batch_sample_32",
        "batch_collect_256", "batch_collect_128", "batch_collect_64", "batch_collect_32",
        "batch_sample_f16_256", "batch_sample_f16_128", "batch_sample_f16_64",
        "batch_sample_f16_32", "batch_collect_f16_256", "batch_collect_f16_128",
        "batch_collect_f16_64", "batch_collect_f16_32",
    ],
    "embed_attention": ["embed_attention_32", "embed_attention_64"],
    "embed_norm": ["embed_gather", "embed_norm"],
    "embed_pool": ["embed_pool"],
    "embed_product": [
        "embed_product_128x128", "embed_product_128x64", "embed_product_64x64",
    ],
    "encode": ["encode_one_bit"],
    "gather": ["mask_count", "mask_list"],
    "select": [
        "select_threshold", "select_candidates", "select_candidates_halves",
    ],
}

impl Family {
    /// Returns the kernels available on a card.
    pub fn entries_on(&self, capability: Capability) -> impl Iterator<Item = &'static str> {
        let is_own = |(name, _): &&(&str, _)| *name == self.name;
        let is_hopper = capability == Capability::HOPPER;
        let more = HOPPER_ENTRIES.iter().find(is_own).filter(|_| is_hopper);
        self.entries.iter().chain(more.map_or(&[][..], |(_, entries)| entries)).copied()
    }

    /// Returns the complete source for a compiler.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let own = (format!("{}.cu", self.name), self.source);
        let common = COMMON_SOURCES.map(|(name, source)| (name.to_owned(), source));
        for (name, source) in common.into_iter().chain([own]) {
            text += &format!("#line 1 \"{name}\"\n{source}\n");
        }
        text
    }

    /// Returns the embedded machine code, if the build had nvcc.
    pub fn embedded(&self) -> Option<&'static [u8]> {
        EMBEDDED.iter().find(|(name, _)| *name == self.name).map(|(_, code)| *code)
    }
}

/// Cache of machine code that persists between starts. Losing it costs a few seconds.
pub trait CodeCache: fmt::Debug + Send + Sync {
    /// Returns the code stored under `name`, a file name of letters, digits, dots and dashes.
    fn read(&self, name: &str) -> Option<Vec<u8>>;

    /// Stores `code`, if possible.
    fn write(&self, name: &str, code: &[u8]);
}

/// A cache in memory, for tests.
#[cfg(any(test, feature = "testing"))]
#[derive(Debug, Default)]
pub struct MemoryCache(pub parking_lot::Mutex<std::collections::BTreeMap<String, Vec<u8>>>);

#[cfg(any(test, feature = "testing"))]
impl CodeCache for MemoryCache {
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        self.0.lock().get(name).cloned()
    }

    fn write(&self, name: &str, code: &[u8]) {
        self.0.lock().insert(name.to_owned(), code.to_vec());
    }
}

/// A compiler from source to machine code.
pub trait Compiler: fmt::Debug + Sync {
    /// Returns name and version; different versions produce different code.
    fn version(&self) -> String;

    /// Compiles `text` to machine code for devices of `capability`.
    ///
    /// # Errors
    /// The compiler's message about the source.
    fn compile(&self, name: &str, text: &str, capability: Capability) -> Result<Vec<u8>, String>;
}

/// Returns the code of a family from the cache, otherwise from the compiler.
///
/// # Errors
/// [`DeviceError::Kernel`] if there is no compiler or it refuses the source.
pub fn compiled(
    family: &Family,
    capability: Capability,
    compiler: Option<&dyn Compiler>,
    cache: &dyn CodeCache,
) -> Result<Vec<u8>, DeviceError> {
    let failed = |reason: String| DeviceError::Kernel { family: family.name, reason };
    let compiler = compiler.ok_or_else(|| failed("no compiler (NVRTC) was found".to_owned()))?;
    let text = family.text();
    let name = cache_name(family.name, &text, capability, &compiler.version());
    if let Some(code) = cache.read(&name).and_then(|kept| unsealed(&kept)) {
        return Ok(code);
    }
    let code = compiler.compile(family.name, &text, capability).map_err(failed)?;
    cache.write(&name, &sealed(&code));
    Ok(code)
}

fn cache_name(family: &str, text: &str, capability: Capability, version: &str) -> String {
    let hash = xxh3_128(format!("{version}\0{text}").as_bytes());
    format!("{family}-sm{capability}-{hash:032x}.bin")
}

fn sealed(code: &[u8]) -> Vec<u8> {
    [&xxh3_64(code).to_le_bytes(), code].concat()
}

/// Returns the code, unless its checksum is wrong.
fn unsealed(kept: &[u8]) -> Option<Vec<u8>> {
    let (checksum, code) = kept.split_first_chunk::<CHECKSUM_BYTES>()?;
    (u64::from_le_bytes(*checksum) == xxh3_64(code)).then(|| code.to_vec())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Debug, Default)]
    struct Counting {
        runs: AtomicUsize,
        version: &'static str,
    }

    impl Compiler for Counting {
        fn version(&self) -> String {
            self.version.to_owned()
        }

        fn compile(&self, _: &str, text: &str, _: Capability) -> Result<Vec<u8>, String> {
            self.runs.fetch_add(1, Ordering::SeqCst);
            match text.contains("wrong") {
                true => Err("line 1: wrong".to_owned()),
                false => Ok(text.as_bytes()[..4].to_vec()),
            }
        }
    }

    const FAMILY: Family = Family { name: "scan", source: "kernel", entries: &["scan"] };
    const SM_80: Capability = Capability { major: 8, minor: 0 };
    const SM_90: Capability = Capability { major: 9, minor: 0 };

    #[test]
    fn code_is_compiled_once_for_each_text_capability_and_compiler() {
        let (shelf, compiler) =
            (MemoryCache::default(), Counting { version: "1", ..Counting::default() });
        let other = Family { source: "other kernel", ..FAMILY };
        let newer = Counting { version: "2", ..Counting::default() };
        for _ in 0..2 {
            for (family, capability) in [(FAMILY, SM_80), (FAMILY, SM_90), (other, SM_80)] {
                assert!(compiled(&family, capability, Some(&compiler), &shelf).is_ok());
            }
            assert!(compiled(&FAMILY, SM_80, Some(&newer), &shelf).is_ok());
        }
        assert_eq!(compiler.runs.load(Ordering::SeqCst), 3);
        assert_eq!(newer.runs.load(Ordering::SeqCst), 1);
        assert_eq!(shelf.0.lock().len(), 4);
    }

    #[test]
    fn damaged_code_is_compiled_again() {
        let (shelf, compiler) = (MemoryCache::default(), Counting::default());
        let code = compiled(&FAMILY, SM_90, Some(&compiler), &shelf).unwrap();
        for kept in shelf.0.lock().values_mut() {
            *kept.last_mut().unwrap() ^= 1;
        }
        assert_eq!(compiled(&FAMILY, SM_90, Some(&compiler), &shelf), Ok(code.clone()));
        shelf.0.lock().values_mut().for_each(|kept| kept.truncate(3));
        assert_eq!(compiled(&FAMILY, SM_90, Some(&compiler), &shelf), Ok(code));
        assert_eq!(compiler.runs.load(Ordering::SeqCst), 3);
    }

    #[test]
    fn what_does_not_compile_is_an_error_that_names_the_file() {
        let wrong = Family { source: "wrong", ..FAMILY };
        for compiler in [None, Some(&Counting::default() as &dyn Compiler)] {
            let error = compiled(&wrong, SM_90, compiler, &MemoryCache::default()).unwrap_err();
            assert!(error.to_string().contains("scan"), "{error}");
        }
    }
}
