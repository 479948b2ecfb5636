//! `filters` of a search: comparisons of attributes combined with `and` and `or`, converted to an
//! engine filter on document metadata.

use serde_json::{Map, Value, json};

use crate::error::{ApiError, Location};
use crate::request::{Field, Fields, Kind};
use lodestone_types::{Comparison, Condition, Filter, FilterMap, FilterValue, limits};

/// Upper bound on the size of a filter whose values have the maximum length.
const BYTES_MAX: usize = 1 << 20;

pub(super) static FILTERS: Field = Field::body(
    "filters",
    Kind::Json {
        values_max: limits::FILTER_VALUES_MAX,
        bytes_max: BYTES_MAX,
        schema: || json!({"type": "object", "required": ["type"], "additionalProperties": true}),
    },
    "Condition on attributes: `type` is `eq`, `ne`, `gt`, `gte`, `lt`, `lte`, `in` or `nin` with \
     `key` and `value`, or `and` or `or` with `filters`.",
);

/// Reads the filter of a request; without one, everything matches.
pub(super) fn read(fields: &mut Fields) -> Result<Filter, ApiError> {
    match fields.json(&FILTERS)? {
        None => Ok(Filter::All),
        Some(value) => Reader { conditions: 0 }.filter(&value, FILTERS.name, 1),
    }
}

fn invalid(place: &str, problem: &str) -> ApiError {
    ApiError::field("invalid_filter", Location::Body, place, problem)
}

struct Reader {
    conditions: usize,
}

impl Reader {
    fn filter(&mut self, value: &Value, place: &str, depth: usize) -> Result<Filter, ApiError> {
        if depth > limits::FILTER_DEPTH_MAX {
            let problem = format!("is nested deeper than {} levels", limits::FILTER_DEPTH_MAX);
            return Err(invalid(place, &problem));
        }
        let object = value.as_object().ok_or_else(|| invalid(place, "must be a JSON object"))?;
        match object.get("type").and_then(Value::as_str) {
            Some("and") => Ok(Filter::And(self.filters(object, place, depth)?)),
            Some("or") => Ok(Filter::Or(self.filters(object, place, depth)?)),
            Some(word) => self.comparison(word, object, place),
            None => Err(invalid(&format!("{place}.type"), "must be a string")),
        }
    }

    fn filters(
        &mut self,
        object: &Map<String, Value>,
        place: &str,
        depth: usize,
    ) -> Result<Vec<Filter>, ApiError> {
        let place = format!("{place}.filters");
        let Some(items) = object.get("filters").and_then(Value::as_array) else {
            return Err(invalid(&place, "must be an array of filters"));
        };
        if items.is_empty() {
            return Err(invalid(&place, "must not be empty"));
        }
        let items = items.iter().enumerate();
        items.map(|(at, item)| self.filter(item, &format!("{place}[{at}]"), depth + 1)).collect()
    }

    fn comparison(
        &mut self,
        word: &str,
        object: &Map<String, Value>,
        place: &str,
    ) -> Result<Filter, ApiError> {
        self.conditions += 1;
        if self.conditions > limits::FILTER_CONDITIONS_MAX {
            let max = limits::FILTER_CONDITIONS_MAX;
            return Err(invalid(place, &format!("exceeds the limit of {max} conditions")));
        }
        let at = |name: &str| format!("{place}.{name}");
        let key = object.get("key").and_then(Value::as_str).filter(|key| !key.is_empty());
        let key = key.ok_or_else(|| invalid(&at("key"), "must be a non-empty attribute name"))?;
        if key.chars().count() > limits::METADATA_KEY_CHARS_MAX {
            let max = limits::METADATA_KEY_CHARS_MAX;
            return Err(invalid(&at("key"), &format!("is longer than {max} characters")));
        }
        let value = object.get("value").unwrap_or(&Value::Null);
        let one = || scalar(value, &at("value"));
        let list = || match value {
            Value::Array(values) if values.len() <= limits::FILTER_LIST_MAX => {
                values.iter().map(|value| scalar(value, &at("value"))).collect()
            }
            Value::Array(_) => {
                let problem = format!("must have at most {} values", limits::FILTER_LIST_MAX);
                Err(invalid(&at("value"), &problem))
            }
            _ => Err(invalid(&at("value"), "must be an array")),
        };
        let comparison = match word {
            "eq" => Comparison::AnyOf(vec![one()?]),
            "ne" => Comparison::NoneOf(vec![one()?]),
            "gt" => Comparison::Greater(one()?),
            "gte" => Comparison::GreaterOrEqual(one()?),
            "lt" => Comparison::Less(one()?),
            "lte" => Comparison::LessOrEqual(one()?),
            "in" => Comparison::AnyOf(list()?),
            "nin" => Comparison::NoneOf(list()?),
            _ => {
                let problem = "must be eq, ne, gt, gte, lt, lte, in, nin, and or or";
                return Err(invalid(&at("type"), problem));
            }
        };
        Ok(Filter::Is(Condition { map: FilterMap::Document, path: key.to_owned(), comparison }))
    }
}

