//! `lodestone bench`: measures the product's own parts on somebody's data.
//!
//! - `arrays`: .npy, .fvecs and .ivecs files
//! - `vectors`: build and search of vectors, per setting

mod arrays;
mod vectors;

use std::error::Error;

use crate::cli::arguments::Bench;

/// Runs the bench that the command line names.
pub fn run(bench: &Bench) -> Result<(), Box<dyn Error>> {
    match bench {
        Bench::Vectors(options) => vectors::run(options),
    }
}
