//! Values of settings that are written in a form of their own.

use std::net::SocketAddr;
use std::time::Duration;

use clap::ValueEnum;

/// Device for vector computations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum DeviceChoice {
    /// A GPU if one is usable, otherwise the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// A GPU; the server refuses to start without one.
    Cuda,
}

/// Request rate limit: a sustained rate and a burst size (a token bucket).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimit {
    /// Requests per second, above 0.
    pub per_second: f64,
    /// Burst size in requests, at least 1.
    pub burst: f64,
}

impl std::str::FromStr for RateLimit {
    type Err = String;

    /// Parses `R` or `R/BURST`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not R or R/BURST, for example 20 or 20/100");
        let number = |part: &str| part.trim().parse::<f64>().map_err(|_| wrong());
        let (per_second, burst) = match text.split_once('/') {
            Some((rate, burst)) => (number(rate)?, number(burst)?),
            None => (number(text)?, number(text)?.max(1.0)),
        };
        match per_second > 0.0 && per_second.is_finite() && burst >= 1.0 && burst.is_finite() {
            true => Ok(Self { per_second, burst }),
            false => Err(wrong()),
        }
    }
}

/// Parses an address and a port. `localhost` means 127.0.0.1, which clients on the same machine
/// try.
///
/// # Errors
/// A text that is neither.
pub(super) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let numeric = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    let wrong = |_| format!("{text:?} is not an address and port, for example 127.0.0.1:8080");
    numeric.parse().map_err(wrong)
}

/// Parses a number of bytes with or without a unit: `8GiB`, `500MB`, `1073741824`.
///
/// # Errors
/// A text that is not a number of bytes; the message gives an example.
pub(super) fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a number of bytes, for example 8GiB or 500MB");
    let digits = text.trim().find(|c: char| !c.is_ascii_digit()).unwrap_or(text.trim().len());
    let (number, unit) = text.trim().split_at(digits);
    let unit: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(unit).ok_or_else(wrong)
}

/// Parses seconds, with or without a fraction, into a duration above 0.
///
/// # Errors
/// A text that is not such a time.
pub(super) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.trim().parse::<f64>().ok();
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let wrong = || format!("{text:?} is not a number of seconds above 0, for example 60 or 2.5");
    time.filter(|time| !time.is_zero()).ok_or_else(wrong)
}
