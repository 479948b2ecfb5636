//! A JSON body into its members: vectors by the fast way, everything else as a tree.
//!
//! Nesting is bounded by serde_json (128 levels). Of a repeated key the last wins.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::{Map, Value};

use crate::error::{ApiError, Location};
use crate::request::field::Field;
use crate::request::vectors::{ReasonCell, Vectors, VectorsSeed};

/// The members of a JSON object.
#[derive(Debug, Clone, Default)]
pub struct JsonBody {
    /// Members other than vectors.
    pub members: Map<String, Value>,
    /// The one member that holds vectors, if the operation has one and it is there.
    pub vectors: Option<Vectors>,
}

/// Parses a body. Blank bytes are an object without members.
///
/// # Errors
/// 400 `malformed_body` for what is not a JSON object, else the reason that the vectors gave.
pub fn parse(bytes: &[u8], fields: &[&Field]) -> Result<JsonBody, ApiError> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(JsonBody::default());
    }
    if let Some(field) = fields.iter().find(|field| field.is_whole) {
        return parse_list(bytes, field);
    }
    let vectors_field = fields.iter().find(|field| field.kind.is_vectors()).copied();
    let (reason, is_in_vectors) = (ReasonCell::new(None), Cell::new(false));
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let seed = BodySeed { vectors_field, reason: &reason, is_in_vectors: &is_in_vectors };
    let parsed = seed.deserialize(&mut deserializer).and_then(|body| {
        deserializer.end()?;
        Ok(body)
    });
    parsed.map_err(|error| {
        let is_of_vectors =
            is_in_vectors.get() && (error.classify() == Category::Data || is_out_of_range(&error));
        match vectors_field {
            Some(field) if is_of_vectors => {
                let reason = reason.get().unwrap_or("invalid_value");
                let problem = format!("is refused: {error}");
                ApiError::field(reason, Location::Body, field.name, &problem)
            }
            _ => {
                let message = format!("the body is not a valid JSON object: {error}");
                ApiError::invalid("malformed_body", message)
            }
        }
    })
}

/// A body that is a list; its one member is named after the field.
fn parse_list(bytes: &[u8], field: &Field) -> Result<JsonBody, ApiError> {
    let items: Vec<Value> = serde_json::from_slice(bytes).map_err(|error| {
        ApiError::invalid("malformed_body", format!("the body is not a valid JSON array: {error}"))
    })?;
    let members = Map::from_iter([(field.name.to_owned(), Value::Array(items))]);
    Ok(JsonBody { members, vectors: None })
}

/// serde_json gives a number beyond f64 no code of its own.
fn is_out_of_range(error: &serde_json::Error) -> bool {
    error.classify() == Category::Syntax && error.to_string().starts_with("number out of range")
}

struct BodySeed<'a> {
    vectors_field: Option<&'a Field>,
    reason: &'a ReasonCell,
    is_in_vectors: &'a Cell<bool>,
}

