//! Reads vectors from a JSON body directly into one flat buffer.
//!
//! A generic JSON tree would take about 30 bytes per number, or 200 MB for a body of 2,000 x 3,024
//! numbers. Here a number takes four bytes as soon as it is parsed, and every limit is checked at
//! the row that exceeds it.

use std::collections::HashMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::error::{ApiError, Location};
use crate::request::field::{Field, Kind};
use lodestone_types::id::normalized;
use lodestone_types::limits;

/// The client vectors of one request: rows of equal width, stored consecutively.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Vectors {
    /// Width of every row.
    pub dimension: usize,
    /// `rows x dimension` finite values, row by row.
    pub values: Vec<f32>,
    /// Chunk ids of the rows in request order; empty unless the rows were named.
    pub names: Vec<String>,
}

impl Vectors {
    /// Iterates over the rows in request order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.dimension.max(1))
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.values.len() / self.dimension.max(1)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Keeps one row per name. Names that are equal after Unicode NFC normalization count as the
    /// same.
    ///
    /// # Errors
    /// 400 `conflicting_values` if a name has two different rows.
    pub fn each_name_once(self, field: &Field) -> Result<Self, ApiError> {
        let mut first: HashMap<String, &[f32]> = HashMap::with_capacity(self.len());
        let mut once = Self { dimension: self.dimension, ..Self::default() };
        for (name, row) in self.names.iter().zip(self.rows()) {
            match first.insert(normalized(name), row) {
                None => {
                    once.names.push(name.clone());
                    once.values.extend_from_slice(row);
                }
                Some(earlier) if earlier == row => {}
                Some(_) => {
                    let problem = "contains a chunk id twice with different vectors";
                    let (reason, location) = ("conflicting_values", Location::Body);
                    return Err(ApiError::field(reason, location, field.name, problem));
                }
            }
        }
        Ok(once)
    }
}

/// Receives the `reason` of the error that ended a parse, which serde's error cannot carry.
pub(super) type ReasonCell = std::cell::Cell<Option<&'static str>>;

/// Reads one member of kind `kind`; `null` becomes `None`.
pub(super) struct VectorsSeed<'a> {
    pub kind: Kind,
    pub reason: &'a ReasonCell,
}

fn refuse<E: Error>(cell: &ReasonCell, reason: &'static str, message: fmt::Arguments<'_>) -> E {
    cell.set(Some(reason));
    E::custom(message)
}

impl<'de> DeserializeSeed<'de> for VectorsSeed<'_> {
    type Value = Option<Vectors>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for VectorsSeed<'_> {
    type Value = Option<Vectors>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::NamedRows => "an object from chunk id to an array of numbers",
            Kind::RowOrRows => "an array of numbers, or an array of such arrays",
            _ => "an array of arrays of numbers",
        })
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        if matches!(self.kind, Kind::NamedRows) {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Seq, &self));
        }
        let is_flat_allowed = matches!(self.kind, Kind::RowOrRows);
        let rows_max = match self.kind {
            Kind::RowOrRows => limits::VECTOR_QUERIES_MAX,
            _ => limits::VECTOR_ROWS_MAX,
        };
        let mut sink = Sink { vectors: Vectors::default(), reason: self.reason };
        let mut entries = 0;
        let mut is_flat = false;
        while let Some(entry) = seq.next_element_seed(EntrySeed {
            sink: &mut sink,
            is_number_allowed: is_flat_allowed && (is_flat || entries == 0),
            is_row_allowed: !is_flat,
        })? {
            is_flat = entry == Entry::Number;
            entries += 1;
            let entries_max = if is_flat { limits::VECTOR_DIMENSION_MAX } else { rows_max };
            if entries > entries_max {
                let message = format_args!("at most {entries_max} entries are allowed");
                return Err(refuse(self.reason, "too_many_items", message));
            }
        }
        if entries == 0 {
            let message = format_args!("at least one vector is required");
            return Err(refuse(self.reason, "invalid_value", message));
        }
        if is_flat {
            sink.vectors.dimension = entries;
        }
        Ok(Some(sink.vectors))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        if !matches!(self.kind, Kind::NamedRows) {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Map, &self));
        }
        let mut sink = Sink { vectors: Vectors::default(), reason: self.reason };
        while let Some(name) = map.next_key::<String>()? {
            map.next_value_seed(EntrySeed {
                sink: &mut sink,
                is_number_allowed: false,
                is_row_allowed: true,
            })?;
            sink.vectors.names.push(name);
            if sink.vectors.names.len() > limits::VECTOR_ROWS_MAX {
                let message = format_args!("at most {} are allowed", limits::VECTOR_ROWS_MAX);
                return Err(refuse(self.reason, "too_many_items", message));
            }
        }
        if sink.vectors.names.is_empty() {
            let message = format_args!("at least one vector is required");
            return Err(refuse(self.reason, "invalid_value", message));
        }
        Ok(Some(sink.vectors))
    }
}

