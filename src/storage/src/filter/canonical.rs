//! Canonical form of filters as bytes. Filters that differ only in the order of parts or values
//! have equal forms.

use crate::filter::key;
use lodestone_types::{Comparison, Condition, Filter, FilterMap, FilterValue};

/// Encodes a filter canonically: parts and values are sorted and deduplicated, a single part stands
/// for itself, and numbers are compared by value. Filters with equal forms let the same rows pass,
/// so the form can key a cache of those rows.
pub fn canonical(filter: &Filter) -> Vec<u8> {
    match filter {
        Filter::All => group(b'&', Vec::new()),
        Filter::Is(condition) => of_condition(condition),
        Filter::And(parts) => group(b'&', parts.iter().map(canonical).collect()),
        Filter::Or(parts) => group(b'|', parts.iter().map(canonical).collect()),
    }
}

fn group(tag: u8, mut parts: Vec<Vec<u8>>) -> Vec<u8> {
    parts.sort_unstable();
    parts.dedup();
    match parts.len() {
        1 => parts.remove(0),
        _ => [vec![tag], with_lengths(&parts)].concat(),
    }
}

fn of_condition(condition: &Condition) -> Vec<u8> {
    let Condition { map, path, comparison } = condition;
    let map = match map {
        FilterMap::Tenant => b't',
        FilterMap::Document => b'd',
        FilterMap::System => b's',
    };
    let one = |value: &FilterValue| vec![key::of_value(value)];
    let (operator, values) = match comparison {
        Comparison::AnyOf(values) => (b'=', sorted(values)),
        Comparison::NoneOf(values) => (b'!', sorted(values)),
        Comparison::Greater(value) => (b'>', one(value)),
        Comparison::GreaterOrEqual(value) => (b'g', one(value)),
        Comparison::Less(value) => (b'<', one(value)),
        Comparison::LessOrEqual(value) => (b'l', one(value)),
        Comparison::Exists(exists) => (b'e', vec![key::of_bool(*exists)]),
    };
    let path = with_lengths(&[path.as_bytes().to_vec()]);
    [vec![map, operator], path, with_lengths(&values)].concat()
}

fn sorted(values: &[FilterValue]) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = values.iter().map(key::of_value).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Encodes the number of parts, then each part after its length, so that no two lists encode alike.
fn with_lengths(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = (parts.len() as u32).to_le_bytes().to_vec();
    for part in parts {
        bytes.extend((part.len() as u32).to_le_bytes());
        bytes.extend(part);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any_of(path: &str, values: &[FilterValue]) -> Filter {
        let comparison = Comparison::AnyOf(values.to_vec());
        Filter::Is(Condition { map: FilterMap::Document, path: path.to_owned(), comparison })
    }

    #[test]
    fn order_and_repetition_do_not_matter_and_all_else_does() {
        let text = |text: &str| FilterValue::Text(text.to_owned());
        let number = |text: &str| FilterValue::Number(text.parse().unwrap());
        let (a, b) = (any_of("a", &[text("x"), text("y")]), any_of("b", &[number("1")]));
        let same = [
            (any_of("a", &[text("y"), text("x"), text("y")]), a.clone()),
            (any_of("b", &[number("1.0")]), b.clone()),
            (Filter::And(vec![b.clone(), a.clone()]), Filter::And(vec![a.clone(), b.clone()])),
            (Filter::Or(vec![a.clone(), a.clone()]), a.clone()),
            (Filter::And(Vec::new()), Filter::All),
        ];
        for (one, other) in same {
            assert_eq!(canonical(&one), canonical(&other), "{one:?}");
        }
        let Filter::Is(condition) = &a else { unreachable!() };
        let with = |map, comparison| Filter::Is(Condition { map, comparison, ..condition.clone() });
        let values = || vec![text("x"), text("y")];
        let different = [
            Filter::All,
            Filter::Or(Vec::new()),
            Filter::Or(vec![a.clone(), b.clone()]),
            Filter::And(vec![a.clone(), b.clone()]),
            with(FilterMap::Tenant, Comparison::AnyOf(values())),
            with(FilterMap::System, Comparison::AnyOf(values())),
            with(FilterMap::Document, Comparison::NoneOf(values())),
            with(FilterMap::Document, Comparison::Exists(true)),
            with(FilterMap::Document, Comparison::Exists(false)),
            with(FilterMap::Document, Comparison::Greater(text("x"))),
            with(FilterMap::Document, Comparison::GreaterOrEqual(text("x"))),
            with(FilterMap::Document, Comparison::Less(text("x"))),
            with(FilterMap::Document, Comparison::LessOrEqual(text("x"))),
            any_of("a", &[text("xy")]),
            any_of("a", &[text("1")]),
            any_of("a", &[number("1")]),
            any_of("a", &[FilterValue::Null]),
            any_of("ax", &[text("y")]),
            any_of("a", &[]),
            a,
            b,
        ];
        let mut forms: Vec<Vec<u8>> = different.iter().map(canonical).collect();
        forms.sort_unstable();
        forms.dedup();
        assert_eq!(forms.len(), different.len());
    }
}
