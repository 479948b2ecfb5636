//! Reads JSON values within bounds: the memory that a value may take is limited by its field,
//! whatever the body holds.
//!
//! A number takes about 70 bytes in a [`Value`], but two in the text. Lists and maps are therefore
//! read only up to the limits of their field; whatever exceeds them is skipped without being kept.

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::error::{ApiError, Location};
use crate::request::field::{Field, Kind};
use lodestone_types::limits;

/// Number of values that maps and filters of one request may still hold.
#[derive(Debug, Clone)]
pub struct Allowance {
    metadata: Cell<usize>,
    filter: Cell<usize>,
}

impl Default for Allowance {
    fn default() -> Self {
        Self {
            metadata: Cell::new(limits::METADATA_VALUES_MAX),
            filter: Cell::new(limits::FILTER_VALUES_MAX),
        }
    }
}

/// The first limit that a map exceeds.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Excess {
    Bytes,
    Values,
    ListLength,
    /// A member that occurs twice with different values.
    Twice(String),
}

/// The limits of one map, and the part of them that is left.
struct Bounds<'a> {
    bytes_left: Cell<usize>,
    values_left: &'a Cell<usize>,
    list_max: usize,
    excess: RefCell<Option<Excess>>,
}

impl Bounds<'_> {
    /// Accounts for a value of at least `bytes` bytes of compact JSON, including its separator;
    /// returns false if that exceeds a limit.
    fn take(&self, bytes: usize) -> bool {
        if self.is_exceeded() {
            return false;
        }
        match (self.bytes_left.get().checked_sub(bytes), self.values_left.get().checked_sub(1)) {
            (Some(bytes), Some(values)) => {
                self.bytes_left.set(bytes);
                self.values_left.set(values);
            }
            (None, _) => self.exceed(Excess::Bytes),
            (_, None) => self.exceed(Excess::Values),
        }
        !self.is_exceeded()
    }

    fn exceed(&self, excess: Excess) {
        self.excess.borrow_mut().get_or_insert(excess);
    }

    fn is_exceeded(&self) -> bool {
        self.excess.borrow().is_some()
    }
}

/// Reads a value as the kind of its field allows.
///
/// # Errors
/// The inner error is for a value that exceeds the field's limits, the outer for text that is not
/// JSON.
pub(super) fn value<'de, D: Deserializer<'de>>(
    field: &Field,
    location: Location,
    allowance: &Allowance,
    deserializer: D,
) -> Result<Result<Value, ApiError>, D::Error> {
    let of_list;
    let (bytes_max, values_left, list_max) = match field.kind {
        Kind::Filter => (usize::MAX, &allowance.filter, limits::FILTER_LIST_MAX),
        Kind::Metadata => (limits::METADATA_BYTES_MAX, &allowance.metadata, usize::MAX),
        Kind::MetadataOrList => {
            let bytes_max = limits::METADATA_BYTES_MAX * limits::BATCH_ITEMS_MAX;
            (bytes_max, &allowance.metadata, usize::MAX)
        }
        // The byte limit applies to each map and is checked when the field is read; the body limit
        // bounds them all.
        Kind::MetadataRows => (usize::MAX, &allowance.metadata, usize::MAX),
        Kind::Texts { max, .. } => {
            of_list = Cell::new(2 * max + 1);
            (usize::MAX, &of_list, max)
        }
        Kind::Json { values_max, bytes_max, .. } => {
            of_list = Cell::new(values_max);
            (bytes_max, &of_list, usize::MAX)
        }
        // Scalars: lists and maps become empty ones, which no reader of scalars accepts.
        _ => return deserializer.deserialize_any(Tree(None)).map(Ok),
    };
    // Every value is counted with a separator, which the last one lacks.
    let bytes_left = Cell::new(bytes_max.saturating_add(1));
    let bounds = Bounds { bytes_left, values_left, list_max, excess: RefCell::new(None) };
    let value = Tree(Some(&bounds)).deserialize(deserializer)?;
    Ok(match bounds.excess.into_inner() {
        None => Ok(value),
        Some(excess) => Err(refusal(field, location, excess)),
    })
}

