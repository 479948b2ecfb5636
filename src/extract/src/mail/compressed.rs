//! Compressed RTF, as used by Outlook for bodies (MS-OXRTFCP): runs are copied from earlier output.
//!
//! ```text
//! u32 size of the rest | u32 uncompressed size | "LZFu" or "MELA" | u32 checksum | runs
//! run: a byte of flags, lowest bit first: 0 = literal,
//!      1 = two bytes: 12 bits offset, 4 bits length - 2
//! ```
//! All numbers are little-endian except for the two bytes of a copy. The checksum is not verified:
//! a part of a damaged body is better than nothing.

use crate::TEXT_BYTES_MAX;

/// Bytes of the header.
const HEADER_BYTES: usize = 16;
/// Size of the window that runs can be copied from.
const WINDOW_BYTES: usize = 4096;
/// Initial contents of the window.
const WINDOW: &[u8] = b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}\
    {\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript \\fdecor \
    MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par \
    \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx";

/// Decompresses a body to RTF.
pub(super) fn expanded(bytes: &[u8]) -> Option<Vec<u8>> {
    let header = bytes.get(..HEADER_BYTES)?;
    let body = &bytes[HEADER_BYTES..];
    match &header[8..12] {
        b"MELA" => return Some(body.to_vec()),
        b"LZFu" => {}
        _ => return None,
    }
    let declared = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
    let mut window = [b' '; WINDOW_BYTES];
    window[..WINDOW.len()].copy_from_slice(WINDOW);
    let mut at = WINDOW.len();
    let mut expanded = Vec::new();
    let mut rest = body.iter().copied();
    let mut put = |b: u8, at: &mut usize, window: &mut [u8; WINDOW_BYTES]| {
        expanded.push(b);
        window[*at % WINDOW_BYTES] = b;
        *at += 1;
        expanded.len() < declared.min(TEXT_BYTES_MAX)
    };
    'runs: while let Some(flags) = rest.next() {
        for bit in 0..8 {
            let Some(first) = rest.next() else { break 'runs };
            if flags >> bit & 1 == 0 {
                if !put(first, &mut at, &mut window) {
                    break 'runs;
                }
                continue;
            }
            let Some(second) = rest.next() else { break 'runs };
            let place = usize::from(first) << 4 | usize::from(second >> 4);
            let length = usize::from(second & 15) + 2;
            // A copy from the current write position marks the end.
            if place == at % WINDOW_BYTES {
                break 'runs;
            }
            for offset in 0..length {
                let b = window[(place + offset) % WINDOW_BYTES];
                if !put(b, &mut at, &mut window) {
                    break 'runs;
                }
            }
        }
    }
    Some(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the example of MS-OXRTFCP 4.1.1 decompresses.
    #[test]
    fn the_example_of_the_specification_expands() {
        let compressed = [
            0x2d, 0, 0, 0, 0x2b, 0, 0, 0, b'L', b'Z', b'F', b'u', 0xf1, 0xc5, 0xc7, 0xa7, 3, 0,
            0x0a, 0, 0x72, 0x63, 0x70, 0x67, 0x31, 0x32, 0x35, 0x42, 0x32, 0x0a, 0xf3, 0x20, 0x68,
            0x65, 0x6c, 0x09, 0, 0x20, 0x62, 0x77, 0x05, 0xb0, 0x6c, 0x64, 0x7d, 0x0a, 0x80, 0x0f,
            0xa0,
        ];
        let expected = b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n";
        assert_eq!(WINDOW.len(), 207);
        assert_eq!(expanded(&compressed).as_deref(), Some(&expected[..]));
        for length in 0..compressed.len() {
            let _ = expanded(&compressed[..length]);
        }
    }
}
