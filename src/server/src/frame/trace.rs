//! The trace that a request belongs to, read and written as W3C Trace Context.
//!
//! ```text
//! traceparent: 00-<trace, 32 hex digits>-<span of the caller, 16>-<flags, 2>   in
//! traceparent: 00-<the same trace>-<our span>-<flags>                          out
//! ```
//! A request without a valid header starts a new trace.

use std::fmt;

use http::{HeaderMap, HeaderValue};

use lodestone_types::IdSource;

/// Name of the trace header.
pub const TRACEPARENT: &str = "traceparent";
/// Flag set for a trace that is recorded.
const SAMPLED: u8 = 1;

/// The trace of a request and its position within that trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    trace: u128,
    /// The caller's span; 0 if there is none.
    parent: u64,
    span: u64,
    is_sampled: bool,
}

impl TraceContext {
    /// Reads the trace that the caller names. Without one, starts a new trace, which is recorded if
    /// `is_recording`.
    pub fn of(headers: &HeaderMap, ids: &dyn IdSource, is_recording: bool) -> Self {
        let mut random = [0; 24];
        ids.fill(&mut random);
        let (trace, span) = random.split_at(16);
        // The specification reserves 0 for both ids.
        let trace = u128::from_be_bytes(trace.try_into().expect("16 bytes")).max(1);
        let span = u64::from_be_bytes(span.try_into().expect("8 bytes")).max(1);
        let mut values = headers.get_all(TRACEPARENT).iter();
        let named = values.next().and_then(|value| parsed(value.to_str().ok()?));
        match (named, values.next()) {
            (Some((trace, parent, is_sampled)), None) => Self { trace, parent, span, is_sampled },
            _ => Self { trace, parent: 0, span, is_sampled: is_recording },
        }
    }

    /// Whether the trace is recorded.
    pub fn is_sampled(&self) -> bool {
        self.is_sampled
    }

    /// Formats the header of the response.
    pub fn header(&self) -> HeaderValue {
        let flags = if self.is_sampled { SAMPLED } else { 0 };
        let text = format!("00-{:032x}-{:016x}-{flags:02x}", self.trace, self.span);
        HeaderValue::try_from(text).expect("hex digits are a header")
    }

    /// Creates the span that encloses all work for the request, so that every log line within
    /// carries its ids. It has the highest level so that no filter removes it. With `is_left_out`,
    /// it is not sent to the collector.
    pub fn span(&self, request_id: &str, is_left_out: bool) -> tracing::Span {
        let span = tracing::error_span!(
            target: "lodestone_request",
            "request",
            request_id,
            trace_id = %Hex(self.trace, 32),
            span_id = %Hex(self.span.into(), 16),
            parent_id = tracing::field::Empty,
            sampled = tracing::field::Empty,
        );
        if self.parent != 0 {
            span.record("parent_id", tracing::field::display(Hex(self.parent.into(), 16)));
        }
        if is_left_out {
            span.record("sampled", false);
        }
        span
    }
}

/// Formats a number as lower-case hex digits, padded to the given width.
struct Hex(u128, usize);

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number, digits) = *self;
        write!(f, "{number:0digits$x}")
    }
}

/// Parses trace, parent span and the sampled flag. Later versions of the standard may append
/// fields.
fn parsed(text: &str) -> Option<(u128, u64, bool)> {
    let mut fields = text.split('-');
    let version = number(fields.next()?, 2)? as u8;
    let (trace, span) = (number(fields.next()?, 32)?, number(fields.next()?, 16)? as u64);
    let flags = number(fields.next()?, 2)? as u8;
    let is_known = version != 0xff && (version > 0 || fields.next().is_none());
    (is_known && trace != 0 && span != 0).then_some((trace, span, flags & SAMPLED != 0))
}

fn number(digits: &str, count: usize) -> Option<u128> {
    let is_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    let is_number = digits.len() == count && digits.bytes().all(is_digit);
    is_number.then(|| u128::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodestone_types::SeededIds;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

    fn answered(values: &[&str], is_recording: bool) -> String {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(TRACEPARENT, HeaderValue::from_str(value).unwrap());
        }
        let context = TraceContext::of(&headers, &SeededIds::new(7), is_recording);
        context.header().to_str().unwrap().to_owned()
    }

    #[test]
    fn a_trace_is_gone_on_with() {
        let named = format!("00-{TRACE}-b7ad6b7169203331-01");
        let answer = answered(&[&named], false);
        assert!(answer.starts_with(&format!("00-{TRACE}-")) && answer.ends_with("-01"), "{answer}");
        assert!(!answer.contains("b7ad6b7169203331"), "our own span: {answer}");
        let unsampled = answered(&[&named.replace("-01", "-00")], true);
        assert!(unsampled.contains(TRACE) && unsampled.ends_with("-00"), "{unsampled}");
        let later = answered(&[&format!("01-{TRACE}-b7ad6b7169203331-03-what-comes")], false);
        assert!(later.contains(TRACE) && later.ends_with("-01"), "{later}");
    }

    #[test]
    fn nonsense_begins_a_trace() {
        let zeros = "0".repeat(32);
        for wrong in [
            String::new(),
            TRACE.to_owned(),
            format!("00-{TRACE}-b7ad6b7169203331"),
            format!("00-{TRACE}-b7ad6b7169203331-1"),
            format!("00-{TRACE}-b7ad6b7169203331-01-more"),
            format!("ff-{TRACE}-b7ad6b7169203331-01"),
            format!("00-{zeros}-b7ad6b7169203331-01"),
            format!("00-{TRACE}-0000000000000000-01"),
            format!("00-{}-b7ad6b7169203331-01", TRACE.to_uppercase()),
            format!("00-+{}-b7ad6b7169203331-01", &TRACE[1..]),
        ] {
            let answer = answered(&[&wrong], true);
            assert!(!answer.contains(TRACE) && !answer.contains(&zeros), "{wrong}: {answer}");
            assert!(answer.len() == 55 && answer.ends_with("-01"), "{wrong}: {answer}");
        }
        let named = format!("00-{TRACE}-b7ad6b7169203331-01");
        assert!(!answered(&[&named, &named], false).contains(TRACE), "two say nothing");
        assert!(answered(&[], false).ends_with("-00"));
    }
}
