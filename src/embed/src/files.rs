//! The files of a model directory, in the layout of transformers and sentence-transformers.
//!
//! ```text
//! config.json, tokenizer.json, model.safetensors         the encoder
//! modules.json                                           the steps after it, in order
//! 1_Pooling/config.json                                  pools token states into one vector
//! 2_Dense/config.json, 2_Dense/model.safetensors         a dense layer, if the model has one
//! config_sentence_transformers.json                      prompts
//! ```
//! Except for the encoder's, all files are optional unless `modules.json` names them; it also
//! determines the names of the folders. Without it, the only step is `1_Pooling`, if present.
//!
//! Sparse models have other steps:
//!
//! ```text
//! 1_SpladePooling/config.json                            maps vocabulary logits to weights
//! router_config.json                                     steps for queries and for documents
//! query_0_SparseStaticEmbedding/tokenizer.json, .../model.safetensors
//!                                                        weights of query tokens
//! idf.json                                               weights, in a directory without steps
//! ```
//! A Router may place the encoder in a folder.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::EmbedError;
use crate::modules::{self, Module};
use crate::prompts::{PROMPTS, Prompts};

/// Path of the pooling configuration if there is no `modules.json`.
pub(super) const POOLING: &str = "1_Pooling/config.json";
/// Path of the weights of query tokens if there is no `modules.json`.
pub(super) const IDF: &str = "idf.json";
/// Names of the files that every model has.
pub const REQUIRED_FILES: [&str; 3] = ["config.json", "tokenizer.json", "model.safetensors"];

/// Paths of a model's files in addition to [`REQUIRED_FILES`], relative to its directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartFiles {
    /// Folder of [`REQUIRED_FILES`]: empty for the directory itself, otherwise ending in `/`.
    pub encoder: String,
    /// Files that `modules.json` refers to.
    pub required: Vec<String>,
    /// Files that are read if they exist.
    pub optional: Vec<String>,
}

/// The contents of a model directory.
#[derive(Debug, Clone)]
pub struct ModelFiles {
    /// Name of the directory, which is the model's name in the API.
    pub name: String,
    /// Folder of the next three files: empty for the directory itself, otherwise ending in `/`.
    pub encoder: String,
    /// `config.json`.
    pub config: Vec<u8>,
    /// `tokenizer.json`.
    pub tokenizer: Vec<u8>,
    /// `model.safetensors`.
    pub weights: Vec<u8>,
    /// The files of sentence-transformers by their path in the directory.
    pub parts: BTreeMap<String, Vec<u8>>,
}

