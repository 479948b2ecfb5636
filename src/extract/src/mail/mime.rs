//! Splits a message into its parts in one pass over its lines.
//!
//! A line that starts with two hyphens is compared with the open boundaries, innermost first; their
//! number is limited, so the cost is linear, however parts are nested. If a boundary never occurs,
//! the rest of its parent is one part. Enclosed messages are parts like any others, and are read as
//! documents of their own.

use std::ops::Range;

use crate::mail::header::Structured;

/// Maximum nesting of multiparts. Anything deeper is a single part of text.
const DEPTH_MAX: usize = 20;
/// Maximum number of parts of one message; further ones are not read.
const PARTS_MAX: usize = 1000;
/// Maximum number of headers examined per part.
const HEADERS_MAX: usize = 1000;

/// A header as written.
#[derive(Debug, Clone)]
pub(super) struct Header {
    /// The name, in lower case.
    pub name: String,
    /// Byte range of the value.
    pub value: Range<usize>,
}

/// A part that is not a multipart.
#[derive(Debug)]
pub(super) struct Part {
    /// Its headers.
    pub headers: Vec<Header>,
    /// Byte range of its content.
    pub body: Range<usize>,
    /// Its content type.
    pub content_type: Structured,
    /// Number of the multipart/alternative that it belongs to, if any.
    pub alternatives: Option<usize>,
}

/// An open multipart.
#[derive(Debug)]
struct Open {
    boundary: Vec<u8>,
    alternatives: Option<usize>,
    is_digest: bool,
}

/// The headers and parts of a message.
#[derive(Debug)]
pub(super) struct Parts {
    /// The headers of the message.
    pub headers: Vec<Header>,
    /// The parts in order.
    pub parts: Vec<Part>,
}

/// Splits a message.
pub(super) fn parts_of(bytes: &[u8]) -> Parts {
    let (headers, mut at) = headers_of(bytes, 0);
    let mut found = Parts { headers: headers.clone(), parts: Vec::new() };
    let mut open: Vec<Open> = Vec::new();
    let mut alternatives = 0;
    let mut part = Some(headers);
    while let Some(headers) = part.take() {
        let content_type = content_type_of(bytes, &headers, &open);
        let boundary = content_type.raw("boundary").filter(|boundary| !boundary.is_empty());
        let is_multipart = content_type.value.starts_with("multipart/");
        let start = at;
        if let Some(boundary) = boundary.filter(|_| is_multipart && open.len() < DEPTH_MAX) {
            let kind = content_type.value.as_str();
            let own = if kind == "multipart/alternative" {
                alternatives += 1;
                Some(alternatives)
            } else {
                open.last().and_then(|open| open.alternatives)
            };
            let is_digest = kind == "multipart/digest";
            let boundary = boundary.as_bytes().to_vec();
            open.push(Open { boundary, alternatives: own, is_digest });
            // A preamble before the first part is for readers without MIME.
            at = next_boundary(bytes, at, &mut open).1;
        } else {
            let alternatives = open.last().and_then(|open| open.alternatives);
            let (end, after) = next_boundary(bytes, at, &mut open);
            found.parts.push(Part { headers, body: start..end, content_type, alternatives });
            at = after;
        }
        if at < bytes.len() && found.parts.len() < PARTS_MAX {
            let (headers, after) = headers_of(bytes, at);
            at = after;
            part = Some(headers);
        }
    }
    found
}

/// Finds the end of the content that starts at `at`, and the start of the next part; closes
/// multiparts that end in between.
fn next_boundary(bytes: &[u8], at: usize, open: &mut Vec<Open>) -> (usize, usize) {
    let mut content_end = None;
    let mut line_start = at;
    while line_start < bytes.len() {
        let length = bytes[line_start..].iter().position(|&b| b == b'\n');
        let line_end = length.map_or(bytes.len(), |length| line_start + length + 1);
        let line = bytes[line_start..line_end].trim_ascii_end();
        if let Some((depth, is_last)) = boundary_of(line, open) {
            let end = *content_end.get_or_insert(before_line_end(bytes, at, line_start));
            open.truncate(if is_last { depth } else { depth + 1 });
            if !is_last {
                return (end, line_end);
            }
        }
        line_start = line_end;
    }
    open.clear();
    (content_end.unwrap_or(bytes.len()), bytes.len())
}

/// The depth of the open multipart that the line is a boundary of, and whether it is the final one.
fn boundary_of(line: &[u8], open: &[Open]) -> Option<(usize, bool)> {
    let word = line.strip_prefix(b"--")?;
    open.iter().enumerate().rev().find_map(|(depth, open)| {
        match word.strip_prefix(&*open.boundary)? {
            b"" => Some((depth, false)),
            b"--" => Some((depth, true)),
            _ => None,
        }
    })
}

/// Strips the line ending before a boundary, which belongs to the boundary.
fn before_line_end(bytes: &[u8], start: usize, line_start: usize) -> usize {
    let content = &bytes[start..line_start];
    let content = content.strip_suffix(b"\n").unwrap_or(content);
    let content = content.strip_suffix(b"\r").unwrap_or(content);
    start + content.len()
}

fn content_type_of(bytes: &[u8], headers: &[Header], open: &[Open]) -> Structured {
    let written = headers.iter().find(|header| header.name == "content-type");
    let mut found = match written {
        Some(header) => Structured::of(&bytes[header.value.clone()]),
        None => Structured::default(),
    };
    if !found.value.contains('/') {
        let is_digest = open.last().is_some_and(|open| open.is_digest);
        found.value = if is_digest { "message/rfc822" } else { "text/plain" }.to_owned();
    }
    found
}

/// Parses the headers that start at `at`; also returns the start of the content after the empty
/// line.
pub(super) fn headers_of(bytes: &[u8], at: usize) -> (Vec<Header>, usize) {
    let mut headers: Vec<Header> = Vec::new();
    let mut line_start = at;
    while line_start < bytes.len() {
        let length = bytes[line_start..].iter().position(|&b| b == b'\n');
        let line_end = length.map_or(bytes.len(), |length| line_start + length + 1);
        let line = bytes[line_start..line_end].trim_ascii_end();
        let is_folded = bytes[line_start] == b' ' || bytes[line_start] == b'\t';
        if line.is_empty() && !is_folded {
            return (headers, line_end);
        }
        if is_folded {
            if let Some(last) = headers.last_mut() {
                last.value.end = line_start + line.len().max(1);
            }
        } else if let Some(colon) = line.iter().position(|&b| b == b':')
            && is_name(&line[..colon])
        {
            if headers.len() < HEADERS_MAX {
                let name = String::from_utf8_lossy(&line[..colon]).trim().to_ascii_lowercase();
                let value = line_start + colon + 1..line_start + line.len();
                headers.push(Header { name, value });
            }
        } else {
            // Not a header: the content starts without an empty line.
            return (headers, line_start);
        }
        line_start = line_end;
    }
    (headers, bytes.len())
}

/// Whether these bytes can be the name of a header.
pub(super) fn is_name(name: &[u8]) -> bool {
    let name = name.trim_ascii_end();
    !name.is_empty() && name.len() <= 100 && name.iter().all(|b| (33..127).contains(b))
}
