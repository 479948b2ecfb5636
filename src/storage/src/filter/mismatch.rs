//! Finds conditions that match nothing because all stored values have another type, or because
//! there are none.

use std::collections::BTreeSet;
use std::fmt;

use roaring::RoaringBitmap;

use crate::filter::format::EntryRows;
use crate::filter::key;
use crate::filter::source::{Root, is_system_key, is_system_time};
use crate::filter::{Columns, FilterError};
use lodestone_types::{Comparison, Condition, Filter, FilterMap, FilterValue};

/// A type of values that compares only with values of its own type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueType {
    /// Booleans.
    Bool,
    /// Numbers.
    Number,
    /// Strings.
    Text,
    /// System times, which are stored both as a number and as text.
    Time,
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bool => "booleans",
            Self::Number => "numbers",
            Self::Text => "texts",
            Self::Time => "epoch seconds",
        })
    }
}

/// A condition whose values have a different type than every stored value of its key, or whose key
/// has no value at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeMismatch {
    /// The map that the condition reads.
    pub map: FilterMap,
    /// Keys of the path, joined by dots.
    pub path: String,
    /// Types of the condition's values.
    pub given: BTreeSet<ValueType>,
    /// Types of the stored values; empty if there are none.
    pub stored: BTreeSet<ValueType>,
}

/// Finds the conditions of a filter that match none of the given rows of segments because of the
/// types of their values, or because the key has no values. Without rows nothing is reported. `$ne`
/// and `$nin` are never reported, because values of another type pass them.
///
/// # Errors
/// [`FilterError::Damaged`] if a bitmap is malformed.
pub fn mismatches(
    filter: &Filter,
    segments: &[(&Columns, &RoaringBitmap)],
) -> Result<Vec<TypeMismatch>, FilterError> {
    let mut found = Vec::new();
    collect(filter, segments, &mut found)?;
    Ok(found)
}

fn collect(
    filter: &Filter,
    segments: &[(&Columns, &RoaringBitmap)],
    found: &mut Vec<TypeMismatch>,
) -> Result<(), FilterError> {
    match filter {
        Filter::All => {}
        Filter::Is(condition) => {
            let mismatch = mismatch(condition, segments)?;
            found.extend(mismatch.filter(|mismatch| !found.contains(mismatch)));
        }
        Filter::And(parts) | Filter::Or(parts) => {
            for part in parts {
                collect(part, segments, found)?;
            }
        }
    }
    Ok(())
}

fn mismatch(
    condition: &Condition,
    segments: &[(&Columns, &RoaringBitmap)],
) -> Result<Option<TypeMismatch>, FilterError> {
    let Condition { map, path, comparison } = condition;
    let roots: &[Root] = match (map, is_system_key(path)) {
        (FilterMap::System, true) => &[Root::System],
        (FilterMap::System, false) => &[Root::Document, Root::Tenant],
        (map, true) => &[(*map).into(), Root::System],
        (map, false) => &[(*map).into()],
    };
    let given = types_of(comparison, is_system_time(path));
    if given.is_empty() {
        return Ok(None);
    }
    let mut stored = BTreeSet::new();
    for (columns, rows) in segments {
        for root in roots {
            columns.add_types(*root, path, rows, &mut stored)?;
        }
        if !stored.is_disjoint(&given) {
            return Ok(None);
        }
    }
    // A system key is valid without values, and so is any key if there are no rows.
    let is_told = !stored.is_empty()
        || (!is_system_key(path) && segments.iter().any(|(_, rows)| !rows.is_empty()));
    Ok(is_told.then(|| TypeMismatch { map: *map, path: path.clone(), given, stored }))
}

/// Types of the values that a comparison asks for; empty if it can match whatever is stored.
fn types_of(comparison: &Comparison, is_time: bool) -> BTreeSet<ValueType> {
    let values = match comparison {
        Comparison::AnyOf(values) => values.as_slice(),
        Comparison::NoneOf(_) | Comparison::Exists(_) => &[],
        Comparison::Greater(value)
        | Comparison::GreaterOrEqual(value)
        | Comparison::Less(value)
        | Comparison::LessOrEqual(value) => std::slice::from_ref(value),
    };
    if values.contains(&FilterValue::Null) {
        return BTreeSet::new();
    }
    let mut types = BTreeSet::new();
    for value in values {
        let (own, is_seconds) = match value {
            FilterValue::Null => continue,
            FilterValue::Bool(_) => (ValueType::Bool, false),
            FilterValue::Number(_) => (ValueType::Number, true),
            FilterValue::Text(text) => (ValueType::Text, text.parse::<f64>().is_ok()),
        };
        types.insert(own);
        if is_time && is_seconds {
            types.insert(ValueType::Time);
        }
    }
    types
}

impl Columns {
    /// Adds the types of the values that the rows in `among` have at a path.
    fn add_types(
        &self,
        root: Root,
        path: &str,
        among: &RoaringBitmap,
        types: &mut BTreeSet<ValueType>,
    ) -> Result<(), FilterError> {
        let entries = self.entries_of(self.column(root, path));
        let is_time = root == Root::System && is_system_time(path);
        for (stored, sample) in [
            (ValueType::Bool, key::of_bool(false)),
            (ValueType::Number, key::of_number(&0.into())),
            (ValueType::Text, key::of_text("")),
        ] {
            let stored = if is_time { ValueType::Time } else { stored };
            let start = self.lower_bound(&entries, &key::start_of_type(&sample));
            let end = self.lower_bound(&entries, &key::end_of_type(&sample));
            for entry in start..end {
                if types.contains(&stored) {
                    break;
                }
                if self.is_held(entry, among)? {
                    types.insert(stored);
                }
            }
        }
        Ok(())
    }

    /// Whether any of the rows in `among` has the value of an entry.
    fn is_held(&self, entry: usize, among: &RoaringBitmap) -> Result<bool, FilterError> {
        Ok(match self.tables.rows_of(entry) {
            // Runs are never empty; an entry without rows is a bitmap.
            EntryRows::Run(rows) => {
                among.range_cardinality(rows.start as u32..=(rows.end - 1) as u32) > 0
            }
            EntryRows::Bitmap(number) => !self.bitmap(number)?.is_disjoint(among),
        })
    }
}
