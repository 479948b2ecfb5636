//! Declarations of input fields: location, type, range and description.
//!
//! Both the reader (`fields`) and the OpenAPI document are driven by these declarations, so they
//! cannot differ.

use serde_json::{Map, Value, json};

use crate::error::Location;
use lodestone_types::limits;

/// Types of field values. Ranges are inclusive.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// An identifier; empty means absent.
    Identifier,
    /// Text of limited length in characters.
    Text {
        /// Maximum number of characters.
        chars_max: usize,
        /// Whether blank text is refused.
        is_filled: bool,
    },
    /// Non-blank text of limited length in bytes.
    Content {
        /// Maximum number of bytes.
        bytes_max: usize,
    },
    /// An integer.
    Integer {
        /// Minimum.
        min: u64,
        /// Maximum.
        max: u64,
        /// Default; `None` if there is none.
        default: Option<u64>,
    },
    /// A number from 0 to 1.
    Share {
        /// Default.
        default: f64,
    },
    /// A number from 0 to 1, possibly as text, or `auto`.
    Alpha,
    /// `false`, `auto`, 1 or 2.
    Fuzzy,
    /// `true`, `false` or `auto`; the default depends on the mode.
    GraphContext,
    /// `true` or `false`; in a query or form also `1` and `0`.
    Boolean {
        /// Default.
        default: bool,
    },
    /// `true`, `false` or `auto`, which is the default.
    BooleanOrAuto,
    /// One of a fixed set of words.
    Choice {
        /// The words accepted.
        words: &'static [&'static str],
        /// Default; `None` if there is none.
        default: Option<&'static str>,
        /// Whether letter case matters.
        is_exact: bool,
    },
    /// A list of texts.
    Texts {
        /// Minimum number of entries.
        min: usize,
        /// Maximum number of entries.
        max: usize,
    },
    /// A metadata map; in a form, its JSON text.
    Metadata,
    /// A metadata filter (docs/api.md, "Filters").
    Filter,
    /// One metadata map for all items of a batch, or a list with one per item.
    MetadataOrList,
    /// A list of metadata maps, one per row.
    MetadataRows,
    /// A list of objects.
    Objects {
        /// Fields of each entry.
        item: &'static [&'static Field],
        /// Minimum number of entries.
        min: usize,
        /// Maximum number of entries.
        max: usize,
    },
    /// Epoch seconds as a number or text, or an RFC 3339 time.
    Moment,
    /// A number.
    Number {
        /// Minimum.
        min: f64,
        /// Maximum.
        max: f64,
    },
    /// Strings; depending on `has_tokens`, also lists of token ids, or objects with a member
    /// `text`.
    Inputs {
        /// Maximum number of entries.
        max: usize,
        /// Maximum number of token ids per entry.
        tokens_max: usize,
        /// Whether token ids and a single string are allowed, instead of objects.
        has_tokens: bool,
    },
    /// Any JSON value of limited size.
    Json {
        /// Maximum number of values, counting names and list entries.
        values_max: usize,
        /// Maximum size in bytes as compact JSON.
        bytes_max: usize,
        /// Returns the JSON schema.
        schema: fn() -> Value,
    },
    /// Any value; it is accepted without being read.
    Any {
        /// Returns the JSON schema.
        schema: fn() -> Value,
    },
    /// An object or a list of objects, of which only the names and types of the members are
    /// checked.
    Parts {
        /// Fields of the object.
        members: &'static [&'static Field],
        /// Whether it is a list of objects.
        is_list: bool,
    },
    /// A list of vectors.
    Rows,
    /// One vector or a list of vectors.
    RowOrRows,
    /// An object that maps chunk ids to vectors.
    NamedRows,
    /// One uploaded file.
    File,
    /// Uploaded files.
    Files,
}

impl Kind {
    /// Whether the value is read into vectors while the body is parsed.
    pub fn is_vectors(self) -> bool {
        matches!(self, Self::Rows | Self::RowOrRows | Self::NamedRows)
    }

