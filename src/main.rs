//! The `lodestone` command.

#![warn(clippy::too_many_lines, clippy::unwrap_used)]

mod cli;
mod memory;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("lodestone: {error}");
            ExitCode::FAILURE
        }
    }
}
