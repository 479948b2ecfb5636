//! Free-form metadata maps and their limits.

use serde_json::Value;

use crate::limits;

/// A metadata map as the client sent it.
pub type Metadata = serde_json::Map<String, Value>;

/// A metadata map that exceeds a limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMetadata {
    /// The map is too large as compact JSON.
    #[error("has {bytes} bytes of JSON; at most {max} are allowed")]
    TooLarge {
        /// Bytes found.
        bytes: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// The map is nested too deeply.
    #[error("is nested deeper than {max} levels")]
    TooDeep {
        /// Levels allowed.
        max: usize,
    },
    /// The keys have too many parts in total.
    #[error("has more than {max} key parts in total (parts are separated by dots)")]
    TooManyParts {
        /// Parts allowed.
        max: usize,
    },
    /// A key is empty or too long.
    #[error("has a key of {chars} characters; 1 to {max} are allowed")]
    BadKey {
        /// Characters of the key.
        chars: usize,
        /// Characters allowed.
        max: usize,
    },
}

/// Sizes of a map that matter to the filter columns, in which every key and value becomes an entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Nesting depth, counting maps, lists and dots in keys.
    pub depth: usize,
    /// Parts of all keys; a key has one more part than it has dots.
    pub key_parts: usize,
    /// Scalar values, including list members.
    pub values: usize,
}

/// Bytes of a value in memory besides its text: the value itself, a place in a table, and the spare
/// room of lists.
const VALUE_BYTES: u64 = 160;

/// Sizes of a map in bytes, as upper estimates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// Memory of the parsed map.
    pub memory: u64,
    /// Length of its JSON text.
    pub json: u64,
}

impl Size {
    /// Estimates the sizes of a map.
    pub fn of(map: &Metadata) -> Self {
        let mut size = Self::default();
        size.add_map(map);
        size
    }

    fn add_map(&mut self, map: &Metadata) {
        self.add_text("");
        for (key, value) in map {
            self.add_text(key);
            self.add(value);
        }
    }

    fn add(&mut self, value: &Value) {
        match value {
            Value::Null | Value::Bool(_) => self.add_text("false"),
            Value::Number(_) => self.add_text("-1.7976931348623157e308"),
            Value::String(text) => self.add_text(text),
            Value::Array(items) => {
                self.add_text("");
                items.iter().for_each(|item| self.add(item));
            }
            Value::Object(map) => self.add_map(map),
        }
    }

    /// Adds an entry with quotes and a separator.
    fn add_text(&mut self, text: &str) {
        let bytes = text.len() as u64;
        self.memory += VALUE_BYTES + bytes;
        self.json += bytes + 3;
    }
}

/// Checks size, depth and keys of a map. A dot in a key nests like a map inside a map.
///
/// # Errors
/// [`InvalidMetadata`] names the exceeded limit.
pub fn check(map: &Metadata) -> Result<(), InvalidMetadata> {
    let counts = check_stored(map)?;
    if counts.depth > limits::METADATA_DEPTH_MAX {
        return Err(InvalidMetadata::TooDeep { max: limits::METADATA_DEPTH_MAX });
    }
    if counts.key_parts > limits::METADATA_KEY_PARTS_MAX {
        return Err(InvalidMetadata::TooManyParts { max: limits::METADATA_KEY_PARTS_MAX });
    }
    Ok(())
}

/// Checks a map that a server has already stored. Release 0.1.0 did not limit dots in keys, so this
/// does not either.
///
/// # Errors
/// Like [`check`], except for dots in keys.
pub fn check_stored(map: &Metadata) -> Result<Counts, InvalidMetadata> {
    let mut counts = Counts::default();
    check_map(map, 1, 0, &mut counts)?;
    let bytes = serde_json::to_vec(map).map_or(usize::MAX, |json| json.len());
    if bytes > limits::METADATA_BYTES_MAX {
        return Err(InvalidMetadata::TooLarge { bytes, max: limits::METADATA_BYTES_MAX });
    }
    Ok(counts)
}

/// Checks a map at nesting `depth`, not counting the `dots` in the keys above it.
fn check_map(
    map: &Metadata,
    depth: usize,
    dots: usize,
    counts: &mut Counts,
) -> Result<(), InvalidMetadata> {
    if depth > limits::METADATA_DEPTH_MAX {
        return Err(InvalidMetadata::TooDeep { max: limits::METADATA_DEPTH_MAX });
    }
    counts.depth = counts.depth.max(depth + dots);
    for (key, value) in map {
        let chars = key.chars().count();
        if chars == 0 || chars > limits::METADATA_KEY_CHARS_MAX {
            return Err(InvalidMetadata::BadKey { chars, max: limits::METADATA_KEY_CHARS_MAX });
        }
        let own = key.matches('.').count();
        counts.depth = counts.depth.max(depth + dots + own);
        counts.key_parts += own + 1;
        check_value(value, depth + 1, dots + own, counts)?;
    }
    Ok(())
}

fn check_value(
    value: &Value,
    depth: usize,
    dots: usize,
    counts: &mut Counts,
) -> Result<(), InvalidMetadata> {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            counts.values += 1;
            Ok(())
        }
        Value::Object(map) => check_map(map, depth, dots, counts),
        Value::Array(items) => {
            if depth > limits::METADATA_DEPTH_MAX {
                return Err(InvalidMetadata::TooDeep { max: limits::METADATA_DEPTH_MAX });
            }
            counts.depth = counts.depth.max(depth + dots);
            items.iter().try_for_each(|item| check_value(item, depth + 1, dots, counts))
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
        assert_eq!(check(&map(json!({"a.b.c.d.e.f.g": [[1]]}))), too_deep);
    }

    #[test]
    fn dots_of_what_is_stored_are_counted_and_not_limited() {
        let dotted = map(json!({"a.b.c.d.e.f.g.h.i": [1, {"j.k": null}]}));
        let counts = Counts { depth: 12, key_parts: 11, values: 2 };
        assert_eq!(check_stored(&dotted), Ok(counts));
        assert!(check_stored(&(0..2049).map(|at| (format!("{at}.a"), json!(1))).collect()).is_ok());
        let mut deep = json!(1);
        for _ in 0..9 {
            deep = json!({ "a": deep });
        }
        assert_eq!(check_stored(&map(deep)), Err(InvalidMetadata::TooDeep { max: 8 }));
    }
}
