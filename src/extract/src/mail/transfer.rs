//! Transfer encodings: base64 and quoted-printable.

/// Decodes base64; skips other characters, and stops at padding.
pub(super) fn base64(encoded: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(encoded.len() / 4 * 3);
    let mut bits: u32 = 0;
    let mut count = 0;
    for &b in encoded {
        let value = match b {
            b'A'..=b'Z' => b - b'A',
            b'a'..=b'z' => b - b'a' + 26,
            b'0'..=b'9' => b - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' => break,
            _ => continue,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            decoded.push((bits >> count) as u8);
        }
    }
    decoded
}

/// Decodes quoted-printable; in a header an underscore is a space.
pub(super) fn quoted_printable(encoded: &[u8], is_header: bool) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some((&b, after)) = rest.split_first() {
        rest = after;
        match b {
            b'=' => match after {
                [b'\r', b'\n', ..] => rest = &after[2..],
                [b'\n', ..] => rest = &after[1..],
                [high, low, ..] => match (hex(*high), hex(*low)) {
                    (Some(high), Some(low)) => {
                        decoded.push(high << 4 | low);
                        rest = &after[2..];
                    }
                    _ => decoded.push(b),
                },
                _ => {}
            },
            b'_' if is_header => decoded.push(b' '),
            other => decoded.push(other),
        }
    }
    decoded
}

/// The value of a hexadecimal digit.
pub(crate) fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
        assert_eq!(base64(b"SGV5\r\nIQ=="), b"Hey!");
        assert_eq!(base64(b"S!G V5"), b"Hey");
        assert_eq!(quoted_printable(b"a=20b=\r\nc=3D=C3=A9=zz=", false), b"a bc=\xC3\xA9=zz");
        assert_eq!(quoted_printable(b"a_b", true), b"a b");
    }
}
