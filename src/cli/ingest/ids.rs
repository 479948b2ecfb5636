//! Derives file ids from paths and addresses: readable, stable across runs, and unique.
//!
//! Components are joined with `:`. Characters that the id rules refuse, `:` and `%` themselves, and
//! bytes that are not UTF-8 are escaped as `%XX`, so that an id can be decoded to its path and no
//! two paths share an id. The server compares ids in Unicode NFC, which maps different paths to one
//! id; an id that NFC would change is therefore escaped to pure ASCII. An id that is too long keeps
//! its beginning and end around `%~` and a hash; `%~` cannot occur in any other id.
//!
//! The Python client (`_ids.py`) and the console (`ids.js`) derive the same ids.

use lodestone_types::limits;
use sha2::{Digest, Sha256};
use unicode_normalization::is_nfc;

const SEPARATOR: char = ':';
/// Marks a shortened id: a `%` that begins no escape.
const SHORTENED: &str = "%~";
/// Hexadecimal digits of the hash: 128 bits.
const HASH_CHARS: usize = 32;
/// Characters that a shortened id keeps at either end.
const END_CHARS: usize = (limits::ID_CHARS_MAX - SHORTENED.len() - HASH_CHARS) / 2;

/// Returns the id of a path from its components as encoded by the operating system.
pub fn of_components<'a>(components: impl IntoIterator<Item = &'a [u8]>) -> String {
    let components: Vec<&[u8]> = components.into_iter().collect();
    let plain = joined(&components, false);
    if is_nfc(&plain) && plain.chars().count() <= limits::ID_CHARS_MAX {
        return plain;
    }
    let ascii = joined(&components, true);
    if ascii.len() <= limits::ID_CHARS_MAX {
        return ascii;
    }
    let hash = hex::encode(Sha256::digest(ascii.as_bytes()));
    let (head, tail) = (&ascii[..END_CHARS], &ascii[ascii.len() - END_CHARS..]);
    format!("{head}{SHORTENED}{}{tail}", &hash[..HASH_CHARS])
}

/// Returns the id of a web address. No path shares it, because no path has an empty component.
pub fn of_url(url: &str) -> String {
    of_components(url.split('/').map(str::as_bytes))
}

fn joined(components: &[&[u8]], is_ascii_only: bool) -> String {
    let mut id = String::new();
    for (number, component) in components.iter().enumerate() {
        if number > 0 {
            id.push(SEPARATOR);
        }
        for chunk in component.utf8_chunks() {
            for character in chunk.valid().chars() {
                let is_refused = character.is_control()
                    || matches!(character, '%' | SEPARATOR | '/' | '\\' | '\u{2028}' | '\u{2029}');
                if is_refused || is_ascii_only && !character.is_ascii() {
                    escape(&mut id, character.encode_utf8(&mut [0; 4]).as_bytes());
                } else {
                    id.push(character);
                }
            }
            escape(&mut id, chunk.invalid());
        }
    }
    without_white_ends(&id)
}

/// Escapes white space at either end, which is refused; escaping one character suffices.
fn without_white_ends(id: &str) -> String {
    let white = |character: &char| character.is_whitespace();
    let mut escaped = String::with_capacity(id.len());
    let first = id.chars().next().filter(white);
    let last = id.chars().next_back().filter(white);
    let from = first.map_or(0, char::len_utf8);
    let to = id.len() - last.map_or(0, char::len_utf8);
    if let Some(first) = first {
        escape(&mut escaped, first.encode_utf8(&mut [0; 4]).as_bytes());
    }
    if from < to {
        escaped.push_str(&id[from..to]);
    }
    if let Some(last) = last.filter(|_| from <= to) {
        escape(&mut escaped, last.encode_utf8(&mut [0; 4]).as_bytes());
    }
    escaped
}

