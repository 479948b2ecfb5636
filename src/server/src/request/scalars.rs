//! Reads numbers, booleans, words and times from a request.

use serde_json::Value;

use crate::error::ApiError;
use crate::request::field::{Field, Kind};
use crate::request::fields::{Fields, Given, misread, wrong};
use crate::request::moment;
use lodestone_engine::query::{Alpha, GraphContext};
use lodestone_text::Fuzzy;
use lodestone_types::Timestamp;

impl Fields {
    /// Reads an integer in the field's range; the default if absent.
    ///
    /// # Errors
    /// 400 for a wrong type or a value out of range.
    pub fn integer(&mut self, field: &Field) -> Result<Option<u64>, ApiError> {
        let Kind::Integer { min, max, default } = field.kind else { return Err(misread(field)) };
        let Some((field, given)) = self.find(field)? else { return Ok(default) };
        let value = match &given {
            Given::Text(text) => text.parse().ok(),
            Given::Json(value) => value.as_u64().or_else(|| {
                let whole = value.as_f64().filter(|n| n.fract() == 0.0 && *n >= 0.0 && *n < 1e15);
                whole.map(|n| n as u64)
            }),
        };
        match value {
            Some(value) if (min..=max).contains(&value) => Ok(Some(value)),
            Some(_) => Err(wrong(&field, field.location, &format!("must be from {min} to {max}"))),
            None => {
                let problem = format!("must be an integer from {min} to {max}");
                Err(wrong(&field, field.location, &problem))
            }
        }
    }

    /// Reads a number in the field's range.
    ///
    /// # Errors
    /// 400 for a wrong type or a value out of range.
    pub fn number(&mut self, field: &Field) -> Result<Option<f64>, ApiError> {
        let Kind::Number { min, max } = field.kind else { return Err(misread(field)) };
        let Some((field, given)) = self.find(field)? else { return Ok(None) };
        let value = match &given {
            Given::Text(text) => text.parse().ok(),
            Given::Json(value) => value.as_f64(),
        };
        match value.filter(|value| (min..=max).contains(value)) {
            Some(value) => Ok(Some(value)),
            None => {
                Err(wrong(&field, field.location, &format!("must be a number from {min} to {max}")))
            }
        }
    }

    /// Reads a number from 0 to 1; the default if absent.
    ///
    /// # Errors
    /// 400 for a wrong type or a value out of range.
    pub fn share(&mut self, field: &Field) -> Result<f32, ApiError> {
        let Kind::Share { default } = field.kind else { return Err(misread(field)) };
        let Some((field, given)) = self.find(field)? else { return Ok(default as f32) };
        let value = match &given {
            Given::Text(text) => text.parse().ok(),
            Given::Json(value) => value.as_f64(),
        };
        match value.filter(|value| (0.0..=1.0).contains(value)) {
            Some(value) => Ok(value as f32),
            None => Err(wrong(&field, field.location, "must be a number from 0 to 1")),
        }
    }

    /// Reads a number from 0 to 1, possibly as text, or `auto`.
    ///
    /// # Errors
    /// 400 for anything else.
    pub fn alpha(&mut self, field: &Field) -> Result<Alpha, ApiError> {
        let Some((field, given)) = self.find(field)? else { return Ok(Alpha::Default) };
        let value = match &given {
            Given::Text(text) | Given::Json(Value::String(text)) => {
                if text.trim().eq_ignore_ascii_case("auto") {
                    return Ok(Alpha::Auto);
                }
                text.trim().parse().ok()
            }
            Given::Json(value) => value.as_f64(),
        };
        match value.filter(|value| (0.0..=1.0).contains(value)) {
            Some(value) => Ok(Alpha::Fixed(value as f32)),
            None => Err(wrong(&field, field.location, "must be a number from 0 to 1, or 'auto'")),
        }
    }

