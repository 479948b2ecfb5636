//! Pagination: the fields of a list request, and a list with the ids of its first and last entries.

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{ApiError, Location};
use crate::request::{Field, Fields, Kind};
use lodestone_types::limits;

const ORDER_WORDS: Kind =
    Kind::Choice { words: &["asc", "desc"], default: Some("desc"), is_exact: true };
const CURSOR: Kind = Kind::Text { chars_max: limits::ID_CHARS_MAX, is_filled: false };

pub(super) static LIMIT: Field = Field::query(
    "limit",
    Kind::Integer { min: 1, max: limits::STORE_PAGE_MAX as u64, default: Some(20) },
    "Maximum number of entries per page.",
);
pub(super) static ORDER: Field = Field::query(
    "order",
    ORDER_WORDS,
    "Order by creation time: `desc` for newest first, `asc` for oldest first.",
);
pub(super) static AFTER: Field =
    Field::query("after", CURSOR, "Id of the last entry of the previous page.");
pub(super) static BEFORE: Field = Field::query(
    "before",
    CURSOR,
    "Id of the first entry of the following page, to page backwards.",
);

/// The entry next to a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cursor {
    /// The page begins after this entry.
    After(String),
    /// The page ends before this entry.
    Before(String),
}

impl Cursor {
    /// Creates the 400 for an entry that is not in the list.
    pub fn unknown(&self) -> ApiError {
        let name = match self {
            Self::After(_) => AFTER.name,
            Self::Before(_) => BEFORE.name,
        };
        ApiError::field("invalid_value", Location::Query, name, "is not an entry of this list")
    }
}

/// The page that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageQuery {
    /// Maximum number of entries.
    pub limit: usize,
    /// Whether to list the oldest entries first.
    pub is_ascending: bool,
    /// The entry next to the page; `None` for the first page.
    pub cursor: Option<Cursor>,
}

impl PageQuery {
    pub(super) fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        let after = filled(fields.text(&AFTER)?);
        let before = filled(fields.text(&BEFORE)?);
        let cursor = match (after, before) {
            (Some(_), Some(_)) => {
                let problem = "and after are mutually exclusive";
                let location = Location::Query;
                return Err(ApiError::field("conflicting_values", location, BEFORE.name, problem));
            }
            (Some(after), None) => Some(Cursor::After(after)),
            (None, before) => before.map(Cursor::Before),
        };
        Ok(Self {
            limit: fields.integer(&LIMIT)?.unwrap_or_default() as usize,
            is_ascending: fields.choice(&ORDER)? == Some("asc"),
            cursor,
        })
    }

    /// Whether entries must be searched from the newest to the oldest.
    pub fn is_backwards(&self) -> bool {
        self.is_ascending == matches!(self.cursor, Some(Cursor::Before(_)))
    }
}

/// Page of entries.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Page<T> {
    /// Always `list`.
    pub object: &'static str,
    /// Entries of the page.
    pub data: Vec<T>,
    /// Id of the first entry; null if there is none.
    pub first_id: Option<String>,
    /// Id of the last entry; null if there is none.
    pub last_id: Option<String>,
    /// Whether there are more entries in the direction of paging.
    pub has_more: bool,
}

impl<T> Page<T> {
    /// Creates a page from entries in their final order.
    pub fn of(data: Vec<T>, has_more: bool, id: fn(&T) -> &String) -> Self {
        let (first_id, last_id) = (data.first().map(id).cloned(), data.last().map(id).cloned());
        Self { object: "list", data, first_id, last_id, has_more }
    }
}

/// Response to a deletion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeletedObject {
    /// Id of the deleted object.
    pub id: String,
    /// Type: `file`, `vector_store.deleted` or `vector_store.file.deleted`.
    pub object: &'static str,
    /// Always `true`.
    pub deleted: bool,
}

impl DeletedObject {
    /// Reports the deletion of the object with this id.
    pub fn new(id: impl Into<String>, object: &'static str) -> Self {
        Self { id: id.into(), object, deleted: true }
    }
}