fn scalar(value: &Value, place: &str) -> Result<FilterValue, ApiError> {
    match value {
        Value::Bool(value) => Ok(FilterValue::Bool(*value)),
        Value::Number(value) => Ok(FilterValue::Number(value.clone())),
        Value::String(value) => Ok(FilterValue::Text(value.clone())),
        _ => Err(invalid(place, "must be a string, a number or a boolean")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: Value) -> Result<Filter, String> {
        let read = Reader { conditions: 0 }.filter(&value, "filters", 1);
        read.map_err(|error| error.message().to_owned())
    }

    #[test]
    fn conditions_and_their_joins_are_translated() {
        let is = |comparison| {
            let (map, path) = (FilterMap::Document, "a".to_owned());
            Filter::Is(Condition { map, path, comparison })
        };
        let text = |text: &str| FilterValue::Text(text.to_owned());
        let eq = json!({"type": "eq", "key": "a", "value": "x"});
        assert_eq!(read(eq.clone()), Ok(is(Comparison::AnyOf(vec![text("x")]))));
        let nin = json!({"type": "nin", "key": "a", "value": ["x", true]});
        let none = is(Comparison::NoneOf(vec![text("x"), FilterValue::Bool(true)]));
        assert_eq!(read(nin.clone()), Ok(none.clone()));
        let lt = json!({"type": "lt", "key": "a", "value": 2.5});
        let two = FilterValue::Number(serde_json::Number::from_f64(2.5).unwrap());
        assert_eq!(read(lt.clone()), Ok(is(Comparison::Less(two.clone()))));
        let all = json!({"type": "and", "filters": [{"type": "or", "filters": [eq, lt]}, nin]});
        let either = vec![is(Comparison::AnyOf(vec![text("x")])), is(Comparison::Less(two))];
        assert_eq!(read(all), Ok(Filter::And(vec![Filter::Or(either), none])));
    }

    #[test]
    fn what_is_no_filter_is_named() {
        let mut deep = json!({"type": "eq", "key": "a", "value": 1});
        for _ in 0..limits::FILTER_DEPTH_MAX {
            deep = json!({"type": "and", "filters": [deep]});
        }
        let leaf = json!({"type": "eq", "key": "a", "value": 1});
        for (value, told) in [
            (json!([]), "filters must be a JSON object"),
            (json!({}), "filters.type must be a string"),
            (json!({"type": "like", "key": "a", "value": 1}), "filters.type must be eq"),
            (json!({"type": "eq", "value": 1}), "filters.key must be a non-empty"),
            (json!({"type": "eq", "key": "a"}), "filters.value must be a string"),
            (json!({"type": "eq", "key": "a", "value": {"$gt": 1}}), "filters.value must be"),
            (json!({"type": "in", "key": "a", "value": "x"}), "filters.value must be an array"),
            (
                json!({"type": "in", "key": "a", "value": vec![1; 1001]}),
                "filters.value must have at most",
            ),
            (json!({"type": "and", "filters": []}), "filters.filters must not be empty"),
            (json!({"type": "or", "filters": [7]}), "filters.filters[0] must be a JSON object"),
            (
                json!({"type": "or", "filters": vec![leaf; 65]}),
                "filters.filters[64] exceeds the limit of",
            ),
            (deep, "is nested deeper than 8 levels"),
        ] {
            let error = read(value.clone()).unwrap_err();
            assert!(error.contains(told), "{value}: {error}");
        }
    }
}
