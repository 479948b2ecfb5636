//! Tests of the GPU code, with and without a GPU.
//!
//! - `compile`: every kernel compiles for both generations of cards, with NVRTC if it is installed
//! - `oracle`: results equal the CPU's bit for bit, on the kernels executed by a CPU emulator
//!   (`emulator/`, which requires g++) and on a real GPU if there is one
//! - `copies`: uploads and downloads; `families`: kernels other than searches, each compared with
//!   its CPU counterpart
//! - `builds`: assignment and encoding through the backend
//! - `concurrency`: searches of concurrent callers
//! - `halves`: searches of T2 stored as f16
//! - `uploads`: segments being uploaded to the device
//! - `counts`: exact numbers of launches, copies and bytes of each kind of work, and the minimum
//!   time a card needs for them, compared with the targets
//! - `launches`: shapes and bounds of launches, on a device that executes nothing
//! - `failures`: full, faulty and lost devices: the CPU answers, and counters increase
//! - `embedding`: the embedding model on a device
//! - `emulated`, `recording`, `cases`, `small_model`: devices, data and models for these tests
//!
//! Tests that cannot run on a machine are skipped with a message. `REQUIRE_NVRTC=1`,
//! `REQUIRE_EMULATOR=1`, `REQUIRE_MODEL=1` and `REQUIRE_CUDA=1` turn skips into failures.

mod builds;
mod cases;
mod compile;
mod concurrency;
mod copies;
mod counts;
mod embedding;
mod emulated;
mod failures;
mod families;
mod halves;
mod launches;
mod oracle;
mod recording;
mod small_model;
mod uploads;

/// Reports that a test cannot run here, or fails it if `variable` is 1.
fn skip(test: &str, reason: &str, variable: &str) {
    let is_required = std::env::var(variable).is_ok_and(|value| value == "1");
    assert!(!is_required, "{test}: {reason}, and {variable} is 1");
    eprintln!("SKIPPED {test}: {reason}");
}