fn refusal(field: &Field, location: Location, excess: Excess) -> ApiError {
    let invalid = |reason, problem: String| ApiError::field(reason, location, field.name, &problem);
    let too_large = |problem: String| {
        let message = format!("{} {problem}", field.name);
        ApiError::too_large("content_too_large", message).at(location, field.name)
    };
    match (excess, field.kind) {
        (Excess::Twice(member), _) => {
            let member: String = member.chars().take(limits::METADATA_KEY_CHARS_MAX).collect();
            let problem = format!("has the member {member} twice with different values");
            invalid("conflicting_values", problem)
        }
        (_, Kind::Texts { max, .. }) => {
            invalid("too_many_items", format!("must have at most {max} entries"))
        }
        (Excess::Bytes, Kind::Json { bytes_max, .. }) => {
            too_large(format!("must be at most {bytes_max} bytes of JSON"))
        }
        (Excess::Values, Kind::Json { values_max, .. }) => {
            invalid("too_many_items", format!("must have at most {values_max} values"))
        }
        (Excess::ListLength, _) => {
            let max = limits::FILTER_LIST_MAX;
            invalid("invalid_filter", format!("has a list of more than {max} values"))
        }
        (_, Kind::Filter) => {
            let max = limits::FILTER_VALUES_MAX;
            let problem =
                format!("brings the filters of the request above the limit of {max} values");
            invalid("invalid_filter", problem)
        }
        (Excess::Bytes, _) => {
            let max = limits::METADATA_BYTES_MAX;
            too_large(format!("must be at most {max} bytes of JSON"))
        }
        (Excess::Values, _) => {
            let max = limits::METADATA_VALUES_MAX;
            too_large(format!("brings the metadata of the request above the limit of {max} values"))
        }
    }
}

/// Builds a value while its bounds hold and skips the rest. Without bounds, builds only scalars.
#[derive(Clone, Copy)]
struct Tree<'a>(Option<&'a Bounds<'a>>);

