//! The members of a JSON body, each in the form that its field prescribes.

use serde_json::Value;

use crate::error::{ApiError, Location};
use crate::request::field::Field;
use crate::request::inputs::Inputs;
use crate::request::names::Unknown;
use crate::request::vectors::Vectors;

/// The declared members of a JSON object, and the names of all others.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JsonBody {
    pub(super) members: Vec<(&'static str, Member)>,
    /// Names that no field declares.
    pub unknown: Unknown,
    /// Ignored names within the items of lists.
    pub ignored: Vec<String>,
}

impl JsonBody {
    /// Creates a body that holds only vectors, for the first vector field.
    pub(super) fn of_vectors(vectors: Vectors, fields: &[&'static Field]) -> Self {
        let field = fields.iter().find(|field| field.kind.is_vectors());
        let members = field.map(|field| (field.name, Member::Vectors(vectors)));
        Self { members: members.into_iter().collect(), ..Self::default() }
    }
}

/// One member of a JSON body.
#[derive(Debug, Clone, PartialEq)]
pub enum Member {
    /// A JSON value within the bounds of its kind.
    Value(Value),
    /// Vectors.
    Vectors(Vectors),
    /// A list of objects.
    Items(Vec<Item>),
    /// Texts or token ids.
    Inputs(Inputs),
    /// Ignored names within objects that another reader reads.
    Parts(Vec<String>),
    /// An error, reported when the field is read.
    Refused(ApiError),
}

impl Member {
    /// Returns the ignored names within the member.
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
    /// The members of the entry, or its error.
    pub body: Result<JsonBody, ApiError>,
    /// The whole entry as compact JSON if the list is the body itself, otherwise empty.
    pub text: Vec<u8>,
}

impl JsonBody {
    /// Removes and returns the member of this name.
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
