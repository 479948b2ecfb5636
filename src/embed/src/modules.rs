//! `modules.json` of sentence-transformers: the steps of a model, and their configurations.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::EmbedError;
use crate::config::Pooling;
use crate::files::ModelFiles;

/// Name of the file.
pub(super) const FILE: &str = "modules.json";
/// The file that says which steps a Router has for queries, and which for documents.
pub(super) const ROUTER: &str = "router_config.json";
/// Steps of a model at most; published models have four.
const MODULES_MAX: usize = 8;
const FOLDER_BYTES_MAX: usize = 64;

/// A step of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Module {
    /// The encoder, whose files lie in the directory itself.
    Encoder,
    /// The encoder of a sparse model, whose files lie in a folder.
    EncoderIn(String),
    /// Logits of the vocabulary to a sparse vector; the path of its configuration.
    Splade(String),
    /// Weights of the tokens of queries, in a folder with a tokenizer.
    Static(String),
    /// Token states to one vector; the path of its configuration.
    Pooling(String),
    /// A dense layer; its folder.
    Dense(String),
    /// To length 1.
    Normalize,
    /// A step that this server does not compute, by its name.
    Other(String),
}

impl Module {
    /// The pooling that a file configures.
    pub fn pooling(file: &str) -> Self {
        Self::Pooling(file.to_owned())
    }

    /// Its files, by their path in the model's directory.
    pub fn files(&self) -> Vec<String> {
        match self {
            Self::Pooling(file) | Self::Splade(file) => vec![file.clone()],
            Self::Static(folder) => {
                vec![format!("{folder}/tokenizer.json"), format!("{folder}/model.safetensors")]
            }
            Self::Dense(folder) => {
                vec![format!("{folder}/config.json"), format!("{folder}/model.safetensors")]
            }
            Self::Encoder | Self::EncoderIn(_) | Self::Normalize | Self::Other(_) => Vec::new(),
        }
    }
}

#[derive(Debug, Deserialize)]
struct RawModule {
    path: String,
    #[serde(rename = "type")]
    kind: String,
}

/// The fields of a Router's configuration that matter: the types of its steps by their paths, and
/// the paths of each route.
#[derive(Debug, Deserialize)]
struct RawRouter {
    types: BTreeMap<String, String>,
    structure: BTreeMap<String, Vec<String>>,
}

/// Whether the steps are those of a [`ROUTER`].
pub(super) fn has_router(list: &[u8]) -> bool {
    let raw: Result<Vec<RawModule>, _> = serde_json::from_slice(list);
    raw.is_ok_and(|raw| raw.iter().any(|module| last_part(&module.kind) == "Router"))
}

/// Reads `modules.json`. Steps are told by the last part of their type, since their modules were
/// moved within sentence-transformers.
pub(super) fn parse(list: &[u8]) -> Result<Vec<Module>, EmbedError> {
    let malformed = |problem: String| EmbedError::Malformed { file: FILE.to_owned(), problem };
    let raw: Vec<RawModule> =
        serde_json::from_slice(list).map_err(|error| malformed(error.to_string()))?;
    if raw.len() > MODULES_MAX {
        return Err(malformed(format!("{} modules, more than {MODULES_MAX}", raw.len())));
    }
    raw.into_iter().map(|RawModule { path, kind }| module(FILE, path, kind)).collect()
}

/// Reads the configuration of a Router: the steps for queries, and those for documents.
pub(super) fn parse_router(config: &[u8]) -> Result<[Vec<Module>; 2], EmbedError> {
    let malformed = |problem: String| EmbedError::Malformed { file: ROUTER.to_owned(), problem };
    let raw: RawRouter =
        serde_json::from_slice(config).map_err(|error| malformed(error.to_string()))?;
    let route = |name: &str| -> Result<Vec<Module>, EmbedError> {
        let paths = raw.structure.get(name).filter(|paths| paths.len() <= MODULES_MAX);
        let paths = paths.ok_or_else(|| malformed(format!("it has no route {name:?}")))?;
        let step = |path: &String| {
            let kind = raw.types.get(path);
            let kind = kind.ok_or_else(|| malformed(format!("{path:?} has no type")))?;
            Ok(match module(ROUTER, path.clone(), kind.clone())? {
                Module::Other(_) if is_encoder(kind) => Module::EncoderIn(path.clone()),
                other => other,
            })
        };
        paths.iter().map(step).collect()
    };
    Ok([route("query")?, route("document")?])
}

fn last_part(kind: &str) -> &str {
    kind.rsplit('.').next().unwrap_or_default()
}

fn is_encoder(kind: &str) -> bool {
    matches!(last_part(kind), "Transformer" | "MLMTransformer")
}

/// The step of a type at a path, which `file` names.
fn module(file: &str, path: String, kind: String) -> Result<Module, EmbedError> {
    let is_folder = !path.is_empty()
        && path.len() <= FOLDER_BYTES_MAX
        && path.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let is_encoder = is_encoder(&kind);
    if is_encoder && path.is_empty() {
        return Ok(Module::Encoder);
    }
    let folder = || match is_folder {
        true => Ok(path.clone()),
        false => Err(EmbedError::Malformed {
            file: file.to_owned(),
            problem: format!("{path:?} is not the name of a folder"),
        }),
    };
    Ok(match last_part(&kind) {
        "Pooling" => Module::Pooling(format!("{}/config.json", folder()?)),
        "SpladePooling" => Module::Splade(format!("{}/config.json", folder()?)),
        "SparseStaticEmbedding" => Module::Static(folder()?),
        "Dense" => Module::Dense(folder()?),
        "Normalize" => Module::Normalize,
        _ if is_encoder => Module::Other(format!("Transformer in the folder {}", folder()?)),
        _ => Module::Other(kind),
    })
}

/// The steps behind the pooling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Steps {
    pub pooling: Pooling,
    /// Folders of the dense layers, in order, and `None` for normalising between them.
    pub dense: Vec<Option<String>>,
}

impl Steps {
    /// The steps of a sentence model: encoder, pooling, then any of dense layers and normalising.
    ///
    /// # Errors
    /// [`EmbedError::Unsupported`] names the step that is not computed here.
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
        // A vector is of length 1 at the end anyway.
        while dense.last() == Some(&None) {
            dense.pop();
        }
        let pooling = pooling.ok_or_else(|| unsupported("no Pooling".to_owned()))?;
        Ok(Self { pooling, dense })
    }
}

/// The ways of pooling by their names, and those that older files have for them.
const MODES: [(&str, &str); 6] = [
    ("pooling_mode_cls_token", "cls"),
    ("pooling_mode_mean_tokens", "mean"),
    ("pooling_mode_max_tokens", "max"),
    ("pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"),
    ("pooling_mode_weightedmean_tokens", "weightedmean"),
    ("pooling_mode_lasttoken", "lasttoken"),
];

/// Reads a pooling's configuration; without one it is the mean, and so where it names no way.
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
