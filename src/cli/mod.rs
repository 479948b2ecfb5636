//! Verbs of the command line: arguments to settings, settings to an engine, an engine to a server.
//!
//! - `arguments`: flags, environment and file, and which of them wins
//! - `serve`: the server, from banner to drain; `verify`: a walk over everything on disk
//! - `doctor`: what a server would run on
//! - `bench`: measures parts of the product on somebody's data

mod arguments;
mod bench;
mod doctor;
mod serve;
mod verify;

use std::error::Error;

use clap::Parser;

use arguments::{Arguments, Verb};

/// Runs the verb that the command line names.
///
/// # Errors
/// One sentence for the operator.
pub fn run() -> Result<(), Box<dyn Error>> {
    match Arguments::parse().verb {
        Verb::Serve(options) => serve::run(&options),
        Verb::Doctor(options) => doctor::run(&options),
        Verb::Verify(options) => verify::run(&options),
        Verb::Bench(bench) => bench::run(&bench),
    }
}
