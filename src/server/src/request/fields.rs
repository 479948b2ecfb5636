//! Reads typed input from the parts of a request: query, path, headers, form and JSON body.
//!
//! Each method takes a [`Field`] and enforces its declaration. A field counts as absent if it is
//! missing or `null`, and also if it is empty text in a query or form or for an identifier.

use serde_json::Value;

use crate::error::{ApiError, Location};
use crate::request::field::{Field, Kind};
use crate::request::indexed::{base, place};
use crate::request::members::{Item, JsonBody, Member};
use crate::request::multipart::{Form, UploadedFile};
use crate::request::tree::Allowance;
use crate::request::vectors::Vectors;
use lodestone_types::id::InvalidIdentifier;
use lodestone_types::{Scope, SubTenantId, TenantId};

/// A value as received.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Given {
    /// From a query string, a form or the path.
    Text(String),
    /// From the JSON body.
    Json(Value),
}

impl Given {
    pub(super) fn is_absent(&self, kind: Kind) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Json(Value::Null) => true,
            Self::Json(Value::String(text)) => text.is_empty() && matches!(kind, Kind::Identifier),
            Self::Json(_) => false,
        }
    }

    /// Whether two values are equal, even if one of them could only be sent as text.
    fn says_the_same(&self, other: &Self) -> bool {
        fn text(given: &Given) -> String {
            match given {
                Given::Text(text) | Given::Json(Value::String(text)) => text.clone(),
                Given::Json(value) => value.to_string(),
            }
        }
        self == other || text(self) == text(other)
    }
}

/// The complete input of one request.
#[derive(Debug, Default)]
pub struct Fields {
    /// Query parameters, decoded, in order.
    pub(crate) query: Vec<(String, String)>,
    /// Parts of the path.
    pub(crate) path: Vec<(String, String)>,
    /// Headers that the operation documents.
    pub(crate) headers: Vec<(String, String)>,
    /// The form.
    pub(crate) form: Form,
    /// The body of an operation that reads JSON Lines.
    pub(crate) lines: bytes::Bytes,
    /// The tenant, once it has been read.
    pub(super) tenant: Option<TenantId>,
    /// The JSON body.
    pub(crate) body: JsonBody,
    /// Fields that the operation declares; `None` within an item of a batch.
    pub(crate) documented: Option<&'static [&'static Field]>,
    /// Number of values that maps in the query and in form parts may still hold.
    pub(crate) allowance: Allowance,
}

