//! Small self-verifying files: a header line of fixed words and fields, then a body.
//!
//! ```text
//! sealed     words " " XXH3-64 of the body as 16 hex digits " " bytes of the body "\n" body
//! labelled   words " " bytes of the label "\n" label content
//! ```
//! Manifests, source lists and tenant descriptors are sealed. Originals are labelled: their hash is
//! part of their name.

use std::ops::Range;

use crate::checksum;

fn first_line(words: &str, body: &[u8]) -> String {
    format!("{words} {:016x} {}", checksum(body), body.len())
}

/// Builds a sealed file.
pub fn seal(words: &str, body: &[u8]) -> Vec<u8> {
    [first_line(words, body).as_bytes(), b"\n", body].concat()
}

/// Verifies a sealed file and returns its body.
///
/// # Errors
/// The violated rule, as a phrase.
pub fn open<'a>(words: &str, bytes: &'a [u8]) -> Result<&'a [u8], &'static str> {
    let (line, body) = split_line(bytes)?;
    match line == first_line(words, body).as_bytes() {
        true => Ok(body),
        false if later_format(words, bytes).is_some() => {
            Err("it has a later format than this release reads: upgrade")
        }
        false => Err("the first line does not match the body's length and hash"),
    }
}

/// The format version in a file's header, if it is of the same kind as `words` but newer.
pub fn later_format(words: &str, bytes: &[u8]) -> Option<u32> {
    let (name, own) = words.rsplit_once(' ')?;
    let rest = bytes.strip_prefix(name.as_bytes())?.strip_prefix(b" ")?;
    let digits = rest.split(|byte| *byte == b' ').next()?;
    let found: u32 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    own.parse().is_ok_and(|own: u32| found > own).then_some(found)
}

/// Builds a labelled file.
pub fn label(words: &str, label: &[u8], content: &[u8]) -> Vec<u8> {
    [format!("{words} {}\n", label.len()).as_bytes(), label, content].concat()
}

/// Returns the label of a labelled file and the offset of its content.
///
/// # Errors
/// The violated rule, as a phrase.
pub fn read_label<'a>(words: &str, bytes: &'a [u8]) -> Result<(&'a [u8], usize), &'static str> {
    let range = label_range(words, bytes)?;
    let label = bytes.get(range.clone()).ok_or("the label is cut")?;
    Ok((label, range.end))
}

/// Returns the byte range of the label in a labelled file, of which `head` holds at least the
/// header line. The content begins at its end.
///
/// # Errors
/// The violated rule, as a phrase.
pub fn label_range(words: &str, head: &[u8]) -> Result<Range<usize>, &'static str> {
    let (line, _) = split_line(head)?;
    let start = line.len() + 1;
    let line = std::str::from_utf8(line).ok().and_then(|line| line.strip_prefix(words));
    let length = line.and_then(|line| line.strip_prefix(' ')?.parse::<usize>().ok());
    let length = length.ok_or("the first line is not that of this format")?;
    Ok(start..start.checked_add(length).ok_or("the label is cut")?)
}

fn split_line(bytes: &[u8]) -> Result<(&[u8], &[u8]), &'static str> {
    let end = bytes.iter().position(|byte| *byte == b'\n').ok_or("there is no first line")?;
    Ok((&bytes[..end], &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_read_back_and_any_changed_byte_of_a_sealed_one_is_noticed() {
        let bytes = seal("lodestone test 1", b"body\nof two lines");
        assert_eq!(open("lodestone test 1", &bytes), Ok(&b"body\nof two lines"[..]));
        assert!(open("lodestone test 2", &bytes).is_err());
        for position in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[position] ^= 1;
            assert!(open("lodestone test 1", &bad).is_err(), "byte {position}");
            assert!(open("lodestone test 1", &bytes[..position]).is_err());
        }
        assert_eq!(later_format("lodestone test 1", &bytes), None);
        assert_eq!(later_format("lodestone test 2", &bytes), None, "an earlier one");
        assert_eq!(later_format("lodestone other 1", &bytes), None);
        let later = seal("lodestone test 12", b"body");
        assert_eq!(later_format("lodestone test 1", &later), Some(12));
        assert!(open("lodestone test 1", &later).unwrap_err().contains("later format"));
        let bytes = label("lodestone test 1", b"{}", b"content");
        assert_eq!(bytes, b"lodestone test 1 2\n{}content");
        let (found, content) = read_label("lodestone test 1", &bytes).unwrap();
        assert_eq!((found, &bytes[content..]), (&b"{}"[..], &b"content"[..]));
        assert!(read_label("lodestone test 1", b"lodestone test 1 9\n{}").is_err());
        assert!(read_label("lodestone test", &bytes).is_err());
    }
}
