//! Compiles the CUDA kernels if the build machine has nvcc, so that the server need not.
//!
//! Without nvcc nothing is embedded, and the server compiles the kernels itself if it finds NVRTC.
//! Failures here never fail the build; the tests compile the sources too. `NVCC` names the
//! compiler; the default is `CUDA_PATH/bin/nvcc`, or `nvcc` on the path.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Machine code for the server cards of two generations, and PTX for later ones.
const TARGETS: [&str; 3] = [
    "-gencode=arch=compute_80,code=sm_80",
    "-gencode=arch=compute_90a,code=sm_90a",
    "-gencode=arch=compute_80,code=compute_80",
];

/// Sources prepended to each kernel source.
const COMMON: [&str; 2] = ["device.cuh", "product.cuh"];

fn main() {
    for variable in ["NVCC", "CUDA_PATH"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    println!("cargo:rerun-if-changed=../../kernels");
    println!("cargo:rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let mut entries = String::new();
    if env::var_os("CARGO_FEATURE_CUDA").is_some()
        && let Some(nvcc) = find_nvcc()
    {
        for (name, code) in compile_all(&nvcc, &out) {
            entries += &format!("    ({name:?}, include_bytes!({code:?})),\n");
        }
    }
    let text = format!(
        "/// Machine code of the families that the build could compile.\n\
         const EMBEDDED: &[(&str, &[u8])] = &[\n{entries}];\n"
    );
    fs::write(out.join("embedded_kernels.rs"), text).expect("OUT_DIR can be written");
}

fn find_nvcc() -> Option<PathBuf> {
    let named = env::var_os("NVCC").map(PathBuf::from);
    let toolkit = env::var_os("CUDA_PATH").map(|path| PathBuf::from(path).join("bin/nvcc"));
    let candidates = named.into_iter().chain(toolkit).chain([PathBuf::from("nvcc")]);
    let works = |nvcc: &PathBuf| {
        let run = Command::new(nvcc).arg("--version").output();
        run.is_ok_and(|run| run.status.success())
    };
    candidates.into_iter().find(works)
}

/// Compiles every family and returns names and files; empty if one does not compile.
fn compile_all(nvcc: &Path, out: &Path) -> Vec<(String, PathBuf)> {
    let kernels = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let kernels = kernels.join("../../kernels");
    let mut found = Vec::new();
    for path in sources(&kernels) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match compile(nvcc, &kernels, &path, out) {
            Ok(code) => found.push((name, code)),
            Err(reason) => {
                println!("cargo:warning={name}.cu: {reason}; no kernels are embedded");
                return Vec::new();
            }
        }
    }
    found
}

fn sources(kernels: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(kernels).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries.map(|entry| entry.path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "cu"));
    found.sort();
    found
}

fn compile(nvcc: &Path, kernels: &Path, path: &Path, out: &Path) -> Result<PathBuf, String> {
    let read = |path: &Path| fs::read_to_string(path).map_err(|error| error.to_string());
    let common = COMMON.map(|name| read(&kernels.join(name)));
    let [device, product] = common;
    let text = format!("{}\n{}\n{}", device?, product?, read(path)?);
    let name = path.file_name().ok_or("it has no name")?;
    let source = out.join(name);
    let code = source.with_extension("fatbin");
    fs::write(&source, text).map_err(|error| error.to_string())?;
    let run = Command::new(nvcc)
        .args(["-O3", "-std=c++17", "-fatbin", "-Xfatbin", "-compress-all"])
        .args(TARGETS)
        .arg("-o")
        .args([&code, &source])
        .output()
        .map_err(|error| error.to_string())?;
    if run.status.success() {
        return Ok(code);
    }
    let log = String::from_utf8_lossy(&run.stderr);
    Err(log.lines().find(|line| line.contains("error")).unwrap_or("nvcc failed").to_owned())
}