impl Fields {
    /// Creates input that consists only of the text parts of a form.
    pub fn of_form_texts<'a>(texts: impl Iterator<Item = (&'a str, String)>) -> Self {
        let texts = texts.map(|(name, text)| (name.to_owned(), text)).collect();
        Self { form: Form { texts, ..Form::default() }, ..Self::default() }
    }

    /// Finds the value of a field, and returns it with the field as it was sent.
    pub(super) fn find(&mut self, field: &Field) -> Result<Option<(Field, Given)>, ApiError> {
        let mut found: Option<(Field, Given)> = None;
        for name in field.names() {
            for (location, given) in self.all_of(field, name)? {
                if given.is_absent(field.kind) {
                    continue;
                }
                match &found {
                    Some((_, earlier)) if !earlier.says_the_same(&given) => {
                        return Err(conflict(field, location));
                    }
                    Some(_) => {}
                    None => found = Some((field.sent_as(name, location), given)),
                }
            }
        }
        if found.is_none() && field.is_required {
            return Err(missing(field));
        }
        Ok(found)
    }

    /// Collects all values of `name` from the locations where the field is accepted.
    pub(super) fn all_of(
        &mut self,
        field: &Field,
        name: &str,
    ) -> Result<Vec<(Location, Given)>, ApiError> {
        debug_assert!(
            self.documented.is_none_or(|all| all.iter().any(|known| known.name == field.name)),
            "{} is read but not documented",
            field.name
        );
        let mut given = Vec::new();
        let texts = [
            (Location::Path, &self.path),
            (Location::Header, &self.headers),
            (Location::Query, &self.query),
            (Location::Form, &self.form.texts),
        ];
        for (location, pairs) in texts {
            if field.may_stand_in(location) {
                let of_name = pairs.iter().filter(|(other, _)| other == name);
                given.extend(of_name.map(|(_, text)| (location, Given::Text(text.clone()))));
            }
        }
        match self.body.take(name) {
            Some(Member::Value(value)) => given.push((Location::Body, Given::Json(value))),
            Some(Member::Refused(error)) => return Err(error),
            Some(_) => return Err(misread(field)),
            None => {}
        }
        Ok(given)
    }

    /// Returns the names of fields that were sent although they have no effect.
    pub(super) fn without_effect(&mut self) -> Vec<String> {
        let documented = self.documented.unwrap_or_default();
        let mut sent = Vec::new();
        for field in documented.iter().filter(|field| field.is_without_effect) {
            if !matches!(self.find(field), Ok(None)) {
                sent.push(field.name.to_owned());
            }
        }
        sent
    }

    /// Reads text of kind [`Kind::Text`], [`Kind::Content`] or [`Kind::Identifier`], which is not
    /// validated here.
    ///
    /// # Errors
    /// 400 for a wrong type or for blank or too long text; 413 for content over its byte limit.
    pub fn text(&mut self, field: &Field) -> Result<Option<String>, ApiError> {
        Ok(self.sent_text(field)?.map(|(_, text)| text))
    }

    /// As [`Self::text`], with the field as it was sent, for errors found later.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub fn sent_text(&mut self, field: &Field) -> Result<Option<(Field, String)>, ApiError> {
        let Some((field, given)) = self.find(field)? else { return Ok(None) };
        let wrong = |problem: &str| Err(wrong(&field, field.location, problem));
        let text = match given {
            Given::Text(text) | Given::Json(Value::String(text)) => text,
            Given::Json(_) => return wrong("must be a string"),
        };
        match field.kind {
            Kind::Text { is_filled: true, .. } | Kind::Content { .. } if is_blank(&text) => {
                return wrong("must not be blank");
            }
            Kind::Text { chars_max, .. } if text.chars().count() > chars_max => {
                return wrong(&format!("is longer than {chars_max} characters"));
            }
            Kind::Content { bytes_max } if text.len() > bytes_max => {
                let message = format!("{} is larger than {bytes_max} bytes", field.name);
                let error = ApiError::too_large("content_too_large", message);
                return Err(error.at(field.location, field.name));
            }
            _ => {}
        }
        Ok(Some((field, text)))
    }

    /// As [`Self::text`], for a required field.
    ///
    /// # Errors
    /// As [`Self::text`], and 400 `missing_field`.
    pub fn required_text(&mut self, field: &Field) -> Result<String, ApiError> {
        self.text(field)?.ok_or_else(|| missing(field))
    }

    /// Reads an identifier and validates it with `parse`.
    ///
    /// # Errors
    /// 400 `invalid_identifier`, `invalid_value` (not a text) or `missing_field`.
    pub fn id<T>(
        &mut self,
        field: &Field,
        parse: fn(&'static str, &str) -> Result<T, InvalidIdentifier>,
    ) -> Result<Option<T>, ApiError> {
        let Some((field, text)) = self.sent_text(field)? else { return Ok(None) };
        let parsed = parse(field.name, &text);
        parsed.map(Some).map_err(|error| ApiError::from(error).at(field.location, field.name))
    }

    /// Reads the tenant that the request addresses, which becomes its owner in the fair queue.
    ///
    /// # Errors
    /// As [`Self::id`].
    pub fn tenant(&mut self, field: &Field) -> Result<Option<TenantId>, ApiError> {
        let tenant = self.id(field, TenantId::parse_field)?;
        self.tenant.clone_from(&tenant);
        Ok(tenant)
    }

    /// Reads the tenant and sub-tenant that the request addresses.
    ///
    /// # Errors
    /// 400 if the tenant is missing or a name is invalid.
    pub fn scope(&mut self, tenant: &Field, sub_tenant: &Field) -> Result<Scope, ApiError> {
        let sub_tenant = self.id(sub_tenant, SubTenantId::parse_field);
        let tenant = self.tenant(tenant)?.ok_or_else(|| missing(tenant))?;
        let sub_tenant = sub_tenant?.unwrap_or_else(SubTenantId::default_name);
        Ok(Scope { tenant, sub_tenant })
    }

    /// Takes the vectors of the body.
    ///
    /// # Errors
    /// 400 `missing_field`, and errors found while the body was parsed.
    pub fn vectors(&mut self, field: &Field) -> Result<Vectors, ApiError> {
        match self.body.take(field.name) {
            Some(Member::Vectors(vectors)) => Ok(vectors),
            Some(Member::Refused(error)) => Err(error),
            _ => Err(missing(field)),
        }
    }

    /// Takes a list of objects, each with members of its own.
    ///
    /// # Errors
    /// 400 for a wrong type, or too many or too few entries.
    pub fn items(&mut self, field: &Field) -> Result<Option<Vec<Item>>, ApiError> {
        let Kind::Objects { min, .. } = field.kind else { return Err(misread(field)) };
        match self.body.take(field.name) {
            Some(Member::Items(items)) if items.len() < min => {
                let problem = format!("must have at least {min} entries");
                Err(wrong(field, Location::Body, &problem))
            }
            Some(Member::Items(items)) => Ok(Some(items)),
            Some(Member::Refused(error)) => Err(error),
            Some(Member::Value(Value::Null)) | None if field.is_required => Err(missing(field)),
            Some(Member::Value(Value::Null)) | None => Ok(None),
            Some(_) => Err(wrong(field, Location::Body, "must be an array of objects")),
        }
    }

    /// Checks an object that another reader will read.
    ///
    /// # Errors
    /// 400 for a wrong type, or a name that looks like a misspelling.
    pub fn parts(&mut self, field: &Field) -> Result<(), ApiError> {
        match self.body.take(field.name) {
            Some(Member::Refused(error)) => Err(error),
            _ => Ok(()),
        }
    }

    /// Takes the files uploaded under the field's name, in order.
    ///
    /// # Errors
    /// 400 `invalid_value` if indexes have gaps or repeat.
    pub fn files(&mut self, field: &Field) -> Result<Vec<UploadedFile>, ApiError> {
        let files = std::mem::take(&mut self.form.files);
        let (of_name, others) = files.into_iter().partition(|(part, _)| base(part) == field.name);
        self.form.files = others;
        in_order(field, of_name)
    }

    /// Returns the text parts of a form named `name`, `name[]` or `name[0]`, `name[1]` and so on,
    /// in order. If the field has several names, only one of them may be used.
    ///
    /// # Errors
    /// 400 `conflicting_values` if several names hold different parts; `invalid_value` if indexes
    /// have gaps or repeat.
    pub fn form_texts(&self, field: &Field) -> Result<Vec<String>, ApiError> {
        let mut found: Option<Vec<String>> = None;
        for name in field.names() {
            let of_name = self.form.texts.iter().filter(|(part, _)| base(part) == name);
            let list = in_order(field, of_name.cloned().collect())?;
            match &found {
                _ if list.is_empty() => {}
                Some(earlier) if *earlier != list => return Err(conflict(field, Location::Form)),
                _ => found = Some(list),
            }
        }
        Ok(found.unwrap_or_default())
    }
}

