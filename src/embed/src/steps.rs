//! The steps of a sentence model after its encoder: pooling, dense layers, normalisation.

use crate::EmbedError;
use crate::config::Pooling;
use crate::files::ModelFiles;
use crate::modules::{FILE, Module};

/// The pooling of a sentence model and the steps after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Steps {
    pub pooling: Pooling,
    /// Folders of the dense layers, in order; `None` for a normalisation between them.
    pub dense: Vec<Option<String>>,
}

impl Steps {
    /// Parses the steps: encoder, pooling, then any number of dense layers and normalisations.
    ///
    /// # Errors
    /// [`EmbedError::Unsupported`] naming the first unsupported step.
    pub fn of(files: &ModelFiles) -> Result<Self, EmbedError> {
        let unsupported = |found: String| EmbedError::Unsupported {
            field: FILE,
            found,
            expected: "Transformer, Pooling, then any of Dense and Normalize",
        };
        let modules = files.modules()?;
        let mut pooling = None;
        let mut dense = Vec::new();
        for (at, module) in modules.iter().enumerate() {
            match module {
                Module::Encoder if at == 0 => {}
                Module::Pooling(file) if pooling.is_none() => {
                    pooling = Some(parse_pooling(file, files.parts.get(file).map(Vec::as_slice))?);
                }
                Module::Dense(folder) if pooling.is_some() => dense.push(Some(folder.clone())),
                Module::Normalize if pooling.is_some() => dense.push(None),
                Module::Other(kind) => return Err(unsupported(kind.clone())),
                _ => return Err(unsupported(format!("{module:?} as step {}", at + 1))),
            }
        }
        // Trailing normalisations are redundant, because vectors are always normalised at the end.
        while dense.last() == Some(&None) {
            dense.pop();
        }
        let pooling = pooling.ok_or_else(|| unsupported("no Pooling".to_owned()))?;
        Ok(Self { pooling, dense })
    }
}

/// The pooling modes: the flags of older files, and the names of newer ones.
const MODES: [(&str, &str); 6] = [
    ("pooling_mode_cls_token", "cls"),
    ("pooling_mode_mean_tokens", "mean"),
    ("pooling_mode_max_tokens", "max"),
    ("pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"),
    ("pooling_mode_weightedmean_tokens", "weightedmean"),
    ("pooling_mode_lasttoken", "lasttoken"),
];

/// Parses a pooling configuration. The default, without a file or a mode in it, is the mean.
fn parse_pooling(file: &str, bytes: Option<&[u8]>) -> Result<Pooling, EmbedError> {
    let Some(bytes) = bytes else { return Ok(Pooling::Mean) };
    let raw: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(bytes).map_err(|error| EmbedError::Malformed {
            file: file.to_owned(),
            problem: error.to_string(),
        })?;
    let unsupported = |field, found, expected| EmbedError::Unsupported { field, found, expected };
    if raw.get("include_prompt").is_some_and(|value| value == false) {
        return Err(unsupported("include_prompt", "false".to_owned(), "true"));
    }
    let named = match raw.get("pooling_mode") {
        Some(serde_json::Value::String(one)) => vec![one.as_str()],
        Some(serde_json::Value::Array(several)) => {
            several.iter().map(|one| one.as_str().unwrap_or_default()).collect()
        }
        _ => {
            let is_on = |key: &str| raw.get(key).is_some_and(|value| value == true);
            MODES.iter().filter(|(key, _)| is_on(key)).map(|(_, name)| *name).collect()
        }
    };
    match named[..] {
        [] | ["mean"] => Ok(Pooling::Mean),
        ["cls"] => Ok(Pooling::First),
        _ => Err(unsupported("pooling_mode", named.join(" and "), "one of mean and cls")),
    }
}