    /// Returns the JSON schema of a value.
    pub fn schema(self) -> Value {
        let row = || array(json!({"type": "number"}), 1, limits::VECTOR_DIMENSION_MAX);
        let object = || json!({"type": "object", "additionalProperties": true});
        match self {
            Self::Identifier => json!({"type": "string", "maxLength": limits::ID_CHARS_MAX}),
            Self::Text { chars_max, is_filled } => {
                let min = usize::from(is_filled);
                json!({"type": "string", "minLength": min, "maxLength": chars_max})
            }
            Self::Content { .. } => json!({"type": "string", "minLength": 1}),
            Self::Integer { min, max, default: None } => {
                json!({"type": "integer", "minimum": min, "maximum": max})
            }
            Self::Integer { min, max, default: Some(default) } => {
                json!({"type": "integer", "minimum": min, "maximum": max, "default": default})
            }
            Self::Share { default } => {
                json!({"type": "number", "minimum": 0, "maximum": 1, "default": default})
            }
            Self::Alpha => json!({
                "anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "string"}],
                "default": 0.8,
            }),
            Self::Fuzzy => json!({"enum": [false, "auto", 1, 2], "default": false}),
            Self::GraphContext => {
                json!({"anyOf": [{"type": "boolean"}, {"type": "string", "enum": ["auto"]}]})
            }
            Self::Boolean { default } => json!({"type": "boolean", "default": default}),
            Self::BooleanOrAuto => json!({
                "anyOf": [{"type": "boolean"}, {"type": "string", "enum": ["auto"]}],
                "default": "auto",
            }),
            Self::Choice { words, default: None, .. } => json!({"type": "string", "enum": words}),
            Self::Choice { words, default: Some(default), .. } => {
                json!({"type": "string", "enum": words, "default": default})
            }
            Self::Texts { min, max } => array(json!({"type": "string"}), min, max),
            Self::Metadata | Self::Filter => object(),
            Self::MetadataOrList => {
                json!({"anyOf": [object(), {"type": "array", "items": object()}]})
            }
            Self::MetadataRows => {
                array(json!({"type": ["object", "null"]}), 1, limits::VECTOR_ROWS_MAX)
            }
            Self::Objects { item, min, max } => {
                array(object_schema(item.iter().copied()), min, max)
            }
            Self::Parts { members, is_list } => parts_schema(members, is_list),
            Self::Any { schema } | Self::Json { schema, .. } => schema(),
            Self::Number { min, max } => {
                json!({"type": "number", "minimum": min, "maximum": max})
            }
            Self::Inputs { max, tokens_max, has_tokens } => {
                inputs_schema(max, has_tokens.then_some(tokens_max))
            }
            Self::Moment => json!({"anyOf": [{"type": "number"}, {"type": "string"}]}),
            Self::Rows => array(row(), 1, limits::VECTOR_ROWS_MAX),
            Self::RowOrRows => {
                json!({"anyOf": [row(), array(row(), 1, limits::VECTOR_QUERIES_MAX)]})
            }
            Self::NamedRows => json!({
                "type": "object", "additionalProperties": row(), "minProperties": 1,
                "maxProperties": limits::VECTOR_ROWS_MAX,
            }),
            Self::File => json!({"type": "string", "format": "binary"}),
            Self::Files => {
                let file = json!({"type": "string", "format": "binary"});
                array(file, 1, limits::BATCH_ITEMS_MAX)
            }
        }
    }
}

/// Returns the schema of an object with these members, or of a list of such objects.
fn parts_schema(members: &[&Field], is_list: bool) -> Value {
    let object = object_schema(members.iter().copied());
    if is_list { json!({"type": "array", "items": object}) } else { object }
}

/// Returns the schema of up to `max` texts: with `tokens_max`, as strings or token ids; otherwise
/// as strings or objects.
fn inputs_schema(max: usize, tokens_max: Option<usize>) -> Value {
    let text = || json!({"type": "string"});
    let Some(tokens_max) = tokens_max else {
        let object =
            json!({"type": "object", "required": ["text"], "properties": {"text": text()}});
        return array(json!({"anyOf": [text(), object]}), 1, max);
    };
    let ids = || array(json!({"type": "integer", "minimum": 0}), 1, tokens_max);
    json!({"anyOf": [text(), array(text(), 1, max), ids(), array(ids(), 1, max)]})
}

