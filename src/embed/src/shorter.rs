//! Models whose vectors may be cut (Kusupati and others 2022, "Matryoshka").
//!
//! Published models say so in `config.json`: `is_matryoshka`, or the widths they were trained for
//! in `matryoshka_dimensions`. Of any other model the first numbers of a vector mean nothing.

use serde::Deserialize;

/// Widths to which the vectors of a model may be cut. No part of its fingerprint: whole vectors
/// are the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Shorter {
    #[serde(default)]
    is_matryoshka: Option<bool>,
    #[serde(default)]
    matryoshka_dimensions: Option<Vec<usize>>,
}

impl Shorter {
    /// Reads `config.json`; anything but the two members in their form allows nothing.
    pub fn parse(config: &[u8]) -> Self {
        serde_json::from_slice(config).unwrap_or_default()
    }

    /// Whether vectors of width `whole` may be cut to `dimension`.
    pub fn allows(&self, dimension: usize, whole: usize) -> bool {
        match &self.matryoshka_dimensions {
            Some(widths) => widths.contains(&dimension),
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
    }
}