/// Orders the parts of one name by their indexes; without indexes, keeps the order received.
fn in_order<T>(field: &Field, parts: Vec<(String, T)>) -> Result<Vec<T>, ApiError> {
    let index = |part: &str| match &part[base(part).len()..] {
        "" | "[]" => None,
        index => {
            let digits = index.strip_prefix('[').and_then(|index| index.strip_suffix(']'));
            Some(digits.and_then(|digits| digits.parse().ok()).unwrap_or(usize::MAX))
        }
    };
    let mut parts: Vec<_> = parts.into_iter().map(|(part, value)| (index(&part), value)).collect();
    parts.sort_by_key(|(index, _)| *index);
    let has_indexes = parts.iter().any(|(index, _)| index.is_some());
    if parts.iter().enumerate().any(|(at, (index, _))| *index != has_indexes.then_some(at)) {
        let last = parts.len() - 1;
        let problem = format!("of {} parts must have the indexes [0] to [{last}]", parts.len());
        return Err(wrong(field, Location::Form, &problem));
    }
    Ok(parts.into_iter().map(|(_, value)| value).collect())
}

impl Item {
    /// Returns a reader for the members of the entry.
    ///
    /// # Errors
    /// The error of this entry: it is not an object, or has a name that looks like a misspelling.
    pub fn fields(self) -> Result<Fields, ApiError> {
        Ok(Fields { body: self.body?, ..Fields::default() })
    }
}

/// Reads the entries of a list of objects. An error names the entry.
///
/// # Errors
/// The error of the first entry that is invalid.
pub fn each<T>(
    field: &Field,
    items: Vec<Item>,
    read: impl Fn(Item) -> Result<T, ApiError>,
) -> Result<Vec<T>, ApiError> {
    let read = |(at, item)| read(item).map_err(|error| error.within(&place(field, at)));
    items.into_iter().enumerate().map(read).collect()
}

/// Whether a text has no visible content: only white space, control or invisible characters.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || c.is_control() || is_invisible(c))
}

/// Whether Unicode classifies the character as "default ignorable".
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Creates a 400 `conflicting_values`.
pub(super) fn conflict(field: &Field, location: Location) -> ApiError {
    let problem = match field.aliases {
        [] => "is given twice with different values".to_owned(),
        aliases => format!("(or {}) is given twice with different values", aliases.join(", ")),
    };
    ApiError::field("conflicting_values", location, field.name, &problem)
}

/// Creates a 400 `missing_field`.
pub fn missing(field: &Field) -> ApiError {
    ApiError::field("missing_field", field.location, field.name, "is required")
}

/// Creates a 400 `invalid_value`.
pub fn wrong(field: &Field, location: Location, problem: &str) -> ApiError {
    ApiError::field("invalid_value", location, field.name, problem)
}

/// Creates the error for a field that is read as another kind than declared, which is a server bug.
pub(super) fn misread(field: &Field) -> ApiError {
    ApiError::internal(format!(
        "field {} is read as a kind other than the declared one",
        field.name
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows_nothing_is_blank() {
        for blank in ["", " \n", "\0", "\u{200b}", "\u{feff}\u{2060} \u{e0020}", "\u{3000}\u{ad}"] {
            assert!(is_blank(blank), "{blank:?}");
        }
        for filled in ["x", "\u{200b}x", ".", "\u{1f600}\u{fe0f}", "か"] {
            assert!(!is_blank(filled), "{filled:?}");
        }
    }
}
