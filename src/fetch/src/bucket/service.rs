//! Requests to services that issue credentials.

use std::fmt;

use serde::Deserialize;
use ureq::Agent;
use ureq::http::{Request, Uri};

use super::answers::Problem;

/// The content type header of a form.
pub(super) const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const BODY_BYTES_MAX: u64 = 64 << 10;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ErrorResponse {
    error: Problem,
}

/// The reason for a refusal, in JSON.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Refusal {
    #[serde(alias = "Code", alias = "error")]
    code: String,
    #[serde(alias = "Message", alias = "error_description")]
    message: String,
}

/// Combines the code and message of a refusal; `None` if both are empty.
pub(super) fn reason(code: &str, message: &str) -> Option<String> {
    (!code.is_empty() || !message.is_empty()).then(|| format!("{code}: {message}"))
}

/// Reads a token from a file.
pub(super) fn read(file: &str) -> Result<String, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    Ok(text.trim().to_owned())
}

/// Sends a request; returns the body of a successful response. Errors never contain secrets.
pub(super) fn answer(
    agent: &Agent,
    method: &str,
    address: &str,
    (name, value): (&str, &str),
    body: Option<String>,
) -> Result<String, String> {
    let request = Request::builder().method(method).uri(address).header(name, value);
    let failed = |error: &dyn fmt::Display| format!("{method} {}: {error}", origin(address));
    let request = request.body(body.unwrap_or_default()).map_err(|error| failed(&error))?;
    let sent = match method {
        "GET" => agent.run(request.map(|_| ())),
        _ => agent.run(request),
    };
    let answer = sent.map_err(|error| match method {
        "PUT" => failed(&format!(
            "{error} (for containers, the hop limit of the instance metadata must be 2)"
        )),
        _ => failed(&error),
    })?;
    let status = answer.status();
    let text = answer.into_body().into_with_config().limit(BODY_BYTES_MAX).read_to_string();
    let text = text.map_err(|error| failed(&error))?;
    if status.is_success() {
        return Ok(text);
    }
    let in_xml = quick_xml::de::from_str(&text)
        .map(|ErrorResponse { error }| format!("{}: {}", error.code, error.message));
    let in_json = || {
        serde_json::from_str(&text).ok().and_then(|told: Refusal| reason(&told.code, &told.message))
    };
    let told = in_xml.ok().or_else(in_json);
    Err(failed(&told.map_or(status.to_string(), |told| format!("{} {told}", status.as_u16()))))
}

/// Scheme, host and port of a URL.
pub(super) fn origin(address: &str) -> String {
    let uri: Option<Uri> = address.parse().ok();
    let parts = uri.as_ref().and_then(|uri| Some((uri.scheme_str()?, uri.host()?, uri.port_u16())));
    match parts {
        Some((scheme, host, Some(port))) => format!("{scheme}://{host}:{port}"),
        Some((scheme, host, None)) => format!("{scheme}://{host}"),
        None => "no address".to_owned(),
    }
}
