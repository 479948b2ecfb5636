//! The files of a model directory, as transformers and sentence-transformers lay them out.
//!
//! ```text
//! config.json, tokenizer.json, model.safetensors         the encoder
//! modules.json                                           the steps behind it, in their order
//! 1_Pooling/config.json                                  token states to one vector
//! 2_Dense/config.json, 2_Dense/model.safetensors         a dense layer, in models that have one
//! config_sentence_transformers.json                      prompts
//! ```
//! The last three are read where they are; the folders' names are those that `modules.json` gives.
//! Without it there are no steps but `1_Pooling`, if that is there.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::EmbedError;
use crate::modules::{self, Module};
use crate::prompts::Prompts;

/// Name of the file with the prompts.
pub(super) const PROMPTS: &str = "config_sentence_transformers.json";
/// Configuration of the pooling where no `modules.json` names another.
pub(super) const POOLING: &str = "1_Pooling/config.json";
/// Names of the files that every model has.
pub const REQUIRED_FILES: [&str; 3] = ["config.json", "tokenizer.json", "model.safetensors"];

/// Files of a model beside [`REQUIRED_FILES`], by their path in its directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartFiles {
    /// Those that its `modules.json` names.
    pub required: Vec<String>,
    /// Those that are read where they are.
    pub optional: Vec<String>,
}

/// The bytes of a model directory.
#[derive(Debug, Clone)]
pub struct ModelFiles {
    /// The directory's name, which is the model's name on the wire.
    pub name: String,
    /// `config.json`.
    pub config: Vec<u8>,
    /// `tokenizer.json`.
    pub tokenizer: Vec<u8>,
    /// `model.safetensors`.
    pub weights: Vec<u8>,
    /// The files of sentence-transformers, by their path in the directory.
    pub parts: BTreeMap<String, Vec<u8>>,
}

impl ModelFiles {
    /// Reads the files of `directory` through `read`.
    ///
    /// # Errors
    /// [`EmbedError::Unreadable`] names the file that is missing or refused,
    /// [`EmbedError::Malformed`] a `modules.json` that names no files.
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
        let config = required("config.json")?;
        let mut parts = BTreeMap::new();
        let list = optional(modules::FILE)?;
        let files = Self::part_files(list.as_deref())?;
        for file in files.required {
            let bytes = required(&file)?;
            parts.insert(file, bytes);
        }
        for file in files.optional {
            parts.extend(optional(&file)?.map(|bytes| (file, bytes)));
        }
        let tokenizer = required("tokenizer.json")?;
        Ok(Self { name, config, tokenizer, weights: required("model.safetensors")?, parts })
    }

    /// The files that a directory with this `modules.json`, or without one, has beside
    /// [`REQUIRED_FILES`].
    ///
    /// # Errors
    /// [`EmbedError::Malformed`] where the list names no files.
    pub fn part_files(modules: Option<&[u8]>) -> Result<PartFiles, EmbedError> {
        let optional = [PROMPTS, modules::FILE].map(str::to_owned).to_vec();
        let Some(list) = modules else {
            let optional = [optional, vec![POOLING.to_owned()]].concat();
            return Ok(PartFiles { required: Vec::new(), optional });
        };
        let required = modules::parse(list)?.iter().flat_map(Module::files).collect();
        Ok(PartFiles { required, optional })
    }

    /// The prompts that the files name.
    ///
    /// # Errors
    /// [`EmbedError::Malformed`] where their file cannot be read.
    pub fn prompts(&self) -> Result<Prompts, EmbedError> {
        Prompts::parse(self.parts.get(PROMPTS).map(Vec::as_slice))
    }

    /// Writes prompts, and the width to which vectors are cut, into the file for them: what the
    /// publisher of a model left out, or leaves to the operator. Absent ones stay as they are.
    ///
    /// # Errors
    /// [`EmbedError::Malformed`] where the present file cannot be read.
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

    /// The steps behind the encoder.
    pub(super) fn modules(&self) -> Result<Vec<Module>, EmbedError> {
        match self.parts.get(modules::FILE) {
            Some(list) => modules::parse(list),
            None => Ok(vec![Module::pooling(POOLING)]),
        }
    }
}