impl Tree<'_> {
    fn take<E>(self, bytes: usize, value: impl FnOnce() -> Value) -> Result<Value, E> {
        match self.0.is_none_or(|bounds| bounds.take(bytes)) {
            true => Ok(value()),
            false => Ok(Value::Null),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.0.is_some_and(Bounds::is_exceeded) {
            true => deserializer.deserialize_ignored_any(IgnoredAny).map(|_| Value::Null),
            false => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.take(5, || Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.take(5, || value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.take(2, || value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.take(2, || value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.take(2, || Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        self.take(text.len() + 3, || text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        if let Some(bounds) = self.0.filter(|bounds| bounds.take(2)) {
            while let Some(item) = seq.next_element_seed(self)? {
                if items.len() == bounds.list_max {
                    bounds.exceed(Excess::ListLength);
                }
                if bounds.is_exceeded() {
                    break;
                }
                items.push(item);
            }
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        if let Some(bounds) = self.0.filter(|bounds| bounds.take(2)) {
            while let Some(name) = map.next_key::<String>()? {
                let is_taken = bounds.take(name.len() + 3);
                let value = map.next_value_seed(self)?;
                match members.get(&name) {
                    _ if !is_taken || bounds.is_exceeded() => break,
                    Some(earlier) if *earlier != value => bounds.exceed(Excess::Twice(name)),
                    Some(_) => {}
                    None => drop(members.insert(name, value)),
                }
            }
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    static MAP: Field = Field::body("map", Kind::Metadata, "a map");
    static FILTER: Field = Field::body("filter", Kind::Filter, "a filter");

    fn read(field: &Field, allowance: &Allowance, text: &str) -> Result<Value, &'static str> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let value = value(field, Location::Body, allowance, &mut deserializer).unwrap();
        deserializer.end().expect("everything is read past");
        value.map_err(|error| error.reason())
    }

    #[test]
    fn what_fits_is_read_as_it_is() {
        let text =
            r#"{"a": [1, -2, 2.5, "x", null, true, {}, []], "b": {"c": [[1]]}, "b": {"c": [[1]]}}"#;
        let expected: Value = serde_json::from_str(text).unwrap();
        for field in [&MAP, &FILTER] {
            assert_eq!(read(field, &Allowance::default(), text), Ok(expected.clone()));
        }
        for other in ["7", "\"x\"", "null", "[1, [2]]"] {
            let expected: Value = serde_json::from_str(other).unwrap();
            assert_eq!(read(&MAP, &Allowance::default(), other), Ok(expected), "{other}");
        }
    }

    /// The limit applies to the compact form: exactly as many bytes as allowed pass.
    #[test]
    fn a_map_ends_at_its_bytes() {
        let max = limits::METADATA_BYTES_MAX;
        let numbers = |count: usize| format!("{{\"a\": [{}]}}", vec!["0"; count].join(", "));
        // {"a":[0,0]} has 2n + 7 bytes.
        let most = (max - 7) / 2;
        assert!(read(&MAP, &Allowance::default(), &numbers(most)).is_ok());
        assert_eq!(read(&MAP, &Allowance::default(), &numbers(most + 1)), Err("content_too_large"));
        let text = |bytes: usize| format!("{{\"a\": \"{}\"}}", "x".repeat(bytes));
        assert!(read(&MAP, &Allowance::default(), &text(max - 8)).is_ok());
        assert_eq!(read(&MAP, &Allowance::default(), &text(max - 7)), Err("content_too_large"));
    }

    #[test]
    fn all_maps_of_a_request_share_an_allowance() {
        let allowance = Allowance::default();
        let map = format!("{{\"a\": [{}]}}", vec!["0"; 30_000].join(","));
        for _ in 0..3 {
            assert!(read(&MAP, &allowance, &map).is_ok());
        }
        assert_eq!(read(&MAP, &allowance, &map), Err("content_too_large"));
        let list = json!({"tag": vec!["x"; limits::FILTER_LIST_MAX]}).to_string();
        for _ in 0..limits::FILTER_VALUES_MAX / (limits::FILTER_LIST_MAX + 3) {
            assert!(read(&FILTER, &allowance, &list).is_ok());
        }
        assert_eq!(read(&FILTER, &allowance, &list), Err("invalid_filter"));
        let long = json!({"tag": {"$in": vec![0; limits::FILTER_LIST_MAX + 1]}}).to_string();
        assert_eq!(read(&FILTER, &Allowance::default(), &long), Err("invalid_filter"));
    }

    #[test]
    fn one_member_has_one_value() {
        for twice in [r#"{"a": 1, "a": 2}"#, r#"{"a": {"b": [1], "b": [2]}}"#] {
            assert_eq!(read(&MAP, &Allowance::default(), twice), Err("conflicting_values"));
        }
    }

    #[test]
    fn lists_and_scalars_stay_small() {
        static LIST: Field = Field::body("list", Kind::Texts { min: 0, max: 3 }, "a list");
        static SCALAR: Field = Field::body("scalar", Kind::Alpha, "a scalar");
        let read = |field: &Field, text: &str| read(field, &Allowance::default(), text);
        assert_eq!(read(&SCALAR, "[1, [2], {\"a\": 3}]"), Ok(json!([])));
        assert_eq!(read(&SCALAR, "{\"a\": [1]}"), Ok(json!({})));
        assert_eq!(read(&SCALAR, "2.5"), Ok(json!(2.5)));
        assert_eq!(read(&LIST, "[1, \"x\", [2]]"), Ok(json!([1, "x", [2]])));
        for long in ["[1, 2, 3, 4]", "[[1, 2, 3], [4, 5, 6]]", "[[[[[[[[[[]]]]]]]]]]"] {
            assert_eq!(read(&LIST, long), Err("too_many_items"), "{long}");
        }
        assert_eq!((read(&LIST, "null"), read(&LIST, "\"x\"")), (Ok(json!(null)), Ok(json!("x"))));
    }
}
