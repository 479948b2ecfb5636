//! Attributes of files and metadata of vector stores: flat maps of few, small values.

use serde_json::{Value, json};

use crate::error::{ApiError, Location};
use crate::request::{Field, Fields, Kind};
use lodestone_types::{Metadata, limits};

/// Upper bound on the size of the largest valid map, with every character escaped and every number
/// long.
const BYTES_MAX: usize = 1 << 20;
/// Maximum number of values to parse: more than are valid, so that [`read`] can explain the fault.
const VALUES_MAX: usize = 1000;

/// The kind of a flat map.
pub(super) const FLAT: Kind = Kind::Json {
    values_max: VALUES_MAX,
    bytes_max: BYTES_MAX,
    schema: || {
        let (key, text) = (limits::ATTRIBUTE_KEY_CHARS_MAX, limits::ATTRIBUTE_CHARS_MAX);
        let value = json!({"anyOf": [
            {"type": "string", "maxLength": text}, {"type": "number"}, {"type": "boolean"},
        ]});
        json!({
            "type": "object", "maxProperties": limits::ATTRIBUTES_MAX,
            "propertyNames": {"minLength": 1, "maxLength": key}, "additionalProperties": value,
        })
    },
};

/// Reads the map of a field of kind [`FLAT`]: either of texts, numbers and booleans, or of texts
/// only.
pub(super) fn read(
    fields: &mut Fields,
    field: &Field,
    is_text_only: bool,
) -> Result<Option<Metadata>, ApiError> {
    let wrong =
        |problem: &str| Err(ApiError::field("invalid_value", Location::Body, field.name, problem));
    let map = match fields.json(field)? {
        None => return Ok(None),
        Some(Value::Object(map)) => map,
        Some(_) => return wrong("must be a JSON object"),
    };
    if map.len() > limits::ATTRIBUTES_MAX {
        return wrong(&format!("must have at most {} entries", limits::ATTRIBUTES_MAX));
    }
    for (key, value) in &map {
        let max = limits::ATTRIBUTE_KEY_CHARS_MAX;
        if key.is_empty() || key.chars().count() > max {
            return wrong(&format!("has a key that is not 1 to {max} characters long"));
        }
        let problem = match value {
            Value::String(text) if text.chars().count() <= limits::ATTRIBUTE_CHARS_MAX => continue,
            Value::String(_) => {
                format!("is longer than {} characters", limits::ATTRIBUTE_CHARS_MAX)
            }
            Value::Number(_) | Value::Bool(_) if !is_text_only => continue,
            _ if is_text_only => "is not a string".to_owned(),
            _ => "is not a string, a number or a boolean".to_owned(),
        };
        return wrong(&format!("has a value that {problem}: {key}"));
    }
    Ok(Some(map))
}

/// Returns the attributes among a document's metadata: its flat values.
pub fn of_document(metadata: &Metadata) -> Metadata {
    let flat = metadata
        .iter()
        .filter(|(_, value)| matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_)));
    flat.map(|(key, value)| (key.clone(), value.clone())).collect()
}
