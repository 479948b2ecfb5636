//! Checks the bytes of a file before the library parses them.
//!
//! The parser recurses into arrays and dictionaries, so a file with deeper nesting than any program
//! writes is rejected. For compressed streams the parser has its own limit, and the extraction
//! process has little memory and time.

use crate::{DEPTH_MAX, ExtractError};

/// Maximum objects per file: a thousand pages have tens of thousands.
pub(super) const OBJECTS_MAX: usize = 500_000;

/// End-of-file marker, and the bytes at the end in which it is searched: some programs write more
/// after it.
const FILE_END: &[u8] = b"%%EOF";
const FILE_END_BYTES: usize = 4096;
/// Keyword at the end of a stream.
const STREAM_END: &[u8] = b"endstream";

/// Rejects files with too deeply nested arrays and dictionaries or too many objects.
pub(super) fn check(bytes: &[u8]) -> Result<(), ExtractError> {
    if nests_too_deep(bytes) {
        let what = "nested arrays and dictionaries in a PDF";
        return Err(ExtractError::BeyondLimit { what, max: DEPTH_MAX });
    }
    if occurrences(bytes, b"endobj") > OBJECTS_MAX {
        return Err(too_many_objects());
    }
    Ok(())
}

/// Whether the end of a file is missing.
pub(super) fn is_cut_off(bytes: &[u8]) -> bool {
    find(&bytes[bytes.len().saturating_sub(FILE_END_BYTES)..], FILE_END).is_none()
}

/// The error for a file with too many objects.
pub(super) fn too_many_objects() -> ExtractError {
    ExtractError::BeyondLimit { what: "objects in a PDF", max: OBJECTS_MAX }
}

/// Whether any array or dictionary outside strings and streams is nested deeper than [`DEPTH_MAX`].
/// Runs in one pass: after one string (or stream) without an end, no more are skipped, which only
/// makes the check stricter.
pub(super) fn nests_too_deep(bytes: &[u8]) -> bool {
    let (mut at, mut depth) = (0, 0_usize);
    let (mut strings_end, mut streams_end) = (true, true);
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'(' if strings_end => match string_end(bytes, at) {
                Some(end) => at = end,
                None => strings_end = false,
            },
            b'%' => at += bytes[at..].iter().take_while(|b| !matches!(b, b'\r' | b'\n')).count(),
            b'[' | b'<' => depth += 1,
            b']' | b'>' => depth = depth.saturating_sub(1),
            // Nesting ends with the object: a damaged object must not affect the next ones.
            b'e' if bytes[at..].starts_with(b"ndobj") => depth = 0,
            b's' if streams_end && begins_stream(&bytes[at..]) => {
                match find(&bytes[at..], STREAM_END) {
                    Some(end) => at += end + STREAM_END.len(),
                    None => streams_end = false,
                }
            }
            _ => {}
        }
        // A dictionary opens with two brackets.
        if depth > 2 * DEPTH_MAX {
            return true;
        }
    }
    false
}

/// The byte after the string whose first byte is at `at`; strings have balanced parentheses.
fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 1_usize;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'\\' => at += 1,
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Whether the `s` before these bytes starts a stream.
fn begins_stream(rest: &[u8]) -> bool {
    rest.starts_with(b"tream\r") || rest.starts_with(b"tream\n")
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}

fn occurrences(bytes: &[u8], needle: &[u8]) -> usize {
    bytes.windows(needle.len()).filter(|window| *window == needle).count()
}

/// Whether the file contains images. Image dictionaries are never compressed.
pub(super) fn has_pictures(bytes: &[u8]) -> bool {
    let names = bytes.windows(b"/Image".len()).enumerate();
    names.filter(|(_, window)| *window == b"/Image").any(|(at, _)| {
        let before = bytes[..at].trim_ascii_end();
        before.ends_with(b"/Subtype")
    })
}

/// Whether the trailer declares encryption.
pub(super) fn says_encrypted(bytes: &[u8]) -> bool {
    find(bytes, b"/Encrypt").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_is_counted_outside_of_strings_and_streams() {
        let nested = |depth: usize| [b"[".repeat(depth), b"]".repeat(depth)].concat();
        assert!(check(&nested(DEPTH_MAX)).is_ok());
        assert!(check(&nested(100_000)).is_err());
        assert!(check(&b"<</A ".repeat(100_000)).is_err());
        let inside = |open: &str, close: &str| {
            [open.as_bytes(), &b"[".repeat(100_000), close.as_bytes()].concat()
        };
        assert!(check(&inside("(", ")")).is_ok());
        assert!(check(&inside("stream\n", "endstream")).is_ok());
        assert!(check(&inside("%", "\n")).is_ok());
        // A string or stream without an end hides nothing.
        assert!(check(&inside("(", "")).is_err());
        assert!(check(&inside("stream\n", "")).is_err());
        // Many of them do not either, and are checked quickly.
        assert!(check(&b"( stream\n ".repeat(1 << 18)).is_ok());
    }

    #[test]
    fn objects_are_counted() {
        assert!(check(&b"endobj ".repeat(OBJECTS_MAX)).is_ok());
        assert!(check(&b"endobj ".repeat(OBJECTS_MAX + 1)).is_err());
    }

    #[test]
    fn pictures_are_seen() {
        assert!(has_pictures(b"<</Type /XObject /Subtype\n/Image>>"));
        assert!(has_pictures(b"<</Subtype/Image>>"));
        assert!(!has_pictures(b"<</ProcSet [/PDF /ImageB] /Subtype /Form>>"));
    }
}
