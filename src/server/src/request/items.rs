//! A list of objects, each entry read as a body of its own.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::error::{ApiError, Location};
use crate::request::compact;
use crate::request::field::Field;
use crate::request::fields::place;
use crate::request::json::{BodySeed, Item, Member};

/// Visits of scalars that all become what `of_scalar` says.
macro_rules! visit_scalars {
    () => {
        fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok(self.of_scalar())
        }

        fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
            Ok(self.of_scalar())
        }

        fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
            Ok(self.of_scalar())
        }

        fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
            Ok(self.of_scalar())
        }

        fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
            Ok(self.of_scalar())
        }
    };
}

/// A value that is no list.
const NO_LIST: Member = Member::Value(Value::Bool(false));

/// Reads a list of objects.
pub(super) struct ItemsVisitor<'a> {
    pub field: &'a Field,
    pub max: usize,
    pub seed: BodySeed<'a>,
}

impl ItemsVisitor<'_> {
    fn of_scalar(&self) -> Member {
        NO_LIST
    }
}

impl<'de> Visitor<'de> for ItemsVisitor<'_> {
    type Value = Member;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of objects")
    }

    visit_scalars!();

    fn visit_unit<E: Error>(self) -> Result<Member, E> {
        Ok(Member::Value(Value::Null))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Member, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(NO_LIST)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Member, A::Error> {
        let Self { field, max, seed } = self;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(ItemSeed { field, at: items.len(), seed })? {
            items.push(item);
            if items.len() > max {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                let problem = format!("holds more than {max} entries");
                let location = Location::Body;
                let error = ApiError::field("too_many_items", location, field.name, &problem);
                return Ok(Member::Refused(error));
            }
        }
        Ok(Member::Items(items))
    }
}

/// Reads entry `at` of a list of objects.
struct ItemSeed<'a> {
    field: &'a Field,
    at: usize,
    seed: BodySeed<'a>,
}

impl ItemSeed<'_> {
    fn of_scalar(&self) -> Item {
        let place = place(self.field, self.at);
        let problem = "must be a JSON object";
        let error = ApiError::field("invalid_value", Location::Body, &place, problem);
        Item { body: Err(error), text: Vec::new() }
    }
}

impl<'de> DeserializeSeed<'de> for ItemSeed<'_> {
    type Value = Item;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Item, D::Error> {
        if !self.field.is_whole {
            return deserializer.deserialize_any(self);
        }
        let text = compact::write(deserializer)?;
        let item = self.deserialize_text(&text).map_err(D::Error::custom)?;
        Ok(Item { text, ..item })
    }
}

impl ItemSeed<'_> {
    fn deserialize_text(self, text: &[u8]) -> Result<Item, serde_json::Error> {
        serde_json::Deserializer::from_slice(text).deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ItemSeed<'_> {
    type Value = Item;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    visit_scalars!();

    fn visit_unit<E: Error>(self) -> Result<Item, E> {
        Ok(self.of_scalar())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Item, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(self.of_scalar())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Item, A::Error> {
        let seed = self.seed;
        let mut body = seed.visit_map(map)?;
        let unknown = std::mem::take(&mut body.unknown);
        let ignored = unknown.checked(seed.fields, seed.reading.rules);
        let body = ignored.map(|ignored| {
            body.ignored.extend(ignored);
            body
        });
        Ok(Item { body, text: Vec::new() })
    }
}
