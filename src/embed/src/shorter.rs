//! Models whose vectors may be truncated (Kusupati et al. 2022, "Matryoshka").
//!
//! Published models declare it in `config.json`: `is_matryoshka`, or the widths that they were
//! trained for in `matryoshka_dimensions`. For any other model, the first components of a vector
//! are not an embedding. A model that should always produce shorter vectors has their width in
//! `truncate_dim` of `config_sentence_transformers.json`, which installing the model writes.

use serde::Deserialize;

use crate::EmbedError;
use crate::files::ModelFiles;
use crate::prompts::PROMPTS;

/// Widths to which the vectors of a model may be truncated. Not part of its fingerprint, because
/// full vectors are unaffected.
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
    /// Parses `config.json`. Truncation is not allowed if the two fields are missing or malformed.
    pub fn parse(config: &[u8]) -> Self {
        serde_json::from_slice(config).unwrap_or_default()
    }

    /// Returns the width to which a model with vectors of width `whole` always truncates them, if
    /// it does.
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

    /// Whether vectors of width `whole` may be truncated to `dimension`.
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
