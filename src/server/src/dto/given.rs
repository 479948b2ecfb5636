//! Attributes that an uploader states for a document or text: title, address, date and language
//! (docs/api.md, "Upload").

use serde_json::Value;

use crate::error::{ApiError, Location};
use crate::request::fields::wrong;
use crate::request::{Field, Fields, Kind};
use lodestone_types::{Origin, SourceDetail, language, limits};

const LINE: Kind = Kind::Text { chars_max: limits::APP_LINE_CHARS_MAX, is_filled: false };
const TAG: Kind = Kind::Text { chars_max: limits::LANGUAGE_CHARS_MAX, is_filled: false };
const OF_FILES: Kind = Kind::Texts { min: 0, max: limits::BATCH_ITEMS_MAX };

const TITLE: &str = "Title, at most 2,048 characters; takes precedence over any other.";
const URL: &str = "Absolute URI of the document, at most 2,048 characters; it is not fetched.";
const SOURCE_TIME: &str = "Date of the document as epoch seconds or RFC 3339, from 1970 to 9999; \
     used for recency and as `source_last_updated_time`.";
const LANGUAGE: &str = "Language of the document, a BCP 47 tag such as `en` or `pt-BR`.";

/// The fields that state the attributes of one document or text.
pub(super) struct GivenFields {
    title: &'static Field,
    url: &'static Field,
    source_time: &'static Field,
    language: &'static Field,
}

/// The fields as members of a JSON body.
pub(super) static BODY: GivenFields = GivenFields {
    title: &TITLE_BODY,
    url: &URL_BODY,
    source_time: &SOURCE_TIME_BODY,
    language: &LANGUAGE_BODY,
};
/// The fields as parts of a form.
pub(super) static FORM: GivenFields = GivenFields {
    title: &TITLE_FORM,
    url: &URL_FORM,
    source_time: &SOURCE_TIME_FORM,
    language: &LANGUAGE_FORM,
};

pub(super) static TITLE_BODY: Field = Field::body("title", LINE, TITLE);
pub(super) static URL_BODY: Field = Field::body("url", LINE, URL);
pub(super) static SOURCE_TIME_BODY: Field = Field::body("source_time", Kind::Moment, SOURCE_TIME);
pub(super) static LANGUAGE_BODY: Field = Field::body("language", TAG, LANGUAGE);

pub(super) static TITLE_FORM: Field = Field::form("title", LINE, TITLE);
pub(super) static URL_FORM: Field = Field::form("url", LINE, URL);
pub(super) static SOURCE_TIME_FORM: Field = Field::form("source_time", Kind::Moment, SOURCE_TIME);
pub(super) static LANGUAGE_FORM: Field = Field::form("language", TAG, LANGUAGE);

pub(super) static TITLES: Field = Field::form(
    "title",
    OF_FILES,
    "One title for all files or one per file, as a JSON array or repeated parts.",
);
pub(super) static URLS: Field = Field::form(
    "url",
    OF_FILES,
    "One URL for all files or one per file, as a JSON array or repeated parts.",
);
pub(super) static SOURCE_TIMES: Field = Field::form(
    "source_time",
    OF_FILES,
    "One date for all files or one per file, as a JSON array or repeated parts.",
);
pub(super) static LANGUAGES: Field = Field::form(
    "language",
    OF_FILES,
    "One language for all files or one per file, as a JSON array or repeated parts.",
);

/// Reads the attributes of one document.
///
/// # Errors
/// 400 for a wrong type or a value beyond its limit.
pub(super) fn origin(fields: &mut Fields, of: &GivenFields) -> Result<Origin, ApiError> {
    let mut line = |field: &'static Field| {
        let text = fields.text(field)?.unwrap_or_default();
        Ok::<_, ApiError>(text.trim().to_owned())
    };
    let (title, url, tag) = (line(of.title)?, line(of.url)?, line(of.language)?);
    if !url.is_empty() && !is_absolute(&url) {
        let problem = "must be an absolute URI, such as https://example.com/a.pdf";
        return Err(wrong(of.url, of.url.location, problem));
    }
    let language = match tag.as_str() {
        "" => String::new(),
        tag => language::canonical(tag).ok_or_else(|| {
            let problem = "must be a language tag (BCP 47), such as en, pt-BR or zh-Hant";
            wrong(of.language, of.language.location, problem)
        })?,
    };
    let source_time = fields.moment(of.source_time)?;
    let detail = SourceDetail { title, source_time, language, ..SourceDetail::default() };
    Ok(Origin { url, detail, ..Origin::default() })
}

/// As [`origin`], for an update, in which absent attributes keep their stored values.
///
/// # Errors
/// As [`origin`].
pub(super) fn origin_of_update(fields: &mut Fields, of: &GivenFields) -> Result<Origin, ApiError> {
    let mut origin = origin(fields, of)?;
    origin.detail.keeps = true;
    Ok(origin)
}

/// Reads the attributes of `count` files. An invalid value is an error of its file only.
///
/// # Errors
/// 400 for a list of the wrong length, or for text that starts like a JSON list but is not one.
pub(super) fn origins_of_files(
    fields: &Fields,
    count: usize,
) -> Result<Vec<Result<Origin, ApiError>>, ApiError> {
    let of_files = [
        (FORM.title.name, of_each(fields, &TITLES, count)?),
        (FORM.url.name, of_each(fields, &URLS, count)?),
        (FORM.source_time.name, of_each(fields, &SOURCE_TIMES, count)?),
        (FORM.language.name, of_each(fields, &LANGUAGES, count)?),
    ];
    let of_file = |at: usize| {
        let given = of_files.iter().map(|(name, texts)| (*name, texts[at].clone()));
        origin(&mut Fields::of_form_texts(given), &FORM)
    };
    Ok((0..count).map(of_file).collect())
}

/// Returns the value for each file; empty if there is none.
fn of_each(fields: &Fields, field: &'static Field, count: usize) -> Result<Vec<String>, ApiError> {
    let parts = fields.form_texts(field)?;
    let texts: Vec<String> = match parts.as_slice() {
        [] => return Ok(vec![String::new(); count]),
        [list] if list.trim_start().starts_with('[') => {
            fields.values(field, list)?.into_iter().map(text_of).collect()
        }
        [one] => return Ok(vec![one.clone(); count]),
        _ => parts,
    };
    match texts.len() == count {
        true => Ok(texts),
        false => {
            let problem = format!("has {} entries for {count} files", texts.len());
            Err(ApiError::field("count_mismatch", Location::Form, field.name, &problem))
        }
    }
}

fn text_of(value: Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// Whether a text looks like an absolute URI (RFC 3986 3): a scheme, a colon and a non-empty rest,
/// without white space.
fn is_absolute(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once(':') else { return false };
    let is_of_scheme = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(is_of_scheme)
        && !rest.is_empty()
        && !rest.contains(|c: char| c.is_whitespace() || c.is_control())
}
