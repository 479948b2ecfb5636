//! Reads texts, or texts as token ids, from a JSON body. A token id takes four bytes in memory,
//! whatever the shape of the list.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::error::{ApiError, Location};
use crate::request::field::{Field, Kind};

/// The inputs of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inputs {
    /// Texts.
    Texts(Vec<String>),
    /// Texts as token ids of the model's vocabulary.
    Tokens(Vec<Vec<u32>>),
}

/// Reads the value of a field of kind [`Kind::Inputs`]; `null` becomes `None`. The inner error is
/// for a value that the field does not allow.
pub(super) struct InputsSeed<'a>(pub &'a Field);

type Read = Result<Option<Inputs>, ApiError>;

/// One entry of the list, or the list itself.
enum Entry {
    Text(String),
    Id(u32),
    Ids(Vec<u32>),
    Other,
}

impl InputsSeed<'_> {
    fn wrong(&self) -> ApiError {
        let problem = match self.0.kind {
            Kind::Inputs { has_tokens: true, .. } => {
                "must be a string, an array of strings, an array of token ids, or an array of \
                 such arrays"
            }
            _ => "must be an array of strings, or of objects with a string in the member text",
        };
        ApiError::field("invalid_value", Location::Body, self.0.name, problem)
    }

    fn too_many(&self, max: usize) -> ApiError {
        let problem = format!("must have at most {max} entries");
        ApiError::field("too_many_items", Location::Body, self.0.name, &problem)
    }
}

