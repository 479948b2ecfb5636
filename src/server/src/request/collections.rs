//! Reads lists and maps from a request.

use serde_json::Value;

use crate::error::{ApiError, Location};
use crate::request::field::{Field, Kind};
use crate::request::fields::{Fields, Given, conflict, misread, missing, wrong};
use crate::request::indexed::{base, place};
use crate::request::inputs::Inputs;
use crate::request::json;
use crate::request::members::Member;
use lodestone_types::metadata::{self, InvalidMetadata};
use lodestone_types::{Metadata, SourceId};

impl Fields {
    /// Reads a list of texts: a JSON array, or repeated query parameters if the field allows them.
    ///
    /// # Errors
    /// 400 for a wrong type, too many or too few entries, or two lists that differ.
    pub fn texts(&mut self, field: &Field) -> Result<Option<Vec<String>>, ApiError> {
        Ok(self.sent_texts(field)?.map(|(_, texts)| texts))
    }

    fn sent_texts(&mut self, field: &Field) -> Result<Option<(Field, Vec<String>)>, ApiError> {
        let Kind::Texts { min, max } = field.kind else { return Err(misread(field)) };
        let mut found: Option<(Field, Vec<String>)> = None;
        for name in field.names() {
            let mut all = self.all_of(field, name)?;
            all.retain(|(_, given)| !given.is_absent(field.kind));
            for of_place in all.chunk_by_mut(|(one, _), (other, _)| one == other) {
                let sent = field.sent_as(name, of_place[0].0);
                let mut texts = Vec::new();
                for (_, given) in of_place {
                    add_texts(&sent, given, &mut texts)?;
                }
                match &found {
                    Some((_, earlier)) if *earlier != texts => {
                        return Err(conflict(field, sent.location));
                    }
                    Some(_) => {}
                    None => found = Some((sent, texts)),
                }
            }
        }
        match &found {
            Some((sent, texts)) => check_count(sent, texts.len(), min, max)?,
            None if field.is_required => return Err(missing(field)),
            None => {}
        }
        Ok(found)
    }

    /// Reads a list of source ids.
    ///
    /// # Errors
    /// As [`Self::texts`], and 400 `invalid_identifier`.
    pub fn source_ids(&mut self, field: &Field) -> Result<Option<Vec<SourceId>>, ApiError> {
        let Some((field, texts)) = self.sent_texts(field)? else { return Ok(None) };
        let parse = |(at, text): (usize, &String)| {
            SourceId::parse(text).map_err(|error| {
                let (reason, place) = ("invalid_identifier", place(&field, at));
                ApiError::field(reason, field.location, &place, error.problem)
            })
        };
        texts.iter().enumerate().map(parse).collect::<Result<Vec<_>, _>>().map(Some)
    }

    /// Reads a metadata map and checks its size, depth and keys.
    ///
    /// # Errors
    /// 400 for a wrong type, excessive depth or bad keys; 413 over 64 KiB.
    pub fn metadata(&mut self, field: &Field) -> Result<Option<Metadata>, ApiError> {
        let Some((field, given)) = self.find(field)? else { return Ok(None) };
        match self.json_of(&field, given)? {
            Value::Null => Ok(None),
            Value::Object(map) => checked_metadata(&field, field.location, map).map(Some),
            _ => Err(wrong(&field, field.location, "must be a JSON object")),
        }
    }

    /// Reads a filter object without interpreting it.
    ///
    /// # Errors
    /// 400 `invalid_filter` for a wrong type.
    pub fn filter(&mut self, field: &Field) -> Result<Option<Metadata>, ApiError> {
        let Some((field, given)) = self.find(field)? else { return Ok(None) };
        match self.json_of(&field, given)? {
            Value::Null => Ok(None),
            Value::Object(map) => Ok(Some(map)),
            _ => {
                let problem = "must be a JSON object";
                Err(ApiError::field("invalid_filter", field.location, field.name, problem))
            }
        }
    }

    /// Reads a JSON value of limited size.
    ///
    /// # Errors
    /// Errors found while the body was parsed.
    pub fn json(&mut self, field: &Field) -> Result<Option<Value>, ApiError> {
        let Some((field, given)) = self.find(field)? else { return Ok(None) };
        Ok(Some(self.json_of(&field, given)?).filter(|value| !value.is_null()))
    }

    /// Reads texts or token ids, if the field is given.
    ///
    /// # Errors
    /// 400 `missing_field` for a required field, and errors found while the body was parsed.
    pub fn inputs(&mut self, field: &Field) -> Result<Option<Inputs>, ApiError> {
        match self.body.take(field.name) {
            Some(Member::Inputs(inputs)) => Ok(Some(inputs)),
            Some(Member::Refused(error)) => Err(error),
            _ if field.is_required => Err(missing(field)),
            _ => Ok(None),
        }
    }

