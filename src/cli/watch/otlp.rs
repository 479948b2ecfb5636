//! Formats finished spans as OTLP 1 JSON, which collectors accept at `/v1/traces`.
//!
//! Ids are lower-case hex, 64-bit numbers are strings, kinds and codes are numbers.

use serde_json::{Value, json};

/// Span kind of a request.
const SERVER: u8 = 2;
/// Span kind of internal work.
const INTERNAL: u8 = 1;
/// Status code of an error.
const ERROR: u8 = 2;

/// A span that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedSpan {
    /// Trace id.
    pub trace: u128,
    /// Span id.
    pub id: u64,
    /// Id of the enclosing span; 0 if there is none.
    pub parent: u64,
    /// Name of the stage.
    pub name: &'static str,
    /// Whether the span covers a request.
    pub is_request: bool,
    /// Start in nanoseconds since 1970.
    pub start: u64,
    /// End in nanoseconds since 1970.
    pub end: u64,
    /// Attributes: texts, numbers or booleans.
    pub attributes: Vec<(&'static str, Value)>,
    /// Whether the work failed.
    pub is_error: bool,
}

/// Builds the body of an export request.
pub fn body(service: &str, spans: &[FinishedSpan]) -> Value {
    let version = env!("CARGO_PKG_VERSION");
    let resource =
        [("service.name", Value::from(service)), ("service.version", Value::from(version))];
    json!({"resourceSpans": [{
        "resource": {"attributes": attributes(&resource)},
        "scopeSpans": [{
            "scope": {"name": "lodestone", "version": version},
            "spans": spans.iter().map(span).collect::<Vec<_>>(),
        }],
    }]})
}

fn span(span: &FinishedSpan) -> Value {
    let FinishedSpan { trace, id, parent, name, is_request, start, end, .. } = span;
    let mut written = json!({
        "traceId": format!("{trace:032x}"),
        "spanId": format!("{id:016x}"),
        "name": name,
        "kind": if *is_request { SERVER } else { INTERNAL },
        "startTimeUnixNano": start.to_string(),
        "endTimeUnixNano": end.to_string(),
        "attributes": attributes(&span.attributes),
    });
    if *parent != 0 {
        written["parentSpanId"] = format!("{parent:016x}").into();
    }
    if span.is_error {
        written["status"] = json!({"code": ERROR});
    }
    written
}

fn attributes(attributes: &[(&'static str, Value)]) -> Value {
    let one = |(key, value): &(&'static str, Value)| {
        let value = match value {
            Value::Bool(_) => json!({"boolValue": value}),
            Value::Number(number) if number.is_f64() => json!({"doubleValue": number}),
            Value::Number(number) => json!({"intValue": number.to_string()}),
            Value::String(text) => json!({"stringValue": text}),
            other => json!({"stringValue": other.to_string()}),
        };
        json!({"key": key, "value": value})
    };
    attributes.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_is_that_of_the_standard() {
        let attributes = vec![
            ("http.route", "/search/qna".into()),
            ("http.response.status_code", 500.into()),
            ("share", 0.5.into()),
            ("cached", true.into()),
        ];
        let root = FinishedSpan {
            trace: 0xabc,
            id: 0x12,
            parent: 0,
            name: "request",
            is_request: true,
            start: 1_700_000_000_000_000_001,
            end: 1_700_000_000_000_000_009,
            attributes,
            is_error: true,
        };
        let inner = FinishedSpan {
            id: 0x13,
            parent: 0x12,
            is_request: false,
            is_error: false,
            attributes: Vec::new(),
            ..root.clone()
        };
        let body = body("mine", &[root, inner]);
        let resource = &body["resourceSpans"][0];
        assert_eq!(
            resource["resource"]["attributes"][0],
            json!({"key": "service.name", "value": {"stringValue": "mine"}})
        );
        let spans = &resource["scopeSpans"][0]["spans"];
        assert_eq!(
            spans[0],
            json!({
                "traceId": "00000000000000000000000000000abc",
                "spanId": "0000000000000012",
                "name": "request",
                "kind": 2,
                "startTimeUnixNano": "1700000000000000001",
                "endTimeUnixNano": "1700000000000000009",
                "attributes": [
                    {"key": "http.route", "value": {"stringValue": "/search/qna"}},
                    {"key": "http.response.status_code", "value": {"intValue": "500"}},
                    {"key": "share", "value": {"doubleValue": 0.5}},
                    {"key": "cached", "value": {"boolValue": true}},
                ],
                "status": {"code": 2},
            })
        );
        assert_eq!(
            (&spans[1]["parentSpanId"], &spans[1]["kind"]),
            (&"0000000000000012".into(), &1.into())
        );
        assert_eq!(spans[1].get("status"), None);
    }
}