struct Sink<'a> {
    vectors: Vectors,
    reason: &'a ReasonCell,
}

impl Sink<'_> {
    fn push<E: Error>(&mut self, value: f32) -> Result<(), E> {
        if !value.is_finite() {
            let message = format_args!("a value is outside the range of 32-bit floats");
            return Err(refuse(self.reason, "invalid_value", message));
        }
        self.vectors.values.push(value);
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    Number,
    Row,
}

/// Reads one number of a row; an error names its position.
struct Number {
    row: usize,
    at: usize,
}

impl<'de> DeserializeSeed<'de> for Number {
    type Value = f32;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<f32, D::Error> {
        deserializer.deserialize_f32(self)
    }
}

impl Visitor<'_> for Number {
    type Value = f32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { row, at } = self;
        write!(f, "a number as value {at} of row {row}, both counted from 0,")
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<f32, E> {
        Ok(value as f32)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<f32, E> {
        Ok(value as f32)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<f32, E> {
        Ok(value as f32)
    }
}

/// Reads one entry of the outer list: a row, or a number where a single vector is allowed.
struct EntrySeed<'a, 'b> {
    sink: &'a mut Sink<'b>,
    is_number_allowed: bool,
    is_row_allowed: bool,
}

impl<'de> DeserializeSeed<'de> for EntrySeed<'_, '_> {
    type Value = Entry;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Entry, D::Error> {
        match self.is_number_allowed && !self.is_row_allowed {
            // Asking for an f32 lets a parser round only once if it can.
            true => deserializer.deserialize_f32(self),
            false => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for EntrySeed<'_, '_> {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.is_number_allowed, self.is_row_allowed) {
            (true, false) => "a number",
            (true, true) => "a number or an array of numbers",
            (false, _) => "an array of numbers",
        })
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Entry, E> {
        if !self.is_number_allowed {
            return Err(E::invalid_type(serde::de::Unexpected::Float(value), &self));
        }
        self.sink.push(value as f32)?;
        Ok(Entry::Number)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Entry, E> {
        if !self.is_number_allowed {
            return Err(E::invalid_type(serde::de::Unexpected::Unsigned(value), &self));
        }
        self.sink.push(value as f32)?;
        Ok(Entry::Number)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Entry, E> {
        if !self.is_number_allowed {
            return Err(E::invalid_type(serde::de::Unexpected::Signed(value), &self));
        }
        self.sink.push(value as f32)?;
        Ok(Entry::Number)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Entry, A::Error> {
        let expected = self.sink.vectors.dimension;
        let start = self.sink.vectors.values.len();
        let reason = self.sink.reason;
        // All earlier rows have the width of the first.
        let row = start.checked_div(expected).unwrap_or(0);
        while let Some(value) = {
            let at = self.sink.vectors.values.len() - start;
            seq.next_element_seed(Number { row, at })?
        } {
            self.sink.push(value)?;
            if self.sink.vectors.values.len() - start > limits::VECTOR_DIMENSION_MAX {
                let max = limits::VECTOR_DIMENSION_MAX;
                let message = format_args!("a vector must have at most {max} dimensions");
                return Err(refuse(reason, "too_many_items", message));
            }
        }
        let width = self.sink.vectors.values.len() - start;
        if width == 0 {
            let message = format_args!("a vector must have at least one number");
            return Err(refuse(reason, "invalid_value", message));
        }
        if expected != 0 && width != expected {
            let message = format_args!("vectors of {expected} and of {width} dimensions are mixed");
            return Err(refuse(reason, "dimension_mismatch", message));
        }
        self.sink.vectors.dimension = width;
        Ok(Entry::Row)
    }
}