    /// Reads metadata for a batch of `count` items: one map for all, or a list with one per item,
    /// which a form may send as one part per item, each with its index.
    ///
    /// # Errors
    /// As [`Self::metadata`], and 400 `count_mismatch`.
    pub fn metadata_of_items(
        &mut self,
        field: &Field,
        count: usize,
    ) -> Result<Vec<Option<Metadata>>, ApiError> {
        let found = match self.indexed_json(field)? {
            Some(items) => Some((*field, Given::Json(items))),
            None => self.find(field)?,
        };
        let Some((field, given)) = found else { return Ok(vec![None; count]) };
        let (location, field) = (field.location, &field);
        let items = match self.json_of(field, given)? {
            Value::Null => return Ok(vec![None; count]),
            Value::Object(map) if !matches!(field.kind, Kind::MetadataRows) => {
                let map = checked_metadata(field, location, map)?;
                return Ok(vec![Some(map); count]);
            }
            Value::Array(items) => items,
            _ if matches!(field.kind, Kind::MetadataRows) => {
                return Err(wrong(field, location, "must be a list of JSON objects"));
            }
            _ => return Err(wrong(field, location, "must be a JSON object or a list of them")),
        };
        if items.len() != count {
            let problem = format!("has {} entries for {count} items", items.len());
            return Err(ApiError::field("count_mismatch", location, field.name, &problem));
        }
        let read = |item| match item {
            Value::Null => Ok(None),
            Value::Object(map) => checked_metadata(field, location, map).map(Some),
            _ => Err(wrong(field, location, "must be a JSON object")),
        };
        let read =
            |(at, item)| read(item).map_err(|error: ApiError| error.within(&place(field, at)));
        items.into_iter().enumerate().map(read).collect()
    }

    /// Reads the entries of a JSON list in the text of a form part, of any type.
    ///
    /// # Errors
    /// 400 if the text is not a JSON array or has too many entries.
    pub fn values(&self, field: &Field, text: &str) -> Result<Vec<Value>, ApiError> {
        match json::value_of_text(text, field, Location::Form, &self.allowance)? {
            Value::Array(items) => Ok(items),
            _ => Err(wrong(field, Location::Form, "must be a JSON array")),
        }
    }

    /// Returns the list whose entries are the JSON texts of the form parts `name[0]`, `name[1]` and
    /// so on; `None` if there are no such parts. An empty part is null.
    fn indexed_json(&self, field: &Field) -> Result<Option<Value>, ApiError> {
        let is_indexed =
            |part: &str| part.contains('[') && field.names().any(|name| name == base(part));
        if !self.form.texts.iter().any(|(part, _)| is_indexed(part)) {
            return Ok(None);
        }
        let read = |text: &String| match text.trim() {
            "" => Ok(Value::Null),
            text => json::value_of_text(text, field, Location::Form, &self.allowance),
        };
        let texts = self.form_texts(field)?;
        let items = texts.iter().enumerate().map(|(at, text)| {
            read(text).map_err(|error: ApiError| error.within(&place(field, at)))
        });
        Ok(Some(Value::Array(items.collect::<Result<_, _>>()?)))
    }

    fn json_of(&self, field: &Field, given: Given) -> Result<Value, ApiError> {
        match given {
            Given::Json(value) => Ok(value),
            Given::Text(text) => json::value_of_text(&text, field, field.location, &self.allowance),
        }
    }
}

fn add_texts(field: &Field, given: &mut Given, texts: &mut Vec<String>) -> Result<(), ApiError> {
    let wrong_type = || wrong(field, field.location, "must be an array of strings");
    match given {
        Given::Text(text) => texts.push(std::mem::take(text)),
        Given::Json(Value::Array(items)) => {
            for item in items {
                let Value::String(text) = item else { return Err(wrong_type()) };
                texts.push(std::mem::take(text));
            }
        }
        Given::Json(_) => return Err(wrong_type()),
    }
    Ok(())
}

fn check_count(field: &Field, count: usize, min: usize, max: usize) -> Result<(), ApiError> {
    if count > max {
        let problem = format!("has {count} entries; at most {max} are allowed");
        return Err(ApiError::field("too_many_items", field.location, field.name, &problem));
    }
    if count < min {
        return Err(wrong(field, field.location, &format!("must have at least {min} entries")));
    }
    Ok(())
}

/// Checks the size, depth and keys of a metadata map.
///
/// # Errors
/// 413 `content_too_large` over 64 KiB, 400 `invalid_value` for its depth or keys.
pub fn checked_metadata(
    field: &Field,
    location: Location,
    map: Metadata,
) -> Result<Metadata, ApiError> {
    match metadata::check(&map) {
        Ok(()) => Ok(map),
        Err(error @ InvalidMetadata::TooLarge { .. }) => {
            let message = format!("{} {error}", field.name);
            Err(ApiError::too_large("content_too_large", message).at(location, field.name))
        }
        Err(error) => Err(wrong(field, location, &error.to_string())),
    }
}