    /// Reads the tolerance for misspellings; off if absent.
    ///
    /// # Errors
    /// 400 for anything except `false`, `auto`, 0, 1 and 2.
    pub fn fuzzy(&mut self, field: &Field) -> Result<Fuzzy, ApiError> {
        let Some((field, given)) = self.find(field)? else { return Ok(Fuzzy::Off) };
        let text = match &given {
            Given::Text(text) | Given::Json(Value::String(text)) => text.clone(),
            Given::Json(value) => value.to_string(),
        };
        match text.trim() {
            "false" | "0" => Ok(Fuzzy::Off),
            "auto" => Ok(Fuzzy::Auto),
            "1" => Ok(Fuzzy::Edits(1)),
            "2" => Ok(Fuzzy::Edits(2)),
            _ => Err(wrong(&field, field.location, "must be false, 'auto', 1 or 2")),
        }
    }

    /// Reads a boolean; the default if absent.
    ///
    /// # Errors
    /// 400 for a wrong type.
    pub fn boolean(&mut self, field: &Field) -> Result<bool, ApiError> {
        let Kind::Boolean { default } = field.kind else { return Err(misread(field)) };
        let Some((field, given)) = self.find(field)? else { return Ok(default) };
        match &given {
            Given::Json(Value::Bool(value)) => Ok(*value),
            Given::Text(text) => match text.as_str() {
                "true" | "1" => Ok(true),
                "false" | "0" => Ok(false),
                _ => Err(wrong(&field, field.location, "must be true, false, 1 or 0")),
            },
            Given::Json(_) => Err(wrong(&field, field.location, "must be true or false")),
        }
    }

    /// Reads a boolean; `None` for `auto` and if absent.
    ///
    /// # Errors
    /// 400 for anything else.
    pub fn boolean_or_auto(&mut self, field: &Field) -> Result<Option<bool>, ApiError> {
        let Some((field, given)) = self.find(field)? else { return Ok(None) };
        let text = match &given {
            Given::Json(Value::Bool(value)) => return Ok(Some(*value)),
            Given::Text(text) | Given::Json(Value::String(text)) => text.trim(),
            Given::Json(_) => "",
        };
        match text.to_ascii_lowercase().as_str() {
            "auto" => Ok(None),
            "true" => Ok(Some(true)),
            "false" => Ok(Some(false)),
            _ => Err(wrong(&field, field.location, "must be true, false or 'auto'")),
        }
    }

    /// Reads a boolean or `auto`; `None` if absent.
    ///
    /// # Errors
    /// 400 for anything else.
    pub fn graph_context(&mut self, field: &Field) -> Result<Option<GraphContext>, ApiError> {
        let Some((field, given)) = self.find(field)? else { return Ok(None) };
        let wanted = match &given {
            Given::Json(Value::Bool(true)) => GraphContext::On,
            Given::Json(Value::Bool(false)) => GraphContext::Off,
            Given::Json(Value::String(text)) if text == "auto" => GraphContext::Auto,
            _ => return Err(wrong(&field, field.location, "must be true, false or 'auto'")),
        };
        Ok(Some(wanted))
    }

    /// Reads one of the field's words; the default if absent.
    ///
    /// # Errors
    /// 400 for another word or a wrong type.
    pub fn choice(&mut self, field: &Field) -> Result<Option<&'static str>, ApiError> {
        let Kind::Choice { words, default, is_exact } = field.kind else {
            return Err(misread(field));
        };
        let Some((field, given)) = self.find(field)? else { return Ok(default) };
        let text = match &given {
            Given::Text(text) | Given::Json(Value::String(text)) => text.as_str(),
            Given::Json(_) => "",
        };
        let matches =
            |word: &&&str| **word == text || (!is_exact && word.eq_ignore_ascii_case(text));
        match words.iter().find(matches) {
            Some(word) => Ok(Some(word)),
            None => {
                let problem = format!("must be one of {}", words.join(", "));
                Err(wrong(&field, field.location, &problem))
            }
        }
    }

    /// Reads a point in time: epoch seconds as a number or text, or RFC 3339.
    ///
    /// # Errors
    /// 400 for anything else.
    pub fn moment(&mut self, field: &Field) -> Result<Option<Timestamp>, ApiError> {
        let Some((field, given)) = self.find(field)? else { return Ok(None) };
        let moment = match &given {
            Given::Text(text) | Given::Json(Value::String(text)) => moment::parse(text),
            Given::Json(value) => value.as_f64().and_then(moment::from_seconds),
        };
        let problem = "must be epoch seconds or an RFC 3339 time";
        moment.map(Some).ok_or_else(|| wrong(&field, field.location, problem))
    }
}
