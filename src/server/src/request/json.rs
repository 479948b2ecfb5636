//! Parses a JSON body into its declared members, each read as its field allows; anything else is
//! skipped.
//!
//! ```text
//! known member -> vectors: one flat buffer | list of objects: items, each as a body of its own |
//!                 texts or tokens: inputs | anything else: a value within the bounds of its kind
//! unknown      -> its name
//! ```
//!
//! The memory taken by a body is therefore bounded by its fields, not by its content. A member that
//! occurs twice must have the same value both times. serde_json limits the nesting to 128 levels.

use serde::de::DeserializeSeed;
use serde_json::Value;
use serde_json::error::Category;

use crate::error::{ApiError, Location};
use crate::request::field::Field;
use crate::request::members::{JsonBody, Member};
use crate::request::objects::{BodySeed, Reading, VectorErrors};
use crate::request::tree::{self, Allowance};

/// Parses a body. A blank body counts as an empty object, and a byte order mark is skipped.
///
/// # Errors
/// 400 `malformed_body` if it is not a JSON object, or the reason given by the vectors.
pub fn parse(bytes: &[u8], fields: &[&Field], reading: &Reading) -> Result<JsonBody, ApiError> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(JsonBody::default());
    }
    let vectors = VectorErrors::default();
    let seed = BodySeed { fields, reading, vectors: &vectors };
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let whole = fields.iter().find(|field| field.is_whole);
    let parsed = match whole {
        Some(field) => seed.member(field, &mut deserializer).map(|member| {
            let ignored = member.ignored();
            JsonBody { members: vec![(field.name, member)], ignored, ..JsonBody::default() }
        }),
        None => seed.deserialize(&mut deserializer),
    };
    let parsed = parsed.and_then(|body| {
        deserializer.end()?;
        Ok(body)
    });
    let form = if whole.is_some() { "array" } else { "object" };
    let body = parsed.map_err(|error| match vectors.at.get() {
        Some(name) if error.classify() == Category::Data || is_out_of_range(&error) => {
            let reason = vectors.reason.get().unwrap_or("invalid_value");
            ApiError::field(reason, Location::Body, name, &format!("is not allowed: {error}"))
        }
        _ => {
            let message = format!("the body is not a valid JSON {form}: {error}");
            ApiError::invalid("malformed_body", message)
        }
    })?;
    match (whole, body.members.first()) {
        (Some(_), Some((_, Member::Value(_)))) => {
            Err(ApiError::invalid("malformed_body", "the body is not a JSON array"))
        }
        _ => Ok(body),
    }
}

/// Parses JSON from the text of a query parameter or form part.
///
/// # Errors
/// 400 `invalid_value` if the text is not JSON, or the error of a value that exceeds its limits.
pub(super) fn value_of_text(
    text: &str,
    field: &Field,
    location: Location,
    allowance: &Allowance,
) -> Result<Value, ApiError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = tree::value(field, location, allowance, &mut deserializer);
    let value = value.and_then(|value| {
        deserializer.end()?;
        Ok(value)
    });
    value.unwrap_or_else(|error| {
        let problem = format!("is not valid JSON: {error}");
        Err(ApiError::field("invalid_value", location, field.name, &problem))
    })
}

