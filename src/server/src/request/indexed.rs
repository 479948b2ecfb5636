//! Names with an index: form parts (`file[0]`) and list entries in errors (`items[1]`).

use crate::error::Location;
use crate::request::field::{Field, Kind};

/// Returns the name of a part without its index.
pub(super) fn base(part: &str) -> &str {
    part.split('[').next().unwrap_or_default()
}

/// Whether `name` at `location` is a name of the field. The name of a form part may carry an index
/// if the field is a list, or a member if the field takes any value.
pub(super) fn is_named(field: &Field, name: &str, location: Location) -> bool {
    let is_divided = matches!(
        field.kind,
        Kind::Texts { .. } | Kind::MetadataOrList | Kind::File | Kind::Files | Kind::Any { .. }
    );
    let name = if is_divided && location == Location::Form { base(name) } else { name };
    field.may_stand_in(location) && field.names().any(|known| known == name)
}

/// Returns the name of a list entry in errors: `items[1]`, or `[1]` if the body is the list.
pub fn place(field: &Field, at: usize) -> String {
    let list = if field.is_whole { "" } else { field.name };
    format!("{list}[{at}]")
}
