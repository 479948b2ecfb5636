//! Notes that accompany the content of a response: ignored parameters, missing data, warnings.

use http::{HeaderMap, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

/// Header that lists ignored parameters.
pub const IGNORED_HEADER: &str = "x-ignored-parameters";
/// Body member that lists ignored parameters.
pub const IGNORED_MEMBER: &str = "ignored_parameters";

/// Header that marks an answer from incomplete data.
pub const DEGRADED_HEADER: &str = "x-lodestone-degraded";
/// Header with a comma-separated list of warnings.
pub const WARNINGS_HEADER: &str = "x-lodestone-warnings";

/// Characters of a warning that are percent-encoded in the header.
const IN_WARNING: &AsciiSet = &CONTROLS.add(b'%').add(b',');

/// Characters of a name that are percent-encoded in the header.
const IN_HEADER: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%').add(b',');

/// Returns the value of the header that lists ignored parameters.
fn ignored_header(names: &[String]) -> HeaderValue {
    let encoded: Vec<String> =
        names.iter().map(|name| utf8_percent_encode(name, IN_HEADER).to_string()).collect();
    HeaderValue::try_from(encoded.join(", ")).expect("percent-encoded text is plain ASCII")
}

/// Adds the names of ignored parameters to the top level of a JSON body, if there are any and the
/// body is an object without `metadata`, which lists them itself.
pub fn naming(mut json: Vec<u8>, ignored: &[String]) -> Vec<u8> {
    #[derive(Deserialize)]
    struct Top {
        metadata: Option<IgnoredAny>,
    }
    let has_place = || matches!(serde_json::from_slice(&json), Ok(Top { metadata: None }));
    if ignored.is_empty() || !json.ends_with(b"}") || !has_place() {
        return json;
    }
    json.pop();
    let separator = if json.len() > 1 { "," } else { "" };
    let names = Value::from(ignored);
    json.extend_from_slice(format!("{separator}\"{IGNORED_MEMBER}\":{names}}}").as_bytes());
    json
}

/// Sets the header that lists ignored parameters, if there are any.
pub fn tell_ignored(headers: &mut HeaderMap, ignored: &[String]) {
    if !ignored.is_empty() {
        headers.insert(IGNORED_HEADER, ignored_header(ignored));
    }
}

/// Sets the header that lists the parts missing from an answer, if there are any.
pub fn tell_degraded(headers: &mut HeaderMap, degraded: &[String]) {
    if !degraded.is_empty()
        && let Ok(value) = HeaderValue::try_from(degraded.join(", "))
    {
        headers.insert(DEGRADED_HEADER, value);
    }
}

/// Sets the header of warnings, if there are any.
pub fn tell_warnings(headers: &mut HeaderMap, warnings: &[String]) {
    if warnings.is_empty() {
        return;
    }
    let encoded: Vec<String> =
        warnings.iter().map(|text| utf8_percent_encode(text, IN_WARNING).to_string()).collect();
    let value = HeaderValue::try_from(encoded.join(", "));
    headers.insert(WARNINGS_HEADER, value.expect("percent-encoded text is plain ASCII"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_names_join_an_object_that_has_no_other_place_for_them() {
        let naming = |json: &str| {
            let named = naming(json.as_bytes().to_vec(), &["a\"b".to_owned()]);
            String::from_utf8(named).unwrap()
        };
        let names = r#""ignored_parameters":["a\"b"]"#;
        assert_eq!(naming("{}"), format!("{{{names}}}"));
        assert_eq!(naming(r#"{"x":[1]}"#), format!(r#"{{"x":[1],{names}}}"#));
        for kept in ["[]", r#"[{"x":1}]"#, r#"{"metadata":{"x":1}}"#] {
            assert_eq!(naming(kept), kept);
        }
    }

    #[test]
    fn names_are_encoded_for_a_header() {
        let names = ["a,b".to_owned(), "c\n\u{e9}".to_owned()];
        assert_eq!(ignored_header(&names), "a%2Cb, c%0A%C3%A9");
    }
}
