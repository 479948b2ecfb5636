//! Prompts: text that a model expects before queries or documents.
//!
//! They come from `config_sentence_transformers.json`. A role takes the prompt of its name
//! (`query`; `document`, `passage` or `corpus`), otherwise the one that `default_prompt_name` names
//! unless that belongs to the other role, otherwise none. For models that lack these entries, such
//! as the E5 family, `lodestone model install` writes the file.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::EmbedError;

/// Name of the file that contains the prompts.
pub(super) const PROMPTS: &str = "config_sentence_transformers.json";

/// Purpose for which a text is embedded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The text is a search query.
    Query,
    /// The text is searched, or compared with search results.
    Document,
}

/// The prompts of a model; empty if it has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompts {
    /// Put before queries.
    pub query: String,
    /// Put before documents.
    pub document: String,
}

#[derive(Debug, Deserialize)]
struct RawPrompts {
    #[serde(default)]
    prompts: Option<BTreeMap<String, Option<String>>>,
    default_prompt_name: Option<String>,
}

impl Prompts {
    /// Parses the file, if there is one.
    pub(super) fn parse(bytes: Option<&[u8]>) -> Result<Self, EmbedError> {
        let malformed = |problem| EmbedError::Malformed { file: PROMPTS.to_owned(), problem };
        let Some(bytes) = bytes else { return Ok(Self::default()) };
        let raw: RawPrompts =
            serde_json::from_slice(bytes).map_err(|error| malformed(error.to_string()))?;
        let prompts = raw.prompts.unwrap_or_default();
        let named = |name: &str| prompts.get(name).cloned().flatten();
        let default = raw.default_prompt_name;
        if let Some(name) = default.as_deref().filter(|name| named(name).is_none()) {
            return Err(malformed(format!("default_prompt_name {name:?} is not a prompt")));
        }
        let of_role = |own: &[&str], other: &[&str]| {
            let usual = default.as_deref().filter(|name| !other.contains(name));
            own.iter().copied().chain(usual).find_map(named).unwrap_or_default()
        };
        let (query, document) = (&["query"], &["document", "passage", "corpus"]);
        Ok(Self { query: of_role(query, document), document: of_role(document, query) })
    }

    /// Returns the prompt of a role.
    pub fn of(&self, role: Role) -> &str {
        match role {
            Role::Query => &self.query,
            Role::Document => &self.document,
        }
    }

    /// Returns `text` with the prompt of its role in front.
    pub(super) fn before(&self, role: Role, text: &str) -> String {
        format!("{}{text}", self.of(role))
    }
}
