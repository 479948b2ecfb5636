//! Writes a value as compact JSON while it is read, so that a record can be stored unchanged
//! without building a tree of it in memory.

use std::fmt;

use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Reads one value and writes it as compact JSON.
pub(super) fn write<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let mut text = Vec::new();
    Writer(&mut text).deserialize(deserializer)?;
    Ok(text)
}

struct Writer<'a>(&'a mut Vec<u8>);

impl Writer<'_> {
    fn scalar<E: Error>(self, value: impl Serialize) -> Result<(), E> {
        serde_json::to_writer(self.0, &value).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for Writer<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Writer<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.scalar(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.scalar(text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.0.push(b'[');
        let begin = self.0.len();
        while seq.next_element_seed(Writer(self.0))?.is_some() {
            self.0.push(b',');
        }
        end(self.0, begin, b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.0.push(b'{');
        let begin = self.0.len();
        while map.next_key_seed(Writer(self.0))?.is_some() {
            self.0.push(b':');
            map.next_value_seed(Writer(self.0))?;
            self.0.push(b',');
        }
        end(self.0, begin, b'}');
        Ok(())
    }
}

/// Closes a list or map whose content begins at `begin`, by overwriting its last separator.
fn end(text: &mut Vec<u8>, begin: usize, bracket: u8) {
    match text.len() > begin {
        true => *text.last_mut().expect("it is filled") = bracket,
        false => text.push(bracket),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn it_is_what_a_tree_would_print() {
        let text = r#" {"a" : [1, -2, 2.50, 1e3, "\u00e9\n\"", null, [], {}], "b": {"c": [[true]]},
            "": 18446744073709551615, "0": 0.1} "#;
        let tree: Value = serde_json::from_str(text).unwrap();
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let written = write(&mut deserializer).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), tree.to_string());
    }
}
