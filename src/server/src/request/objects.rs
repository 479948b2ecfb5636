//! Deserializers for objects, member by member, and for lists of objects, each entry as a body of
//! its own.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::error::{ApiError, Location};
use crate::request::compact;
use crate::request::field::{Field, Kind};
use crate::request::indexed::place;
use crate::request::inputs::InputsSeed;
use crate::request::members::{Item, JsonBody, Member};
use crate::request::names::{Rules, inside};
use crate::request::parts::PartsSeed;
use crate::request::tree::{self, Allowance};
use crate::request::vectors::{ReasonCell, VectorsSeed};

/// Rules and allowances of the request being parsed.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// Rules for unknown names.
    pub rules: Rules,
    /// Number of values that the maps of the request may still hold.
    pub allowance: Allowance,
}

/// The vector member being read, and the reason why it was refused.
#[derive(Default)]
pub(super) struct VectorErrors {
    pub(super) at: Cell<Option<&'static str>>,
    pub(super) reason: ReasonCell,
}

/// Reads an object into the members that `fields` declare.
#[derive(Clone, Copy)]
pub(super) struct BodySeed<'a> {
    pub(super) fields: &'a [&'a Field],
    pub(super) reading: &'a Reading,
    pub(super) vectors: &'a VectorErrors,
}

impl BodySeed<'_> {
    /// Reads the value of one member.
    pub(super) fn member<'de, D: Deserializer<'de>>(
        self,
        field: &Field,
        deserializer: D,
    ) -> Result<Member, D::Error> {
        let Self { reading, vectors, fields: _ } = self;
        match field.kind {
            kind if kind.is_vectors() => {
                let seed = VectorsSeed { kind, reason: &vectors.reason };
                vectors.at.set(Some(field.name));
                let read = seed.deserialize(deserializer)?;
                vectors.at.set(None);
                Ok(read.map_or(Member::Value(Value::Null), Member::Vectors))
            }
            Kind::Objects { item, max, .. } => {
                let seed = Self { fields: item, ..self };
                deserializer.deserialize_any(ItemsVisitor { field, max, seed })
            }
            Kind::Inputs { .. } => {
                let read = InputsSeed(field).deserialize(deserializer)?;
                let member =
                    read.map(|inputs| inputs.map_or(Member::Value(Value::Null), Member::Inputs));
                Ok(member.unwrap_or_else(Member::Refused))
            }
            Kind::Parts { .. } => {
                let (kind, name, rules) = (field.kind, field.name, reading.rules);
                let looked = PartsSeed { kind, name, rules }.deserialize(deserializer)?;
                Ok(looked.map_or_else(Member::Refused, Member::Parts))
            }
            Kind::Any { .. } => {
                deserializer.deserialize_ignored_any(IgnoredAny)?;
                Ok(Member::Value(Value::Null))
            }
            _ => {
                let value = tree::value(field, Location::Body, &reading.allowance, deserializer)?;
                Ok(value.map_or_else(Member::Refused, Member::Value))
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for BodySeed<'_> {
    type Value = JsonBody;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<JsonBody, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for BodySeed<'_> {
    type Value = JsonBody;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonBody, A::Error> {
        let mut body = JsonBody::default();
        while let Some(name) = map.next_key::<String>()? {
            let in_body = self.fields.iter().filter(|field| field.may_stand_in(Location::Body));
            let mut named = in_body.flat_map(|field| field.names().map(move |name| (name, field)));
            match named.find(|(known, _)| *known == name) {
                Some((known, field)) => {
                    let field = &field.sent_as(known, Location::Body);
                    let member = map.next_value_seed(MemberSeed { field, seed: self })?;
                    let names = member.ignored().into_iter();
                    body.ignored.extend(names.map(|name| inside(known, &name)));
                    body.add(known, member);
                }
                None => {
                    body.unknown.add(Location::Body, &name);
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(body)
    }
}

/// Reads one member of an object.
struct MemberSeed<'a> {
    field: &'a Field,
    seed: BodySeed<'a>,
}

impl<'de> DeserializeSeed<'de> for MemberSeed<'_> {
    type Value = Member;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Member, D::Error> {
        self.seed.member(self.field, deserializer)
    }
}

/// Visitor methods for scalars, all of which return `of_scalar`.
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

/// Stands for any value that is not a list.
const NO_LIST: Member = Member::Value(Value::Bool(false));

/// Reads a list of objects.
struct ItemsVisitor<'a> {
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
                let problem = format!("must have at most {max} entries");
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