/// One input field of an operation.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The primary name of the field.
    pub name: &'static str,
    /// Alternative names.
    pub aliases: &'static [&'static str],
    /// The documented location.
    pub location: Location,
    /// Whether the field is also accepted as query parameter, form part or JSON member.
    pub is_anywhere: bool,
    /// Whether the field is the whole JSON body rather than a member of it.
    pub is_whole: bool,
    /// The type of its values.
    pub kind: Kind,
    /// Whether the field is required.
    pub is_required: bool,
    /// Whether the field is accepted with any value and reported as ignored.
    pub is_without_effect: bool,
    /// One-line description.
    pub doc: &'static str,
}

impl Field {
    const fn new(
        location: Location,
        name: &'static str,
        kind: Kind,
        doc: &'static str,
        is_anywhere: bool,
    ) -> Self {
        let (is_whole, is_required, is_without_effect) = (false, false, false);
        Self {
            name,
            aliases: &[],
            location,
            is_anywhere,
            is_whole,
            kind,
            is_required,
            is_without_effect,
            doc,
        }
    }

    /// Declares an optional query parameter.
    pub const fn query(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self::new(Location::Query, name, kind, doc, matches!(kind, Kind::Identifier))
    }

    /// Declares an optional form part.
    pub const fn form(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self::new(Location::Form, name, kind, doc, matches!(kind, Kind::Identifier))
    }

    /// Declares an optional member of the JSON body.
    pub const fn body(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self::new(Location::Body, name, kind, doc, matches!(kind, Kind::Identifier))
    }

    /// Declares a part of the path.
    pub const fn path(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self::new(Location::Path, name, kind, doc, false).required()
    }

    /// Declares an optional header, with its name in lower case.
    pub const fn header(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self::new(Location::Header, name, kind, doc, false)
    }

    /// Makes the field required.
    pub const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    /// Also accepts the field in the query, the form and the JSON body.
    pub const fn anywhere(mut self) -> Self {
        self.is_anywhere = true;
        self
    }

    /// Makes the field the whole JSON body.
    pub const fn whole(mut self) -> Self {
        self.is_whole = true;
        self
    }

    /// Adds alternative names.
    pub const fn or(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Accepts the field without any effect.
    pub const fn without_effect(mut self) -> Self {
        self.is_without_effect = true;
        self
    }

    /// Iterates over the names of the field, the primary one first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Returns the field as a request sent it, for errors: under one of its names, at a location.
    pub(super) fn sent_as(&self, name: &'static str, location: Location) -> Self {
        Self { name, location, ..*self }
    }

    /// Whether a value found at `location` belongs to this field.
    pub fn may_stand_in(&self, location: Location) -> bool {
        self.location == location
            || (self.is_anywhere && !matches!(location, Location::Path | Location::Header))
    }

    /// Returns the description, including the alternative names.
    pub fn description(&self) -> String {
        let aliases: Vec<String> = self.aliases.iter().map(|name| format!("`{name}`")).collect();
        match aliases.is_empty() {
            true => self.doc.to_owned(),
            false => format!("{} Other names: {}.", self.doc, aliases.join(", ")),
        }
    }

    /// Returns the JSON schema of the value, with the description.
    pub fn schema(&self) -> Value {
        let mut schema = self.kind.schema();
        if let Some(members) = schema.as_object_mut() {
            members.insert("description".into(), self.description().into());
        }
        schema
    }
}

/// Returns the JSON schema of an object with these fields as members.
pub fn object_schema<'a>(fields: impl Iterator<Item = &'a Field>) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for field in fields {
        for name in field.names() {
            properties.insert(name.into(), field.schema());
        }
        if field.is_required {
            required.push(field.name);
        }
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// Returns the JSON schema of an array.
fn array(items: Value, min: usize, max: usize) -> Value {
    json!({"type": "array", "items": items, "minItems": min, "maxItems": max})
}