impl<'de> DeserializeSeed<'de> for BodySeed<'_> {
    type Value = JsonBody;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<JsonBody, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for BodySeed<'_> {
    type Value = JsonBody;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonBody, A::Error> {
        let mut body = JsonBody::default();
        while let Some(name) = map.next_key::<String>()? {
            match self.vectors_field {
                Some(field) if field.name == name => {
                    let seed = VectorsSeed { kind: field.kind, reason: self.reason };
                    self.is_in_vectors.set(true);
                    body.vectors = map.next_value_seed(seed)?;
                    self.is_in_vectors.set(false);
                }
                _ => {
                    body.members.insert(name, map.next_value()?);
                }
            }
        }
        Ok(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::field::Kind;
    use serde_json::json;

    static ROWS: Field = Field::body("embeddings", Kind::Rows, "rows");
    static QUERIES: Field = Field::body("embeddings", Kind::RowOrRows, "queries");
    static NAMED: Field = Field::body("embeddings", Kind::NamedRows, "named");

    fn vectors(fields: &[&Field], text: &str) -> Result<Vectors, &'static str> {
        let body = parse(text.as_bytes(), fields).map_err(|error| error.reason())?;
        body.vectors.ok_or("absent")
    }

    #[test]
    fn rows_become_one_buffer() {
        let body = parse(br#"{"a": 1, "embeddings": [[1, -2.5], [3e0, 4]], "a": 2}"#, &[&ROWS]);
        let body = body.unwrap();
        assert_eq!(body.members, json!({"a": 2}).as_object().unwrap().clone());
        let vectors = body.vectors.unwrap();
        assert_eq!((vectors.len(), vectors.dimension), (2, 2));
        assert_eq!(vectors.rows().collect::<Vec<_>>(), [&[1.0, -2.5][..], &[3.0, 4.0][..]]);
    }

    #[test]
    fn a_lone_vector_is_one_row() {
        let flat = vectors(&[&QUERIES], r#"{"embeddings": [1, 2, 3]}"#).unwrap();
        let nested = vectors(&[&QUERIES], r#"{"embeddings": [[1, 2, 3]]}"#).unwrap();
        assert_eq!(flat, nested);
        assert_eq!(vectors(&[&QUERIES], r#"{"embeddings": [1, [2]]}"#), Err("invalid_value"));
        assert_eq!(vectors(&[&QUERIES], r#"{"embeddings": [[1], 2]}"#), Err("invalid_value"));
        assert_eq!(vectors(&[&ROWS], r#"{"embeddings": [1, 2]}"#), Err("invalid_value"));
    }

    #[test]
    fn named_rows_keep_their_names() {
        let named = vectors(&[&NAMED], r#"{"embeddings": {"b_1": [1], "b_0": [2]}}"#).unwrap();
        assert_eq!(named.names, ["b_1", "b_0"]);
        assert_eq!(named.values, [1.0, 2.0]);
        assert_eq!(vectors(&[&NAMED], r#"{"embeddings": {}}"#), Err("invalid_value"));
        assert_eq!(vectors(&[&NAMED], r#"{"embeddings": [[1]]}"#), Err("invalid_value"));
    }

    #[test]
    fn faults_have_their_reason() {
        for (rows, reason) in [
            ("[]", "invalid_value"),
            ("[[]]", "invalid_value"),
            ("[[1], [1, 2]]", "dimension_mismatch"),
            ("[[1e39]]", "invalid_value"),
            ("[[1e999]]", "invalid_value"),
            ("[[\"1\"]]", "invalid_value"),
            ("[[null]]", "invalid_value"),
            ("[[NaN]]", "malformed_body"),
            ("[[1]", "malformed_body"),
            ("null", "absent"),
        ] {
            let text = format!("{{\"embeddings\": {rows}}}");
            assert_eq!(vectors(&[&ROWS], &text), Err(reason), "{rows}");
        }
        let many = |rows: usize, width: usize| {
            let row = format!("[{}]", vec!["1"; width].join(","));
            vectors(&[&ROWS], &format!("{{\"embeddings\": [{}]}}", vec![row; rows].join(",")))
        };
        assert_eq!(many(2000, 1).map(|vectors| vectors.len()), Ok(2000));
        assert_eq!(many(2001, 1), Err("too_many_items"));
        assert_eq!(many(1, 3024).map(|vectors| vectors.dimension), Ok(3024));
        assert_eq!(many(1, 3025), Err("too_many_items"));
    }

    #[test]
    fn only_objects_are_bodies() {
        let reason = |bytes: &[u8]| parse(bytes, &[]).map_err(|error| error.reason()).err();
        assert_eq!(reason(b""), None);
        assert_eq!(reason(b" \n"), None);
        assert_eq!(reason(b"{}"), None);
        let deep = "[".repeat(100_000);
        for bad in ["[]", "1", "null", "{", "{} x", "{\"a\":}", "\u{feff}{}", &deep] {
            assert_eq!(reason(bad.as_bytes()), Some("malformed_body"), "{bad:.20}");
        }
        let deep_member = format!("{{\"a\": {}", "[".repeat(100_000));
        assert_eq!(reason(deep_member.as_bytes()), Some("malformed_body"));
    }

    #[test]
    fn a_whole_field_is_the_body_itself() {
        static LIST: Field = Field::body("list", Kind::Metadata, "list").whole();
        let list = |text: &str| parse(text.as_bytes(), &[&LIST]).map_err(|error| error.reason());
        let body = list(r#"[{"a": 1}, 2]"#).unwrap();
        assert_eq!(Value::Object(body.members), json!({"list": [{"a": 1}, 2]}));
        assert_eq!(list(" ").unwrap().members.len(), 0);
        for bad in ["{}", r#"{"list": []}"#, "[1", "[] x", "null"] {
            assert_eq!(list(bad).err(), Some("malformed_body"), "{bad}");
        }
    }

    #[test]
    fn values_come_back_exactly() {
        for bits in (0..u32::MAX).step_by(104_729) {
            let value = f32::from_bits(bits);
            if value.is_finite() {
                let rows = serde_json::to_string(&[[value]]).unwrap();
                let text = format!("{{\"embeddings\": {rows}}}");
                let read = vectors(&[&ROWS], &text).unwrap().values[0];
                assert_eq!(read.to_bits(), bits, "{value:e}");
            }
        }
    }
}
