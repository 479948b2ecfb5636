//! `lodestone bench`: measures parts of the product on given data.
//!
//! - `arrays`: .npy, .fvecs and .ivecs files
//! - `vectors`: building and searching a vector segment; `segment`: the segment that it searches;
//!   `pages`: the memory that searches touch
//! - `embed`: embedding of passages
//! - `device`: the GPU's part of a search

mod arrays;
mod device;
mod embed;
mod pages;
mod segment;
mod vectors;

use std::error::Error;
use std::path::Path;

use serde_json::Value;

use crate::cli::arguments::Bench;

/// Runs the benchmark given on the command line.
pub fn run(bench: &Bench) -> Result<(), Box<dyn Error>> {
    match bench {
        Bench::Device(options) => device::run(options),
        Bench::Embed(options) => embed::run(options),
        Bench::Vectors(options) => vectors::run(options),
    }
}

/// Writes a report to a file, or to standard output.
fn report(report: &Value, path: Option<&Path>) -> Result<(), Box<dyn Error>> {
    let text = serde_json::to_string_pretty(report)?;
    match path {
        Some(path) => std::fs::write(path, text)?,
        None => println!("{text}"),
    }
    Ok(())
}

/// Returns the CPU time of the process so far, in seconds with a resolution of 1/100.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
