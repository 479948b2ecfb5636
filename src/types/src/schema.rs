//! A tenant's declared metadata keys, fixed at creation.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::datetime::is_datetime;
use crate::{Metadata, limits};

/// The declared type of a metadata key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldType {
    /// Text.
    String,
    /// Any JSON number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// An array of strings.
    Array,
    /// A date, an RFC 3339 time, or epoch seconds.
    Datetime,
}

impl std::fmt::Display for FieldType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::String => "a string",
            Self::Number => "a number",
            Self::Boolean => "a boolean",
            Self::Array => "an array of strings",
            Self::Datetime => "a date (2026-03-01), an RFC 3339 time or epoch seconds",
        })
    }
}

/// One declared key of `tenant_metadata`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaField {
    /// The key, `[A-Za-z][A-Za-z0-9_]{0,63}`.
    pub key: String,
    /// Its type.
    #[serde(rename = "type")]
    pub field_type: FieldType,
    /// Whether the value is included in keyword search and embeddings.
    pub searchable: bool,
    /// Whether filters may use the key.
    pub filterable: bool,
}

/// The declared keys, in declaration order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantSchema {
    /// The fields.
    pub fields: Vec<SchemaField>,
}

/// Reasons to reject a schema, or a value that it governs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// There are too many fields.
    #[error("tenant_metadata_schema has {count} fields; at most {max} are allowed")]
    TooManyFields {
        /// Fields found.
        count: usize,
        /// Fields allowed.
        max: usize,
    },
    /// The key does not match the grammar.
    #[error("schema key {key:?} must match [A-Za-z][A-Za-z0-9_]{{0,63}}")]
    BadKey {
        /// The key.
        key: String,
    },
    /// The key is reserved for the server.
    #[error("schema key {key:?} is reserved")]
    Reserved {
        /// The key.
        key: String,
    },
    /// The key is declared twice.
    #[error("schema key {key:?} is declared twice")]
    Duplicate {
        /// The key.
        key: String,
    },
    /// A value does not have the declared type.
    #[error("tenant_metadata.{key} must be {expected}, as the tenant's schema declares")]
    WrongType {
        /// The key.
        key: String,
        /// The declared type.
        expected: FieldType,
    },
}

const RESERVED_KEYS: &[&str] = &[
    "source_id", "source_title", "source_url", "source_type", "source_collection", "source_owner",
    "source_collaborator", "source_upload_time", "source_last_updated_time", "chunk_id",
    "chunk_uuid", "chunk_content", "document_metadata", "base_metadata", "layout", "description",
    "tenant_metadata", "tenant_id", "sub_tenant_id", "file_id", "version",
];

impl TenantSchema {
    /// Checks the number of fields, the grammar of keys, reserved keys and duplicates.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn validate(&self) -> Result<(), SchemaError> {
        if self.fields.len() > limits::SCHEMA_FIELDS_MAX {
            let max = limits::SCHEMA_FIELDS_MAX;
            return Err(SchemaError::TooManyFields { count: self.fields.len(), max });
        }
        for (position, field) in self.fields.iter().enumerate() {
            let key = field.key.clone();
            if RESERVED_KEYS.contains(&key.as_str()) || key.starts_with(['$', '_']) {
                return Err(SchemaError::Reserved { key });
            }
            let mut characters = key.chars();
            let is_well_formed = characters.next().is_some_and(|c| c.is_ascii_alphabetic())
                && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
                && key.len() <= 64;
            if !is_well_formed {
                return Err(SchemaError::BadKey { key });
            }
            if self.fields[..position].iter().any(|earlier| earlier.key == key) {
                return Err(SchemaError::Duplicate { key });
            }
        }
        Ok(())
    }

    /// Looks up the declaration of `key`.
    pub fn field(&self, key: &str) -> Option<&SchemaField> {
        self.fields.iter().find(|field| field.key == key)
    }

    /// Checks that declared keys carry values of the declared type; `null` counts as absent.
    ///
    /// # Errors
    /// [`SchemaError::WrongType`] for the first value of the wrong type.
    pub fn check_values(&self, tenant_metadata: &Metadata) -> Result<(), SchemaError> {
        for field in &self.fields {
            let Some(value) = tenant_metadata.get(&field.key) else { continue };
            let is_of_type = match field.field_type {
                FieldType::String => value.is_string(),
                FieldType::Number => value.is_number(),
                FieldType::Boolean => value.is_boolean(),
                FieldType::Datetime => value.is_number() || value.as_str().is_some_and(is_datetime),
                FieldType::Array => {
                    value.as_array().is_some_and(|items| items.iter().all(Value::is_string))
                }
            };
            if !is_of_type && !value.is_null() {
                let key = field.key.clone();
                return Err(SchemaError::WrongType { key, expected: field.field_type });
            }
        }
        Ok(())
    }

    /// Joins the searchable values into the text that keyword search and embeddings include.
    pub fn searchable_text(&self, tenant_metadata: &Metadata) -> String {
        let mut parts: Vec<String> = Vec::new();
        for field in self.fields.iter().filter(|field| field.searchable) {
            match tenant_metadata.get(&field.key) {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) => parts.push(text.clone()),
                Some(Value::Array(items)) => {
                    parts.extend(items.iter().filter_map(Value::as_str).map(str::to_owned));
                }
                Some(other) => parts.push(other.to_string()),
            }
        }
        parts.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn field(key: &str, field_type: FieldType) -> SchemaField {
        SchemaField { key: key.into(), field_type, searchable: true, filterable: true }
    }

    #[test]
    fn keys_are_checked() {
        let of = |keys: &[&str]| TenantSchema {
            fields: keys.iter().map(|key| field(key, FieldType::String)).collect(),
        };
        assert_eq!(of(&["a", "B_1"]).validate(), Ok(()));
        assert!(matches!(of(&["source_id"]).validate(), Err(SchemaError::Reserved { .. })));
        assert!(matches!(of(&["_x"]).validate(), Err(SchemaError::Reserved { .. })));
        assert!(matches!(of(&["a", "a"]).validate(), Err(SchemaError::Duplicate { .. })));
        assert!(matches!(of(&["1a"]).validate(), Err(SchemaError::BadKey { .. })));
        assert!(matches!(of(&[""]).validate(), Err(SchemaError::BadKey { .. })));
    }

    #[test]
    fn declared_values_keep_their_type() {
        let fields = vec![
            field("n", FieldType::Number),
            field("tags", FieldType::Array),
            field("at", FieldType::Datetime),
        ];
        let schema = TenantSchema { fields };
        let check = |value: Value| schema.check_values(value.as_object().unwrap());
        assert_eq!(check(json!({"n": 1, "tags": ["a"], "free": {}})), Ok(()));
        assert_eq!(check(json!({"n": null})), Ok(()));
        assert!(check(json!({"n": "1"})).is_err());
        assert!(check(json!({"tags": [1]})).is_err());
        assert_eq!(check(json!({"at": "2026-03-01"})), Ok(()));
        assert_eq!(check(json!({"at": 1_757_402_409.727})), Ok(()));
        let error = check(json!({"at": "yesterday"})).unwrap_err().to_string();
        assert!(error.starts_with("tenant_metadata.at must be a date"), "{error}");
    }
}
