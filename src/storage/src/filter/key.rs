//! Encodes values as bytes whose bytewise order is the order of the values.
//!
//! A key is a tag followed by a payload. Values of one type are adjacent, so a comparison is a
//! range of entries. UTF-8 preserves the order of code points.

use serde_json::Number;

use lodestone_types::FilterValue;

/// Payload bytes of a number.
const NUMBER_BYTES: usize = 10;

const TAG_PRESENT: u8 = 0;
const TAG_NULL: u8 = 1;
const TAG_BOOL: u8 = 2;
const TAG_NUMBER: u8 = 3;
const TAG_TEXT: u8 = 4;

/// Key of the entry for rows that have any value except null.
pub(super) const PRESENT: &[u8] = &[TAG_PRESENT];
/// Key of the entry for rows that have a null.
pub(super) const NULL: &[u8] = &[TAG_NULL];

/// The key of a boolean.
pub(super) fn of_bool(value: bool) -> Vec<u8> {
    vec![TAG_BOOL, u8::from(value)]
}

/// The key of a string.
pub(super) fn of_text(value: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + value.len());
    key.push(TAG_TEXT);
    key.extend_from_slice(value.as_bytes());
    key
}

/// The key of a number, exact over all of `i64`, `u64` and `f64`.
///
/// A number is stored as the greatest `f64` not above it, followed by the distance to the number.
/// If `f` is the greatest `f64` not above an integer `n`, then any `f64` above `f` is above `n`, so
/// comparing first the floats and then the distances compares the numbers. A float has distance 0,
/// and so does each integer that equals a float. For integers below 2^64 the distance is less than
/// 2^11.
pub(super) fn of_number(value: &Number) -> Vec<u8> {
    let integer = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
    let (float, distance) = match integer {
        Some(integer) => split(integer),
        // Negative zero equals zero; adding zero normalises it.
        None => (value.as_f64().unwrap_or_default() + 0.0, 0),
    };
    let mut key = Vec::with_capacity(1 + NUMBER_BYTES);
    key.push(TAG_NUMBER);
    key.extend_from_slice(&ordered_bits(float).to_be_bytes());
    key.extend_from_slice(&distance.to_be_bytes());
    key
}

/// The key of a value in a filter.
pub(super) fn of_value(value: &FilterValue) -> Vec<u8> {
    match value {
        FilterValue::Null => NULL.to_vec(),
        FilterValue::Bool(value) => of_bool(*value),
        FilterValue::Number(value) => of_number(value),
        FilterValue::Text(value) => of_text(value),
    }
}

/// The smallest byte string above every key of the type of `key`.
pub(super) fn end_of_type(key: &[u8]) -> [u8; 1] {
    [key[0] + 1]
}

/// The smallest byte string not above any key of the type of `key`.
pub(super) fn start_of_type(key: &[u8]) -> [u8; 1] {
    [key[0]]
}

/// The UTF-8 bytes of a string's key; `None` for other keys.
pub(super) fn text_bytes(key: &[u8]) -> Option<&[u8]> {
    match key {
        [TAG_TEXT, text @ ..] => Some(text),
        _ => None,
    }
}

/// A boolean, number or string as text for people; `None` for other keys.
pub(super) fn shown(key: &[u8]) -> Option<String> {
    match key {
        [TAG_BOOL, value] => Some((*value == 1).to_string()),
        [TAG_TEXT, text @ ..] => std::str::from_utf8(text).ok().map(str::to_owned),
        [TAG_NUMBER, payload @ ..] => {
            let (bits, distance) = payload.split_first_chunk::<8>()?;
            let distance = i128::from(u16::from_be_bytes(distance.try_into().ok()?));
            let float = float_of(u64::from_be_bytes(*bits));
            let is_whole = float.fract() == 0.0 && float.abs() < 2_f64.powi(64);
            Some(if is_whole { (float as i128 + distance).to_string() } else { float.to_string() })
        }
        _ => None,
    }
}

/// Whether stored bytes have the form of a key.
pub(super) fn is_well_formed(key: &[u8]) -> bool {
    match key {
        [TAG_PRESENT | TAG_NULL] | [TAG_BOOL, 0 | 1] | [TAG_TEXT, ..] => true,
        [TAG_NUMBER, payload @ ..] => payload.len() == NUMBER_BYTES,
        _ => false,
    }
}

/// Splits an integer into the greatest `f64` not above it and the distance to that.
fn split(integer: i128) -> (f64, u16) {
    let nearest = integer as f64;
    let below = if nearest as i128 > integer { nearest.next_down() } else { nearest };
    let distance = integer - below as i128;
    (below, u16::try_from(distance).expect("integers have at most 64 bits"))
}

/// Maps a finite float to bits whose unsigned order is the order of the floats.
fn ordered_bits(float: f64) -> u64 {
    let bits = float.to_bits();
    if float.is_sign_negative() { !bits } else { bits | 1 << 63 }
}

/// Inverse of [`ordered_bits`].
fn float_of(bits: u64) -> f64 {
    f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key(value: serde_json::Value) -> Vec<u8> {
        of_number(value.as_number().unwrap())
    }

    #[test]
    fn values_are_shown_as_they_were_given() {
        for number in [json!(0), json!(-1.5), json!(2024), json!(i64::MIN), json!(u64::MAX)] {
            assert_eq!(shown(&key(number.clone())).unwrap(), number.to_string());
        }
        assert_eq!(shown(&of_text("memo")).as_deref(), Some("memo"));
        assert_eq!(shown(&of_bool(true)).as_deref(), Some("true"));
        assert_eq!(shown(PRESENT), None);
    }

    #[test]
    fn numbers_keep_their_order_beyond_the_precision_of_floats() {
        let ascending = [
            json!(f64::MIN),
            json!(-9_223_372_036_854_777_856.0_f64),
            json!(i64::MIN),
            json!(i64::MIN + 1),
            json!(-9_007_199_254_740_994_i64),
            json!(-9_007_199_254_740_993_i64),
            json!(-9_007_199_254_740_992.0_f64),
            json!(-1.5),
            json!(-1),
            json!(-f64::MIN_POSITIVE),
            json!(0),
            json!(5e-324),
            json!(1),
            json!(1.0000000000000002_f64),
            json!(9_007_199_254_740_992.0_f64),
            json!(9_007_199_254_740_993_i64),
            json!(9_007_199_254_740_994.0_f64),
            json!(i64::MAX),
            json!(9_223_372_036_854_775_808.0_f64),
            json!(9_223_372_036_854_775_809_u64),
            json!(u64::MAX - 1),
            json!(u64::MAX),
            json!(18_446_744_073_709_551_616.0_f64),
            json!(f64::MAX),
        ];
        for pair in ascending.windows(2) {
            assert!(key(pair[0].clone()) < key(pair[1].clone()), "{} < {}", pair[0], pair[1]);
        }
    }

    #[test]
    fn equal_numbers_have_one_key() {
        assert_eq!(key(json!(1)), key(json!(1.0)));
        assert_eq!(key(json!(0)), key(json!(-0.0)));
        assert_eq!(key(json!(1_u64 << 63)), key(json!(9_223_372_036_854_775_808.0_f64)));
        assert_eq!(key(json!(i64::MIN)), key(json!(i64::MIN as f64)));
    }

    #[test]
    fn texts_keep_the_order_of_code_points() {
        // UTF-16 would order U+FF5E after U+1F600.
        assert!(of_text("") < of_text("a") && of_text("a") < of_text("a\0"));
        assert!(of_text("\u{ff5e}") < of_text("\u{1f600}"));
    }
}