impl ModelFiles {
    /// Reads the files of `directory` through `read`.
    ///
    /// # Errors
    /// [`EmbedError::Unreadable`] naming the file that is missing or refused,
    /// [`EmbedError::Malformed`] for an invalid `modules.json` or Router configuration.
    pub fn read(
        directory: &Path,
        read: &dyn Fn(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<Self, EmbedError> {
        let unreadable = |name: &str, error: io::Error| EmbedError::Unreadable {
            path: directory.join(name).display().to_string(),
            problem: error.to_string(),
        };
        let required =
            |name: &str| read(&directory.join(name)).map_err(|error| unreadable(name, error));
        let optional = |name: &str| match read(&directory.join(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unreadable(name, error)),
        };
        let name = directory
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let mut parts = BTreeMap::new();
        let list = optional(modules::FILE)?;
        let router = match list.as_deref().is_some_and(modules::has_router) {
            true => Some(required(modules::ROUTER)?),
            false => None,
        };
        let files = Self::part_files(list.as_deref(), router.as_deref())?;
        let encoder = files.encoder;
        let own = |name: &str| required(&format!("{encoder}{name}"));
        let config = own("config.json")?;
        for file in files.required {
            let bytes = required(&file)?;
            parts.insert(file, bytes);
        }
        for file in files.optional {
            parts.extend(optional(&file)?.map(|bytes| (file, bytes)));
        }
        let (tokenizer, weights) = (own("tokenizer.json")?, own("model.safetensors")?);
        Ok(Self { name, encoder, config, tokenizer, weights, parts })
    }

    /// Reads the files of `directory` through `read`, except for weights, which stay empty.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_without_weights(
        directory: &Path,
        read: &dyn Fn(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<Self, EmbedError> {
        let is_weights = |path: &Path| path.ends_with(REQUIRED_FILES[2]);
        Self::read(directory, &|path| if is_weights(path) { Ok(Vec::new()) } else { read(path) })
    }

    /// Returns the file that must be read before [`Self::part_files`] can list all files of a model
    /// with this `modules.json`, if there is one.
    pub fn router_file(modules: &[u8]) -> Option<&'static str> {
        modules::has_router(modules).then_some(modules::ROUTER)
    }

    /// Lists the files, in addition to [`REQUIRED_FILES`], of a directory with or without this
    /// `modules.json`. `router` is the contents of [`Self::router_file`].
    ///
    /// # Errors
    /// [`EmbedError::Malformed`] if the list or the Router configuration is invalid.
    pub fn part_files(
        modules: Option<&[u8]>,
        router: Option<&[u8]>,
    ) -> Result<PartFiles, EmbedError> {
        let optional = [PROMPTS, modules::FILE].map(str::to_owned).to_vec();
        let mut encoder = String::new();
        let Some(list) = modules else {
            let of_models = [POOLING, IDF].map(str::to_owned).to_vec();
            let optional = [optional, of_models].concat();
            return Ok(PartFiles { encoder, required: Vec::new(), optional });
        };
        let mut required = Vec::new();
        let steps = match router {
            Some(router) => {
                required.push(modules::ROUTER.to_owned());
                modules::parse_router(router)?.concat()
            }
            None => modules::parse(list)?,
        };
        for step in &steps {
            if let Module::EncoderIn(folder) = step {
                encoder = format!("{folder}/");
            }
            required.extend(step.files());
        }
        required.sort();
        required.dedup();
        Ok(PartFiles { encoder, required, optional })
    }

    /// Parses the prompts of the model.
    ///
    /// # Errors
    /// [`EmbedError::Malformed`] if their file cannot be parsed.
    pub fn prompts(&self) -> Result<Prompts, EmbedError> {
        Prompts::parse(self.parts.get(PROMPTS).map(Vec::as_slice))
    }

    /// Writes prompts, and the width to which vectors are truncated, into their file: settings that
    /// the publisher of a model left out or leaves to the operator. `None` keeps the present value.
    ///
    /// # Errors
    /// [`EmbedError::Malformed`] if the present file cannot be parsed.
    pub fn set(
        &mut self,
        query: Option<&str>,
        document: Option<&str>,
        width: Option<usize>,
    ) -> Result<(), EmbedError> {
        let prompts = self.prompts()?;
        let present = self.parts.get(PROMPTS).map(Vec::as_slice);
        let mut file: Map<String, Value> = match present {
            Some(bytes) => serde_json::from_slice(bytes).map_err(|error| {
                EmbedError::Malformed { file: PROMPTS.to_owned(), problem: error.to_string() }
            })?,
            None => Map::new(),
        };
        file.remove("default_prompt_name");
        let (query, document) =
            (query.unwrap_or(&prompts.query), document.unwrap_or(&prompts.document));
        file.insert("prompts".to_owned(), json!({"query": query, "document": document}));
        if let Some(width) = width {
            file.insert("truncate_dim".to_owned(), width.into());
        }
        let text = format!("{:#}\n", Value::Object(file));
        self.parts.insert(PROMPTS.to_owned(), text.into_bytes());
        Ok(())
    }

    /// Parses the list of steps.
    pub(super) fn modules(&self) -> Result<Vec<Module>, EmbedError> {
        match self.parts.get(modules::FILE) {
            Some(list) => modules::parse(list),
            None => Ok(vec![Module::pooling(POOLING)]),
        }
    }
}
