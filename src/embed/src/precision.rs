//! Precision of the model: the operator's setting, and the arithmetic used on a machine.

use std::fmt;
use std::str::FromStr;

/// The operator's setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// The fastest arithmetic whose vectors are those of f32 but for a cosine of .9999: int16 with
    /// AVX-512 VNNI, f32 elsewhere. Both are compared freely, so the fingerprint is the same.
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
    /// 16-bit integers, summed up in 32 bits.
    Int16,
}

impl FromStr for Precision {
    type Err = String;

    /// `auto` or `f32`; `fast` is an earlier name of `auto`.
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
