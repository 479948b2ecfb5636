//! Names with an index: parts of forms (`file[0]`), and entries of lists in errors (`items[1]`).

use crate::request::field::Field;

/// The name of a part without its index.
pub(super) fn base(part: &str) -> &str {
    part.split('[').next().unwrap_or_default()
}

/// The name of an entry of a list in errors: `items[1]`, or `[1]` where the body is the list.
pub fn place(field: &Field, at: usize) -> String {
    let list = if field.is_whole { "" } else { field.name };
    format!("{list}[{at}]")
}
