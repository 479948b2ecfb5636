//! The GPU code, tested with and without a GPU.
//!
//! - `compile`: every kernel compiles for both generations of cards, by NVRTC where it is found
//! - `oracle`: answers are the CPU's bit for bit: on the kernels run by an emulator on the CPU
//!   (`emulator/`, which needs g++), and on a real GPU where there is one
//! - `copies`: uploads and downloads; `families`: kernels beside the search, each with its oracle
//! - `builds`: assignment and encoding through the backend
//! - `concurrency`: searches of concurrent callers
//! - `halves`: searches of T2 as f16
//! - `uploads`: segments on their way to the device
//! - `counts`: launches, copies and bytes of each kind of work, held to exact figures, and the
//!   time that a card needs for them at least, beside the targets
//! - `launches`: shapes and bounds of launches, on a device that runs nothing
//! - `failures`: full, faulty and lost devices: the CPU answers, counters rise
//! - `embedding`: the embedding model on a device
//! - `emulated`, `recording`, `cases`, `small_model`: devices, data and models for these
//!
//! Tests that a machine cannot run are skipped, and the skip is printed. `REQUIRE_NVRTC=1`,
//! `REQUIRE_EMULATOR=1`,
//! `REQUIRE_MODEL=1` and `REQUIRE_CUDA=1` turn skips into failures.

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

/// Says that a test cannot run here, or fails it if `variable` insists.
fn skip(test: &str, reason: &str, variable: &str) {
    let is_required = std::env::var(variable).is_ok_and(|value| value == "1");
    assert!(!is_required, "{test}: {reason}, and {variable} is 1");
    eprintln!("SKIPPED {test}: {reason}");
}
