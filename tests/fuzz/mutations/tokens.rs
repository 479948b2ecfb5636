//! Mutations of the numbers and words of a notation.

use std::ops::Range;

use crate::chance::Chance;
use crate::mutations::bytes;

/// Numbers at the limits of common representations.
pub const NUMBERS: &[&str] = &[
    "0", "1", "-1", "2", "7", "9", "10", "64", "255", "256", "1000", "16384", "65535", "65536",
    "1048577", "99999999", "2147483647", "2147483648", "-2147483648", "4294967295", "4294967296",
    "9223372036854775807", "18446744073709551616", "0.5", "-0.0", "1e9", "1e309", "-1e-309", "NaN",
    "99999999999999999999999999999999999999", "00000000000001", "+3", "1.", ".5", "",
];

/// Inserts words of the notation, changes a number, or removes, repeats or moves a line.
pub fn mutate(chance: &mut Chance, base: &[u8], words: &[&str]) -> Vec<u8> {
    let mut bytes = base.to_vec();
    match chance.below(4) {
        0 => {
            if let Some(place) = number(chance, base) {
                bytes.splice(place, chance.pick(NUMBERS).bytes());
            }
        }
        1 => {
            let at = chance.below(bytes.len() + 1);
            bytes.splice(at..at, chance.pick(words).bytes());
        }
        2 => {
            let at = chance.below(bytes.len() + 1);
            let word = chance.pick(words);
            let times = if chance.one_in(10) { chance.below(5000) } else { chance.length(20) };
            bytes.splice(at..at, word.repeat(times).into_bytes());
        }
        _ => {
            let place = line(chance, base);
            match chance.below(3) {
                0 => drop(bytes.drain(place)),
                1 => bytes::repeat(chance, &mut bytes, place),
                _ => {
                    let copy = bytes[place].to_vec();
                    let at = line(chance, base).start;
                    bytes.splice(at..at, copy);
                }
            }
        }
    }
    bytes
}

/// The range of a number at a random position.
pub fn number(chance: &mut Chance, bytes: &[u8]) -> Option<Range<usize>> {
    let from = chance.below(bytes.len());
    let is_digit = |at: usize| bytes[at].is_ascii_digit();
    let start = (from..bytes.len()).chain(0..from).find(|&at| is_digit(at))?;
    let end = (start..bytes.len()).find(|&at| !is_digit(at)).unwrap_or(bytes.len());
    Some(start..end)
}

/// The range of a line at a random position, including its line feed.
fn line(chance: &mut Chance, bytes: &[u8]) -> Range<usize> {
    let at = chance.below(bytes.len());
    let start = bytes[..at].iter().rposition(|&b| b == b'\n').map_or(0, |end| end + 1);
    let end = bytes[at..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |end| at + end + 1);
    start..end
}
