//! Models whose vectors may be cut (Kusupati and others 2022, "Matryoshka").
//!
//! Published models say so in `config.json`: `is_matryoshka`, or the widths they were trained for
//! in `matryoshka_dimensions`. Of any other model the first numbers of a vector mean nothing. A
//! model that is to make shorter vectors throughout says to which width in `truncate_dim` of
//! `config_sentence_transformers.json`, which installing it writes.

use serde::Deserialize;

use crate::EmbedError;
use crate::files::ModelFiles;
use crate::prompts::PROMPTS;

/// Widths to which the vectors of a model may be cut. No part of its fingerprint: whole vectors
/// are the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Shorter {
    #[serde(default)]
    is_matryoshka: Option<bool>,
    #[serde(default)]
    matryoshka_dimensions: Option<Vec<usize>>,
}

#[derive(Debug, Deserialize)]
struct RawWidth {
    truncate_dim: Option<usize>,
}

impl Shorter {
    /// Reads `config.json`; anything but the two members in their form allows nothing.
    pub fn parse(config: &[u8]) -> Self {
        serde_json::from_slice(config).unwrap_or_default()
    }

    /// The width to which the vectors of a model, of width `whole`, are cut throughout.
    ///
    /// # Errors
    /// [`EmbedError::Unsupported`] for a width that `config.json` does not allow.
    pub fn width(&self, files: &ModelFiles, whole: usize) -> Result<Option<usize>, EmbedError> {
        let Some(file) = files.parts.get(PROMPTS) else { return Ok(None) };
        let raw: RawWidth = serde_json::from_slice(file).map_err(|error| {
            EmbedError::Malformed { file: PROMPTS.to_owned(), problem: error.to_string() }
        })?;
        match raw.truncate_dim.filter(|width| *width != whole) {
            Some(width) if !self.allows(width, whole) => Err(EmbedError::Unsupported {
                field: "truncate_dim",
                found: format!("{width} of {whole}"),
                expected: "a width of matryoshka_dimensions in config.json, or is_matryoshka there",
            }),
            width => Ok(width),
        }
    }

    /// Whether vectors of width `whole` may be cut to `dimension`.
    pub fn allows(&self, dimension: usize, whole: usize) -> bool {
        match &self.matryoshka_dimensions {
            Some(widths) => widths.contains(&dimension) && (1..whole).contains(&dimension),
            None => self.is_matryoshka == Some(true) && (1..whole).contains(&dimension),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_model_that_says_so_is_cut() {
        let allows =
            |config: &str, dimension| Shorter::parse(config.as_bytes()).allows(dimension, 384);
        assert!(!allows("{\"model_type\": \"bert\"}", 128));
        assert!(!allows("{\"is_matryoshka\": false}", 128));
        assert!(!allows("{\"is_matryoshka\": \"yes\"}", 128));
        assert!(allows("{\"is_matryoshka\": true}", 128));
        assert!(!allows("{\"is_matryoshka\": true}", 385));
        assert!(!allows("{\"is_matryoshka\": true}", 0));
        let listed = "{\"matryoshka_dimensions\": [64, 128], \"is_matryoshka\": true}";
        assert!(allows(listed, 128) && allows(listed, 64) && !allows(listed, 100));
        assert!(!allows("{\"matryoshka_dimensions\": [0, 500]}", 500));
    }
}
