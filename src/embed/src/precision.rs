//! Numeric precision of the model: the operator's setting, and the arithmetic that results from it.

use std::fmt;
use std::str::FromStr;

/// The operator's choice of precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// The fastest arithmetic whose vectors have a cosine of at least .9999 with those of f32:
    /// int16 with AVX-512 VNNI, otherwise f32. Vectors of both are comparable, so the fingerprint
    /// is the same.
    #[default]
    Auto,
    /// 32-bit floating point everywhere.
    F32,
}

/// Arithmetic of the encoder's dense layers on the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// 32-bit floating point.
    F32,
    /// 16-bit integers with 32-bit sums.
    Int16,
}

impl FromStr for Precision {
    type Err = String;

    /// Parses `auto` or `f32`; `fast` is a former name of `auto`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "f32" => Ok(Self::F32),
            "auto" | "fast" => Ok(Self::Auto),
            _ => Err(format!("{text:?} is not auto or f32")),
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::Auto => "auto",
        })
    }
}

impl fmt::Display for Arithmetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::Int16 => "int16",
        })
    }
}
