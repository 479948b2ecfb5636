//! The `lodestone` command.

#![warn(clippy::too_many_lines, clippy::unwrap_used)]

mod cli;

use std::process::ExitCode;

/// Batches of a model allocate and free the same sizes over and over; mimalloc keeps them at hand.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match cli::run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("lodestone: {error}");
            ExitCode::FAILURE
        }
    }
}
