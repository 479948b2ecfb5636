//! Precision of the model: the operator's setting, and the arithmetic used on a machine.

use std::fmt;
use std::str::FromStr;

/// The operator's setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// 32-bit floating point.
    #[default]
    F32,
    /// Less than that, where the machine is faster at it: int16 with AVX-512 VNNI, f32 elsewhere.
    /// Vectors stay comparable with those of f32, so the fingerprint is the same.
    Fast,
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

    /// `f32` or `fast`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "f32" => Ok(Self::F32),
            "fast" => Ok(Self::Fast),
            _ => Err(format!("{text:?} is not f32 or fast")),
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::Fast => "fast",
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
