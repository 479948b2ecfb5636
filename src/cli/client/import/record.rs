//! A record of another product, converted to a record that this server can store.

use lodestone_types::{Metadata, SourceId, limits, metadata};
use serde_json::{Value, json};

/// A record that can be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Id of the source or vector.
    pub id: SourceId,
    /// Text of the record.
    pub text: Option<String>,
    /// Components of the vector.
    pub vector: Option<Vec<Value>>,
    /// Metadata of the record.
    pub metadata: Metadata,
}

impl Record {
    /// Creates a record after checking the server's rules. A text that accompanies a vector becomes
    /// the member `text` of its metadata.
    ///
    /// # Errors
    /// Describes the violated rule.
    pub fn new(
        id: &str,
        text: Option<String>,
        vector: Option<Vec<Value>>,
        mut metadata: Metadata,
    ) -> Result<Self, String> {
        let id = SourceId::parse(id).map_err(|error| error.to_string())?;
        if let Some(vector) = &vector {
            check_vector(vector)?;
            if let Some(text) = &text
                && *metadata.entry("text").or_insert_with(|| json!(text)) != *text
            {
                return Err(
                    "a text, but also a different one under text in the metadata".to_owned()
                );
            }
        }
        metadata::check(&metadata).map_err(|error| format!("metadata {error}"))?;
        Ok(Self { id, text, vector, metadata })
    }
}

fn check_vector(vector: &[Value]) -> Result<(), String> {
    let max = limits::VECTOR_DIMENSION_MAX;
    if vector.is_empty() || vector.len() > max {
        return Err(format!("a vector of {} dimensions; 1 to {max} are allowed", vector.len()));
    }
    let is_fine = |value: &Value| value.as_f64().is_some_and(|value| (value as f32).is_finite());
    match vector.iter().all(is_fine) {
        true => Ok(()),
        false => Err("a vector with a value outside the range of 32-bit floats".to_owned()),
    }
}

/// Takes the value at a JSON pointer out of a response; null if there is none.
pub fn taken(answer: &mut Value, place: &str) -> Value {
    answer.pointer_mut(place).map_or(Value::Null, Value::take)
}

/// Converts an id to text.
pub fn id_text(id: &Value) -> Option<String> {
    match id {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) if number.is_u64() || number.is_i64() => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_the_server_are_checked() {
        let record = |id: &str, vector: Value| {
            let vector = serde_json::from_value(vector).unwrap();
            Record::new(id, Some("t".into()), vector, Metadata::new())
        };
        let fine = record("a", json!([1, 0.5])).unwrap();
        assert_eq!(Value::Object(fine.metadata), json!({"text": "t"}));
        assert!(record("a", Value::Null).unwrap().metadata.is_empty());
        let long = Some("x".repeat(limits::METADATA_BYTES_MAX));
        assert!(Record::new("a", long.clone(), None, Metadata::new()).is_ok());
        assert!(Record::new("a", long, Some(vec![json!(1)]), Metadata::new()).is_err());
        for (id, vector) in
            [("", json!([1])), ("a", json!([])), ("a", json!([1e300])), ("a", json!(["1"]))]
        {
            assert!(record(id, vector).is_err());
        }
        assert_eq!(
            id_text(&json!(18_446_744_073_709_551_615_u64)).unwrap(),
            "18446744073709551615"
        );
        assert_eq!(id_text(&json!(1.5)), None);
        let mut answer = json!({"a": {"b": [1, 2]}});
        assert_eq!(taken(&mut answer, "/a/b/1"), json!(2));
        assert_eq!(taken(&mut answer, "/a/b/1/c"), Value::Null);
        assert_eq!(taken(&mut json!([]), "/a"), Value::Null);
    }
}