impl<'de> DeserializeSeed<'de> for InputsSeed<'_> {
    type Value = Read;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Read, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for InputsSeed<'_> {
    type Value = Read;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("texts or token ids")
    }

    fn visit_unit<E: Error>(self) -> Result<Read, E> {
        Ok(Ok(None))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Read, E> {
        match self.0.kind {
            Kind::Inputs { has_tokens: true, .. } => {
                Ok(Ok(Some(Inputs::Texts(vec![text.to_owned()]))))
            }
            _ => Ok(Err(self.wrong())),
        }
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Read, E> {
        Ok(Err(self.wrong()))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Read, E> {
        Ok(Err(self.wrong()))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Read, E> {
        Ok(Err(self.wrong()))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Read, E> {
        Ok(Err(self.wrong()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Read, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Err(self.wrong()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Read, A::Error> {
        let Kind::Inputs { max, tokens_max, has_tokens } = self.0.kind else {
            return Ok(Err(self.wrong()));
        };
        let seed = EntrySeed { tokens_max, has_tokens };
        let mut inputs: Option<Inputs> = None;
        let mut is_flat = false;
        let mut refused = None;
        while let Some(entry) = seq.next_element_seed(seed)? {
            match (&mut inputs, entry) {
                (None, Entry::Text(text)) => inputs = Some(Inputs::Texts(vec![text])),
                (None, Entry::Ids(ids)) => inputs = Some(Inputs::Tokens(vec![ids])),
                (None, Entry::Id(id)) => {
                    is_flat = true;
                    inputs = Some(Inputs::Tokens(vec![vec![id]]));
                }
                (Some(Inputs::Texts(texts)), Entry::Text(text)) if texts.len() < max => {
                    texts.push(text);
                }
                (Some(Inputs::Tokens(lists)), Entry::Ids(ids)) if !is_flat && lists.len() < max => {
                    lists.push(ids);
                }
                (Some(Inputs::Tokens(lists)), Entry::Id(id))
                    if is_flat && lists[0].len() <= tokens_max =>
                {
                    lists[0].push(id);
                }
                (Some(Inputs::Texts(_)), Entry::Text(_)) => refused = Some(self.too_many(max)),
                (Some(Inputs::Tokens(_)), Entry::Ids(_)) if !is_flat => {
                    refused = Some(self.too_many(max));
                }
                (Some(Inputs::Tokens(_)), Entry::Id(_)) if is_flat => {
                    refused = Some(self.too_many(tokens_max));
                }
                (_, _) => refused = Some(self.wrong()),
            }
            if refused.is_some() {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
            }
        }
        Ok(match (refused, inputs) {
            (Some(error), _) => Err(error),
            (None, None) => {
                let problem = "must have at least 1 entry";
                Err(ApiError::field("invalid_value", Location::Body, self.0.name, problem))
            }
            (None, Some(Inputs::Tokens(lists)))
                if lists.iter().any(|ids| ids.len() > tokens_max) =>
            {
                let problem = format!("has an entry of more than {tokens_max} tokens");
                Err(ApiError::field("too_many_items", Location::Body, self.0.name, &problem))
            }
            (None, inputs) => Ok(inputs),
        })
    }
}

/// Reads one entry of the list.
#[derive(Clone, Copy)]
struct EntrySeed {
    tokens_max: usize,
    has_tokens: bool,
}

impl<'de> DeserializeSeed<'de> for EntrySeed {
    type Value = Entry;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Entry, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for EntrySeed {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or token ids")
    }

    fn visit_unit<E: Error>(self) -> Result<Entry, E> {
        Ok(Entry::Other)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Entry, E> {
        Ok(Entry::Other)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Entry, E> {
        Ok(Entry::Other)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Entry, E> {
        Ok(Entry::Other)
    }

    fn visit_u64<E: Error>(self, id: u64) -> Result<Entry, E> {
        let id = u32::try_from(id).ok().filter(|_| self.has_tokens);
        Ok(id.map_or(Entry::Other, Entry::Id))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Entry, E> {
        Ok(Entry::Text(text.to_owned()))
    }

    /// Reads the text of an object. A field accepts either objects or token ids, never both.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry, A::Error> {
        let mut entry = Entry::Other;
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "text" if !self.has_tokens => entry = map.next_value_seed(self)?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(entry)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Entry, A::Error> {
        let mut ids = Vec::new();
        let mut is_fine = self.has_tokens;
        while is_fine && ids.len() <= self.tokens_max {
            match seq.next_element_seed(self)? {
                Some(Entry::Id(id)) => ids.push(id),
                Some(_) => is_fine = false,
                None => return Ok(Entry::Ids(ids)),
            }
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(if is_fine { Entry::Ids(ids) } else { Entry::Other })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(has_tokens: bool, text: &str) -> Result<Option<Inputs>, &'static str> {
        let field = Field::body("input", Kind::Inputs { max: 3, tokens_max: 4, has_tokens }, "x");
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let read = InputsSeed(&field).deserialize(&mut deserializer).expect("JSON");
        deserializer.end().expect("everything is read past");
        read.map_err(|error| error.reason())
    }

    #[test]
    fn every_form_of_an_input_is_read() {
        let texts = |texts: &[&str]| {
            Ok(Some(Inputs::Texts(texts.iter().map(|text| (*text).to_owned()).collect())))
        };
        let tokens = |lists: &[&[u32]]| {
            Ok(Some(Inputs::Tokens(lists.iter().map(|ids| ids.to_vec()).collect())))
        };
        assert_eq!(read(true, "\"a\""), texts(&["a"]));
        assert_eq!(read(true, "[\"a\", \"\", \"b\"]"), texts(&["a", "", "b"]));
        assert_eq!(read(true, "[1, 2, 3, 4]"), tokens(&[&[1, 2, 3, 4]]));
        assert_eq!(read(true, "[[1], [2, 3], []]"), tokens(&[&[1], &[2, 3], &[]]));
        assert_eq!(read(true, "null"), Ok(None));
        assert_eq!(
            read(false, "[\"a\", {\"x\": [1], \"text\": \"b\", \"y\": {}}]"),
            texts(&["a", "b"])
        );
    }

    #[test]
    fn mixed_and_long_inputs_are_refused() {
        for (has_tokens, text, reason) in [
            (true, "[]", "invalid_value"),
            (true, "7", "invalid_value"),
            (true, "{\"text\": \"a\"}", "invalid_value"),
            (true, "[\"a\", 1]", "invalid_value"),
            (true, "[1, [2]]", "invalid_value"),
            (true, "[[1], 2]", "invalid_value"),
            (true, "[1, \"a\", [2, {}]]", "invalid_value"),
            (true, "[-1]", "invalid_value"),
            (true, "[1.5]", "invalid_value"),
            (true, "[4294967296]", "invalid_value"),
            (true, "[{\"text\": \"a\"}]", "invalid_value"),
            (true, "[null]", "invalid_value"),
            (true, "[\"a\", \"b\", \"c\", \"d\", [1]]", "too_many_items"),
            (true, "[[1], [1], [1], [1]]", "too_many_items"),
            (true, "[1, 2, 3, 4, 5, 6]", "too_many_items"),
            (true, "[1, 2, 3, 4, 5]", "too_many_items"),
            (true, "[[1, 2, 3, 4, 5, 6, 7]]", "too_many_items"),
            (false, "\"a\"", "invalid_value"),
            (false, "[1]", "invalid_value"),
            (false, "[{\"text\": 1}]", "invalid_value"),
            (false, "[{\"title\": \"a\"}]", "invalid_value"),
        ] {
            assert_eq!(read(has_tokens, text), Err(reason), "{text}");
        }
    }
}