/// serde_json has no error code of its own for numbers beyond the range of f64.
fn is_out_of_range(error: &serde_json::Error) -> bool {
    error.classify() == Category::Syntax && error.to_string().starts_with("number out of range")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::field::Kind;
    use crate::request::names::Rules;
    use crate::request::vectors::Vectors;
    use serde_json::json;

    static ROWS: Field = Field::body("embeddings", Kind::Rows, "rows");
    static QUERIES: Field = Field::body("embeddings", Kind::RowOrRows, "queries");
    static NAMED: Field = Field::body("embeddings", Kind::NamedRows, "named");

    static MAP: Field = Field::body("map", Kind::Metadata, "a map");
    static TEXT: Field = Field::body("text", Kind::Identifier, "a text").or(&["other"]);
    static LIST: Field =
        Field::body("list", Kind::Objects { item: &[&TEXT, &MAP], min: 0, max: 3 }, "a list");

    fn read(text: &str, fields: &[&Field]) -> Result<JsonBody, &'static str> {
        let body = parse(text.as_bytes(), fields, &Reading::default());
        body.map_err(|error| error.reason())
    }

    fn vectors(fields: &[&Field], text: &str) -> Result<Vectors, &'static str> {
        match read(text, fields)?.take("embeddings") {
            Some(Member::Vectors(vectors)) => Ok(vectors),
            Some(Member::Refused(error)) => Err(error.reason()),
            _ => Err("absent"),
        }
    }

    fn value(body: &mut JsonBody, name: &str) -> Result<Value, &'static str> {
        match body.take(name) {
            Some(Member::Value(value)) => Ok(value),
            Some(Member::Refused(error)) => Err(error.reason()),
            _ => Err("absent"),
        }
    }

    #[test]
    fn known_members_are_kept_and_others_named() {
        let text = r#"{"text": "x", "more": [[0, 0], {"a": 1}], "map": {"a": [1]}, "other": "y"}"#;
        let mut body = read(text, &[&MAP, &TEXT]).unwrap();
        assert_eq!(value(&mut body, "text"), Ok(json!("x")));
        assert_eq!(value(&mut body, "map"), Ok(json!({"a": [1]})));
        assert_eq!(value(&mut body, "other"), Ok(json!("y")));
        assert_eq!(value(&mut body, "more"), Err("absent"));
        let names = body.unknown.checked(&[&MAP, &TEXT], Rules::default());
        assert_eq!(names, Ok(vec!["more".to_owned()]));
    }

    #[test]
    fn one_member_has_one_value() {
        for (text, expected) in [
            (r#"{"text": "x", "text": "x"}"#, Ok(json!("x"))),
            (r#"{"text": "x", "text": "y"}"#, Err("conflicting_values")),
            (r#"{"text": "x", "text": null}"#, Err("conflicting_values")),
            (r#"{"text": "x", "text": ["x"], "text": "x"}"#, Err("conflicting_values")),
        ] {
            assert_eq!(value(&mut read(text, &[&TEXT]).unwrap(), "text"), expected, "{text}");
        }
        let rows = r#"{"embeddings": [[1]], "embeddings": [[2]]}"#;
        assert_eq!(vectors(&[&ROWS], rows), Err("conflicting_values"));
        let same = r#"{"embeddings": [[1]], "embeddings": [[1]]}"#;
        assert_eq!(vectors(&[&ROWS], same).unwrap().values, [1.0]);
        let unknown = r#"{"x": 1, "x": 2}"#;
        assert!(read(unknown, &[&TEXT]).is_ok(), "what is ignored cannot conflict");
    }

    #[test]
    fn each_entry_of_a_list_stands_alone() {
        let text = r#"{"list": [{"text": "x", "far": 1}, 7, {"tex": "x"}]}"#;
        let mut body = read(text, &[&LIST]).unwrap();
        assert_eq!(body.ignored, ["list.far"]);
        let Some(Member::Items(items)) = body.take("list") else { unreachable!("a list") };
        let reasons: Vec<_> =
            items.iter().map(|item| item.body.as_ref().err().map(|e| e.reason())).collect();
        assert_eq!(reasons, [None, Some("invalid_value"), Some("unknown_parameter")]);
        let mut long = read(r#"{"list": [{}, {}, {}, {}, {}]}"#, &[&LIST]).unwrap();
        assert_eq!(value(&mut long, "list"), Err("too_many_items"));
        for other in ["7", "\"x\"", "{\"a\": 1}", "true"] {
            let mut body = read(&format!("{{\"list\": {other}}}"), &[&LIST]).unwrap();
            assert!(matches!(body.take("list"), Some(Member::Value(Value::Bool(_)))), "{other}");
        }
    }

    #[test]
    fn rows_become_one_buffer() {
        let vectors = vectors(&[&ROWS], r#"{"a": 1, "embeddings": [[1, -2.5], [3e0, 4]]}"#);
        let vectors = vectors.unwrap();
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
        let reason = |text: &str| read(text, &[&MAP]).err();
        for good in ["", " \n", "{}", "\u{feff}{}", "\u{feff}"] {
            assert_eq!(reason(good), None, "{good:?}");
        }
        let deep = "[".repeat(100_000);
        for bad in ["[]", "1", "null", "{", "{} x", "{\"a\":}", "\u{feff}\u{feff}{}", &deep] {
            assert_eq!(reason(bad), Some("malformed_body"), "{bad:.20}");
        }
        for name in ["a", "map"] {
            let deep_member = format!("{{\"{name}\": {}", "[".repeat(100_000));
            assert_eq!(reason(&deep_member), Some("malformed_body"));
        }
    }

    #[test]
    fn a_whole_field_is_the_body_itself() {
        static WHOLE: Field = LIST.whole();
        let mut body = read(r#"[{"text": "x", "far" : [0]}, 2, {"tex": "x"}]"#, &[&WHOLE]).unwrap();
        assert_eq!(body.ignored, ["far"]);
        let Some(Member::Items(items)) = body.take("list") else { unreachable!("a list") };
        assert_eq!(items[0].text, br#"{"text":"x","far":[0]}"#);
        assert!(items[0].body.is_ok() && items[1].body.is_err() && items[2].body.is_err());
        assert!(read(" ", &[&WHOLE]).unwrap().take("list").is_none());
        for bad in ["{}", r#"{"list": []}"#, "[1", "[] x", "null", "7"] {
            assert_eq!(read(bad, &[&WHOLE]).err(), Some("malformed_body"), "{bad}");
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
