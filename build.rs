//! Has the linker fold functions of the same machine code into one, where rustc brings LLD along and
//! links with it by itself: generic code that differs in its types alone is there many times.

use std::env::{var, var_os};
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = var("TARGET").unwrap_or_default();
    let flags = var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let is_default = var_os("RUSTC_LINKER").is_none() && !flags.contains("link");
    // For development a quick link is worth more.
    let is_release = var("PROFILE").is_ok_and(|profile| profile == "release");
    if target == "x86_64-unknown-linux-gnu" && is_release && is_default && has_lld(&target) {
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    }
}

/// Whether the toolchain has LLD; those of distributions may lack it, and link with the system's.
fn has_lld(target: &str) -> bool {
    let rustc = var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let Ok(asked) = Command::new(rustc).args(["--print", "sysroot"]).output() else { return false };
    let sysroot = String::from_utf8_lossy(&asked.stdout);
    let path = format!("lib/rustlib/{target}/bin/gcc-ld/ld.lld");
    Path::new(sysroot.trim()).join(path).exists()
}
