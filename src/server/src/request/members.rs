//! The members of a JSON body, read as their fields allow.

use serde_json::Value;

use crate::error::{ApiError, Location};
use crate::request::field::Field;
use crate::request::inputs::Inputs;
use crate::request::names::Unknown;
use crate::request::vectors::Vectors;

/// The documented members of a JSON object, and the names of the others.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JsonBody {
    pub(super) members: Vec<(&'static str, Member)>,
    /// Names that no field documents.
    pub unknown: Unknown,
    /// Names in the items of a list that are ignored.
    pub ignored: Vec<String>,
}

impl JsonBody {
    /// A body of nothing but vectors, for the first field of that kind.
    pub(super) fn of_vectors(vectors: Vectors, fields: &[&'static Field]) -> Self {
        let field = fields.iter().find(|field| field.kind.is_vectors());
        let members = field.map(|field| (field.name, Member::Vectors(vectors)));
        Self { members: members.into_iter().collect(), ..Self::default() }
    }
}

/// One member.
#[derive(Debug, Clone, PartialEq)]
pub enum Member {
    /// A value within the bounds of its kind.
    Value(Value),
    /// Vectors.
    Vectors(Vectors),
    /// A list of objects.
    Items(Vec<Item>),
    /// Texts, or texts as tokens.
    Inputs(Inputs),
    /// Names in an object or a list of objects that are ignored; another reader reads the rest.
    Parts(Vec<String>),
    /// The error that waits until the field is asked for.
    Refused(ApiError),
}

impl Member {
    /// Names in it that are ignored.
    pub(super) fn ignored(&self) -> Vec<String> {
        match self {
            Self::Items(items) => {
                let bodies = items.iter().filter_map(|item| item.body.as_ref().ok());
                bodies.flat_map(|body| body.ignored.iter().cloned()).collect()
            }
            Self::Parts(names) => names.clone(),
            _ => Vec::new(),
        }
    }
}

/// One entry of a list of objects.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Its members, or the error of this entry.
    pub body: Result<JsonBody, ApiError>,
    /// All of it as compact JSON, where the list is the body itself; else empty.
    pub text: Vec<u8>,
}

impl JsonBody {
    /// Takes the member of this name.
    pub(super) fn take(&mut self, name: &str) -> Option<Member> {
        let at = self.members.iter().position(|(known, _)| *known == name)?;
        Some(self.members.swap_remove(at).1)
    }

    pub(super) fn add(&mut self, name: &'static str, member: Member) {
        match self.members.iter_mut().find(|(known, _)| *known == name) {
            None => self.members.push((name, member)),
            Some((_, earlier)) if *earlier == member => {}
            Some((_, earlier)) => {
                let problem = "is given twice with different values";
                let error = ApiError::field("conflicting_values", Location::Body, name, problem);
                *earlier = Member::Refused(error);
            }
        }
    }
}