fn escape(id: &mut String, bytes: &[u8]) {
    for byte in bytes {
        id.push('%');
        id.push_str(&hex::encode_upper([*byte]));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use unicode_normalization::UnicodeNormalization;

    use super::*;

    fn id(path: &str) -> String {
        of_components(path.split('/').map(str::as_bytes))
    }

    #[test]
    fn ids_read_like_their_paths() {
        // The tests of the Python client and of the console read the same table.
        let table: HashMap<String, String> =
            serde_json::from_str(include_str!("ids.json")).unwrap();
        for (path, expected) in table {
            assert_eq!(id(&path), expected, "{path:?}");
        }
        assert_eq!(of_components([&b"\xff\n"[..]]), "%FF%0A");
        assert_eq!(of_url("https://example.com/a?b=c"), "https%3A::example.com:a?b=c");
    }

    #[test]
    fn names_that_differ_in_normal_form_only_stay_apart() {
        let (composed, decomposed) = (id("café.txt"), id("cafe\u{301}.txt"));
        assert_eq!(composed, "café.txt");
        assert_eq!(decomposed, "cafe%CC%81.txt");
        // The preceding escape ends in a letter that the combining mark would join.
        assert_eq!(id("\\\u{327}"), "%5C%CC%A7");
    }

    #[test]
    fn long_paths_keep_their_ends_and_stay_apart() {
        let long = |middle: &str| id(&format!("docs/{}{middle}{}/end.pdf", "x".repeat(300), "y"));
        let (one, two) = (long("1"), long("2"));
        assert!(one.starts_with("docs:xxx") && one.ends_with("y:end.pdf"), "{one}");
        assert!(one.chars().count() <= limits::ID_CHARS_MAX && one != two);
        assert_eq!(id(&"é".repeat(256)), "é".repeat(256));
        assert!(id(&"é".repeat(257)).is_ascii());
    }

    fn decoded(id: &str) -> Vec<Vec<u8>> {
        let component = |text: &str| {
            let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
            while let Some((first, after)) = rest.split_first() {
                if *first == b'%' {
                    bytes.push(
                        u8::from_str_radix(&String::from_utf8_lossy(&after[..2]), 16).unwrap(),
                    );
                    rest = &after[2..];
                } else {
                    bytes.push(*first);
                    rest = after;
                }
            }
            bytes
        };
        id.split(':').map(component).collect()
    }

    fn component() -> impl Strategy<Value = Vec<u8>> {
        // Refused, escaped, NFC-composed and white-space characters, more often than others.
        let pieces = prop_oneof![
            Just(":".as_bytes().to_vec()),
            Just("%".as_bytes().to_vec()),
            Just("\\".as_bytes().to_vec()),
            Just("\u{327}".as_bytes().to_vec()),
            Just("e\u{301}".as_bytes().to_vec()),
            Just("é".as_bytes().to_vec()),
            Just(" ".as_bytes().to_vec()),
            Just("\u{2028}".as_bytes().to_vec()),
            Just(b"\xff".to_vec()),
            Just(b"%~".to_vec()),
            any::<char>().prop_map(|c| c.to_string().into_bytes()),
        ];
        prop::collection::vec(pieces, 1..12).prop_map(|pieces| {
            let bytes: Vec<u8> = pieces.concat();
            bytes.into_iter().filter(|byte| !matches!(byte, b'/' | 0)).collect()
        })
    }

    proptest! {
        #[test]
        fn an_id_keeps_the_rules_and_gives_its_path_back(
            path in prop::collection::vec(component(), 1..5)
        ) {
            let id = of_components(path.iter().map(Vec::as_slice));
            prop_assert!(id.chars().count() <= limits::ID_CHARS_MAX);
            prop_assert!(id.len() <= limits::ID_BYTES_MAX);
            prop_assert_eq!(id.nfc().collect::<String>(), id.clone());
            prop_assert_eq!(id.trim(), &id);
            let refused = ['/', '\\', '\u{2028}', '\u{2029}'];
            prop_assert!(!id.contains(refused));
            prop_assert!(!id.chars().any(char::is_control));
            if !id.contains(SHORTENED) {
                prop_assert_eq!(decoded(&id), path);
            }
        }

        #[test]
        fn no_two_paths_share_an_id(
            paths in prop::collection::hash_set(prop::collection::vec(component(), 1..4), 2..40)
        ) {
            let mut seen = HashMap::new();
            for path in &paths {
                let id = of_components(path.iter().map(Vec::as_slice));
                prop_assert_eq!(seen.insert(id, path), None);
            }
        }
    }
}
