//! Free-form metadata maps and their limits (API 5.16).

use serde_json::Value;

use crate::limits;

/// A metadata map as the client sent it.
pub type Metadata = serde_json::Map<String, Value>;

/// Error of a metadata map.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMetadata {
    /// Too many bytes as compact JSON.
    #[error("holds {bytes} bytes of JSON, at most {max} are allowed")]
    TooLarge {
        /// Bytes found.
        bytes: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// Nested too deeply.
    #[error("is nested deeper than {max} levels")]
    TooDeep {
        /// Levels allowed.
        max: usize,
    },
    /// Its keys have too many parts.
    #[error("has keys of more than {max} parts in all, which dots in them separate")]
    TooManyParts {
        /// Parts allowed.
        max: usize,
    },
    /// A key is too long or empty.
    #[error("has a key of {chars} characters, 1 to {max} are allowed")]
    BadKey {
        /// Characters of the key.
        chars: usize,
        /// Characters allowed.
        max: usize,
    },
}

/// Checks size, depth and keys of a map. A dot in a key nests, as a map in a map does.
///
/// # Errors
/// [`InvalidMetadata`] names the limit that is exceeded.
pub fn check(map: &Metadata) -> Result<(), InvalidMetadata> {
    check_map(map, 1, &mut 0)?;
    let bytes = serde_json::to_vec(map).map_or(usize::MAX, |json| json.len());
    if bytes > limits::METADATA_BYTES_MAX {
        return Err(InvalidMetadata::TooLarge { bytes, max: limits::METADATA_BYTES_MAX });
    }
    Ok(())
}

/// `parts` is the number of parts of the keys that were checked before.
fn check_map(map: &Metadata, depth: usize, parts: &mut usize) -> Result<(), InvalidMetadata> {
    if depth > limits::METADATA_DEPTH_MAX {
        return Err(InvalidMetadata::TooDeep { max: limits::METADATA_DEPTH_MAX });
    }
    for (key, value) in map {
        let chars = key.chars().count();
        if chars == 0 || chars > limits::METADATA_KEY_CHARS_MAX {
            return Err(InvalidMetadata::BadKey { chars, max: limits::METADATA_KEY_CHARS_MAX });
        }
        let dots = key.matches('.').count();
        if depth + dots > limits::METADATA_DEPTH_MAX {
            return Err(InvalidMetadata::TooDeep { max: limits::METADATA_DEPTH_MAX });
        }
        *parts += dots + 1;
        if *parts > limits::METADATA_KEY_PARTS_MAX {
            return Err(InvalidMetadata::TooManyParts { max: limits::METADATA_KEY_PARTS_MAX });
        }
        check_value(value, depth + dots + 1, parts)?;
    }
    Ok(())
}

fn check_value(value: &Value, depth: usize, parts: &mut usize) -> Result<(), InvalidMetadata> {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        Value::Object(map) => check_map(map, depth, parts),
        Value::Array(items) => {
            if depth > limits::METADATA_DEPTH_MAX {
                return Err(InvalidMetadata::TooDeep { max: limits::METADATA_DEPTH_MAX });
            }
            items.iter().try_for_each(|item| check_value(item, depth + 1, parts))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: Value) -> Metadata {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn limits_are_named() {
        assert_eq!(check(&map(json!({"a": {"b": [1, "x", null]}}))), Ok(()));
        let long = "k".repeat(129);
        let bad_key = check(&map(json!({ long: 1 })));
        assert_eq!(bad_key, Err(InvalidMetadata::BadKey { chars: 129, max: 128 }));
        let large = check(&map(json!({"a": "x".repeat(70_000)})));
        assert!(matches!(large, Err(InvalidMetadata::TooLarge { .. })));
        let mut deep = json!(1);
        for _ in 0..9 {
            deep = json!({ "a": deep });
        }
        assert_eq!(check(&map(deep)), Err(InvalidMetadata::TooDeep { max: 8 }));
    }

    #[test]
    fn dots_nest_and_the_parts_of_all_keys_are_limited() {
        assert_eq!(check(&map(json!({"a.b.c": {"d.e.f.g.h": 1}}))), Ok(()));
        let too_deep = Err(InvalidMetadata::TooDeep { max: 8 });
        assert_eq!(check(&map(json!({"a.b.c.d.e.f.g.h.i": 1}))), too_deep);
        assert_eq!(check(&map(json!({"a.b.c": [{"d.e.f.g.h": 1}]}))), too_deep);
        let keys = |count: usize| (0..count).map(|at| (format!("{at}.a"), json!(1))).collect();
        assert_eq!(check(&keys(2048)), Ok(()));
        assert_eq!(check(&keys(2049)), Err(InvalidMetadata::TooManyParts { max: 4096 }));
    }
}
