//! Parses `modules.json` of sentence-transformers: the steps of a model and their configurations.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::EmbedError;

/// Name of the file.
pub(super) const FILE: &str = "modules.json";
/// Configuration of a Router, which has separate steps for queries and for documents.
pub(super) const ROUTER: &str = "router_config.json";
/// Maximum number of steps of a model; published models have four.
const MODULES_MAX: usize = 8;
const FOLDER_BYTES_MAX: usize = 64;

/// A step of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Module {
    /// The encoder, with its files in the directory itself.
    Encoder,
    /// The encoder of a sparse model, with its files in this folder.
    EncoderIn(String),
    /// Maps vocabulary logits to a sparse vector; the path of its configuration.
    Splade(String),
    /// Weights of query tokens, in this folder along with a tokenizer.
    Static(String),
    /// Pools token states into one vector; the path of its configuration.
    Pooling(String),
    /// A dense layer; its folder.
    Dense(String),
    /// Normalisation to length 1.
    Normalize,
    /// A step that this server does not support, by its type.
    Other(String),
}

impl Module {
    /// Creates a pooling step configured by `file`.
    pub fn pooling(file: &str) -> Self {
        Self::Pooling(file.to_owned())
    }

    /// Returns the paths of its files within the model directory.
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

/// The fields of interest of a Router's configuration: the types of its steps by path, and the
/// paths of each route.
#[derive(Debug, Deserialize)]
struct RawRouter {
    types: BTreeMap<String, String>,
    structure: BTreeMap<String, Vec<String>>,
}

/// Whether the steps include a Router, configured by [`ROUTER`].
pub(super) fn has_router(list: &[u8]) -> bool {
    let raw: Result<Vec<RawModule>, _> = serde_json::from_slice(list);
    raw.is_ok_and(|raw| raw.iter().any(|module| last_part(&module.kind) == "Router"))
}

/// Parses `modules.json`. Steps are recognised by the last component of their type, because
/// sentence-transformers moved its modules.
pub(super) fn parse(list: &[u8]) -> Result<Vec<Module>, EmbedError> {
    let malformed = |problem: String| EmbedError::Malformed { file: FILE.to_owned(), problem };
    let raw: Vec<RawModule> =
        serde_json::from_slice(list).map_err(|error| malformed(error.to_string()))?;
    if raw.len() > MODULES_MAX {
        return Err(malformed(format!("{} modules, more than {MODULES_MAX}", raw.len())));
    }
    raw.into_iter().map(|RawModule { path, kind }| module(FILE, path, kind)).collect()
}

/// Parses the configuration of a Router: the steps for queries and those for documents.
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

/// Returns the step of type `kind` at `path`. Errors name `file`.
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
