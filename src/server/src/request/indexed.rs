//! Names with an index: form parts (`file[0]`) and list entries in errors (`items[1]`).

use crate::request::field::Field;

/// Returns the name of a part without its index.
pub(super) fn base(part: &str) -> &str {
    part.split('[').next().unwrap_or_default()
}

/// Returns the name of a list entry in errors: `items[1]`, or `[1]` if the body is the list.
pub fn place(field: &Field, at: usize) -> String {
    let list = if field.is_whole { "" } else { field.name };
    format!("{list}[{at}]")
}
