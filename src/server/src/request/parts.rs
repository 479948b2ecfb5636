//! Objects that another reader reads: here only the names and types of their members are checked,
//! and the values are skipped.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::error::{ApiError, Location};
use crate::request::field::Kind;
use crate::request::names::{self, Rules, Unknown};

/// Checks the value of one field, which is called `name` in errors.
pub(super) struct PartsSeed<'a> {
    pub kind: Kind,
    pub name: &'a str,
    pub rules: Rules,
}

/// The ignored names, or the first error.
type Looked = Result<Vec<String>, ApiError>;

impl PartsSeed<'_> {
    /// Handles a value that is neither an object nor a list.
    fn of_scalar<E>(&self, is_text: bool) -> Result<Looked, E> {
        Ok(match self.kind {
            Kind::Parts { is_list: true, .. } => self.wrong("must be an array of objects"),
            Kind::Parts { .. } => self.wrong("must be a JSON object"),
            Kind::Text { .. } if !is_text => self.wrong("must be a string"),
            _ => Ok(Vec::new()),
        })
    }

    fn wrong(&self, problem: &str) -> Looked {
        Err(ApiError::field("invalid_value", Location::Body, self.name, problem))
    }
}

impl<'de> DeserializeSeed<'de> for PartsSeed<'_> {
    type Value = Looked;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Looked, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for PartsSeed<'_> {
    type Value = Looked;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Looked, E> {
        Ok(Ok(Vec::new()))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Looked, E> {
        self.of_scalar(false)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Looked, E> {
        self.of_scalar(false)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Looked, E> {
        self.of_scalar(false)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Looked, E> {
        self.of_scalar(false)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Looked, E> {
        self.of_scalar(true)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Looked, A::Error> {
        let Kind::Parts { members, is_list: true } = self.kind else {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            return self.of_scalar(false);
        };
        let (mut ignored, mut refused) = (Vec::new(), None);
        for at in 0.. {
            let name = format!("{}[{at}]", self.name);
            let kind = Kind::Parts { members, is_list: false };
            match seq.next_element_seed(PartsSeed { kind, name: &name, rules: self.rules })? {
                None => break,
                Some(Ok(names)) => ignored.extend(names),
                Some(Err(error)) => refused = refused.or(Some(error)),
            }
            names::cut(&mut ignored);
        }
        Ok(refused.map_or(Ok(ignored), Err))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Looked, A::Error> {
        let Kind::Parts { members, is_list: false } = self.kind else {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return self.of_scalar(false);
        };
        let (mut unknown, mut refused) = (Unknown::default(), None);
        while let Some(name) = map.next_key::<String>()? {
            let Some(field) = members.iter().find(|field| field.name == name) else {
                unknown.add(Location::Body, &name);
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let name = format!("{}.{name}", self.name);
            let seed = PartsSeed { kind: field.kind, name: &name, rules: self.rules };
            if let Err(error) = map.next_value_seed(seed)? {
                refused = refused.or(Some(error));
            }
        }
        let names = unknown.checked(members, self.rules).map_err(|error| error.within(self.name));
        Ok(refused.map_or(names, Err))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::field::Field;

    static TEXT: Field = Field::body("text", Kind::Text { chars_max: 9, is_filled: false }, "x");
    static OTHER: Field = Field::body("other", Kind::Any { schema: || true.into() }, "x");
    const MEMBERS: &[&Field] = &[&TEXT, &OTHER];

    fn look(is_list: bool, text: &str) -> Result<Vec<String>, String> {
        let kind = Kind::Parts { members: MEMBERS, is_list };
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let seed = PartsSeed { kind, name: "parts", rules: Rules::default() };
        let looked = seed.deserialize(&mut deserializer).expect("JSON");
        deserializer.end().expect("everything is read past");
        looked.map_err(|error| error.message().to_owned())
    }

    #[test]
    fn unknown_names_are_told_and_similar_ones_refused() {
        let fine = r#"{"text": "x", "other": {"text": 1, "far": [2]}, "far": 3}"#;
        assert_eq!(look(false, fine), Ok(vec!["far".to_owned()]));
        assert_eq!(look(true, &format!("[{fine}, {fine}, {{}}]")), Ok(vec!["far".to_owned()]));
        assert_eq!((look(false, "null"), look(true, "null")), (Ok(vec![]), Ok(vec![])));
        let error = look(true, r#"[{}, {"txt": "x"}]"#).unwrap_err();
        let expected = "parts[1].txt is not a parameter of this operation; did you mean text?";
        assert_eq!(error, expected);
    }

    #[test]
    fn other_types_are_named() {
        for (is_list, text, expected) in [
            (false, "7", "parts must be a JSON object"),
            (false, "[{}]", "parts must be a JSON object"),
            (true, "{}", "parts must be an array of objects"),
            (true, "\"x\"", "parts must be an array of objects"),
            (true, "[{}, true]", "parts[1] must be a JSON object"),
            (true, "[{\"text\": -1.5}]", "parts[0].text must be a string"),
            (false, "{\"text\": [\"x\"]}", "parts.text must be a string"),
            (false, "{\"text\": {\"text\": \"x\"}}", "parts.text must be a string"),
        ] {
            assert_eq!(look(is_list, text), Err(expected.to_owned()), "{text}");
        }
    }
}
