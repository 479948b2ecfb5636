//! The text of an API key: `lsk_<id>_<secret><check>`.
//!
//! ```text
//! lsk_  key_01kb3z...  _  43 characters of base 62   6 characters of base 62
//!       id: 30 characters secret: 256 random bits    CRC-32 of everything before it
//! ```
//! All widths are fixed; keys of the first release have an id of 16 hexadecimal digits. The check
//! lets this parser and scanners for leaked secrets tell a key from other text and from a truncated
//! or mistyped key; it provides no security.

use std::fmt;

use lodestone_types::{IdSource, Timestamp};

const PREFIX: &str = "lsk_";
const ID_PREFIX: &str = "key_";
/// Length of an id, and of one made by the first release.
const ID_CHARS: [usize; 2] = [30, 16];
const SECRET_CHARS: usize = 43;
const CHECK_CHARS: usize = 6;
/// Length of a key without its id.
const OTHER_CHARS: usize = PREFIX.len() + 1 + SECRET_CHARS + CHECK_CHARS;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A complete key. `Debug` shows only its id, so that the key cannot end up in a log.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyText(String);

impl KeyText {
    /// Returns the key itself, to be shown to its user once.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The public part: the key's id.
    pub fn id(&self) -> &str {
        &self.0[PREFIX.len()..][..self.0.len() - OTHER_CHARS]
    }

    /// The secret part, whose hash is stored.
    pub(super) fn secret(&self) -> &str {
        &self.0[PREFIX.len() + self.id().len() + 1..][..SECRET_CHARS]
    }

    /// Whether a text has the form of a key, and so is or was a key of this or another catalog.
    pub fn has_form(text: &str) -> bool {
        Self::parse(text).is_some()
    }

    /// Generates a fresh key.
    pub(super) fn generate(ids: &dyn IdSource, now: Timestamp) -> Self {
        let mut secret = [0; 32];
        ids.fill(&mut secret);
        Self::of(&ids.wire_id(ID_PREFIX, now), &secret)
    }

    /// Builds the key of an id and a 32-byte secret.
    pub(super) fn of(id: &str, secret: &[u8]) -> Self {
        debug_assert!(ID_CHARS.contains(&id.len()));
        let mut text = format!("{PREFIX}{id}_{}", base62(secret, SECRET_CHARS));
        let check = base62(&crc32(text.as_bytes()).to_be_bytes(), CHECK_CHARS);
        text.push_str(&check);
        Self(text)
    }

    /// Parses a key; `None` if the text is not one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let id_chars = text.len().checked_sub(OTHER_CHARS)?;
        let is_shaped = ID_CHARS.contains(&id_chars) && text.is_ascii() && text.starts_with(PREFIX);
        if !is_shaped || text.as_bytes()[PREFIX.len() + id_chars] != b'_' {
            return None;
        }
        let (body, check) = text.split_at(text.len() - CHECK_CHARS);
        let is_whole = check == base62(&crc32(body.as_bytes()).to_be_bytes(), CHECK_CHARS);
        is_whole.then(|| Self(text.to_owned()))
    }
}

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyText({}, ...)", self.id())
    }
}

/// Encodes `bytes`, read as one big-endian number, in base 62, padded to `width` digits.
fn base62(bytes: &[u8], width: usize) -> String {
    let mut number = bytes.to_vec();
    let mut digits = vec![0_u8; width];
    for digit in digits.iter_mut().rev() {
        let mut remainder = 0_u32;
        for byte in &mut number {
            let value = remainder << 8 | u32::from(*byte);
            *byte = (value / 62) as u8;
            remainder = value % 62;
        }
        *digit = BASE62[remainder as usize];
    }
    debug_assert!(number.iter().all(|byte| *byte == 0), "the width holds every number");
    digits.into_iter().map(char::from).collect()
}

/// CRC-32 of IEEE 802.3, with the reflected polynomial EDB88320.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ (0xEDB8_8320 * (crc & 1));
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodestone_types::SeededIds;

    #[test]
    fn the_check_is_the_common_crc() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }

    #[test]
    fn numbers_keep_their_value_in_base_62() {
        assert_eq!(base62(&[0, 61], 3), "00z");
        assert_eq!(base62(&[0, 62], 3), "010");
        assert_eq!(base62(&[255; 4], 6), "4gfFC3");
        assert_eq!(base62(&[255; 32], 43).len(), 43);
    }

    /// A current key, and one of the first release.
    fn keys() -> [KeyText; 2] {
        let new = KeyText::generate(&SeededIds::new(1), Timestamp(1_757_402_409_727));
        [new, KeyText::of("0123456789abcdef", &[7; 32])]
    }

    #[test]
    fn an_id_is_sorted_by_time() {
        let at = |now| KeyText::generate(&SeededIds::new(1), Timestamp(now)).id().to_owned();
        let (first, second) = (at(1_757_402_409_727), at(1_757_402_409_728));
        assert!(first.starts_with("key_") && first.len() == 30 && first < second, "{first}");
    }

    #[test]
    fn a_key_is_read_back_and_any_single_change_is_noticed() {
        for key in keys() {
            let text = key.expose();
            assert_eq!(KeyText::parse(text), Some(key.clone()));
            assert_eq!(format!("lsk_{}_{}", key.id(), key.secret()), text[..text.len() - 6]);
            assert_eq!(key.secret().len(), 43);
            assert!(KeyText::has_form(text) && !KeyText::has_form(&text[1..]));
            for position in 0..text.len() {
                let mut changed = text.as_bytes().to_vec();
                changed[position] = if changed[position] == b'a' { b'b' } else { b'a' };
                let changed = String::from_utf8(changed).unwrap();
                assert_eq!(KeyText::parse(&changed), None, "{position}");
            }
            for length in 0..text.len() {
                assert_eq!(KeyText::parse(&text[..length]), None);
            }
            assert_eq!(KeyText::parse(&format!("{text} ")), None);
            assert_eq!(KeyText::parse(&"é".repeat(text.len() / 2)), None);
        }
    }

    #[test]
    fn a_key_does_not_print_its_secret() {
        for key in keys() {
            assert_eq!(format!("{key:?}"), format!("KeyText({}, ...)", key.id()));
        }
    }
}
